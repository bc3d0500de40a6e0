"""Values of the engine: phases, decisions, kinds of observations, readings, and read-only views of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from inquitree_gym.inquiry.engine import rows as column
from inquitree_gym.inquiry.engine.rows import COUNT_BITS, COUNTS, FULL_CREDIT, MOST_POLES, ROW_HEAD, VISIT_BITS, Slots


class Phase(IntEnum):
    """Phase of an inquiry, which determines the meaning of the next action."""

    TOPIC = 0
    SUBTOPIC = 1
    STUDY = 2
    RESULT = 3
    CONCLUSION = 4
    EXAM = 5
    END = 6


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
    EXAM = 13
    EXAM_AGAIN = 14


class Reason(IntEnum):
    """Reason for a rejected action. Logged, but hidden from the agent."""

    NONE = 0
    BELOW_THRESHOLD = 1
    PREREQUISITE_UNMET = 2
    UNREADABLE_DECISION = 3
    UNREADABLE_SHEET = 4


PHASE_OF = (0, 0, 1, 3, 0, 1, 3, 4, 6, 0, 2, 0, 3, 5, 5)
"""Phase in which an inquiry shows each kind of observation."""
CREDITS = (4, 4, 1, 0, 0)
"""Earned credit of a node in quarters by the highest hint level that was shown for it before it was first chosen."""

T = TypeVar("T")
_BLOCKS = {
    "visits": (0, 0, 0), "runs": (1, 0, 0), "shown": (1, 1, 0), "proven": (1, 2, 0), "told": (1, 3, 0),
    "credit": (2, 4, 0), "world": (3, 5, 0), "earned": (3, 5, 1),
}  # fmt: skip
"""Blocks of a row, each with the blocks of subtopics, of studies and of axes before it."""
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

    def __init__(self, row: Sequence[int], slots: Slots) -> None:
        """View ``row``, of a tree with as many subtopics, studies, … as there are slots. The row must not change."""
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
        return self._block("visits", self._slots.subtopics)

    @property
    def visited(self) -> int:
        """Bit set of the subtopics that have been entered."""
        return _bits(self.visits)

    @property
    def runs(self) -> tuple[int, ...]:
        """Number of runs of each study."""
        return self._block("runs", self._slots.studies)

    @property
    def shown(self) -> tuple[int, ...]:
        """Result of each study that was seen last: -1 for none, 0 for the true one, i for the i-th fake."""
        return self._block("shown", self._slots.studies)

    @property
    def proven(self) -> int:
        """Bit set of the studies whose true result has been seen."""
        return _bits(self._block("proven", self._slots.studies))

    @property
    def told(self) -> tuple[int, ...]:
        """Highest hint level that was shown for each node, subtopics first, then studies. 0 for none."""
        return self._block("told", self._slots.subtopics + self._slots.studies)

    @property
    def credit(self) -> tuple[int, ...]:
        """Earned credit of each node in quarters, fixed when it is first entered or run. -1 before that."""
        return self._block("credit", self._slots.subtopics + self._slots.studies)

    @property
    def world(self) -> tuple[int, ...]:
        """Pole of each axis of the exam that is true."""
        return self._block("world", self._slots.axes)

    @property
    def earned(self) -> tuple[int, ...]:
        """Largest credit, in quarters, among the results that read each axis of the exam."""
        return self._block("earned", self._slots.axes)

    @property
    def tally(self) -> tuple[int, ...]:
        """Number of results that stated each pole of each axis of the exam, axis by axis, 127 at most."""
        start, width = self._slots.tally, self._slots.tally_width
        counts = _parts(self.row[start : start + width], COUNT_BITS, COUNTS)
        return tuple(counts[: MOST_POLES * self._slots.axes])

    @property
    def packed(self) -> tuple[int, ...]:
        """Tally and visited subtopics in words, as the row has them."""
        return tuple(self.row[self._slots.tally :])

    item = _Column(column.ITEM, int)
    """Conclusion item that the exam asks about, from 0."""
    points = _Column(column.POINTS, int)
    """Points of the exam so far. See `Engine.exam_return`."""

    def _start(self, block: str) -> int:
        subtopics, studies, axes = _BLOCKS[block]
        slots = self._slots
        return ROW_HEAD + subtopics * slots.subtopics + studies * slots.studies + axes * slots.axes

    def _block(self, block: str, length: int) -> tuple[int, ...]:
        start = self._start(block)
        return tuple(self.row[start : start + length])

    def replace(self, **values: int | Sequence[int]) -> State:
        """Return the state with other values of the properties, except for bit sets, which follow from the others."""
        row = list(self.row)
        for name, value in values.items():
            if isinstance(value, int):
                row[getattr(column, name.upper())] = value
            elif name == "tally":
                start = self._slots.tally
                row[start : start + self._slots.tally_width] = _words(value, COUNT_BITS, COUNTS)
            else:
                start = self._start(name)
                row[start : start + len(value)] = value
        state = State(row, self._slots)
        row[column.LEFT], row[column.UNRUN] = state.visits.count(0), state.runs.count(0)
        row[self._slots.tally + self._slots.tally_width :] = _words([int(k > 0) for k in state.visits], 1, VISIT_BITS)
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
    """Index of the subtopic, study or conclusion item in the observation. -1 for none."""
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


def _words(numbers: Sequence[int], bits: int, count: int) -> list[int]:
    """Pack numbers of so many bits, ``count`` in a word, the first one lowest."""
    starts = range(0, len(numbers), count)
    return [sum(k << bits * i for i, k in enumerate(numbers[start : start + count])) for start in starts]


def _parts(words: Sequence[int], bits: int, count: int) -> list[int]:
    """Return the numbers in packed words."""
    return [word >> bits * i & (1 << bits) - 1 for word in words for i in range(count)]
