"""Observations and infos of all inquiries, in the form that Gymnasium gives those of a vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, Protocol, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import env_mask
from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.arrays.compiler import CompiledTree
from inquitree_gym.inquiry.arrays.encoding import WORD_BITS, phase_of
from inquitree_gym.inquiry.arrays.kernel import Kernel
from inquitree_gym.inquiry.arrays.pool import Tables
from inquitree_gym.inquiry.engine import Phase, Reading, Rules
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow, observation_keys, observation_vectors
from inquitree_gym.inquiry.runtime import PHASE_NAMES, RuntimeCache, Transition, TreeRuntime, privileged_info
from inquitree_gym.trees import Tree

ObservationKind = Literal["features", "index"]
Observations = NDArray[Any] | dict[str, NDArray[Any]]
Infos = dict[str, Any]


class Observer(Protocol):
    """Writes the observations of one ``observation`` keyword."""

    space: spaces.Space[Any]
    """Space of a single observation."""
    track_visited: bool
    """True if `Kernel.visited` is needed."""

    def number_texts(self, trees: Sequence[CompiledTree]) -> list[int]:
        """Return the number of each tree's first text, and prepare to observe these trees and no others."""

    def observe(self, kernel: Kernel) -> Observations:
        """Return the observations of all environments, in new arrays or, without ``copy``, in the same ones."""

    def observe_one(self, kernel: Kernel, env: int) -> Observations:
        """Return the observation of one environment, in a new array."""


class FeatureObserver:
    """Observes a `FeatureLayout`, as one row or as a dict of its parts."""

    track_visited = True

    def __init__(self, features: FeatureLayout, *, as_dict: bool, copy: bool) -> None:
        self._features = features
        self._as_dict = as_dict
        self._parts = features.parts if as_dict else {"visited": slice(0, features.size)}
        """One entry per array. A single row is named after the part that is written last."""
        self._visited = slice(None) if as_dict else features.parts["visited"]
        self.space: spaces.Space[Any] = features.dict() if as_dict else features.box()
        self._by_tree: dict[tuple[Tree, Rules], FeatureRow] = {}
        self._rows: dict[str, FeatureRow] = {}
        """Features of every text with nothing visited, by part."""
        self._copy = copy
        self._out: dict[str, FeatureRow] = {}

    def number_texts(self, trees: Sequence[CompiledTree]) -> list[int]:
        """Return the number of each tree's first text. See `Observer`."""
        runtimes = {(each.runtime.task, each.runtime.engine.rules): each.runtime for each in trees}
        known = self._by_tree
        self._by_tree = {
            key: known[key] if key in known else feature_rows(self._features, runtime)
            for key, runtime in runtimes.items()
        }
        rows = list(self._by_tree.values())
        joined = rows[0] if len(rows) == 1 else np.concatenate(rows)
        self._rows = {name: np.ascontiguousarray(joined[:, at]) for name, at in self._parts.items()}
        return [0, *accumulate(map(len, rows[:-1]))]

    def observe(self, kernel: Kernel) -> Observations:
        """Return the observations of all environments. See `Observer`."""
        texts = kernel.tables.states.text.take(kernel.state)
        out = self._out
        found = {name: rows.take(texts, axis=0, out=out.get(name), mode="clip") for name, rows in self._rows.items()}
        if not self._copy:
            self._out = found
        found["visited"][:, self._visited] = kernel.visited
        return dict(found) if self._as_dict else found["visited"]

    def observe_one(self, kernel: Kernel, env: int) -> Observations:
        """Return the observation of one environment. See `Observer`."""
        text = kernel.tables.states.text[kernel.state[env]]
        found = {name: rows[text].copy() for name, rows in self._rows.items()}
        found["visited"][self._visited] = kernel.visited[env]
        return found if self._as_dict else found["visited"]


class IndexObserver:
    """Observes the number of the text, then the visited subtopics as words of `WORD_BITS` bits."""

    track_visited = False

    def __init__(self, trees: Sequence[Tree], rules: Rules, features: FeatureLayout, *, copy: bool) -> None:
        """Number the texts of ``trees`` in the order of `observation_keys`. `features` converts to ``features``."""
        self._features = features
        self._rules = rules
        counts = {tree: sum(1 for _ in observation_keys(tree, rules)) for tree in trees}
        self._first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        self._n_texts = sum(counts.values())
        self._words = -(-features.subtopics // WORD_BITS)
        bits = [WORD_BITS] * (self._words - 1) + [features.subtopics - WORD_BITS * (self._words - 1)]
        self._masks = [np.array(2**count - 1) for count in bits]
        self.space: spaces.Space[Any] = spaces.MultiDiscrete(np.array([self._n_texts, *(2**count for count in bits)]))
        self._rows: FeatureRow | None = None
        self._copy = copy
        self._out: Ints | None = None

    def number_texts(self, trees: Sequence[CompiledTree]) -> list[int]:
        """Return the number of each tree's first text. See `Observer`.

        Raises:
            OptionError: the environment was not made with one of the trees, or with rules under which there are other
                texts, so they have no numbers.
        """
        for compiled in trees:
            if (tree := compiled.runtime.task) not in self._first:
                raise OptionError(
                    f"index observations number the texts of {', '.join(known.id for known in self._first)}, and "
                    f"{tree.id} is none of them; make the environment with all the trees that it is to play"
                )
            if not _has_texts(tree, self._rules, compiled.runtime.engine.rules):
                raise OptionError(
                    "index observations number the texts under the rules of the environment; make it with the same "
                    "feedback, replication and redo_turn, instead of passing them to reset"
                )
        return [self._first[each.runtime.task] for each in trees]

    def observe(self, kernel: Kernel) -> Observations:
        """Return the observations of all environments, with contiguous columns. See `Observer`."""
        found = np.empty((1 + self._words, kernel.num_envs), np.int64).T if self._out is None else self._out
        if not self._copy:
            self._out = found
        columns = found.T
        kernel.tables.states.text.take(kernel.state, out=columns[0], mode="clip")
        for word, mask in enumerate(self._masks):
            np.bitwise_and(kernel.seen[word], mask, out=columns[1 + word])
        return found

    def observe_one(self, kernel: Kernel, env: int) -> Observations:
        """Return the observation of one environment. See `Observer`."""
        visited = kernel.seen[: self._words, env] & self._masks
        return np.array([kernel.tables.states.text[kernel.state[env]], *visited])

    def text_of(self, number: int, runtimes: RuntimeCache, rules: Rules) -> str:
        """Return the text of this number under ``rules``.

        Raises:
            OptionError: no text has this number.
        """
        if not 0 <= number < self._n_texts:
            raise OptionError(f"the texts are numbered from 0 to {self._n_texts - 1}, and {number} is none of them")
        tree = next(tree for tree, first in reversed(self._first.items()) if first <= number)
        key = tuple(observation_keys(tree, rules))[number - self._first[tree]]
        return runtimes.get(tree, rules).observations.render_key(key)

    def features(self, observations: Ints, runtimes: RuntimeCache, rules: Rules) -> FeatureRow:
        """Return the features of index observations under ``rules``, shape ``(…, size)``."""
        if self._rows is None:
            rows = [feature_rows(self._features, runtimes.get(tree, rules)) for tree in self._first]
            self._rows = np.concatenate(rows)
        found = self._rows.take(observations[..., 0], axis=0)
        words, bits = np.divmod(np.arange(self._features.subtopics), WORD_BITS)
        found[..., self._features.parts["visited"]] = observations[..., 1 + words] >> bits & 1
        return found


def make_observer(
    kind: ObservationKind,
    features: FeatureLayout,
    trees: Sequence[Tree],
    rules: Rules,
    *,
    as_dict: bool,
    copy: bool,
) -> Observer:
    """Return the observer of an ``observation`` keyword.

    Raises:
        OptionError: ``kind`` is unknown, or ``as_dict`` does not go with it.
    """
    if kind not in get_args(ObservationKind):
        raise OptionError(f"observation is one of {get_args(ObservationKind)}, not {kind!r}")
    if kind == "features":
        return FeatureObserver(features, as_dict=as_dict, copy=copy)
    if as_dict:
        raise OptionError('as_dict takes features apart; it goes with observation="features"')
    return IndexObserver(trees, rules, features, copy=copy)


def _has_texts(tree: Tree, made_with: Rules, played: Rules) -> bool:
    """Return whether the texts under the rules of an episode are the first ones under those of the environment."""
    known, shown = (list(observation_keys(tree, rules)) for rules in (made_with, played))
    return known[: len(shown)] == shown


def feature_rows(features: FeatureLayout, runtime: TreeRuntime) -> FeatureRow:
    """Return the features of every text of a tree with nothing visited, shape ``(texts, size)``."""
    vectors = observation_vectors(runtime.observations, runtime.vectors, runtime.engine.rules)
    return np.stack(
        [
            features.row(phase_of(key), key.hint_level, vectors[runtime.observations.render_key(key)])
            for key in observation_keys(runtime.task, runtime.engine.rules)
        ]
    )


_PHASE_NAMES = np.array(PHASE_NAMES, object)
_STATE_INFO = np.dtype([("hint_level", np.int64), ("accepted", np.bool_), ("forced", np.bool_), ("", np.void, 6)])
"""Info that the state fixes, padded to a size that NumPy copies fast."""


_PRESENT_KEYS = ("_state", "_turn", "_accepted", "_hint_level", "_forced", "_action_mask")


class InfoTable:
    """Infos of every state of some tables."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._phases = _PHASE_NAMES.take(tables.states.phase)
        self._rows = np.zeros(len(self._phases), _STATE_INFO)
        for name in ("hint_level", "accepted", "forced"):
            self._rows[name] = getattr(tables.states, name)

    def infos(self, kernel: Kernel, envs: Ints | None = None) -> Infos:
        """Return the infos of all environments, or of ``envs`` with None, 0 or False for the others.

        One array serves as the ``_key`` mask of all keys.
        """
        if envs is None:
            infos = self._of(kernel.state, kernel.turn.copy(), kernel.masks())
            present = np.ones(kernel.num_envs, np.bool_)
        else:
            present = env_mask(envs, kernel.num_envs)
            infos = self._of(kernel.state.take(envs), kernel.turn.take(envs), kernel.masks(envs))
            infos = {name: _scatter(values, present) for name, values in infos.items()}
        infos.update(dict.fromkeys(_PRESENT_KEYS, present))
        return infos

    def _of(self, states: Ints, turns: Ints, masks: NDArray[np.int8]) -> Infos:
        rows = self._rows.take(states)
        return {
            "state": self._phases.take(states),
            "turn": turns,
            "accepted": rows["accepted"],
            "hint_level": rows["hint_level"],
            "forced": rows["forced"],
            "action_mask": masks,
        }


def _scatter(values: NDArray[Any], present: Bools) -> NDArray[Any]:
    """Place values where ``present`` is True, and None or 0 elsewhere."""
    shape = (len(present), *values.shape[1:])
    found = np.full(shape, None) if values.dtype == object else np.zeros(shape, values.dtype)
    found[present] = values
    return found


class EngineReplay:
    """Engine events and matcher readings for privileged info, replayed turn by turn."""

    def __init__(self, num_envs: int) -> None:
        self._last: list[Transition | None] = [None] * num_envs

    def start(self, kernel: Kernel, envs: Ints) -> None:
        """Follow the episodes that start in these environments."""
        for env in envs.tolist():
            engine = kernel.tables.trees[kernel.tree[env]].runtime.engine
            self._last[env] = Transition(Reading(), engine.start(kernel.seeds.of(env)))

    def step(self, kernel: Kernel, actions: Ints) -> None:
        """Take one turn in every environment that is not over, before ``kernel`` takes it."""
        for env, action in enumerate(actions.tolist()):
            last = self._last[env]
            if last is not None and last.event.state.phase != Phase.END:
                compiled, state = kernel.tables.trees[kernel.tree[env]], last.event.state
                reading = compiled.runtime.matcher.read(state, compiled.menu.text(action, state))
                self._last[env] = Transition(reading, compiled.runtime.engine.advance(state, reading))

    def info(self, kernel: Kernel, env: int) -> Infos:
        """Return the privileged info of one environment. See `InquiryEnv`."""
        last = self._last[env]
        assert last is not None
        limit = kernel.tables.trees[kernel.tree[env]].runtime.engine.turn_limit
        return {"privileged": privileged_info(last, limit)}
