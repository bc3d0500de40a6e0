"""Values of the engine: phases, decisions, kinds of observations, readings, and read-only views of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from inquitree_gym.inquiry.engine import rows as column
from inquitree_gym.inquiry.engine.rows import ROW_HEAD


class Phase(IntEnum):
    """Phase of an inquiry, which determines the meaning of the next action."""

    TOPIC = 0
    SUBTOPIC = 1
    STUDY = 2
    RESULT = 3
    CONCLUSION = 4
    END = 5


class Decision(IntEnum):
    """Decision of the agent at RESULT, or elsewhere under the rule ``bare_decisions``."""

    NONE = 0
    REDO = 1
    CONCLUDE = 2
    EXPLORE = 3


class ObservationKind(IntEnum):
    """Kind of the observation that an event shows."""

    START = 0
    TOPIC = 1
    SUBTOPIC = 2
    RESULT = 3
    SUBTOPIC_HINT = 4
    STUDY_HINT = 5
    ASK_AGAIN = 6
    CONCLUSION = 7
    END = 8
    DECLINED = 9
    REDO = 10
    WAIT = 11
    RECALL = 12


class Reason(IntEnum):
    """Reason for a rejected action. Logged, but hidden from the agent."""

    NONE = 0
    BELOW_THRESHOLD = 1
    PREREQUISITE_UNMET = 2
    UNREADABLE_DECISION = 3


PHASE_OF = (0, 0, 1, 3, 0, 1, 3, 4, 5, 0, 2, 0, 3)
"""Phase in which an inquiry shows each kind of observation."""
CREDITS = (4, 4, 1, 0, 0)
"""Earned credit of a node in quarters by the highest hint level that was shown for it before it was first chosen."""
FULL_CREDIT = 4
"""Quarters of a credit of 1."""

T = TypeVar("T")
_BLOCKS = {
    "visits": (0, 0),
    "runs": (1, 0),
    "shown": (1, 1),
    "proven": (1, 2),
    "told": (1, 3),
    "credit": (2, 4),
    "world": (3, 5),
}
"""Blocks of a row, each with the blocks of subtopics and of studies before it."""
_PHASES, _KINDS, _REASONS, _DECISIONS = tuple(Phase), tuple(ObservationKind), tuple(Reason), tuple(Decision)


class Reading(NamedTuple):
    """Interpretation of an action."""

    candidate: int = -1
    """Index of the most similar candidate, a subtopic or a study. -1 for none."""
    similarity: float = 0.0
    """Cosine similarity to that candidate, in [-1, 1]."""
    decision: Decision = Decision.NONE
    margin: float | None = None
    """Lead in similarity over the second candidate, or None if there is only one."""
    top: tuple[tuple[int, float], ...] = ()
    """Nearest candidates with their similarities, best first."""
    repeats: bool = False
    """True if the action would be accepted for the first time for its candidate and repeats a text shown before."""


class _Column(Generic[T]):
    """One number of a row as a read-only attribute."""

    def __init__(self, place: int, kind: Callable[[int], T]) -> None:
        self._place, self._kind = place, kind

    def __get__(self, view: Any, owner: type | None = None) -> T:
        return self._kind(view.row[self._place])


class State:
    """Complete, hashable state of an inquiry: a read-only view of its row."""

    __slots__ = ("_slots", "row")

    def __init__(self, row: Sequence[int], slots: tuple[int, int, int]) -> None:
        """View ``row``, of a tree with this many subtopics, studies and axes. The row must not change afterwards."""
        self.row = row
        self._slots = slots

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"State({self.phase.name}, turn={self.turn}, visits={self.visits}, runs={self.runs})"

    def _values(self) -> tuple[int, ...]:
        return (*self.row[: column.KIND], *self.row[ROW_HEAD:])

    @property
    def phase(self) -> Phase:
        """Phase of the inquiry."""
        return _PHASES[self.row[column.PHASE]]

    turn = _Column(column.TURN, int)
    """Number of actions taken."""

    @property
    def subtopic(self) -> int:
        """Subtopic entered last. -1 before the first."""
        return self.row[column.SUBTOPIC]

    study = _Column(column.STUDY, int)
    """Study run last. -1 before the first."""
    hint_level = _Column(column.HINT_LEVEL, int)
    """Level of the last hint for the open choice, 0 to H."""
    target = _Column(column.TARGET, int)
    """Subtopic or study that the hints point to. -1 before the first failure."""
    left = _Column(column.LEFT, int)
    """Number of subtopics that have not been visited."""

    @property
    def seed(self) -> int:
        """Seed of the episode, 0 to 2^64 - 1."""
        return (self.row[column.SEED_HIGH] & 0xFFFFFFFF) << 32 | self.row[column.SEED_LOW] & 0xFFFFFFFF

    @property
    def visits(self) -> tuple[int, ...]:
        """Number of visits of each subtopic."""
        return self._block("visits", self._slots[0])

    @property
    def visited(self) -> int:
        """Bit set of the subtopics that have been entered."""
        return _bits(self.visits)

    @property
    def runs(self) -> tuple[int, ...]:
        """Number of runs of each study."""
        return self._block("runs", self._slots[1])

    @property
    def shown(self) -> tuple[int, ...]:
        """Result of each study that was seen last: -1 for none, 0 for the true one, i for the i-th fake."""
        return self._block("shown", self._slots[1])

    @property
    def proven(self) -> int:
        """Bit set of the studies whose true result has been seen."""
        return _bits(self._block("proven", self._slots[1]))

    @property
    def told(self) -> tuple[int, ...]:
        """Highest hint level that was shown for each node, subtopics first, then studies. 0 for none."""
        return self._block("told", self._slots[0] + self._slots[1])

    @property
    def credit(self) -> tuple[int, ...]:
        """Earned credit of each node in quarters, fixed when it is first entered or run. -1 before that."""
        return self._block("credit", self._slots[0] + self._slots[1])

    @property
    def world(self) -> tuple[int, ...]:
        """Pole of each axis. Empty for a tree without axes."""
        return self._block("world", self._slots[2])

    def _start(self, block: str) -> int:
        subtopics, studies = _BLOCKS[block]
        return ROW_HEAD + subtopics * self._slots[0] + studies * self._slots[1]

    def _block(self, block: str, length: int) -> tuple[int, ...]:
        start = self._start(block)
        return tuple(self.row[start : start + length])

    def replace(self, **values: int | Sequence[int]) -> State:
        """Return the state with other values of the properties, except for bit sets, which follow from the others."""
        row = list(self.row)
        for name, value in values.items():
            if isinstance(value, int):
                row[getattr(column, name.upper())] = value
            else:
                start = self._start(name)
                row[start : start + len(value)] = value
        state = State(row, self._slots)
        row[column.LEFT] = state.visits.count(0)
        return state


class Event:
    """Outcome of one action: a read-only view of the row after it."""

    __slots__ = ("row", "state")

    def __init__(self, state: State) -> None:
        """View the row of ``state``, the one that follows the action."""
        self.state, self.row = state, state.row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and tuple(self.state.row) == tuple(other.state.row)

    def __hash__(self) -> int:
        return hash(tuple(self.state.row))

    def __repr__(self) -> str:
        return f"Event({event_values(self)})"

    @property
    def kind(self) -> ObservationKind:
        """Kind of the observation that follows."""
        return _KINDS[self.state.row[column.KIND]]

    node = _Column(column.NODE, int)
    """Index of the subtopic or study in the observation. -1 for none."""
    fake = _Column(column.FAKE, int)
    """Result shown at RESULT: 0 for the true one, i for the i-th fake."""
    outcome = _Column(column.OUTCOME, int)
    """Place of the result shown among the outcomes of its study. See `Study.outcomes`."""
    wording = _Column(column.WORDING, int)
    """Wording of the result shown, from 0."""
    accepted = _Column(column.ACCEPTED, bool)
    """True if the action was taken as meant."""
    forced = _Column(column.FORCED, bool)
    """True for the move after the last hint failed."""
    hint_level = _Column(column.SHOWN_HINT, int)
    """Level of the hint in the observation. 0 for none."""
    limit = _Column(column.LIMITED, bool)
    """True if this action reached the turn limit."""
    reason = _Column(column.REASON, _REASONS.__getitem__)
    """Reason for a rejection. A forced move keeps that of the failure."""
    decision = _Column(column.DECISION, _DECISIONS.__getitem__)
    """The decision as taken."""
    credit = _Column(column.CREDIT, int)
    """Earned credit of the result shown in quarters, the lower of its subtopic and its study. -1 for no result."""
    again = _Column(column.AGAIN, bool)
    """True if the subtopic was visited, or the study run, before."""


def event_values(event: Event) -> dict[str, Any]:
    """Return an event as plain values: the state by its phase, enum members by their lower-case names."""
    return {
        "kind": event.kind.name.lower(),
        "state": event.state.phase.name.lower(),
        "node": event.node,
        "fake": event.fake,
        "wording": event.wording,
        "credit": None if event.credit < 0 else event.credit / FULL_CREDIT,
        "accepted": event.accepted,
        "forced": event.forced,
        "hint_level": event.hint_level,
        "limit": event.limit,
        "reason": event.reason.name.lower(),
        "decision": event.decision.name.lower(),
    }


def _bits(flags: Sequence[int]) -> int:
    """Return the bit set of the places that are not 0."""
    return sum(1 << i for i, flag in enumerate(flags) if flag)
