"""Frozen values of an inquiry: phases, readings, states and events."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple


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


class Kind(IntEnum):
    """Kind of observation that an event shows."""

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
    DECLINED = 10
    SUBTOPIC_TIE = 11
    STUDY_TIE = 12
    REDO = 13


class Reason(IntEnum):
    """Reason for a rejected action; logged, but hidden from the agent."""

    NONE = 0
    BELOW_THRESHOLD = 1
    PREREQUISITE_UNMET = 2
    UNREADABLE_DECISION = 3
    TIE = 4


class Reading(NamedTuple):
    """Interpretation of an action."""

    candidate: int = -1
    """Index of the most similar candidate, a subtopic or a study; -1 for none."""
    similarity: float = 0.0
    """Cosine similarity to that candidate, in [-1, 1]."""
    decision: Decision = Decision.NONE
    margin: float | None = None
    """Lead in similarity over the second candidate, or None if there is only one."""
    top: tuple[tuple[int, float], ...] = ()
    """Nearest candidates with their similarities, best first."""


class State(NamedTuple):
    """Complete, hashable state of an inquiry."""

    phase: Phase
    turn: int
    """Number of actions taken."""
    subtopic: int
    """Subtopic entered last; -1 before the first."""
    study: int
    """Study run last; -1 before the first."""
    hint_level: int
    """Level of the last hint for the open choice, 0 to H."""
    target: int
    """Subtopic or study that the hints point to; -1 before the first failure."""
    visited: int
    """Bit set of the subtopics that have been entered."""
    visits: tuple[int, ...]
    """Number of visits of each subtopic."""
    runs: tuple[int, ...]
    """Number of runs of each study."""
    shown: tuple[int, ...]
    """Result of each study that was seen last: -1 for none, 0 for the true one, i for the i-th fake."""
    proven: int
    """Bit set of the studies whose true result has been seen."""
    seed: int
    asked: bool = False
    """True once the agent was asked which of two candidates it means; until the open choice is made."""


class Event(NamedTuple):
    """Outcome of one action."""

    state: State
    kind: Kind
    node: int = -1
    """Index of the subtopic or study in the observation; -1 for none."""
    fake: int = 0
    """Result shown at RESULT: 0 for the true one, i for the i-th fake."""
    accepted: bool = False
    forced: bool = False
    hint_level: int = 0
    """Level of the hint in the observation; 0 for none."""
    limit: bool = False
    """True if this action reached the turn limit."""
    reason: Reason = Reason.NONE
    decision: Decision = Decision.NONE
    other: int = -1
    """The second of two candidates to choose from, while ``node`` is the nearest; -1 for none."""
    wording: int = 0
    """Wording of a true result: 0 as the tree has it, i for its i-th rewording."""


def event_values(event: Event) -> dict[str, Any]:
    """Return an event as plain values: the state by its phase, enum members by their lower-case names."""
    return {
        "kind": _NAMES[Kind][event.kind],
        "state": _NAMES[Phase][event.state.phase],
        "node": event.node,
        "other": event.other,
        "fake": event.fake,
        "wording": event.wording,
        "accepted": event.accepted,
        "forced": event.forced,
        "hint_level": event.hint_level,
        "limit": event.limit,
        "reason": _NAMES[Reason][event.reason],
        "decision": _NAMES[Decision][event.decision],
    }


_NAMES = {kind: tuple(member.name.lower() for member in kind) for kind in (Kind, Phase, Reason, Decision)}
