"""Several compiled trees in one set of tables, so that one look-up serves inquiries into any of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.batch.compiler import Compiled, Numbers, Places, Slots
from inquitree_gym.envs.batch.encoding import Ints, Layout, moved
from inquitree_gym.envs.batch.reader import NOBODY
from inquitree_gym.envs.menu import MenuSize

UNLIMITED = np.iinfo(np.int64).max
MOST_ENTRIES = 1 << 22
"""Entries for conclusions, unless the trees need more for `FEWEST` of them."""
FEWEST = 256


class Tables:
    """Compiled trees, one after the other; what is asked by play is asked by their number in that order.

    A table has one column per menu text, then columns for conclusions. Its entries are three times the number of a
    reaction, and one more: then one less is that of a locked subtopic in `effects`, and one more that of a visited one.
    """

    def __init__(self, size: MenuSize, plays: Sequence[Compiled], first_texts: Sequence[int]) -> None:
        """Join ``plays``, all compiled for menus of ``size``; the texts of each are numbered from its first on."""
        self.size = size
        self.slots = Slots(size)
        self.plays = tuple(plays)
        self.several = len(plays) > 1
        self.first_texts = tuple(first_texts)
        self.first_places = _starts([len(each.places.row) for each in plays])
        self.first_rows = _starts([len(each.table) for each in plays])
        self._entries: list[Ints] = [np.zeros(0, np.int64) for _ in plays]
        """Per play the entries of its reactions."""
        self.named: Ints = np.zeros(0, np.int64)
        """By entry the slot of the subtopic that is named."""
        self.effects: Ints = np.zeros(0, np.int64)
        """By entry what follows."""
        for play in range(len(plays)):
            self.take_in_reactions(play)
        self._join_places()
        self._take_rules()
        texts = size.actions - 1
        rows = sum(len(each.table) for each in plays)
        self.most_conclusions = max(FEWEST, MOST_ENTRIES // rows)
        """How many conclusions are worth their columns."""
        self._take_table(np.zeros((rows, texts + min(16, self.most_conclusions)), np.int64))
        for play, each in enumerate(plays):
            self._put(play, slice(0, texts), each.table)

    def _take_table(self, table: Ints) -> None:
        self._table = table
        self.entries = table.reshape(-1)
        """The table, flat."""
        self.bases: Ints = self.places.row * table.shape[1]
        """Per place where its entries begin."""

    def _join_places(self) -> None:
        pools = _starts([len(each.pools) for each in self.plays])
        starts = zip(self.plays, self.first_rows, self.first_texts, self.first_places, pools, strict=True)
        parts = [
            each.places._replace(
                row=each.places.row + row,
                text=each.places.text + text,
                at_limit=each.places.at_limit + place,
                refused=moved(each.places.refused, int(place)),
                pool=each.places.pool + pool,
                frees=each.places.frees + pool,
            )
            for each, row, text, place, pool in starts
        ]
        self.places = Places(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        self.pools: Ints = _stacked([each.pools for each in self.plays])
        """Slots that a hint may lead to, by pool."""
        self.frees: Ints = np.ascontiguousarray(_stacked([each.frees for each in self.plays]).T)
        """Slots of the subtopics that a subtopic is a prerequisite of, by number and pool."""
        self.open = np.concatenate([each.open for each in self.plays])

    def _take_rules(self) -> None:
        engines = [each.reader.play.engine for each in self.plays]
        rules = [engine.rules for engine in engines]
        limits = [UNLIMITED if engine.turn_limit is None else engine.turn_limit for engine in engines]
        self.turn_limits: Ints = np.array([min(limit, UNLIMITED) for limit in limits])
        # A fake is shown when draw * 10 < level * 2**64; no draw shows one at level 0, where none is made.
        highest = [max(0, ((each.fake_level << 64) - 1) // 10) for each in rules]
        self.highest_fakes = np.array(highest, np.uint64)
        """Highest draw that shows a fake."""
        self.admissible = np.array([each.candidates == "admissible" for each in rules])
        self.direct = np.array([each.explore == "direct" for each in rules])
        self.starts: Ints = self.first_places + Layout.START
        self.standings: Numbers = np.stack([each.standings for each in self.plays])
        """Counts of an episode that starts, by play and slot."""
        self.real = np.arange(self.size.subtopics) < np.array([[engine.n] for engine in engines])
        """Which slots hold a subtopic, by play."""
        self.fakes = any(each.fake_level for each in rules)
        """Whether any play shows fakes."""
        self.tries = bool(self.admissible.any())
        """Whether any reaction names another one."""
        self.masks_vary = bool(self.admissible.any() or self.direct.any())
        """Whether what the menu allows depends on what was visited."""

    def take_in_reactions(self, play: int) -> None:
        """Take in the reactions of a play's reader that came up since the last time."""
        found, known = self.plays[play].reader.reactions.list, self._entries[play]
        new = found[len(known) :]
        if not new:
            return
        entries = np.concatenate([known, len(self.named) + 1 + 3 * np.arange(len(new))])
        self._entries[play] = entries
        named = [self.slots.nothing if each.subtopic == NOBODY else each.subtopic for each in new]
        follows = np.array([(each.locked, each.fresh, each.again) for each in new]).reshape(-1)
        self.named = np.concatenate([self.named, np.repeat(named, 3)])
        self.effects = np.concatenate([self.effects, moved(follows, int(self.first_places[play]), entries)])

    def _put(self, play: int, columns: slice, reactions: NDArray[np.integer]) -> None:
        """Put the reactions of a play, by row, into columns of the table."""
        first = self.first_rows[play]
        self._table[first : first + len(reactions), columns] = self._entries[play][reactions]

    def put_conclusion(self, play: int, number: int, reactions: Ints) -> None:
        """Put the reactions to a conclusion, by group, into the table."""
        texts = self.size.actions - 1
        while texts + number >= self._table.shape[1]:
            more = np.zeros((len(self._table), self._table.shape[1] - texts), np.int64)
            self._take_table(np.concatenate([self._table, more], axis=1))
        self.take_in_reactions(play)
        by_row = self.plays[play].rows.reactions(reactions)
        self._put(play, slice(texts + number, texts + number + 1), by_row[:, None])


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths[:-1]])


def _stacked(pools: Sequence[Ints]) -> Ints:
    """Stack arrays whose rows are of different length; a row is filled up with its last value."""
    longest = max(each.shape[1] for each in pools)
    return np.concatenate([np.pad(each, ((0, 0), (0, longest - each.shape[1])), mode="edge") for each in pools])
