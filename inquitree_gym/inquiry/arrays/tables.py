"""Tables of the trees that a vector environment plays: engine, readings of the menu, masks, and numbers of texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import SIMILARITY_TOLERANCE
from inquitree_gym.envs.spaces import Ints
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.arrays.loop import ANSWER, CONTEXTS, RESULT_STATES, TEXT_HEAD, Tables, mask_words
from inquitree_gym.inquiry.engine import ObservationKind, Phase, Reading, Rules
from inquitree_gym.inquiry.engine.rows import MASKS, READINGS, ROW_HEAD, TEXTS, TREE, Slots, tree_table
from inquitree_gym.inquiry.menu import Menu, MenuSize
from inquitree_gym.inquiry.observations import LIMIT, ObservationKey, observation_keys
from inquitree_gym.inquiry.repeats import ShownText
from inquitree_gym.inquiry.runtime import RuntimeCache, TreeRuntime
from inquitree_gym.text_limits import readable
from inquitree_gym.trees import HINT_LEVELS, Tree

MAX_READINGS = 1 << 24
"""Most readings of one tree's menu: 270 MB."""
MAX_CACHED_TREES = 64
"""Trees kept besides those that the environment was made with."""

_OF_SUBTOPIC = (ObservationKind.SUBTOPIC, ObservationKind.SUBTOPIC_HINT)
_OF_STUDY = (ObservationKind.RESULT, ObservationKind.STUDY_HINT, ObservationKind.REDO, ObservationKind.RECALL)
_HINTED = (ObservationKind.SUBTOPIC_HINT, ObservationKind.STUDY_HINT, ObservationKind.WAIT)


@dataclass(frozen=True, slots=True)
class TreeTables:
    """Tables of one tree under one set of rules."""

    runtime: TreeRuntime
    menu: Menu
    engine: Ints
    readings: NDArray[np.int32]
    masks: Ints
    texts: NDArray[np.int32]


def tree_tables(runtime: TreeRuntime, size: MenuSize) -> TreeTables:
    """Return the tables of a runtime's tree for menus of ``size``.

    Raises:
        OptionError: the tree does not fit into the menu, or needs more than `MAX_READINGS` readings.
    """
    tree, rules, menu = runtime.task, runtime.engine.rules, Menu(runtime.task, size)
    if (count := (CONTEXTS + len(tree.subtopics)) * size.actions) > MAX_READINGS:
        raise OptionError(
            f"a tree in an array environment must need at most {MAX_READINGS:,} readings, got {count:,} for {tree.id}. "
            f'Play it with vectorization_mode="sync".'
        )
    return TreeTables(
        runtime=runtime,
        menu=menu,
        engine=np.array(tree_table(tree, rules, Slots(*size))),
        readings=_MenuReader(runtime).read(menu),
        masks=_packed(menu.masks),
        texts=text_numbers(runtime),
    )


def _packed(masks: NDArray[np.int8]) -> Ints:
    """Return masks, one a row, as words of eight bytes, flat."""
    padded = np.pad(masks, ((0, 0), (0, 8 * mask_words(masks.shape[1]) - masks.shape[1])))
    return padded.view(np.int64).reshape(-1)


class _MenuReader:
    """Readings of menu texts in every reading context of one tree."""

    def __init__(self, runtime: TreeRuntime) -> None:
        self._runtime, self._engine = runtime, runtime.engine
        n, studies = self._engine.n, len(self._engine.subtopic_of)
        self._subtopics, self._studies = tuple(range(n)), tuple(range(studies))
        # With everything visited no reading asks whether a text repeats one that was shown.
        self._state = self._engine.start(0).state.replace(visits=(1,) * n, runs=(1,) * studies)
        self._threshold = -1.0 if runtime.rules.threshold is None else runtime.rules.threshold

    def read(self, menu: Menu) -> NDArray[np.int32]:
        """Return the readings, flat, context by context, action by action, and the lists. See `Tables.readings`."""
        found = np.zeros((CONTEXTS + self._engine.n, menu.size.actions, ANSWER), np.int32)
        found[:, :, 0] = -1
        self._slots, self._end = Slots(*menu.size), found.size
        self._lists: dict[tuple[int, ...], int] = {}
        for action, text in enumerate(menu.texts):
            self._settle(readable(text))
            for phase in (Phase.TOPIC, Phase.RESULT, Phase.EXAM):
                reading = self._runtime.matcher.read(self._state.replace(phase=phase), text)
                found[phase, action] = self._numbers(phase, text, reading)
            found[CONTEXTS:, action] = [self._numbers(Phase.SUBTOPIC, text, each) for each in self._designs(text)]
        lists = chain.from_iterable((len(each) // 2, *each) for each in self._lists)
        return np.concatenate([found.reshape(-1), np.fromiter(lists, np.int32)])

    def _numbers(self, phase: Phase, text: str, reading: Reading) -> tuple[int, int, int, int]:
        near = reading.candidate >= 0 and reading.similarity >= self._threshold
        read = near and phase != Phase.EXAM
        found = (
            self._runtime.matcher.repeated(self._state.replace(phase=phase), readable(text), reading) if read else ()
        )
        repeated = tuple(chain.from_iterable(dict.fromkeys(map(self._seen, found or ()))))
        if repeated and repeated not in self._lists:
            self._lists[repeated] = self._end
            self._end += 1 + len(repeated)
        return reading.candidate, reading.decision, near, self._lists.get(repeated, 0)

    def _seen(self, text: ShownText) -> tuple[int, int]:
        """Return a column of a row, and the least number there with which ``text`` was shown."""
        n, (subtopics, studies, _) = self._engine.n, self._slots
        if text.node < 0:
            return TREE, 0
        slot = text.node if text.node < n else subtopics + text.node - n
        return (ROW_HEAD + slot, 1) if text.part == 0 else (ROW_HEAD + subtopics + 3 * studies + slot, text.part)

    def _designs(self, text: str) -> Iterator[Reading]:
        """Yield the reading of a text at each subtopic. Its similarities are computed once."""
        matcher = self._runtime.matcher
        decision = matcher.read_bare(Phase.SUBTOPIC, readable(text))
        nearest: dict[int, tuple[int, float]] = {}
        if not decision:
            for study, similarity in matcher.match_studies(readable(text), self._studies, len(self._studies)).top:
                nearest.setdefault(self._engine.subtopic_of[study], (study, similarity))
        for subtopic in self._subtopics:
            study, similarity = nearest.get(subtopic, (-1, 0.0))
            yield Reading(study, similarity, decision)

    def _settle(self, text: str) -> None:
        """Embed ``text`` alone if it came from a batch and its last bits could decide the reading."""
        runtime = self._runtime
        if not runtime.vectors.is_rough(text):
            return
        for match, nodes in (
            (runtime.matcher.match_subtopics, self._subtopics),
            (runtime.matcher.match_studies, self._studies),
        ):
            similarities = [self._threshold, *(similarity for _, similarity in match(text, nodes, len(nodes)).top)]
            if (np.diff(np.sort(similarities)) < SIMILARITY_TOLERANCE).any():
                runtime.vectors.settle(text)
                return


def text_numbers(runtime: TreeRuntime) -> NDArray[np.int32]:
    """Return the table of `number_texts`: the limit's text, the most wordings, and where each kind begins."""
    engine = runtime.engine
    numbers = {key: number for number, key in enumerate(observation_keys(runtime.task, engine.rules))}
    wordings, outcomes = max(engine.wordings_of), max(engine.outcomes_of)
    heads: list[int] = []
    found: list[int] = []
    for kind in ObservationKind:
        variants = outcomes * wordings * 2 * RESULT_STATES if kind == ObservationKind.RESULT else HINT_LEVELS + 1
        nodes = engine.n if kind in _OF_SUBTOPIC else len(engine.subtopic_of) if kind in _OF_STUDY else 0
        nodes = len(engine.exam.items) if kind == ObservationKind.EXAM else nodes
        heads += [TEXT_HEAD + 2 * len(ObservationKind) + len(found), variants if nodes else 0]
        for node in range(-1, nodes):
            keys = (_key(kind, node, variant, wordings, engine.rules) for variant in range(variants))
            found += [numbers.get(key.plain(), 0) for key in keys]
    return np.array([numbers[LIMIT], wordings, *heads, *found], np.int32)


def _key(kind: ObservationKind, node: int, variant: int, wordings: int, rules: Rules) -> ObservationKey:
    """Return the observation that a variant of a kind stands for. See `number_texts`."""
    recalls = rules.reruns == "redo"
    if kind == ObservationKind.RESULT:
        rest, state = divmod(variant, RESULT_STATES)
        shown, again = divmod(rest, 2)
        outcome, wording = divmod(shown, wordings)
        return ObservationKey(
            kind,
            node,
            outcome=outcome,
            wording=wording,
            again=recalls and again == 1,
            limit=state == 2,
            nothing_left=int(state == 1),
        )
    if kind == ObservationKind.SUBTOPIC:
        return ObservationKey(kind, node, again=recalls and variant == 1)
    if kind in _HINTED:
        return ObservationKey(kind, node, hint_level=variant)
    return ObservationKey(kind, node, nothing_left=min(variant, 2))


class TreePool:
    """Trees under rules, tabled on first use and kept in one set of tables."""

    def __init__(
        self, runtimes: RuntimeCache, size: MenuSize, number_texts: Callable[[Sequence[TreeTables]], list[int]]
    ) -> None:
        """Create an empty pool for menus of ``size``. ``number_texts`` is `Observer.number_texts`."""
        self._runtimes, self._size, self._number_texts = runtimes, size, number_texts
        self._known: dict[tuple[Tree, Rules], TreeTables] = {}
        self._permanent = 0
        self.tables = Tables(*[np.zeros(0, np.int64)] * 5)
        """The tables of all trees, without the vectors of an observer."""
        self.first_texts: list[int] = []
        """Number of each tree's first text."""
        self.starts: Ints = np.zeros(0, np.int64)
        """Start of the engine's table of each tree."""

    @property
    def trees(self) -> tuple[TreeTables, ...]:
        """The tables by tree, in the order of ``starts``."""
        return tuple(self._known.values())

    def at(self, start: int) -> TreeTables:
        """Return the tree whose table begins at ``start``."""
        return self.trees[int(self.starts.searchsorted(start))]

    def text(self, start: int, number: int) -> str:
        """Render the text with this number of the tree whose table begins at ``start``."""
        place = int(self.starts.searchsorted(start))
        observations = self.trees[place].runtime.observations
        return observations.render_key(observations.keys[number - self.first_texts[place]])

    def add(self, trees: Sequence[Tree], rules: Rules, in_use: Collection[int] = ()) -> Ints | None:
        """Add ``trees`` under ``rules`` unless they are there, and keep those whose tables begin at ``in_use``.

        Returns: the new start of every tree's table by its old number, if the tables were replaced, else None.

        Raises:
            OptionError: a tree does not fit into the menu, is too large for a table, or cannot be observed.
        """
        wanted = dict.fromkeys((tree, rules) for tree in trees)
        made = {key: tree_tables(self._runtimes.get(*key), self._size) for key in wanted if key not in self._known}
        if not made:
            return None
        old = list(self._known)
        kept = old
        if len(old) + len(made) > self._permanent + MAX_CACHED_TREES:
            used = {int(number) for number in self.starts.searchsorted(list(in_use))}
            kept = [key for i, key in enumerate(old) if i < self._permanent or i in used or key in wanted]
        known = {key: self._known[key] for key in kept} | made
        first_texts = self._number_texts(tuple(known.values()))
        self._known, self.first_texts, self._permanent = known, first_texts, self._permanent or len(known)
        self._join()
        starts = dict(zip(known, self.starts.tolist(), strict=True))
        return np.array([starts.get(key, 0) for key in old], np.int64)

    def starts_of(self, trees: Sequence[Tree], rules: Rules) -> Ints:
        """Return where the tables of ``trees`` under ``rules`` begin, which the pool holds."""
        order = dict(zip(self._known, self.starts.tolist(), strict=True))
        return np.array([order[tree, rules] for tree in trees])

    def _join(self) -> None:
        parts = self.trees
        starts, readings, masks, texts = (
            list(accumulate((len(getattr(each, name)) for each in parts), initial=0))[:-1]
            for name in ("engine", "readings", "masks", "texts")
        )
        self.starts = np.array(starts)
        engines = [each.engine.copy() for each in parts]
        joined_texts = [each.texts.copy() for each in parts]
        head = TEXT_HEAD + 2 * len(ObservationKind)
        for i, first in enumerate(self.first_texts):
            engines[i][[READINGS, MASKS, TEXTS]] = readings[i], masks[i], texts[i]
            joined_texts[i][0] += first
            joined_texts[i][head:] += first
        names = ("readings", "masks")
        joined = {name: np.concatenate([getattr(each, name) for each in parts]) for name in names}
        self.tables = Tables(
            trees=np.concatenate(engines), texts=np.concatenate(joined_texts), vectors=np.zeros(0, np.float32), **joined
        )
