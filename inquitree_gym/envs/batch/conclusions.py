"""Conclusions in the discrete view: what the one of a menu says and how it is read, and what each text earns.

Each is found out once, when it first occurs, by asking the matcher or the judge; from then on it is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.envs.batch.compiler import WORD, Compiled
from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.reader import ANY, Reactions
from inquitree_gym.envs.batch.tables import Tables

Rewards = NDArray[np.float64]

_ITEMS = 20
"""Items whose claims make one key: 3**20 patterns, times the keys of the items before, fit into 63 bits."""
_POWERS = 3.0 ** np.arange(_ITEMS)
_NONE = np.zeros((), np.int64)
_DENSE = 1 << 20
"""Most entries of a look-up by what was seen: 8 MiB."""


class Seen(NamedTuple):
    """What some inquiries have seen, as words of bits by node, each of shape ``(words, inquiries)``."""

    known: Ints
    """Subtopics visited, and studies whose true result was ever shown."""
    fake: Ints | None
    """Studies that a fake was shown of when last run; None where there are no fakes."""


class Conclusions:
    """What conclusions say, lead to and earn, for all plays of some tables.

    The columns of the tables go on from the menu's texts to the conclusions of each play.
    """

    def __init__(self, tables: Tables) -> None:
        """Know none yet."""
        self._tables = tables
        self._evidence = _joined([_sets(each, each.menu.evidence) for each in tables.plays], tables.slots.words)
        """Per play and conclusion item the studies that bear on it, as words of bits."""
        self._needs = _joined([_sets(each, _needs(each)) for each in tables.plays], tables.slots.words)
        """Per play and group of results that an item needs, the studies in it, as words of bits."""
        self._texts = tables.size.actions - 1
        self._first_study, self._study_bits = np.array(tables.size.subtopics), np.array(tables.size.studies)
        self._forget()

    def _forget(self) -> None:
        plays, bits = len(self._tables.plays), self._tables.size.studies * (1 + self._tables.fakes)
        self._numberings: list[_Numbering] = []
        self._columns: Ints = np.zeros(0, np.int64)
        """By number of a conclusion its column."""
        self._said: list[list[str]] = [[] for _ in range(plays)]
        """Per play what its conclusions say."""
        self._weights: Rewards = np.full((plays, self._texts, self._needs.shape[2]), np.nan)
        """Per play and column what each group adds to the reward once it is met; NaN when not judged."""
        self._bits, self._patterns = np.array(bits), plays << bits
        few = self._tables.slots.words == 1 and self._patterns <= _DENSE
        self._dense: Ints | None = np.full(self._patterns, -1) if few else None
        """By play and what was seen of studies, where that are few, the column; −1 when not found yet."""
        self._earned: Rewards = np.zeros(0)
        """By column and then as before the reward; NaN when not found yet. Empty where it would be too large."""
        self._make_room()
        self.unread = 0
        """How many conclusions have columns that are to be filled when they are first said too early."""

    def _make_room(self) -> None:
        """Make room for the rewards of all columns."""
        more = self._texts + max(map(len, self._said)) - self._weights.shape[1]
        if more > 0:
            self._weights = np.pad(self._weights, ((0, 0), (0, 2 * more), (0, 0)), constant_values=np.nan)
        entries = self._weights.shape[1] * self._patterns
        if entries != len(self._earned):
            fits = self._dense is not None and entries <= _DENSE
            self._earned = np.full(entries if fits else 0, np.nan)

    def columns(self, plays: Ints, seen: Seen) -> Ints:
        """Return the column of each inquiry's conclusion, as its menu says it after what was seen."""
        if self._dense is None:
            return self._found(plays, seen)
        patterns = self._pattern(plays, seen)
        columns: Ints = self._dense.take(patterns)
        if np.minimum.reduce(columns) < 0:
            columns = self._found(plays, seen)
            self._dense[patterns] = columns
        return columns

    def _pattern(self, plays: Ints, seen: Seen) -> Ints:
        """Return play and what was seen of studies as one number."""
        found: Ints = seen.known[0] >> self._first_study
        if seen.fake is not None:
            found = found << self._study_bits | seen.fake[0] >> self._first_study
        if self._tables.several:
            found += plays << self._bits
        return found

    def _found(self, plays: Ints, seen: Seen) -> Ints:
        """Return what `columns` does, item by item."""
        if max(map(len, self._said)) > self._tables.most_conclusions:
            self._forget()
        claims = _any(seen.known if seen.fake is None else seen.known | seen.fake, self._evidence, plays).astype(float)
        if seen.fake is not None:
            claims += _any(seen.fake, self._evidence, plays)
        numbers = plays
        for level, first in enumerate(range(0, claims.shape[1], _ITEMS)):
            if level == len(self._numberings):
                self._numberings.append(_Numbering())
            digits = claims[:, first : first + _ITEMS]
            keys = (digits @ _POWERS[: digits.shape[1]]).astype(np.int64)
            numbers = self._numberings[level].of(keys + numbers * 3**_ITEMS)
        new, rows = np.unique(numbers[numbers >= len(self._columns)], return_index=True)
        if new.size:
            self._say(plays, seen, (numbers >= len(self._columns)).nonzero()[0][rows])
        return self._columns.take(numbers)

    def _say(self, plays: Ints, seen: Seen, rows: Ints) -> None:
        """Give columns to the conclusions of these inquiries, whose numbers are the next ones."""
        new: list[int] = []
        for row in rows:
            number = int(plays[row])
            play, said = self._tables.plays[number], self._said[number]
            state = play.reader.state(ANY)._replace(shown=_shown(play, seen, row))
            unread = np.full(play.rows.group.max() + 1, Reactions.READ)
            unread[ANY] = Reactions.REFUSE
            self._tables.put_conclusion(number, len(said), unread)
            new.append(self._texts + len(said))
            said.append(play.menu.conclude(state))
        self._columns = np.append(self._columns, new)
        self.unread += len(new)
        self._make_room()

    def read(self, plays: Ints, columns: Ints) -> None:
        """Fill the columns of these conclusions, which are said where none was asked for."""
        wanted = sorted(set(zip(plays.tolist(), (columns - self._texts).tolist(), strict=True)))
        self._embed(wanted)
        for play, number in wanted:
            reader = self._tables.plays[play].reader
            self._tables.put_conclusion(play, number, reader.read(self._said[play][number]))
            self.unread -= 1

    def _embed(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Embed conclusions in one call."""
        takers: dict[str, list[TreeVectors]] = {}
        for play, number in wanted:
            text, vectors = self._said[play][number], self._tables.plays[play].reader.play.vectors
            if text and not vectors.knows(text):
                takers.setdefault(text, []).append(vectors)
        if takers:
            embedder = self._tables.plays[0].reader.play.vectors.embedder
            for (text, found), vector in zip(takers.items(), embedder.embed(list(takers)), strict=True):
                for vectors in found:
                    vectors.take(text, vector)

    def rewards(self, plays: Ints, columns: Ints, seen: Seen) -> Rewards:
        """Return what these texts earn as conclusions after what was seen: Q/|C| in [0, 1] (Eq. 9)."""
        if not len(self._earned):
            return self._worth(plays, columns, seen)
        cells = columns * self._patterns
        cells += self._pattern(plays, seen)
        found: Rewards = self._earned.take(cells)
        least = np.minimum.reduce(found)
        if least != least:  # NaN: something is new
            found = self._worth(plays, columns, seen)
            self._earned[cells] = found
        return found

    def _worth(self, plays: Ints, columns: Ints, seen: Seen) -> Rewards:
        """Return what `rewards` does, group by group."""
        unjudged = np.isnan(self._weights[plays, columns, 0])
        for play, column in set(zip(plays[unjudged].tolist(), columns[unjudged].tolist(), strict=True)):
            self._weights[play, column] = self._judged(play, column)
        met = _any(seen.known, self._needs, plays)
        return np.asarray((self._weights[plays, columns] * met).sum(axis=1))

    def _judged(self, number: int, column: int) -> Rewards:
        """Return what each group of results adds to the reward of a text once it is met."""
        compiled = self._tables.plays[number]
        play, texts = compiled.reader.play, compiled.menu.texts
        text = texts[column] if column < self._texts else self._said[number][column - self._texts]
        verdicts = play.judge.judge(text)
        scores = [0.0 if any(each.score is None for each in verdicts) else each.score or 0.0 for each in verdicts]
        shares = [
            score / len(item.needs) / len(scores)
            for score, item in zip(scores, play.tree.conclusions, strict=True)
            for _ in item.needs
        ]
        return np.array(shares + [0.0] * (self._needs.shape[2] - len(shares)))


class _Numbering:
    """Numbers for keys, from 0 on without a gap."""

    def __init__(self) -> None:
        self._keys: Ints = np.array([-1])
        self._numbers: Ints = np.array([-1])

    def of(self, keys: Ints) -> Ints:
        """Return the number of each key, all of them from 0; new keys get the next numbers."""
        at = self._keys.searchsorted(keys, side="right") - 1
        known = self._keys.take(at) == keys
        if not known.all():
            new = np.unique(keys[~known])
            where = self._keys.searchsorted(new)
            self._numbers = np.insert(self._numbers, where, len(self._keys) - 1 + np.arange(len(new)))
            self._keys = np.insert(self._keys, where, new)
            at = self._keys.searchsorted(keys)
        return self._numbers.take(at)


def _needs(compiled: Compiled) -> list[list[int]]:
    """Return the studies of every group of results that conclusion items need, item by item."""
    tree = compiled.reader.play.tree
    number = {study.id: k for k, study in enumerate(tree.studies)}
    return [[number[name] for name in group] for item in tree.conclusions for group in item.needs]


def _sets(compiled: Compiled, studies: Sequence[Sequence[int]]) -> list[int]:
    """Return sets of studies as bits of nodes."""
    return [sum(1 << compiled.menu.size.subtopics + each for each in found) for found in studies]


def _joined(sets: Sequence[Sequence[int]], words: int) -> Ints:
    """Return sets by word, play and number, shape ``(words, plays, sets)``; missing sets are empty."""
    most = max(map(len, sets))
    filled = [[*found, *[0] * (most - len(found))] for found in sets]
    mask = (1 << WORD) - 1
    return np.array([[[bits >> WORD * word & mask for bits in row] for row in filled] for word in range(words)])


def _any(seen: Ints, sets: Ints, plays: Ints) -> Bools:
    """Tell per inquiry and set of its play whether anything of it was seen, shape ``(inquiries, sets)``."""
    if sets.shape[1] > 1:
        sets = sets.take(plays, axis=1)
    found: Ints = seen[0][:, None] & sets[0]
    for word in range(1, len(sets)):
        found |= seen[word][:, None] & sets[word]
    return np.asarray(found != _NONE)


def _shown(compiled: Compiled, seen: Seen, row: int) -> tuple[int, ...]:
    """Return as `State.shown` what an inquiry saw of every study; which fake, nobody asks."""

    def one(node: int) -> int:
        word, bit = divmod(node, WORD)
        if seen.fake is not None and seen.fake[word, row] >> bit & 1:
            return 1
        return int(seen.known[word, row] >> bit & 1) - 1

    first = compiled.menu.size.subtopics
    return tuple(one(first + study) for study in range(len(compiled.reader.play.tree.studies)))
