"""One step of all inquiries at once. Index i of every array is environment i."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import EpisodeSeeds
from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.inquiry.arrays.conclusions import Conclusions, Evidence, Rewards
from inquitree_gym.inquiry.arrays.encoding import (
    LOCKED,
    REJECT,
    STATES_PER_RESULT,
    TARGET_BITS,
    TARGET_MASK,
    WORD_BITS,
    Counts,
    Op,
)
from inquitree_gym.inquiry.arrays.pool import Tables
from inquitree_gym.inquiry.engine import Phase
from inquitree_gym.inquiry.engine.machine import WORDING
from inquitree_gym.seeds import hash_words
from inquitree_gym.trees import HINT_LEVELS

# Zero-dimensional arrays: a ufunc takes one in half the time that a Python integer takes.
_ZERO, _ONE, _REJECT, _LOCKED, _TARGET_MASK, _TARGET_BITS = (
    np.array(x) for x in (0, 1, REJECT, LOCKED, TARGET_MASK, TARGET_BITS)
)
_SHOW, _HINT, _END, _DECLINE, _UNREAD = (np.array(-op) for op in (Op.SHOW, Op.HINT, Op.END, Op.DECLINE, Op.UNREAD))
_VISITING_OPS = np.array(Op.SHOW, np.uint64)
"""Number of opcodes after `Op.GOTO` up to `Op.SHOW`, which are those that count a visit."""
_HINT_LEVELS = np.array(HINT_LEVELS)
_BIT_COUNTS = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1).sum(1, np.uint8)
"""Number of bits set in every 16-bit integer."""
_WORDING = np.array(WORDING)
_UNVISITED, _ONE_VISIT = np.zeros((), np.int32), np.ones((), np.int32)


class Kernel:
    """Arrays that hold the state of all inquiries, and the step that advances them."""

    def __init__(self, num_envs: int, tables: Tables, *, track_visited: bool = False) -> None:
        """Allocate the arrays. ``track_visited`` keeps `visited` for observations that show it."""
        self.num_envs = num_envs
        self.state: Ints = np.zeros(num_envs, np.int64)
        """Index into ``tables.states``."""
        self.turn: Ints = np.zeros(num_envs, np.int64)
        self.tree: Ints = np.zeros(num_envs, np.int64)
        """Index into ``tables.trees``."""
        self.seeds = EpisodeSeeds(num_envs)
        self.left: Ints = np.zeros(num_envs, np.int64)
        """Number of subtopics not yet visited."""
        self._turn_limits: Ints = np.zeros(num_envs, np.int64)
        width = tables.n_counters
        self.counts: Counts = np.zeros((num_envs, width), np.int32)
        """Counters, see `n_counters`. Minus the number of missing prerequisites for a locked subtopic."""
        self._flat_counts = self.counts.reshape(-1)
        self._count_starts = np.arange(num_envs) * width
        """Index into the flat counters of each environment's first one."""
        self.seen: Ints = np.zeros((tables.words, num_envs), np.int64)
        """Bits of the subtopics visited and of the studies whose true result was shown, shape ``(words, num_envs)``."""
        self._flat_seen = self.seen.reshape(-1)
        self.fooled: Ints = np.zeros_like(self.seen)
        """Bits of the studies that showed a fake when last run."""
        self._track_visited = track_visited
        self.visited = np.zeros((num_envs, tables.size.subtopics if track_visited else 0), np.float32)
        """1 for a visited subtopic, shape ``(num_envs, subtopics)``, if it is tracked."""
        self._load(tables)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the tables."""
        arrays = (*vars(self).values(), *vars(self.seeds).values())
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray) and each.base is None)

    def replace_tables(self, tables: Tables, numbers: Ints) -> None:
        """Continue with other tables, in which tree i has the number ``numbers[i]``."""
        self.state += tables.first_states.take(numbers.take(self.tree))
        self.state -= self.tables.first_states.take(self.tree)
        self.tree = numbers.take(self.tree)
        self._load(tables)

    def _load(self, tables: Tables) -> None:
        self.tables = tables
        if not tables.several:
            self._turn_limits[:] = tables.turn_limits[0]
        if not tables.fakes:
            self.fooled[:] = 0
        self._conclusions = Conclusions(tables)
        self._conclude = np.array(tables.size.actions - 1)
        self._n_slots = tables.size.subtopics

    def start(self, envs: Ints, trees: Ints) -> None:
        """Start an episode in these environments, on one tree for all or on one for each. Seeds are set before."""
        tables = self.tables
        if tables.several:
            self.tree[envs] = trees
            self.state[envs] = tables.start_states.take(trees)
            self._turn_limits[envs] = tables.turn_limits.take(trees)
            self.left[envs] = tables.n_subtopics.take(trees)
            self.counts[envs] = tables.initial_counts.take(trees, axis=0)
        else:
            self.state[envs] = tables.start_states[0]
            self.left[envs] = tables.n_subtopics[0]
            self.counts[envs] = tables.initial_counts[0]
        self.turn[envs] = 0
        for word in self.seen:
            word[envs] = 0
        if tables.fakes:
            self.fooled[:, envs] = 0
        if self._track_visited:
            self.visited[envs] = 0

    def step(self, actions: Ints) -> tuple[Ints, Rewards]:
        """Take one turn in every environment. One that is over goes to a start state and has to be started.

        Args:
            actions: menu actions, shape ``(num_envs,)``.

        Returns: indices of the environments that terminated, and the reward of each.
        """
        tables = self.tables
        columns = self._columns(actions)
        index = tables.row_starts.take(self.state)
        index += columns
        following = self._branch(tables.entries.take(index), self._count_starts)
        # Everything from here to the turn limit is about transitions with a side effect.
        envs = (following < _ZERO).nonzero()[0]
        transitions = following.take(envs)
        ops = self._resolve(transitions, envs, columns)
        states = transitions & _TARGET_MASK
        visiting = ((ops - _SHOW).view(np.uint64) < _VISITING_OPS).nonzero()[0]
        if visiting.size:
            self._visit(states, ops.take(visiting), visiting, envs.take(visiting))
        hinting = (ops == _HINT).nonzero()[0]
        if hinting.size:
            self._choose_hint(states, hinting, envs.take(hinting))
        declining = (ops == _DECLINE).nonzero()[0]
        if declining.size:
            self._decline(states.take(declining), envs.take(declining))
        ended = envs.take((ops == _END).nonzero()[0])
        rewards = self._rewards(ended, columns.take(ended))
        following[envs] = states
        done = (self.left == _ZERO).nonzero()[0]
        if done.size:
            following[done] = tables.states.nothing_left.take(following.take(done))
        self.turn += _ONE
        limited = (self.turn >= self._turn_limits).nonzero()[0]
        if limited.size:
            following[limited] = tables.states.at_limit.take(following.take(limited))
        self.state = following
        return ended, rewards

    def _columns(self, actions: Ints) -> Ints:
        """Return table columns of actions. A conclusion has one column per text that it can stand for."""
        concluding = (actions == self._conclude).nonzero()[0]
        if not concluding.size:
            return actions
        columns = actions.copy()
        columns[concluding] = self._conclusions.columns(self.tree.take(concluding), self._evidence(concluding))
        return columns

    def _branch(self, entries: Ints, count_starts: Ints) -> Ints:
        """Return the transitions of table entries, by the sign of the counters of the subtopics that they name."""
        counters = self.tables.named.take(entries)
        counters += count_starts
        entries += np.sign(self._flat_counts.take(counters))
        found: Ints = self.tables.transitions.take(entries)
        return found

    def _resolve(self, transitions: Ints, envs: Ints, columns: Ints) -> Ints:
        """Replace unread and rejected transitions in place, and return the negated opcodes."""
        tables = self.tables
        if self._conclusions.unread:
            unread = ((transitions >> _TARGET_BITS) == _UNREAD).nonzero()[0]
            if unread.size:
                chosen = envs.take(unread)
                self._conclusions.read(self.tree.take(chosen), columns.take(chosen))
                entries = tables.entries.take(tables.row_starts.take(self.state.take(chosen)) + columns.take(chosen))
                transitions[unread] = self._branch(entries, self._count_starts.take(chosen))
        if tables.waits:
            locked = (transitions == _LOCKED).nonzero()[0]
            transitions[locked] = tables.states.on_locked.take(self.state.take(envs.take(locked)))
        rejected = (transitions == _REJECT).nonzero()[0]
        if rejected.size:
            transitions[rejected] = tables.states.on_reject.take(self.state.take(envs.take(rejected)))
        ops: Ints = transitions >> _TARGET_BITS
        return ops

    def _visit(self, states: Ints, ops: Ints, visiting: Ints, envs: Ints) -> None:
        """Count and mark visits and runs at ``visiting``, and put in the states of fakes and wordings."""
        tables = self.tables
        at, count_starts = states.take(visiting), self._count_starts.take(envs)
        columns = tables.states.counter.take(at)
        if tables.redo_turns:  # a run counts in the turn of its study, and not again where its result is shown
            counted_before = tables.states.phase.take(self.state.take(envs)) == Phase.STUDY
            columns[counted_before] = tables.n_counters - 1
        counts, counters = self._flat_counts, columns + count_starts
        before = counts.take(counters)
        counts[counters] = before + _ONE_VISIT
        first = (before == _UNVISITED).nonzero()[0]
        if first.size:
            unlocked = tables.unlocks.take(tables.states.unlocks.take(at.take(first)), axis=1)
            unlocked += count_starts.take(first)
            counts[unlocked] = counts.take(unlocked) + _ONE_VISIT
            entering = (columns.take(first) < self._n_slots).nonzero()[0]
            self.left[envs.take(first.take(entering))] -= _ONE
        bits, words = tables.states.bit.take(at), envs
        if len(self.seen) > 1:
            words = tables.states.word.take(at) * self.num_envs + envs
        if tables.fakes or tables.varies:
            showing = (ops == _SHOW).nonzero()[0]
            shown = at[showing]
            runs = self.counts[envs[showing], tables.states.node.take(shown)]
            fakes = self._draw_fakes(shown, envs[showing], runs)
            earlier = self._wordings(shown, envs[showing], runs) if tables.varies else 0
            states[visiting[showing]] += STATES_PER_RESULT * (fakes + earlier)
            bits[showing] = self._mark_fakes(bits[showing], words[showing], fakes > 0)
        if tables.tells_again:
            repeated = (counts.take(tables.states.node.take(at) + count_starts) > _ONE).nonzero()[0]
            states[visiting[repeated]] = tables.states.again.take(states[visiting[repeated]])
        self._flat_seen[words] = self._flat_seen.take(words) | bits
        if self._track_visited:
            entered = (columns < self._n_slots).nonzero()[0]
            self.visited[envs.take(entered), columns.take(entered)] = 1

    def _decline(self, states: Ints, envs: Ints) -> None:
        """Take back the entry of the subtopic that ``states`` name."""
        tables, counts = self.tables, self._flat_counts
        columns, count_starts = tables.states.node.take(states), self._count_starts.take(envs)
        counters = columns + count_starts
        counts[counters] = counts.take(counters) - _ONE_VISIT
        gone = (counts.take(counters) == _UNVISITED).nonzero()[0]
        states, envs, columns = states.take(gone), envs.take(gone), columns.take(gone)
        locked = tables.unlocks.take(tables.states.unlocks.take(states), axis=1) + count_starts.take(gone)
        counts[locked] = counts.take(locked) - _ONE_VISIT
        self.left[envs] += _ONE
        words = tables.states.word.take(states) * self.num_envs + envs
        self._flat_seen[words] = self._flat_seen.take(words) & ~tables.states.bit.take(states)
        if self._track_visited:
            self.visited[envs, columns] = 0

    def _draw_fakes(self, states: Ints, envs: Ints, runs: Counts) -> Ints:
        """Return the results that are shown: 0 the true one, i the i-th fake. See `Engine.fake_shown`."""
        tables, trees = self.tables, self.tree.take(envs)
        keys = hash_words(self.seeds.hashes.take(envs), tables.states.fake_key.take(states))
        draws = hash_words(keys, runs)
        found = np.zeros(len(envs), np.int64)
        fake = (draws <= tables.max_fake_draws.take(trees)).nonzero()[0]
        which = hash_words(np.zeros(len(fake), np.uint64), draws[fake])
        found[fake] = 1 + which % tables.states.n_fakes.take(states[fake]).astype(np.uint64)
        return found

    def _wordings(self, states: Ints, envs: Ints, runs: Counts) -> Ints:
        """Return the number of results in the wordings before the one that is shown. See `Engine.wording_shown`."""
        table = self.tables.states
        keys = hash_words(self.seeds.hashes.take(envs), table.fake_key.take(states))
        draws = hash_words(hash_words(keys, _WORDING), runs)
        wordings = draws % table.n_wordings.take(states).astype(np.uint64)
        return wordings.astype(np.int64) * (1 + table.n_fakes.take(states))

    def _mark_fakes(self, bits: Ints, words: Ints, is_fake: Bools) -> Ints:
        """Record which studies showed a fake last, and return the bits of those that showed the true result."""
        fooled = self.fooled.reshape(-1)
        fooled[words] = np.where(is_fake, fooled[words] | bits, fooled[words] & ~bits)
        return np.where(is_fake, 0, bits)

    def _choose_hint(self, states: Ints, hinting: Ints, envs: Ints) -> None:
        """Replace the states at ``hinting`` by the hint to the node with the fewest visits, the first on a tie."""
        at = states.take(hinting)
        counters = self.tables.hint_pools.take(self.tables.states.hint_pool.take(at), axis=0)
        counters += self._count_starts.take(envs)[:, None]
        # Read without its sign, the negative counter of a locked subtopic exceeds all others.
        fewest = self._flat_counts.take(counters).view(np.uint32).argmin(axis=1)
        fewest *= _HINT_LEVELS
        fewest += at
        states[hinting] = fewest

    def _rewards(self, envs: Ints, columns: Ints) -> Rewards:
        if not envs.size:
            return np.zeros(0)
        return self._conclusions.rewards(self.tree.take(envs), columns, self._evidence(envs))

    def _evidence(self, envs: Ints) -> Evidence:
        return Evidence(self.seen.take(envs, axis=1), self.fooled.take(envs, axis=1) if self.tables.fakes else None)

    def masks(self, envs: Ints | None = None) -> NDArray[np.int8]:
        """Return 1 for every action that is allowed, shape ``(num_envs or len(envs), actions)``. See `Menu.mask`."""
        tables = self.tables
        states = self.state if envs is None else self.state.take(envs)
        return tables.masks.take(states).view(np.int8).reshape(len(states), -1)[:, : tables.size.actions]

    def visited_counts(self) -> Ints:
        """Return the number of subtopics visited, shape ``(num_envs,)``."""
        found = np.zeros(self.num_envs, np.int64)
        for first in range(0, self._n_slots, WORD_BITS):
            word = self.seen[first // WORD_BITS]
            last = min(self._n_slots - first, WORD_BITS)
            for shift in range(0, last, 16):
                found += _BIT_COUNTS.take(word >> shift & (1 << min(last - shift, 16)) - 1)
        return found

    def decisions(self) -> tuple[Ints, Ints, Counts, Ints]:
        """Return the environments that decide on a result: indices, counter column and runs of its study, 1 if a fake.

        Each array has the shape ``(environments at a result,)``.
        """
        states = self.tables.states
        envs = (states.phase.take(self.state) == Phase.RESULT).nonzero()[0]
        columns = states.node.take(self.state.take(envs))
        words, bits = np.divmod(columns, WORD_BITS)
        return envs, columns, self.counts[envs, columns], self.fooled[words, envs] >> bits & 1

    def allows(self, actions: Ints) -> Bools:
        """Return whether each environment allows its action, shape ``(num_envs,)``."""
        return self.masks()[np.arange(self.num_envs), actions].view(np.bool_)
