"""States and transitions of one inquiry, encoded as integers.

A *state* stands for the phase of an inquiry together with the observation shown last. It fixes the observation's text
and, except for the turn, the info. A *transition* is one int64: an opcode and the index of the target state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Engine, Kind, Phase
from inquitree_gym.envs.menu import MenuSize
from inquitree_gym.envs.observations import LIMIT, ObservationKey
from inquitree_gym.trees import HINT_LEVELS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Counts = NDArray[np.int32]

WORD_BITS = 62
"""Node bits per word: a signed 64-bit integer holds every pattern of them and the number of patterns."""


class Op(IntEnum):
    """Opcode of a transition: the side effect of going to the target state."""

    GOTO = 0
    """No side effect."""
    VISIT = 1
    """Count and mark the subtopic that is entered or the study that is run."""
    SHOW = 2
    """As `VISIT`, then draw whether a fake is shown. The target is the state that shows the true result."""
    HINT = 3
    """Give a first hint and choose what it leads to. The target is the hint to the first node of the pool."""
    END = 4
    """Score the conclusion and terminate."""
    FALLBACK = 5
    """The named subtopic is locked, so the next-best match counts. The target is a branch, not a state."""
    UNREAD = 6
    """The text is a conclusion that was submitted too early and has not been matched yet. No target."""
    REJECT = 7
    """The action is not accepted: replaced by the state's ``on_reject``. No target."""


TARGET_BITS = 40
"""Low bits of a transition, for its target; every opcode but `Op.GOTO` makes the integer negative."""
TARGET_MASK = (1 << TARGET_BITS) - 1


def transition(op: Op, target: int = 0) -> int:
    """Pack a transition ``t``; ``t & TARGET_MASK`` is its target and ``t >> TARGET_BITS`` its negated opcode."""
    return target - (op << TARGET_BITS)


def relocate(transitions: Ints, first_state: int, entries: Ints | None = None) -> Ints:
    """Shift target states by ``first_state``, and replace the target branch n of a fallback by ``entries[n]``."""
    ops = -(transitions >> TARGET_BITS)
    relocated: Ints = transitions + np.where(ops < Op.FALLBACK, first_state, 0)
    if entries is not None:
        fallback = ops == Op.FALLBACK
        targets = transitions[fallback] & TARGET_MASK
        relocated[fallback] += entries[targets] - targets
    return relocated


NO_SUBTOPIC = -1


class Branch(NamedTuple):
    """Transitions of an action, chosen by the counter of the subtopic that its text names."""

    subtopic: int
    """Index of that subtopic, or `NO_SUBTOPIC`."""
    locked: int
    """Transition while a prerequisite is missing."""
    unvisited: int
    """Transition on the first visit; also the one of a text that names no subtopic."""
    visited: int
    """Transition on later visits."""

    @classmethod
    def always(cls, target: int) -> Branch:
        """Return a branch that makes the same transition whatever was visited."""
        return cls(NO_SUBTOPIC, target, target, target)


REJECTED, REDO, UNREAD = range(3)
"""Branch numbers of texts that are not accepted, that repeat the study, and that were not matched yet. A row of the
transition table replaces the first two by its own branches."""


def initial_branches() -> dict[Branch, int]:
    """Return the numbers of the branches that every tree has; further ones take the next numbers."""
    symbols = (transition(Op.REJECT), transition(Op.REJECT, 1), transition(Op.UNREAD))
    return {Branch.always(symbol): number for number, symbol in enumerate(symbols)}


class Context(IntEnum):
    """Candidates that an action is matched with in a state."""

    NO_MATCH = 0
    """None: any action does the same."""
    TOPIC = 1
    """All subtopics."""
    RESULT = 2
    """The three decisions, then the subtopics."""
    SUBTOPIC = 3
    """The studies of subtopic 0; ``SUBTOPIC + i`` stands for those of subtopic i."""


class StateKey(NamedTuple):
    """One state: the observation shown last, and how the last action was taken."""

    observation: ObservationKey
    accepted: bool = False
    forced: bool = False

    @property
    def phase(self) -> Phase:
        """Phase of the inquiry in this state."""
        return phase_of(self.observation)


_PHASES = {
    Kind.START: Phase.TOPIC,
    Kind.TOPIC: Phase.TOPIC,
    Kind.SUBTOPIC: Phase.SUBTOPIC,
    Kind.STUDY: Phase.STUDY,
    Kind.RESULT: Phase.RESULT,
    Kind.SUBTOPIC_HINT: Phase.TOPIC,
    Kind.STUDY_HINT: Phase.SUBTOPIC,
    Kind.ASK_AGAIN: Phase.RESULT,
    Kind.CONCLUSION: Phase.CONCLUSION,
    Kind.END: Phase.END,
}


def phase_of(key: ObservationKey) -> Phase:
    """Return the phase that an inquiry is in when it shows the observation ``key``."""
    return Phase.CONCLUSION if key.limit else _PHASES[key.kind]


STATES_PER_RESULT = 4
"""States that show one result: accepted or forced, before the turn limit or at it."""


class StateIndex:
    """Numbering of the states of one tree.

    The hint states of one node are consecutive, ordered by level, and so are those of neighbouring nodes. The states of
    the i-th fake of a study come ``i * STATES_PER_RESULT`` after those of its true result.
    """

    START, TOPIC, CONCLUSION = range(3)

    def __init__(self, engine: Engine) -> None:
        """Number the states of ``engine``'s tree."""
        self.keys = tuple(_state_keys(engine))
        """Every state, in order."""
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        self.end = self.of(Kind.END)

    def of(self, kind: Kind, node: int = -1, *, forced: bool = False) -> int:
        """Return the state that an accepted action or a ``forced`` move leads to."""
        return self._numbers[StateKey(ObservationKey(kind, node), accepted=not forced, forced=forced)]

    def hint(self, kind: Kind, node: int, level: int) -> int:
        """Return the state in which a hint of this level, 1 to `HINT_LEVELS`, was given."""
        return self._numbers[StateKey(ObservationKey(kind, node, level))]

    def ask_again(self, study: int) -> int:
        """Return the state in which the decision after ``study`` is asked for again."""
        return self._numbers[StateKey(ObservationKey(Kind.ASK_AGAIN, study))]

    def at_limit(self, state: int) -> int:
        """Return the state that replaces ``state`` once the turn limit is reached."""
        key = self.keys[state]
        if key.phase >= Phase.CONCLUSION:
            return state
        shows_result = key.observation.kind == Kind.RESULT
        return self._numbers[key._replace(observation=key.observation._replace(limit=True) if shows_result else LIMIT)]


def _state_keys(engine: Engine) -> Iterator[StateKey]:
    yield StateKey(ObservationKey(Kind.START))
    yield StateKey(ObservationKey(Kind.TOPIC), accepted=True)
    yield StateKey(ObservationKey(Kind.CONCLUSION), accepted=True)
    yield from (StateKey(LIMIT), StateKey(LIMIT, accepted=True), StateKey(LIMIT, forced=True))
    yield StateKey(ObservationKey(Kind.END), accepted=True)
    subtopics, studies = range(engine.n), range(len(engine.subtopic_of))
    for kind, hint, nodes in ((Kind.SUBTOPIC, Kind.SUBTOPIC_HINT, subtopics), (Kind.STUDY, Kind.STUDY_HINT, studies)):
        for node in nodes:
            yield from _reached(ObservationKey(kind, node))
        for node in nodes:
            yield from (StateKey(ObservationKey(hint, node, level)) for level in range(1, HINT_LEVELS + 1))
    yield from (StateKey(ObservationKey(Kind.ASK_AGAIN, study)) for study in studies)
    for study in studies:
        for fake in range(engine.fakes_of[study] + 1):
            yield from _reached(ObservationKey(Kind.RESULT, study, 0, fake))
            yield from _reached(ObservationKey(Kind.RESULT, study, 0, fake, limit=True))


def _reached(key: ObservationKey) -> Iterator[StateKey]:
    yield from (StateKey(key, accepted=True), StateKey(key, forced=True))


def n_counters(size: MenuSize) -> int:
    """Return the counters of an inquiry: visits per subtopic slot, runs per study slot, and two spare columns.

    The last but one stays 0, for texts that name no subtopic; the last is never read, for states that count nothing.
    """
    return size.subtopics + size.studies + 2


def hint_pools(engine: Engine, size: MenuSize) -> Ints:
    """Return the counter columns that a first hint chooses from; see `CompiledTree.hint_pools`."""
    studies = [[size.subtopics + study for study in found] for found in engine.studies_of]
    pools = [list(range(engine.n)), *studies]
    return _padded([(pool, pool[0]) for pool in pools])


def unlocked(engine: Engine, size: MenuSize) -> Ints:
    """Return the counter columns of the subtopics that each subtopic unlocks; see `CompiledTree.unlocks`."""
    found = [[i for i, needs in enumerate(engine.prerequisites) if needs >> each & 1] for each in range(engine.n)]
    return _padded([(columns, n_counters(size) - 1) for columns in ([], *found)])


def _padded(rows: Sequence[tuple[Sequence[int], int]]) -> Ints:
    """Return lists as rows of one array, each extended with its filler."""
    length = max(1, *(len(row) for row, _ in rows))
    return np.array([[*row, *[filler] * (length - len(row))] for row, filler in rows])


def initial_counts(engine: Engine, size: MenuSize) -> Counts:
    """Return the counters at the start of an episode; see `CompiledTree.initial_counts`."""
    counts = np.zeros(n_counters(size), np.int32)
    counts[: size.subtopics] = -1
    counts[: engine.n] = [-needs.bit_count() for needs in engine.prerequisites]
    return counts


@dataclass(frozen=True, slots=True)
class StateTable:
    """Properties of the states, each an array of shape ``(states,)``."""

    row: Ints
    """Row of the transition table."""
    text: Ints
    """Number of the observation's text."""
    context: Ints
    """`Context` of an action."""
    on_reject: Ints
    """Transition of an action that is not accepted."""
    at_limit: Ints
    """State that replaces this one once the turn limit is reached."""
    counter: Ints
    """Column of the counter that entering the state increments."""
    word: Ints
    """Word of the bit that entering the state sets: the subtopic as visited, the study as seen."""
    bit: Ints
    """The bit itself, or 0."""
    node: Ints
    """Slot of the subtopic or study that the text is about, or 0."""
    hint_pool: Ints
    """Row of ``hint_pools`` that a first hint chooses from."""
    unlocks: Ints
    """Row of ``unlocks``: 1 + the subtopic that is entered, or 0."""
    n_fakes: Ints
    """Number of fakes of the result that is shown."""
    phase: Ints
    hint_level: Ints
    accepted: Bools
    forced: Bools

    @classmethod
    def concatenate(cls, tables: Sequence[StateTable]) -> StateTable:
        """Return one table with the states of all ``tables``."""
        return cls(*(np.concatenate([getattr(table, each.name) for table in tables]) for each in fields(cls)))
