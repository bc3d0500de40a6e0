"""Observations of all inquiries: rows of features, or indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, Protocol, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Ints
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.arrays.loop import COUNTS, WORD_BITS
from inquitree_gym.inquiry.arrays.tables import TreeTables
from inquitree_gym.inquiry.engine import Phase, Rules
from inquitree_gym.inquiry.engine.rows import COUNT_BITS, MOST_POLES, MOST_TALLIED
from inquitree_gym.inquiry.engine.values import PHASE_OF
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow, observation_keys, observation_vectors
from inquitree_gym.inquiry.runtime import RuntimeCache, TreeRuntime
from inquitree_gym.trees import HINT_LEVELS, Tree

ObservationKind = Literal["features", "index"]
Observations = NDArray[Any] | dict[str, NDArray[Any]]


class Observer(Protocol):
    """Writes the observations of one ``observation`` keyword."""

    space: spaces.Space[Any]
    """Space of a single observation."""
    vectors: FeatureRow
    """Text part of the features by number of text, flat."""
    dim: int
    """Length of that part. -1 for index observations."""
    tallied: int
    """Numbers of the tally. 0 to leave it out."""

    def number_texts(self, trees: Sequence[TreeTables]) -> list[int]:
        """Return the number of each tree's first text, and prepare to observe these trees and no others."""

    def new(self, num_envs: int) -> NDArray[Any]:
        """Return an array for the observations of all inquiries."""

    def split(self, rows: NDArray[Any]) -> Observations:
        """Return observations in the form that the environment gives them."""


class FeatureObserver:
    """Observes a `FeatureLayout`, as one row or as a dict of its parts."""

    def __init__(self, features: FeatureLayout, *, as_dict: bool) -> None:
        self._features, self._as_dict = features, as_dict
        self.space: spaces.Space[Any] = features.dict() if as_dict else features.box()
        self._by_tree: dict[tuple[Tree, Rules], FeatureRow] = {}
        self.vectors: FeatureRow = np.zeros(0, np.float32)
        self.dim, self.tallied = features.text_dim, MOST_POLES * features.axes

    def number_texts(self, trees: Sequence[TreeTables]) -> list[int]:
        """Return the number of each tree's first text. See `Observer`."""
        runtimes = {(each.runtime.task, each.runtime.rules): each.runtime for each in trees}
        known = self._by_tree
        self._by_tree = {
            key: known[key] if key in known else text_vectors(self._features, runtime)
            for key, runtime in runtimes.items()
        }
        parts = list(self._by_tree.values())
        self.vectors = np.concatenate(parts).reshape(-1)
        return [0, *accumulate(map(len, parts[:-1]))]

    def new(self, num_envs: int) -> FeatureRow:
        """Return an array for all observations. See `Observer`."""
        return np.empty((num_envs, self._features.size), np.float32)

    def split(self, rows: FeatureRow) -> Observations:
        """Return rows, or a dict of their parts. See `Observer`."""
        return {name: rows[..., at] for name, at in self._features.parts.items()} if self._as_dict else rows


class IndexObserver:
    """Observes the number of the text, the visited subtopics in words of `WORD_BITS` bits, and the tally in others."""

    def __init__(self, trees: Sequence[Tree], rules: Rules, features: FeatureLayout) -> None:
        """Number the texts of ``trees`` in the order of `observation_keys`. `features` converts to ``features``."""
        self._features, self._rules = features, rules
        self.vectors, self.dim, self.tallied = np.zeros(0, np.float32), -1, MOST_POLES * features.axes
        counts = {tree: sum(1 for _ in observation_keys(tree, rules)) for tree in trees}
        self._first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        self._n_texts = sum(counts.values())
        full, rest = divmod(features.subtopics - 1, WORD_BITS)
        bits = [WORD_BITS] * full + [rest + 1]
        self._first_count = 1 + len(bits)
        bits += [COUNT_BITS * min(COUNTS, self.tallied - start) for start in range(0, self.tallied, COUNTS)]
        self._columns = 1 + len(bits)
        self.space: spaces.Space[Any] = spaces.MultiDiscrete(np.array([self._n_texts, *(2**count for count in bits)]))
        self._rows: FeatureRow | None = None

    def number_texts(self, trees: Sequence[TreeTables]) -> list[int]:
        """Return the number of each tree's first text. See `Observer`.

        Raises:
            OptionError: the environment was not made with one of the trees, or with rules under which there are other
                texts, so they have no numbers.
        """
        for each in trees:
            if (tree := each.runtime.task) not in self._first:
                raise OptionError(
                    f"index observations number the texts of {', '.join(known.id for known in self._first)}, and "
                    f"{tree.id} is none of them; make the environment with all the trees that it is to play"
                )
            if not _has_texts(tree, self._rules, each.runtime.rules):
                raise OptionError(
                    "index observations number the texts under the rules of the environment; make it with the same "
                    "feedback, replication and redo_turn, instead of passing them to reset"
                )
        return [self._first[each.runtime.task] for each in trees]

    def new(self, num_envs: int) -> Ints:
        """Return an array for all observations. See `Observer`."""
        return np.empty((num_envs, self._columns), np.int64)

    def split(self, rows: Ints) -> Observations:
        """Return the rows. See `Observer`."""
        return rows

    def text_of(self, number: int, runtimes: RuntimeCache, rules: Rules) -> str:
        """Return the text of this number under ``rules``.

        Raises:
            OptionError: no text has this number.
        """
        if not 0 <= number < self._n_texts:
            raise OptionError(f"the number of a text must lie in 0 to {self._n_texts - 1}, got {number}")
        tree = next(tree for tree, first in reversed(self._first.items()) if first <= number)
        observations = runtimes.get(tree, rules).observations
        return observations.render_key(observations.keys[number - self._first[tree]])

    def features(self, observations: Ints, runtimes: RuntimeCache, rules: Rules) -> FeatureRow:
        """Return the features of index observations under ``rules``, shape ``(…, size)``."""
        if self._rows is None:
            rows = [feature_rows(self._features, runtimes.get(tree, rules)) for tree in self._first]
            self._rows = np.concatenate(rows)
        found = self._rows.take(observations[..., 0], axis=0)
        words, bits = np.divmod(np.arange(self._features.subtopics), WORD_BITS)
        found[..., self._features.parts["visited"]] = observations[..., 1 + words] >> bits & 1
        if self.tallied:
            words, places = np.divmod(np.arange(self.tallied), COUNTS)
            counts = observations[..., self._first_count + words] >> COUNT_BITS * places & MOST_TALLIED
            found[..., self._features.parts["tally"]] = counts
        return found


def make_observer(
    kind: ObservationKind, features: FeatureLayout, trees: Sequence[Tree], rules: Rules, *, as_dict: bool
) -> Observer:
    """Return the observer of an ``observation`` keyword.

    Raises:
        OptionError: ``kind`` is unknown, or ``as_dict`` does not go with it.
    """
    if kind not in get_args(ObservationKind):
        raise OptionError(f"observation must be one of {get_args(ObservationKind)}, got {kind!r}")
    if kind == "features":
        return FeatureObserver(features, as_dict=as_dict)
    if as_dict:
        raise OptionError('as_dict takes features apart; it goes with observation="features"')
    return IndexObserver(trees, rules, features)


def _has_texts(tree: Tree, made_with: Rules, played: Rules) -> bool:
    """Return whether the texts under the rules of an episode are the first ones under those of the environment."""
    known, shown = (list(observation_keys(tree, rules)) for rules in (made_with, played))
    return known[: len(shown)] == shown


def text_vectors(features: FeatureLayout, runtime: TreeRuntime) -> FeatureRow:
    """Return the text part of the features of every text of a tree, shape ``(texts, text_dim)``."""
    vectors = observation_vectors(runtime.observations, runtime.vectors, runtime.rules)
    keys = observation_keys(runtime.task, runtime.rules)
    return features.text(np.stack([vectors[runtime.observations.render_key(key)] for key in keys]))


def feature_rows(features: FeatureLayout, runtime: TreeRuntime) -> FeatureRow:
    """Return the features of every text of a tree with nothing visited, shape ``(texts, size)``."""
    texts = text_vectors(features, runtime)
    keys = list(observation_keys(runtime.task, runtime.rules))
    rows = np.zeros((len(keys), features.size), np.float32)
    for row, key in zip(rows, keys, strict=True):
        row[Phase.CONCLUSION if key.limit else PHASE_OF[key.kind]] = 1
    rows[:, features.parts["hint_level"]] = [[key.hint_level / HINT_LEVELS] for key in keys]
    rows[:, features.parts["text"]] = texts
    return rows
