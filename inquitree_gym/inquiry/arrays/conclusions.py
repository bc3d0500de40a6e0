"""Texts, readings and rewards of conclusions, looked up once the matcher or the judge has given them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.inquiry.arrays.compiler import CompiledTree
from inquitree_gym.inquiry.arrays.encoding import REJECTED, UNREAD, WORD_BITS, Context
from inquitree_gym.inquiry.arrays.pool import Tables
from inquitree_gym.inquiry.judges.quality import required

Rewards = NDArray[np.float64]

_ITEMS_PER_KEY = 20
"""Conclusion items per key: 3**20 patterns, times the keys of the items before, fit into 63 bits."""
_POWERS = 3.0 ** np.arange(_ITEMS_PER_KEY)
_ZERO = np.zeros((), np.int64)
_MAX_LOOKUP = 1 << 20
"""Most entries of a lookup by evidence: 8 MiB."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results seen by some environments, as words of node bits of shape ``(words, len(envs))``."""

    seen: Ints
    """Studies whose true result was ever shown, and subtopics visited."""
    fooled: Ints | None
    """Studies that showed a fake when last run. None if the trees show no fakes."""


class Conclusions:
    """Conclusions submitted so far, for all trees of some tables.

    The menu has one action for the conclusion, and its text depends on the results seen. Each text gets a column of the
    transition table, after those of the menu texts.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._evidence = _bit_sets(tables, [tree.menu.evidence for tree in tables.trees])
        """Studies that bear on each conclusion item."""
        self._needs = _bit_sets(tables, [[*chain.from_iterable(_groups(tree))] for tree in tables.trees])
        """Studies in each group of results that an item needs (Eq. 8)."""
        self._n_texts = tables.size.actions - 1
        self._first_study, self._n_studies = np.array(tables.size.subtopics), np.array(tables.size.studies)
        self._clear()

    def _clear(self) -> None:
        trees, bits = len(self._tables.trees), self._tables.size.studies * (1 + self._tables.fakes)
        self._numberings: list[_Numbering] = []
        self._column_of: Ints = np.zeros(0, np.int64)
        """Column of each numbered conclusion."""
        self._texts: list[list[str]] = [[] for _ in range(trees)]
        """Conclusions of each tree, in the order of their columns."""
        self._weights: Rewards = np.full((trees, self._n_texts, self._needs.shape[2]), np.nan)
        """Reward that each group adds once it is met, by tree and column. NaN if the text was not judged yet."""
        self._bits, self._patterns = np.array(bits), trees << bits
        small = self._tables.words == 1 and self._patterns <= _MAX_LOOKUP
        self._columns: Ints | None = np.full(self._patterns, -1) if small else None
        """Column by pattern of evidence, -1 if unknown. None if there are too many patterns."""
        self._rewards: Rewards = np.zeros(0)
        """Reward by column and pattern, NaN if unknown. Empty if there are too many."""
        self._grow()
        self.unread = 0
        """Conclusions whose column still holds `UNREAD`."""

    def _grow(self) -> None:
        """Make room for the rewards of all columns."""
        missing = self._n_texts + max(map(len, self._texts)) - self._weights.shape[1]
        if missing > 0:
            self._weights = np.pad(self._weights, ((0, 0), (0, 2 * missing), (0, 0)), constant_values=np.nan)
        entries = self._weights.shape[1] * self._patterns
        if entries != len(self._rewards):
            fits = self._columns is not None and entries <= _MAX_LOOKUP
            self._rewards = np.full(entries if fits else 0, np.nan)

    def columns(self, trees: Ints, evidence: Evidence) -> Ints:
        """Return the table columns of the conclusions that the menu composes from this evidence."""
        if self._columns is None:
            return self._find(trees, evidence)
        patterns = self._pattern(trees, evidence)
        columns: Ints = self._columns.take(patterns)
        if np.minimum.reduce(columns) < 0:
            columns = self._find(trees, evidence)
            self._columns[patterns] = columns
        return columns

    def _pattern(self, trees: Ints, evidence: Evidence) -> Ints:
        """Return tree and evidence as one integer."""
        pattern: Ints = evidence.seen[0] >> self._first_study
        if evidence.fooled is not None:
            pattern = pattern << self._n_studies | evidence.fooled[0] >> self._first_study
        if self._tables.several:
            pattern += trees << self._bits
        return pattern

    def _find(self, trees: Ints, evidence: Evidence) -> Ints:
        """Return the columns by the claim made on every item: none, the truth, or a false variant."""
        if max(map(len, self._texts)) > self._tables.max_conclusions:
            self._clear()
        fooled = evidence.fooled
        shown = evidence.seen if fooled is None else evidence.seen | fooled
        claims = _any_in(shown, self._evidence, trees).astype(float)
        if fooled is not None:
            claims += _any_in(fooled, self._evidence, trees)
        numbers = trees
        for level, first in enumerate(range(0, claims.shape[1], _ITEMS_PER_KEY)):
            if level == len(self._numberings):
                self._numberings.append(_Numbering())
            digits = claims[:, first : first + _ITEMS_PER_KEY]
            keys = (digits @ _POWERS[: digits.shape[1]]).astype(np.int64)
            numbers = self._numberings[level].of(keys + numbers * 3**_ITEMS_PER_KEY)
        new, at = np.unique(numbers[numbers >= len(self._column_of)], return_index=True)
        if new.size:
            self._add(trees, evidence, (numbers >= len(self._column_of)).nonzero()[0][at])
        return self._column_of.take(numbers)

    def _add(self, trees: Ints, evidence: Evidence, rows: Ints) -> None:
        """Give columns to the conclusions of these rows, which have the next numbers."""
        columns: list[int] = []
        for row in rows:
            number = int(trees[row])
            tree, texts = self._tables.trees[number], self._texts[number]
            state = tree.reader.state(Context.NO_MATCH)._replace(shown=_shown(tree, evidence, row))
            unread = np.full(tree.reader.n_contexts, UNREAD)
            unread[Context.NO_MATCH] = REJECTED
            self._tables.put_conclusion(number, len(texts), unread)
            columns.append(self._n_texts + len(texts))
            texts.append(tree.menu.conclude(state))
        self._column_of = np.append(self._column_of, columns)
        self.unread += len(columns)
        self._grow()

    def read(self, trees: Ints, columns: Ints) -> None:
        """Match conclusions that were submitted where none was asked for, and fill in their columns."""
        unread = sorted(set(zip(trees.tolist(), (columns - self._n_texts).tolist(), strict=True)))
        self._embed(unread)
        for tree, number in unread:
            reader = self._tables.trees[tree].reader
            self._tables.put_conclusion(tree, number, reader.read(self._texts[tree][number]))
            self.unread -= 1

    def _embed(self, unread: Sequence[tuple[int, int]]) -> None:
        """Embed the texts of these conclusions in one call."""
        caches: dict[str, list[TreeVectors]] = {}
        for tree, number in unread:
            text, vectors = self._texts[tree][number], self._tables.trees[tree].runtime.vectors
            if text and not vectors.knows(text):
                caches.setdefault(text, []).append(vectors)
        if caches:
            embedder = self._tables.trees[0].runtime.vectors.embedder
            for (text, found), vector in zip(caches.items(), embedded(embedder, list(caches)), strict=True):
                for vectors in found:
                    vectors.take(text, vector)

    def rewards(self, trees: Ints, columns: Ints, evidence: Evidence) -> Rewards:
        """Return Q/|C| in [0, 1] (Eq. 9) of the texts of these columns as conclusions."""
        if not len(self._rewards):
            return self._score(trees, columns, evidence)
        cells = columns * self._patterns
        cells += self._pattern(trees, evidence)
        rewards: Rewards = self._rewards.take(cells)
        smallest = np.minimum.reduce(rewards)
        if smallest != smallest:  # NaN: at least one is unknown
            rewards = self._score(trees, columns, evidence)
            self._rewards[cells] = rewards
        return rewards

    def _score(self, trees: Ints, columns: Ints, evidence: Evidence) -> Rewards:
        unjudged = np.isnan(self._weights[trees, columns, 0])
        for tree, column in set(zip(trees[unjudged].tolist(), columns[unjudged].tolist(), strict=True)):
            self._weights[tree, column] = self._judge(tree, column)
        met = _any_in(evidence.seen, self._needs, trees)
        return np.asarray((self._weights[trees, columns] * met).sum(axis=1))

    def _judge(self, number: int, column: int) -> Rewards:
        """Return the reward that each group of results adds to a text once it is met."""
        tree = self._tables.trees[number]
        texts = (*tree.menu.texts, *self._texts[number])
        verdicts = tree.runtime.judge.judge(texts[column])
        scores = [0.0 if any(each.score is None for each in verdicts) else each.score or 0.0 for each in verdicts]
        shares = [
            score / len(groups) / len(scores)
            for score, groups in zip(scores, _groups(tree), strict=True)
            for _ in groups
        ]
        return np.array(shares + [0.0] * (self._needs.shape[2] - len(shares)))


class _Numbering:
    """Consecutive numbers for integer keys, in the order of their first use."""

    def __init__(self) -> None:
        self._keys: Ints = np.array([-1])
        self._numbers: Ints = np.array([-1])

    def of(self, keys: Ints) -> Ints:
        """Return the number of each key, at least 0. New keys get the next numbers."""
        at = self._keys.searchsorted(keys, side="right") - 1
        known = self._keys.take(at) == keys
        if not known.all():
            new = np.unique(keys[~known])
            where = self._keys.searchsorted(new)
            self._numbers = np.insert(self._numbers, where, len(self._keys) - 1 + np.arange(len(new)))
            self._keys = np.insert(self._keys, where, new)
            at = self._keys.searchsorted(keys)
        return self._numbers.take(at)


def _groups(compiled: CompiledTree) -> list[list[list[int]]]:
    """Return the studies of every group of results that each conclusion item needs."""
    tree, evidence = compiled.runtime.task, compiled.runtime.engine.rules.evidence
    numbers = {study.id: number for number, study in enumerate(tree.studies)}
    return [[[numbers[name] for name in group] for group in required(item, evidence)] for item in tree.conclusions]


def _bit_sets(tables: Tables, sets: Sequence[Sequence[Sequence[int]]]) -> Ints:
    """Return sets of studies as words of node bits, shape ``(words, trees, sets)``. Missing sets are empty."""
    found = np.zeros((tables.words, len(sets), max(map(len, sets))), np.int64)
    for tree, of_tree in enumerate(sets):
        for number, studies in enumerate(of_tree):
            for study in studies:
                word, bit = divmod(tables.size.subtopics + study, WORD_BITS)
                found[word, tree, number] |= 1 << bit
    return found


def _any_in(seen: Ints, sets: Ints, trees: Ints) -> Bools:
    """Return whether any node of each set was seen, shape ``(len(trees), sets)``."""
    if sets.shape[1] > 1:
        sets = sets.take(trees, axis=1)
    found: Ints = seen[0][:, None] & sets[0]
    for word in range(1, len(sets)):
        found |= seen[word][:, None] & sets[word]
    return np.asarray(found != _ZERO)


def _shown(compiled: CompiledTree, evidence: Evidence, row: int) -> tuple[int, ...]:
    """Return `State.shown` of a row: per study -1 for not run, 0 for its true result, 1 for any fake."""

    def last(node: int) -> int:
        word, bit = divmod(node, WORD_BITS)
        if evidence.fooled is not None and evidence.fooled[word, row] >> bit & 1:
            return 1
        return int(evidence.seen[word, row] >> bit & 1) - 1

    first = compiled.menu.size.subtopics
    return tuple(last(first + study) for study in range(len(compiled.runtime.task.studies)))
