"""Questions from a seed alone: a library of their own, and one task about it. Their ids say how to draw them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple, get_args

from inquitree_gym.errors import OptionError
from inquitree_gym.exploration.building.citations import citation_task
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.navigation import HOPS, WORLDS, Index, navigation_task
from inquitree_gym.exploration.building.retrieval import retrieval_task
from inquitree_gym.exploration.building.tables import table_task
from inquitree_gym.exploration.library import LibrarySpec
from inquitree_gym.exploration.providers import LocalLibrary, local_library
from inquitree_gym.exploration.schema import MAX_HOPS, ExplorationTask, TaskType
from inquitree_gym.fiction.documents import check_seed
from inquitree_gym.seeds import splitmix64

Size = Literal[200, 2000]
"""Documents of a synthetic library."""
LEAST = 200
TYPES: dict[int, tuple[TaskType, ...]] = {200: ("T1", "T3", "T4"), 2000: ("T1", "T2", "T3", "T4")}
"""Types by size. Among the 54 papers of a small library no two words leave the eight that T2 needs."""
KEPT = 4
"""Libraries that are kept at most."""
_LIBRARIES = 50
"""Libraries that are tried for a task."""
_NUMBERS = 12
"""Kinds of tasks of one type: chains and trees, with authors and without, with linked scopes and without."""
_FORM = re.compile(r"synthetic-t([1-4])-(0|[1-9]\d{0,18})(-n2000)?(?:-h([2-6]))?")
_TYPE, _HOPS, _WORLD = 1, 2, 3
"""Places of the draws of a question from its seed."""


class QuestionSpec(NamedTuple):
    """Arguments that determine a synthetic question."""

    seed: int
    """Seed of its library: even for training, odd for tests."""
    size: Size = 200
    """Documents of its library."""
    kind: TaskType = "T1"
    hops: int | None = None
    """Records of T1, 2 to 6. None to draw it, as often as among the frozen tasks."""

    @property
    def name(self) -> str:
        """Id of its task, such as ``synthetic-t1-17-n2000-h4``."""
        size, hops = f"-n{self.size}" if self.size > LEAST else "", f"-h{self.hops}" if self.hops else ""
        return f"synthetic-{self.kind.lower()}-{self.seed}{size}{hops}"


def spec_of(name: str) -> QuestionSpec | None:
    """Return what the id of a synthetic question says. None for any other text, and for one that cannot be drawn.

    >>> spec_of("synthetic-t1-17-h4")
    QuestionSpec(seed=17, size=200, kind='T1', hops=4)
    """
    found = _FORM.fullmatch(name)
    if found is None:
        return None
    kind, seed, large, hops = found.groups()
    with suppress(OptionError):
        named: TaskType = get_args(TaskType)[int(kind) - 1]
        return question_spec(int(seed), size=2000 if large else 200, kind=named, hops=int(hops) if hops else None)
    return None


def check_choices(size: object, kind: object, hops: object) -> None:
    """Raise `OptionError` unless there are questions of a size, a type (None for all) and a number of records."""
    if isinstance(size, bool) or size not in get_args(Size):
        raise OptionError(f"size must be 200 or 2000 documents, got {size!r:.80}. Choose one.")
    if kind == "T2" and size == LEAST:
        raise OptionError("kind='T2' must have size=2000, got 200: no words fit eight papers of so small a library.")
    if kind is not None and kind not in get_args(TaskType):
        raise OptionError(f"kind must be T1, T2, T3, T4 or None for all, got {kind!r:.80}. Choose one.")
    if hops is not None and (kind != "T1" or hops not in range(2, MAX_HOPS + 1)):
        raise OptionError(f"hops must be 2 to {MAX_HOPS} with kind='T1', got {hops!r:.80} with {kind!r:.80}.")


def question_spec(
    seed: int, *, size: Size = 200, kind: TaskType | None = None, hops: int | None = None
) -> QuestionSpec:
    """Return the arguments of the question of a seed. Its type is drawn if ``kind`` is None.

    Raises:
        OptionError: the seed is not from 0 to 2^63 - 1, or there is no such question.
    """
    check_seed(seed)
    check_choices(size, kind, hops)
    types = TYPES[size]
    return QuestionSpec(seed, size, kind or types[splitmix64(seed, _TYPE) % len(types)], hops)


class Libraries:
    """The last few libraries, each built when it is first asked for."""

    def __init__(self) -> None:
        self._kept: dict[LibrarySpec, LocalLibrary] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __call__(self, spec: LibrarySpec) -> LocalLibrary:
        """Return the provider of a library, the same object while it is kept."""
        if spec not in self._kept:
            self._kept[spec] = LocalLibrary(build_library(spec))
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[spec]


def synthetic_question(
    spec: QuestionSpec, libraries: Callable[[LibrarySpec], LocalLibrary] = local_library
) -> ExplorationTask:
    """Return the question of a specification, identical on every platform. T2 and T3 need the extra ``explore``.

    A seed whose library has no such task goes on to other libraries of the same parity.

    Raises:
        RuntimeError: none of many libraries has such a task.
        MissingExtraError: the type needs a search, and bm25s is not installed.
    """
    for attempt in range(_LIBRARIES):
        own = spec.seed if not attempt else splitmix64(spec.seed, attempt) >> 2 << 1 | spec.seed & 1
        library = LibrarySpec(seed=own, world=splitmix64(own, _WORLD) % WORLDS, size=spec.size)
        try:
            task = _drawn(spec, libraries(library))
        except RuntimeError:
            continue
        return task.model_copy(update={"id": spec.name})
    raise RuntimeError(f"{spec.name} must have a task, got none in {_LIBRARIES} libraries")


def _drawn(spec: QuestionSpec, provider: LocalLibrary) -> ExplorationTask:
    """Return the task of a specification in one library."""
    number = spec.seed // 2 % _NUMBERS
    if spec.kind == "T1":
        hops = spec.hops or HOPS[splitmix64(spec.seed, _HOPS) % len(HOPS)]
        return navigation_task(Index(provider.library), number, hops)
    if spec.kind == "T4":
        return table_task(Index(provider.library), number)
    return (retrieval_task if spec.kind == "T2" else citation_task)(provider, number)
