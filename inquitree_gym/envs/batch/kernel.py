"""Inquiries as rows of arrays: one step of all of them at once."""

from __future__ import annotations

import numpy as np

from inquitree_gym.envs.batch.compiler import Numbers
from inquitree_gym.envs.batch.conclusions import Conclusions, Rewards, Seen
from inquitree_gym.envs.batch.encoding import NAMED, NAMED_BITS, PER_RESULT, Bools, Ints, Move
from inquitree_gym.envs.batch.reader import AT_RESULT, AT_TOPIC, REFUSED
from inquitree_gym.envs.batch.rng import Seeds, mixed
from inquitree_gym.envs.batch.tables import Tables
from inquitree_gym.envs.menu import Mask
from inquitree_gym.trees import HINT_LEVELS

# As arrays without a dimension: a ufunc takes one in half the time that a number of Python's takes it.
_ZERO, _ONE, _REFUSED, _NAMED, _NAMED_BITS = (np.array(x) for x in (0, 1, REFUSED, NAMED, NAMED_BITS))
_SHOW, _AIM, _END, _TRY, _READ = (np.array(-m) for m in (Move.SHOW, Move.AIM, Move.END, Move.TRY, Move.READ))
_ACTS = np.array(Move.SHOW, np.uint64)
"""How many moves there are from `Move.SHOW` to before `Move.GO`, in the order of their effects."""
_HINTS = np.array(HINT_LEVELS)
_NOT_YET, _ONCE = np.zeros((), np.int32), np.ones((), np.int32)


class Core:
    """The state of some inquiries, and the rules applied to all of them; row i of every array is inquiry i."""

    def __init__(self, inquiries: int, tables: Tables, *, marks: bool = False) -> None:
        """Hold ``inquiries`` that none has started yet; with ``marks`` what was visited is kept as 0 and 1, too."""
        self.inquiries = inquiries
        self.place: Ints = np.zeros(inquiries, np.int64)
        self.turn: Ints = np.zeros(inquiries, np.int64)
        self.play: Ints = np.zeros(inquiries, np.int64)
        self.seeds = Seeds(inquiries)
        self._limits: Ints = np.zeros(inquiries, np.int64)
        width = tables.slots.sink + 1
        self._standings: Numbers = np.zeros((inquiries, width), np.int32)
        """Visits by subtopic, or minus the prerequisites that are missing; then runs by study."""
        self._flat_standings = self._standings.reshape(-1)
        self._firsts = np.arange(inquiries) * width
        """Where the standings of each inquiry begin, when all stand in one line."""
        self.known: Ints = np.zeros((tables.slots.words, inquiries), np.int64)
        """Subtopics visited and studies whose true result was shown, as words of bits by node."""
        self._flat_known = self.known.reshape(-1)
        self._fake: Ints = np.zeros_like(self.known)
        """Studies of which a fake was shown when last run, likewise."""
        self._marking = marks
        self.marks = np.zeros((inquiries, tables.size.subtopics if marks else 0), np.float32)
        """1 where a subtopic was visited, shape ``(inquiries, subtopics)``, if that is kept."""
        self._use(tables)

    @property
    def nbytes(self) -> int:
        """Bytes that the inquiries take, without the tables."""
        arrays = (*vars(self).values(), *vars(self.seeds).values())
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray) and each.base is None)

    def renumber(self, tables: Tables, numbers: Ints) -> None:
        """Go by other tables, in which plays have these numbers instead of their own."""
        self.place += tables.first_places.take(numbers.take(self.play))
        self.place -= self.tables.first_places.take(self.play)
        self.play = numbers.take(self.play)
        self._use(tables)

    def _use(self, tables: Tables) -> None:
        self.tables = tables
        if not tables.several:
            self._limits[:] = tables.turn_limits[0]
        if not tables.fakes:
            self._fake[:] = 0
        self._conclusions = Conclusions(tables)
        self._said = np.array(tables.size.actions - 1)
        self._stride = tables.size.subtopics

    def begin(self, rows: Ints, plays: Ints) -> None:
        """Start an episode of these plays in these inquiries, whose seeds are those of the episode."""
        tables = self.tables
        if tables.several:
            self.play[rows] = plays
            self.place[rows] = tables.starts.take(plays)
            self._limits[rows] = tables.turn_limits.take(plays)
            self._standings[rows] = tables.standings.take(plays, axis=0)
        else:
            self.place[rows] = tables.starts[0]
            self._standings[rows] = tables.standings[0]
        self.turn[rows] = 0
        for word in self.known:
            word[rows] = 0
        if tables.fakes:
            self._fake[:, rows] = 0
        if self._marking:
            self.marks[rows] = 0

    def step(self, actions: Ints) -> tuple[Ints, Rewards]:
        """Take one turn in every inquiry; those that are over go to the start of the episode, which is to be begun.

        Args:
            actions: numbers of the menu, shape ``(inquiries,)``.

        Returns: the inquiries that ended, and what each of them earned.
        """
        tables = self.tables
        columns = self._columns(actions)
        index = tables.bases.take(self.place)
        index += columns
        follows = self._followed(tables.entries.take(index), self._firsts)
        rows = (follows < _ZERO).nonzero()[0]
        effects = follows.take(rows)
        moves = self._interpreted(effects, rows, columns)
        places = effects & _NAMED
        acting = ((moves - _SHOW).view(np.uint64) < _ACTS).nonzero()[0]
        if acting.size:
            self._act(places, moves.take(acting), acting, rows.take(acting))
        aiming = (moves == _AIM).nonzero()[0]
        if aiming.size:
            self._aim(places, aiming, rows.take(aiming))
        ended = rows.take((moves == _END).nonzero()[0])
        earned = self._concluded(ended, columns.take(ended))
        follows[rows] = places
        self.turn += _ONE
        due = (self.turn >= self._limits).nonzero()[0]
        if due.size:
            follows[due] = tables.places.at_limit.take(follows.take(due))
        self.place = follows
        return ended, earned

    def _columns(self, actions: Ints) -> Ints:
        """Return the columns of the table that actions stand for: conclusions have one for everything they can say."""
        said = (actions == self._said).nonzero()[0]
        if not said.size:
            return actions
        columns = actions.copy()
        columns[said] = self._conclusions.columns(self.play.take(said), self._seen(said))
        return columns

    def _followed(self, entries: Ints, firsts: Ints) -> Ints:
        """Return the effects of entries of the table, given where the standings of their inquiries begin."""
        cells = self.tables.named.take(entries)
        cells += firsts
        entries += np.sign(self._flat_standings.take(cells))
        found: Ints = self.tables.effects.take(entries)
        return found

    def _interpreted(self, effects: Ints, rows: Ints, columns: Ints) -> Ints:
        """Return the moves of effects, after putting in what they depend on besides."""
        tables = self.tables
        if self._conclusions.unread:
            new = ((effects >> _NAMED_BITS) == _READ).nonzero()[0]
            if new.size:
                chosen = rows.take(new)
                self._conclusions.read(self.play.take(chosen), columns.take(chosen))
                entries = tables.entries.take(tables.bases.take(self.place.take(chosen)) + columns.take(chosen))
                effects[new] = self._followed(entries, self._firsts.take(chosen))
        if tables.tries:
            trying = ((effects >> _NAMED_BITS) == _TRY).nonzero()[0]
            while trying.size:
                entries = effects.take(trying) & _NAMED
                effects[trying] = self._followed(entries, self._firsts.take(rows.take(trying)))
                trying = trying[(effects.take(trying) >> _NAMED_BITS) == _TRY]
        refused = (effects == _REFUSED).nonzero()[0]
        if refused.size:
            effects[refused] = tables.places.refused.take(self.place.take(rows.take(refused)))
        moves: Ints = effects >> _NAMED_BITS
        return moves

    def _act(self, places: Ints, moves: Ints, acting: Ints, rows: Ints) -> None:
        """Count and mark that subtopics are entered and studies run, at these of the places; put in fakes shown."""
        tables = self.tables
        at, firsts = places.take(acting), self._firsts.take(rows)
        slots = tables.places.slot.take(at)
        standings, cells = self._flat_standings, slots + firsts
        before = standings.take(cells)
        standings[cells] = before + _ONCE
        fresh = (before == _NOT_YET).nonzero()[0]
        if fresh.size:
            freed = tables.frees.take(tables.places.frees.take(at.take(fresh)), axis=1)
            freed += firsts.take(fresh)
            standings[freed] = standings.take(freed) + _ONCE
        bits, words = tables.places.bit.take(at), rows
        if len(self.known) > 1:
            words = tables.places.word.take(at) * self.inquiries + rows
        if tables.fakes:
            showing = (moves == _SHOW).nonzero()[0]
            drawn = self._drawn(at[showing], rows[showing])
            places[acting[showing]] += PER_RESULT * drawn
            bits[showing] = self._believed(bits[showing], words[showing], drawn > 0)
        self._flat_known[words] = self._flat_known.take(words) | bits
        if self._marking:
            entered = (slots < self._stride).nonzero()[0]
            self.marks[rows.take(entered), slots.take(entered)] = 1

    def _drawn(self, places: Ints, rows: Ints) -> Ints:
        """Return which result is shown: 0 the true one, i the i-th fake; see `Engine.fake_shown`."""
        tables = self.tables
        nodes = tables.places.node.take(places)
        runs = self._standings[rows, nodes]
        draws = mixed(mixed(self.seeds.hashes.take(rows), nodes - self._stride), runs)
        found = np.zeros(len(rows), np.int64)
        fake = (draws <= tables.highest_fakes.take(self.play.take(rows))).nonzero()[0]
        which = mixed(np.zeros(len(fake), np.uint64), draws[fake])
        found[fake] = 1 + which % tables.places.fakes.take(places[fake]).astype(np.uint64)
        return found

    def _believed(self, bits: Ints, words: Ints, is_fake: Bools) -> Ints:
        """Note what studies showed last; return the bits of those that showed the truth."""
        fake = self._fake.reshape(-1)
        fake[words] = np.where(is_fake, fake[words] | bits, fake[words] & ~bits)
        return np.where(is_fake, 0, bits)

    def _aim(self, places: Ints, aiming: Ints, rows: Ints) -> None:
        """Go on to the first hint to what was visited or run least, the first of the pool on a tie."""
        at = places.take(aiming)
        cells = self.tables.pools.take(self.tables.places.pool.take(at), axis=0)
        cells += self._firsts.take(rows)[:, None]
        # Without its sign the standing of a locked subtopic is above all others.
        least = self._flat_standings.take(cells).view(np.uint32).argmin(axis=1)
        least *= _HINTS
        least += at
        places[aiming] = least

    def _concluded(self, rows: Ints, columns: Ints) -> Rewards:
        if not rows.size:
            return np.zeros(0)
        return self._conclusions.rewards(self.play.take(rows), columns, self._seen(rows))

    def _seen(self, rows: Ints) -> Seen:
        return Seen(self.known.take(rows, axis=1), self._fake.take(rows, axis=1) if self.tables.fakes else None)

    def masks(self) -> Mask:
        """Return which actions the states allow, shape ``(inquiries, actions)``; see `Menu.mask`."""
        tables = self.tables
        found: Mask = tables.open.take(tables.places.row.take(self.place), axis=0)
        if tables.masks_vary:
            groups = tables.places.group.take(self.place)
            rows = ((groups == AT_TOPIC) & tables.admissible.take(self.play)).nonzero()[0]
            found[rows, : self._stride] = self._standings[rows, : self._stride] >= 0
            rows = ((groups == AT_RESULT) & tables.direct.take(self.play)).nonzero()[0]
            found[rows, : self._stride] = self._fresh(rows)
        return found

    def _fresh(self, rows: Ints) -> Bools:
        """Tell which candidates were not visited yet, shape ``(len(rows), subtopics)``."""
        plays, standings = self.play.take(rows), self._standings[rows, : self._stride]
        locked_too = self.tables.real.take(plays, axis=0) & ~self.tables.admissible.take(plays)[:, None]
        return np.asarray((standings == 0) | (standings < 0) & locked_too)

    def allows(self, actions: Ints) -> Bools:
        """Tell which inquiries allow these actions, shape ``(inquiries,)``."""
        tables = self.tables
        if tables.masks_vary:
            return self.masks()[np.arange(self.inquiries), actions]
        return tables.open[tables.places.row.take(self.place), actions]
