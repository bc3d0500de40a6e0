"""States and transitions of one inquiry, encoded as integers.

A *state* stands for the phase of an inquiry together with the observation shown last. It fixes the observation's text
and, except for the turn, the info. A *transition* is one int64: an opcode and the index of the target state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.inquiry.engine import Engine, ObservationKind, Phase
from inquitree_gym.inquiry.menu import MenuSize
from inquitree_gym.inquiry.observations import LIMIT, ObservationKey
from inquitree_gym.trees import HINT_LEVELS

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
    """As `VISIT`, then choose a fake or a wording. The target is the state that shows the true result as it stands."""
    HINT = 3
    """Give a first hint and choose what it leads to. The target is the hint to the first node of the pool."""
    END = 4
    """Score the conclusion and terminate."""
    DECLINE = 5
    """Take the last entry back. The target is the state of the subtopic that is declined."""
    UNREAD = 6
    """The text is a conclusion that was submitted too early and has not been matched yet. No target."""
    REJECT = 7
    """The action is not accepted: replaced by the state's ``on_reject``, or by its ``on_locked`` with target 2."""


TARGET_BITS = 40
"""Low bits of a transition, for its target. Every opcode but `Op.GOTO` makes the integer negative."""
TARGET_MASK = (1 << TARGET_BITS) - 1


def transition(op: Op, target: int = 0) -> int:
    """Pack a transition ``t``. ``t & TARGET_MASK`` is its target and ``t >> TARGET_BITS`` its negated opcode."""
    return target - (op << TARGET_BITS)


def relocate(transitions: Ints, first_state: int) -> Ints:
    """Shift target states by ``first_state``."""
    relocated: Ints = transitions + np.where(-(transitions >> TARGET_BITS) < Op.UNREAD, first_state, 0)
    return relocated


NO_SUBTOPIC, FIRST_STUDY = -1, -2


class Branch(NamedTuple):
    """Transitions of an action, chosen by the counter of the subtopic that its text names, or of a study."""

    subtopic: int
    """Index of that subtopic, or `NO_SUBTOPIC`. ``FIRST_STUDY - k`` for study k."""
    locked: int
    """Transition while a prerequisite is missing."""
    unvisited: int
    """Transition on the first visit, and for a text that names no subtopic."""
    visited: int
    """Transition on later visits."""

    @classmethod
    def always(cls, target: int) -> Branch:
        """Return a branch that makes the same transition whatever was visited."""
        return cls(NO_SUBTOPIC, target, target, target)


REJECT, LOCKED = (transition(Op.REJECT, target) for target in (0, 2))
"""Transitions of an action that is not accepted, and of one that names a locked subtopic where the agent is told."""
REJECTED, REDO, UNREAD = range(3)
"""Branch numbers of texts that are not accepted, that repeat the study, and that are not matched yet. A row of the
transition table replaces the first two by its own branches."""


def initial_branches() -> dict[Branch, int]:
    """Return the numbers of the branches that every tree has. Further ones take the next numbers."""
    symbols = (REJECT, transition(Op.REJECT, 1), transition(Op.UNREAD))
    return {Branch.always(symbol): number for number, symbol in enumerate(symbols)}


class Context(IntEnum):
    """Candidates that an action is matched with in a state."""

    NO_MATCH = 0
    """No candidates: every action has the same effect."""
    TOPIC = 1
    """All subtopics."""
    RESULT = 2
    """The three decisions, then the subtopics."""
    SUBTOPIC = 3
    """The studies of subtopic 0. ``SUBTOPIC + i`` stands for those of subtopic i."""


class StateKey(NamedTuple):
    """One state: the observation shown last, and how the last action was taken."""

    observation: ObservationKey
    accepted: bool = False
    forced: bool = False
    target: int = -1
    """Node that the hints before a proposal that waits lead to."""

    @property
    def phase(self) -> Phase:
        """Phase of the inquiry in this state."""
        return phase_of(self.observation)


_PHASES = {
    ObservationKind.START: Phase.TOPIC,
    ObservationKind.TOPIC: Phase.TOPIC,
    ObservationKind.SUBTOPIC: Phase.SUBTOPIC,
    ObservationKind.REDO: Phase.STUDY,
    ObservationKind.RESULT: Phase.RESULT,
    ObservationKind.SUBTOPIC_HINT: Phase.TOPIC,
    ObservationKind.STUDY_HINT: Phase.SUBTOPIC,
    ObservationKind.ASK_AGAIN: Phase.RESULT,
    ObservationKind.CONCLUSION: Phase.CONCLUSION,
    ObservationKind.END: Phase.END,
    ObservationKind.DECLINED: Phase.TOPIC,
    ObservationKind.WAIT: Phase.TOPIC,
    ObservationKind.RECALL: Phase.RESULT,
}


def phase_of(key: ObservationKey) -> Phase:
    """Return the phase that an inquiry is in when it shows the observation ``key``."""
    return Phase.CONCLUSION if key.limit else _PHASES[key.kind]


STATES_PER_RESULT = 6
"""States that show one result: accepted or forced, each before the turn limit, at it, or with nothing left to visit."""


class StateIndex:
    """Numbering of the states of one tree.

    The hint states of one node are consecutive, ordered by level, and so are those of neighbouring nodes. The states of
    a study's true result and its fakes, in each wording, follow each other in steps of `STATES_PER_RESULT`.
    """

    START, TOPIC, CONCLUSION = range(3)

    def __init__(self, engine: Engine) -> None:
        self.keys = tuple(_state_keys(engine))
        """Every state, in order."""
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        self.end = self.of(ObservationKind.END)

    def of(self, kind: ObservationKind, node: int = -1, *, forced: bool = False) -> int:
        """Return the state that an accepted action or a ``forced`` move leads to."""
        return self._numbers[StateKey(ObservationKey(kind, node), accepted=not forced, forced=forced)]

    def hint(self, kind: ObservationKind, node: int, level: int) -> int:
        """Return the state in which a hint of this level, 1 to `HINT_LEVELS`, was given."""
        return self._numbers[StateKey(ObservationKey(kind, node, level))]

    def wait(self, level: int, target: int) -> int:
        """Return the state in which a proposal waits, after hints up to ``level`` that lead to ``target``."""
        return self._numbers[StateKey(_wait(level), target=target)]

    def ask_again(self, study: int) -> int:
        """Return the state in which the decision after ``study`` is asked for again."""
        return self._numbers[StateKey(ObservationKey(ObservationKind.ASK_AGAIN, study))]

    def at_limit(self, state: int) -> int:
        """Return the state that replaces ``state`` once the turn limit is reached."""
        key = self.keys[state]
        if key.phase >= Phase.CONCLUSION:
            return state
        shown = LIMIT
        if key.observation.kind == ObservationKind.RESULT:
            shown = key.observation._replace(limit=True, nothing_left=False)
        return self._numbers[StateKey(shown, key.accepted, key.forced)]

    def again(self, state: int) -> int:
        """Return the state that replaces ``state`` if its subtopic was visited, or its study run, before."""
        key = self.keys[state]
        return self._numbers.get(key._replace(observation=key.observation._replace(again=True)), state)

    def nothing_left(self, state: int) -> int:
        """Return the state that replaces ``state`` once every subtopic has been visited."""
        key = self.keys[state]
        return self._numbers.get(key._replace(observation=key.observation._replace(nothing_left=True)), state)


def _state_keys(engine: Engine) -> Iterator[StateKey]:
    yield StateKey(ObservationKey(ObservationKind.START))
    yield StateKey(ObservationKey(ObservationKind.TOPIC), accepted=True)
    yield StateKey(ObservationKey(ObservationKind.CONCLUSION), accepted=True)
    yield from (StateKey(LIMIT), StateKey(LIMIT, accepted=True), StateKey(LIMIT, forced=True))
    yield StateKey(ObservationKey(ObservationKind.END), accepted=True)
    subtopics, studies = range(engine.n), range(len(engine.subtopic_of))
    for node, again in product(subtopics, _again(engine)):
        yield from _reached(ObservationKey(ObservationKind.SUBTOPIC, node, again=again))
    for hint, nodes in ((ObservationKind.SUBTOPIC_HINT, subtopics), (ObservationKind.STUDY_HINT, studies)):
        for node, level in product(nodes, range(1, HINT_LEVELS + 1)):
            yield StateKey(ObservationKey(hint, node, level))
    yield from (StateKey(ObservationKey(ObservationKind.ASK_AGAIN, study)) for study in studies)
    for study in studies:
        results = product(range(engine.wordings_of[study]), range(engine.fakes_of[study] + 1))
        shown = [ObservationKey(ObservationKind.RESULT, study, fake=fake, wording=i) for i, fake in results]
        ends = ((False, False), (True, False), (False, True))
        for again, key, (limit, nothing_left) in product(_again(engine), shown, ends):
            yield from _reached(key._replace(limit=limit, nothing_left=nothing_left, again=again))
    yield StateKey(ObservationKey(ObservationKind.TOPIC, nothing_left=True), accepted=True)
    for node, nothing_left in product(subtopics, (False, True)):
        yield StateKey(ObservationKey(ObservationKind.DECLINED, node, nothing_left=nothing_left), accepted=True)
    yield from _keys_of_rules(engine)


def _keys_of_rules(engine: Engine) -> Iterator[StateKey]:
    """Yield the states that only some rules have."""
    if engine.rules.redo_turn:
        yield from (
            StateKey(ObservationKey(ObservationKind.REDO, study), accepted=True)
            for study, _ in enumerate(engine.fakes_of)
        )
    if engine.rules.reruns == "redo":
        for study, nothing_left in product(range(len(engine.fakes_of)), (False, True)):
            yield from _reached(ObservationKey(ObservationKind.RECALL, study, nothing_left=nothing_left))
    if engine.rules.feedback == "reason":
        for level, target in ((0, -1), *product(range(1, HINT_LEVELS + 1), range(engine.n))):
            yield StateKey(_wait(level), target=target)


def _again(engine: Engine) -> tuple[bool, ...]:
    """Return whether observations tell that a subtopic was visited, or a study run, before."""
    return (False, True) if engine.rules.reruns == "redo" else (False,)


def _wait(level: int) -> ObservationKey:
    return ObservationKey(ObservationKind.WAIT, hint_level=level)


def _reached(key: ObservationKey) -> Iterator[StateKey]:
    yield from (StateKey(key, accepted=True), StateKey(key, forced=True))


def n_counters(size: MenuSize) -> int:
    """Return the counters of an inquiry: visits per subtopic slot, runs per study slot, and two spare columns.

    The last but one stays 0, for texts that name no subtopic. The last is never read, for states that count nothing.
    """
    return size.subtopics + size.studies + 2


def hint_pools(engine: Engine, size: MenuSize) -> Ints:
    """Return the counter columns that a first hint chooses from. See `CompiledTree.hint_pools`."""
    studies = [[size.subtopics + study for study in found] for found in engine.studies_of]
    pools = [list(range(engine.n)), *studies]
    return _padded([(pool, pool[0]) for pool in pools])


def unlocked(engine: Engine, size: MenuSize) -> Ints:
    """Return the counter columns of the subtopics that each subtopic unlocks. See `CompiledTree.unlocks`."""
    found = [[i for i, needs in enumerate(engine.prerequisites) if needs >> each & 1] for each in range(engine.n)]
    return _padded([(columns, n_counters(size) - 1) for columns in ([], *found)])


def _padded(rows: Sequence[tuple[Sequence[int], int]]) -> Ints:
    """Return lists as rows of one array, each extended with its filler."""
    length = max(1, *(len(row) for row, _ in rows))
    return np.array([[*row, *[filler] * (length - len(row))] for row, filler in rows])


def initial_counts(engine: Engine, size: MenuSize) -> Counts:
    """Return the counters at the start of an episode. See `CompiledTree.initial_counts`."""
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
    on_locked: Ints
    """Transition of an action that names a locked subtopic, where the agent is told."""
    again: Ints
    """State that replaces this one if its subtopic was visited, or its study run, before."""
    nothing_left: Ints
    """State that replaces this one once every subtopic has been visited."""
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
    n_wordings: Ints
    """Number of wordings of the result that is shown, at least 1."""
    fake_key: NDArray[np.uint64]
    """Word of the study that the draw of its fakes depends on."""
    phase: Ints
    hint_level: Ints
    hinted: Bools
    """True if the state shows a hint."""
    accepted: Bools
    forced: Bools

    @classmethod
    def concatenate(cls, tables: Sequence[StateTable]) -> StateTable:
        """Return one table with the states of all ``tables``."""
        return cls(*(np.concatenate([getattr(table, each.name) for table in tables]) for each in fields(cls)))
