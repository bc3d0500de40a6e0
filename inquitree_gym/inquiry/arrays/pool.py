"""Trees of the episodes: compiled trees in one set of lookup tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Ints
from inquitree_gym.inquiry.arrays.compiler import CompiledTree, compile_tree
from inquitree_gym.inquiry.arrays.encoding import (
    FIRST_STUDY,
    NO_SUBTOPIC,
    WORD_BITS,
    Counts,
    StateIndex,
    StateTable,
    n_counters,
    relocate,
)
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.menu import Menu, MenuSize
from inquitree_gym.inquiry.observations import observation_keys
from inquitree_gym.inquiry.runtime import RuntimeCache
from inquitree_gym.trees import Tree

UNLIMITED = np.iinfo(np.int64).max
CONCLUSION_ENTRIES = 1 << 22
"""Table entries for conclusions, unless `MIN_CONCLUSIONS` of them need more."""
MIN_CONCLUSIONS = 256
MAX_CACHED_TREES = 64
"""Compiled trees kept besides those that the environment was made with."""
MASK_BYTES = 32
"""Rows of masks are padded to this size, which NumPy copies fastest."""


class Tables:
    """Lookup tables of several compiled trees, numbered in the order given.

    The transition table has one row per group of states that behave alike, one column per menu text, and then columns
    for conclusions. Its entries index ``transitions``: three per branch, for the counter of the subtopic that is named
    being negative (locked), 0 (unvisited) or positive (visited). An entry is the index of the middle one.
    """

    def __init__(self, size: MenuSize, trees: Sequence[CompiledTree], first_texts: Sequence[int]) -> None:
        self.size = size
        self.n_counters = n_counters(size)
        self.words = -(-(size.subtopics + size.studies) // WORD_BITS)
        """Words that hold one bit per node."""
        self.trees = tuple(trees)
        self.several = len(trees) > 1
        self.first_texts = tuple(first_texts)
        self.first_states = _starts([len(each.states.row) for each in trees])
        self._first_rows = _starts([len(each.branches) for each in trees])
        self._entries: list[Ints] = [np.zeros(0, np.int64) for _ in trees]
        """Table entries of each tree's branches."""
        self.named: Ints = np.zeros(0, np.int64)
        """Counter column of the subtopic that an entry names."""
        self.transitions: Ints = np.zeros(0, np.int64)
        for number in range(len(trees)):
            self._add_branches(number)
        self._join_states()
        self._join_rules()
        rows = sum(len(each.branches) for each in trees)
        self.max_conclusions = max(MIN_CONCLUSIONS, CONCLUSION_ENTRIES // rows)
        """Conclusions kept in the table at a time."""
        self._texts = size.actions - 1
        self._set_table(np.zeros((rows, self._texts + min(16, self.max_conclusions)), np.int64))
        for number, each in enumerate(trees):
            self._put(number, slice(0, self._texts), each.branches)

    def _set_table(self, table: Ints) -> None:
        self._table = table
        self.entries = table.reshape(-1)
        """Transition table, flat."""
        self.row_starts: Ints = self.states.row * table.shape[1]
        """Index into ``entries`` of each state's first column."""

    def _join_states(self) -> None:
        pools = _starts([len(each.hint_pools) for each in self.trees])
        parts = [
            replace(
                tree.states,
                row=tree.states.row + row,
                text=tree.states.text + text,
                at_limit=tree.states.at_limit + state,
                on_reject=relocate(tree.states.on_reject, int(state)),
                on_locked=relocate(tree.states.on_locked, int(state)),
                again=tree.states.again + state,
                nothing_left=tree.states.nothing_left + state,
                hint_pool=tree.states.hint_pool + pool,
                unlocks=tree.states.unlocks + pool,
            )
            for tree, row, text, state, pool in zip(
                self.trees, self._first_rows, self.first_texts, self.first_states, pools, strict=True
            )
        ]
        self.states = StateTable.concatenate(parts)
        self.hint_pools: Ints = _stack([each.hint_pools for each in self.trees])
        self.unlocks: Ints = np.ascontiguousarray(_stack([each.unlocks for each in self.trees]).T)
        """Counter columns of the subtopics that are unlocked, shape ``(subtopics, rows)``."""
        masks = np.concatenate([each.masks for each in self.trees])
        padded = np.pad(masks, ((0, 0), (0, -masks.shape[1] % MASK_BYTES)))
        self.masks = padded.view(np.dtype((np.void, padded.shape[1]))).reshape(-1)
        """Masks of the states as padded bytes, shape ``(states,)``."""

    def _join_rules(self) -> None:
        engines = [each.runtime.engine for each in self.trees]
        rules = [engine.rules for engine in engines]
        limits = [UNLIMITED if engine.turn_limit is None else engine.turn_limit for engine in engines]
        self.turn_limits: Ints = np.array([min(limit, UNLIMITED) for limit in limits])
        # A fake is shown when draw * 10 < level * 2**64; no draw shows one at level 0, where none is made.
        self.max_fake_draws = np.array([max(0, ((each.fake_level << 64) - 1) // 10) for each in rules], np.uint64)
        """Highest draw that shows a fake."""
        self.start_states: Ints = self.first_states + StateIndex.START
        self.initial_counts: Counts = np.stack([each.initial_counts for each in self.trees])
        self.n_subtopics: Ints = np.array([engine.n for engine in engines])
        self.fakes = any(each.fake_level for each in rules)
        """True if any tree shows fakes."""
        self.varies = any(max(each.wordings_of) > 1 for each in engines)
        """True if any tree shows results in several wordings."""
        self.redo_turns = any(each.redo_turn for each in rules)
        """True if a study that is run again takes a turn of its own in any tree."""
        self.waits = any(each.feedback == "reason" for each in rules)
        """True if proposals wait in any tree."""
        self.tells_again = any(each.reruns == "redo" for each in rules)
        """True if any tree tells what was visited or run before."""

    def _add_branches(self, tree: int) -> None:
        """Add the branches that the reader of this tree found since the last call."""
        known = self._entries[tree]
        new = list(islice(self.trees[tree].reader.branches, len(known), None))
        if not new:
            return
        entries = np.concatenate([known, len(self.named) + 1 + 3 * np.arange(len(new))])
        self._entries[tree] = entries
        named = [self._column(each.subtopic) for each in new]
        found = np.array([(each.locked, each.unvisited, each.visited) for each in new]).reshape(-1)
        self.named = np.concatenate([self.named, np.repeat(named, 3)])
        self.transitions = np.concatenate([self.transitions, relocate(found, int(self.first_states[tree]))])

    def _column(self, named: int) -> int:
        """Return the counter column of what a branch names. See `Branch`."""
        if named == NO_SUBTOPIC:
            return self.n_counters - 2
        return named if named >= 0 else self.size.subtopics + FIRST_STUDY - named

    def _put(self, tree: int, columns: slice, branches: NDArray[np.integer]) -> None:
        """Write the branch numbers of all rows of a tree into columns of the table."""
        first = self._first_rows[tree]
        self._table[first : first + len(branches), columns] = self._entries[tree][branches]

    def text(self, tree: int, number: int) -> str:
        """Render the text of this number, which belongs to this tree."""
        runtime = self.trees[tree].runtime
        key = tuple(observation_keys(runtime.task, runtime.engine.rules))[number - self.first_texts[tree]]
        return runtime.observations.render_key(key)

    def put_conclusion(self, tree: int, number: int, by_context: Ints) -> None:
        """Write a conclusion, given its branch number in every reading context."""
        while self._texts + number >= self._table.shape[1]:
            more = np.zeros((len(self._table), self._table.shape[1] - self._texts), np.int64)
            self._set_table(np.concatenate([self._table, more], axis=1))
        self._add_branches(tree)
        column = self._texts + number
        self._put(tree, slice(column, column + 1), self.trees[tree].rows.branches(by_context)[:, None])


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths[:-1]])


def _stack(tables: Sequence[Ints]) -> Ints:
    """Stack tables of different widths. A row is extended with its last value."""
    width = max(each.shape[1] for each in tables)
    return np.concatenate([np.pad(each, ((0, 0), (0, width - each.shape[1])), mode="edge") for each in tables])


class TreePool:
    """Trees under rules, compiled on first use and kept in one set of tables."""

    def __init__(
        self, runtimes: RuntimeCache, size: MenuSize, number_texts: Callable[[Sequence[CompiledTree]], list[int]]
    ) -> None:
        """Create an empty pool for menus of ``size``. ``number_texts`` is `Observer.number_texts`."""
        self._runtimes = runtimes
        self._size = size
        self._number_texts = number_texts
        self._compiled: dict[tuple[Tree, Rules], CompiledTree] = {}
        self._permanent = 0
        self.tables: Tables | None = None
        """Tables of all trees of the pool, once it has any."""

    def add(self, trees: Sequence[Tree], rules: Rules, in_use: Collection[int] = ()) -> Ints | None:
        """Compile ``trees`` under ``rules`` unless they are there, and keep those with the numbers ``in_use``.

        Returns: the new number of every tree by its old one if the tables were replaced, else None.

        Raises:
            OptionError: a tree does not fit into the menu, is too large for a table, or cannot be observed.
        """
        wanted = dict.fromkeys((tree, rules) for tree in trees)
        missing = [key for key in wanted if key not in self._compiled]
        if not missing:
            return None
        made = {key: compile_tree(self._runtimes.get(*key), Menu(key[0], self._size)) for key in missing}
        old = list(self._compiled)
        kept = old
        if len(old) + len(made) > self._permanent + MAX_CACHED_TREES:
            kept = [key for i, key in enumerate(old) if i < self._permanent or i in in_use or key in wanted]
        compiled = {**{key: self._compiled[key] for key in kept}, **made}
        self.tables = Tables(self._size, tuple(compiled.values()), self._number_texts(tuple(compiled.values())))
        self._permanent = self._permanent or len(compiled)
        self._compiled = compiled
        numbers = {key: number for number, key in enumerate(compiled)}
        return np.array([numbers.get(key, 0) for key in old], np.int64)

    def numbers(self, trees: Sequence[Tree], rules: Rules) -> Ints:
        """Return the numbers of ``trees`` under ``rules``, which the pool holds."""
        order = {key: number for number, key in enumerate(self._compiled)}
        return np.array([order[tree, rules] for tree in trees])
