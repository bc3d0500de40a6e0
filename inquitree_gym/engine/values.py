"""The frozen values of an inquiry: phases, readings, states, events."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Phase(IntEnum):
    """Where an inquiry stands; the phase says what the next action is taken for."""

    TOPIC = 0
    SUBTOPIC = 1
    STUDY = 2
    RESULT = 3
    CONCLUSION = 4
    END = 5


class Decision(IntEnum):
    """What an action at RESULT asks for."""

    NONE = 0
    REDO = 1
    CONCLUDE = 2
    EXPLORE = 3


class Kind(IntEnum):
    """What an event shows the agent."""

    START = 0
    TOPIC = 1
    SUBTOPIC = 2
    STUDY = 3
    RESULT = 4
    SUBTOPIC_HINT = 5
    STUDY_HINT = 6
    ASK_AGAIN = 7
    CONCLUSION = 8
    END = 9


class Reason(IntEnum):
    """Why an action was not accepted; for the log, never for the agent."""

    NONE = 0
    BELOW_THRESHOLD = 1
    PREREQUISITE_UNMET = 2
    UNREADABLE_DECISION = 3


class Reading(NamedTuple):
    """What was understood from an action."""

    candidate: int = -1
    """Most similar candidate, a subtopic or study index; -1 for none."""
    similarity: float = 0.0
    """Cosine similarity to that candidate, in [-1, 1]."""
    decision: Decision = Decision.NONE
    margin: float | None = None
    """Lead over the second candidate; None where there is none."""
    top: tuple[tuple[int, float], ...] = ()
    """The nearest candidates with their similarities, best first."""


class State(NamedTuple):
    """Everything that the rules need to go on from here; hashable."""

    phase: Phase
    turn: int
    """Actions taken so far."""
    subtopic: int
    """Subtopic under study; -1 at first."""
    study: int
    """Study last run; -1 before the first."""
    hint_level: int
    """Hints given for the open choice, 0 to H."""
    target: int
    """Subtopic or study that the hints lead to; -1 before the first failure."""
    visited: int
    """Bit i is set when subtopic i has been entered."""
    visits: tuple[int, ...]
    runs: tuple[int, ...]
    shown: tuple[int, ...]
    """Per study the result seen last: -1 none, 0 the true one, i the i-th fake."""
    proven: int
    """Bit k is set when the true result of study k has been seen."""
    seed: int


class Event(NamedTuple):
    """What one action led to."""

    state: State
    kind: Kind
    node: int = -1
    """Subtopic or study that the observation is about."""
    fake: int = 0
    """For RESULT: 0 when the true result is shown, i for the i-th fake."""
    accepted: bool = False
    forced: bool = False
    hint_level: int = 0
    """Level of the hint given now; 0 for none."""
    limit: bool = False
    """True when the turn limit ended the inquiry with this action."""
    reason: Reason = Reason.NONE
    decision: Decision = Decision.NONE
