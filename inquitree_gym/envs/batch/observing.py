"""What `InquiryBatchEnv` shows of its inquiries: features, or numbers for texts and bits for visited subtopics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.engine import Rules
from inquitree_gym.envs.batch.compiler import WORD, Compiled
from inquitree_gym.envs.batch.encoding import Ints, phase_of
from inquitree_gym.envs.batch.kernel import Core
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow, observation_keys, observation_vectors
from inquitree_gym.envs.runtime import RuntimeCache, TreeRuntime
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

Observation = Literal["features", "index"]
Shown = NDArray[Any] | dict[str, NDArray[Any]]


class Observer(Protocol):
    """How inquiries are observed."""

    space: spaces.Space[Any]
    """What one of them looks like."""
    marks: bool
    """Whether what was visited is needed as 0 and 1."""

    def number(self, plays: Sequence[Compiled]) -> list[int]:
        """Return the number of each play's first text, and be ready to show these plays and no others."""

    def empty(self, inquiries: int) -> Shown:
        """Return arrays for observations of that many inquiries."""

    def show(self, core: Core, out: Shown | None = None) -> Shown:
        """Observe all inquiries; into ``out`` if it is given, else into new arrays."""

    def one(self, core: Core, row: int) -> Shown:
        """Observe one inquiry, in arrays of its own."""


class FeatureObserver:
    """Shows features, as a flat row or taken apart."""

    marks = True

    def __init__(self, features: FeatureLayout, *, as_dict: bool) -> None:
        """Show ``features``; ``as_dict`` takes rows apart."""
        self._features = features
        self._as_dict = as_dict
        self._parts = features.parts if as_dict else {"visited": slice(0, features.size)}
        """What is shown in one array each; a flat row goes by the name of the part that is filled in last."""
        self._visited = slice(None) if as_dict else features.parts["visited"]
        self.space: spaces.Space[Any] = features.dict() if as_dict else features.box()
        self._made: dict[tuple[Tree, Rules], FeatureRow] = {}
        self._rows: dict[str, FeatureRow] = {}
        """By part, and by text in numbers that go on from play to play, what is shown where nothing is visited yet."""

    def number(self, plays: Sequence[Compiled]) -> list[int]:
        """Return the number of each play's first text; see `Observer`."""
        played = {(each.reader.play.tree, each.reader.play.engine.rules): each.reader.play for each in plays}
        known = self._made
        self._made = {
            key: known[key] if key in known else feature_rows(self._features, play) for key, play in played.items()
        }
        rows = list(self._made.values())
        joined = rows[0] if len(rows) == 1 else np.concatenate(rows)
        self._rows = {name: np.ascontiguousarray(joined[:, at]) for name, at in self._parts.items()}
        return [0, *accumulate(map(len, rows[:-1]))]

    def empty(self, inquiries: int) -> Shown:
        """Return arrays for observations; see `Observer`."""
        arrays = {name: np.empty((inquiries, at.stop - at.start), np.float32) for name, at in self._parts.items()}
        return arrays if self._as_dict else arrays["visited"]

    def show(self, core: Core, out: Shown | None = None) -> Shown:
        """Observe all inquiries; see `Observer`."""
        texts = core.tables.places.text.take(core.place)
        arrays: dict[str, Any] = out if isinstance(out, dict) else {"visited": out}
        shown = {name: rows.take(texts, axis=0, out=arrays.get(name), mode="clip") for name, rows in self._rows.items()}
        shown["visited"][:, self._visited] = core.marks
        return shown if self._as_dict else shown["visited"]

    def one(self, core: Core, row: int) -> Shown:
        """Observe one inquiry; see `Observer`."""
        text = core.tables.places.text[core.place[row]]
        shown = {name: rows[text].copy() for name, rows in self._rows.items()}
        shown["visited"][self._visited] = core.marks[row]
        return shown if self._as_dict else shown["visited"]


class IndexObserver:
    """Shows the number of the text, then which subtopics were visited as words of bits."""

    marks = False

    def __init__(self, trees: Sequence[Tree], features: FeatureLayout) -> None:
        """Show inquiries into ``trees``, whose texts are numbered in the order of `observation_keys`, tree by tree.

        Args:
            trees: all that may be shown.
            features: what `features` makes of an observation.
        """
        self._features = features
        counts = {tree: sum(1 for _ in observation_keys(tree)) for tree in trees}
        self._first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        self._texts = sum(counts.values())
        self._words = -(-features.subtopics // WORD)
        bits = [WORD] * (self._words - 1) + [features.subtopics - WORD * (self._words - 1)]
        self._masks = [np.array(2**count - 1) for count in bits]
        self.space: spaces.Space[Any] = spaces.MultiDiscrete(np.array([self._texts, *(2**count for count in bits)]))
        self._rows: FeatureRow | None = None

    def number(self, plays: Sequence[Compiled]) -> list[int]:
        """Return the number of each play's first text; see `Observer`.

        Raises:
            OptionError: a tree is none of those whose texts have numbers.
        """
        trees = [each.reader.play.tree for each in plays]
        for tree in trees:
            if tree not in self._first:
                raise OptionError(
                    f"index observations number the texts of {', '.join(known.id for known in self._first)}, and "
                    f"{tree.id} is none of them; make the environment with all the trees that it is to play"
                )
        return [self._first[tree] for tree in trees]

    def empty(self, inquiries: int) -> Shown:
        """Return an array for observations; see `Observer`. Its columns are contiguous."""
        return np.empty((1 + self._words, inquiries), np.int64).T

    def show(self, core: Core, out: Shown | None = None) -> Shown:
        """Observe all inquiries; see `Observer`."""
        shown = self.empty(core.inquiries) if out is None else out
        assert isinstance(shown, np.ndarray)
        columns = shown.T
        core.tables.places.text.take(core.place, out=columns[0], mode="clip")
        for word, mask in enumerate(self._masks):
            np.bitwise_and(core.known[word], mask, out=columns[1 + word])
        return shown

    def one(self, core: Core, row: int) -> Shown:
        """Observe one inquiry; see `Observer`."""
        visited = core.known[: self._words, row] & self._masks
        return np.array([core.tables.places.text[core.place[row]], *visited])

    def text_of(self, number: int, plays: RuntimeCache, rules: Rules) -> str:
        """Return the text of this number under ``rules``.

        Raises:
            OptionError: no text has this number.
        """
        if not 0 <= number < self._texts:
            raise OptionError(f"the texts are numbered from 0 to {self._texts - 1}, and {number} is none of them")
        tree = next(tree for tree, first in reversed(self._first.items()) if first <= number)
        view = tuple(observation_keys(tree))[number - self._first[tree]]
        return plays.get(tree, rules).observations.render_key(view)

    def features(self, observations: Ints, plays: RuntimeCache, rules: Rules) -> FeatureRow:
        """Return features of observations under ``rules``, shape ``(…, size)``."""
        if self._rows is None:
            self._rows = np.concatenate([feature_rows(self._features, plays.get(tree, rules)) for tree in self._first])
        found = self._rows.take(observations[..., 0], axis=0)
        words, bits = np.divmod(np.arange(self._features.subtopics), WORD)
        found[..., self._features.parts["visited"]] = observations[..., 1 + words] >> bits & 1
        return found


def feature_rows(features: FeatureLayout, play: TreeRuntime) -> FeatureRow:
    """Return what is shown of every text of ``play`` where nothing is visited yet, shape ``(texts, size)``."""
    vectors = observation_vectors(play.observations, play.vectors)
    return np.stack(
        [
            features.row(phase_of(view), view.hint_level, vectors[play.observations.render_key(view)])
            for view in observation_keys(play.tree)
        ]
    )
