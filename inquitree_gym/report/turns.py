"""Turns of an episode as a page tells them: what was shown, how the action was taken, and the state after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from inquitree_gym.log import Episode, EventRecord, Reply, Turn
from inquitree_gym.trees import HINT_LEVELS, Tree

_IN_SUBTOPIC = ("subtopic", "study", "result")
"""States in which a subtopic is under study."""


@dataclass(frozen=True, slots=True)
class Badge:
    """Short, coloured description of an observation or an event."""

    kind: str
    """``accepted``, ``hint``, ``forced``, ``true``, ``fake`` or ``decision``; the CSS class."""
    words: str
    sign: str = ""
    """One character for the strip of turns."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn, and the state of the inquiry after it."""

    turn: Turn
    replies: tuple[Reply, ...]
    state: str
    """State in which the action was taken."""
    shown: Badge | None
    """Observation that the agent read, if its text alone does not tell."""
    mark: Badge
    """Outcome of the action."""
    verdict: str
    """Hit, miss or false alarm; empty for other decisions."""
    truth: str
    """True result, if the observation held a fake one."""
    path: tuple[str, ...]
    """Subtopics in the order in which they were entered, revisits included."""
    current: str
    """Subtopic under study; empty at the topic and at the conclusion."""
    target: str
    """Target of the hint that comes next; empty without one."""
    results: dict[str, int]
    """Result seen last by study: 0 the true one, i the i-th fake."""


def turn_views(episode: Episode, tree: Tree) -> list[TurnView]:
    """Follow an episode, finished or torn, through its tree."""
    truths = {study.id: study.result for study in tree.studies}
    path: tuple[str, ...] = ()
    results: dict[str, int] = {}
    before: EventRecord | None = None
    result: EventRecord | None = None
    found = []
    for turn in episode.turns:
        event = turn.inquiry_event
        if event.kind == "subtopic" and event.node is not None:
            path = (*path, event.node)
        if event.kind == "declined":
            path = path[:-1]
        if event.kind == "result" and event.node is not None:
            results = {**results, event.node: event.fake}
        state = "topic" if before is None else before.state
        view = TurnView(
            turn=turn,
            replies=episode.replies_to(turn.turn),
            state=state,
            shown=_shown(before),
            mark=_mark(event),
            verdict=_verdict(result, event) if state == "result" else "",
            truth=truths.get(before.node or "", "") if before is not None and before.fake else "",
            path=path,
            current=path[-1] if path and event.state in _IN_SUBTOPIC else "",
            target=event.node or "" if _is_hint(event) else "",
            results=results,
        )
        found.append(view)
        result = event if event.kind == "result" else result
        before = event
    return found


def legend(views: Iterable[TurnView]) -> list[tuple[str, str, str]]:
    """Return class, sign and meaning of every sign that these turns have; one line stands for all levels of hints."""
    found = dict.fromkeys((view.mark.kind, "1" if view.mark.sign.isdigit() else view.mark.sign) for view in views)
    return [(kind, sign, _SIGNS[sign]) for sign in _SIGNS for kind, other in found if other == sign]


def _shown(event: EventRecord | None) -> Badge | None:
    """Return the kind of an observation that its text alone does not tell: a result or a hint."""
    if event is None or event.node is None:
        return None
    if event.kind == "result":
        which = f"fake result {event.fake}" if event.fake else "true result"
        return Badge("fake" if event.fake else "true", f"{which} of {event.node}")
    if _is_hint(event):
        return Badge("hint", f"hint {event.hint_level} of {HINT_LEVELS}, towards {event.node}")
    return None


def _is_hint(event: EventRecord) -> bool:
    # At the turn limit the prompt for the conclusion takes the place of the hint.
    return event.kind.endswith("_hint") and not event.limit


_SIGNS = {
    "●": "accepted", "1": "not accepted; hint of this level", "×": "not accepted; no hint left", "!": "forced",
    "T": "true result shown", "F": "fake result shown", "→": "explores", "←": "declines", "■": "concludes",
    "?": "asked again",
}  # fmt: skip
"""Meaning of the signs of turns."""
_DECISIONS = {
    "topic": Badge("decision", "decides to explore", "→"),
    "conclusion": Badge("decision", "decides to conclude", "■"),
    "ask_again": Badge("hint", "no decision can be read; asked again", "?"),
    "end": Badge("decision", "the conclusion is filed", "■"),
}
_NAMING = {
    "declined": ("decision", "declines {node}", "←"),
    "subtopic_tie": ("hint", "as near to {node} as to {other}; asked which", "?"),
    "study_tie": ("hint", "as near to {node} as to {other}; asked which", "?"),
}
"""Class, words and sign of outcomes that name nodes."""


def _mark(event: EventRecord) -> Badge:
    mark = _DECISIONS.get(event.kind) or _choice_mark(event)
    if event.kind in _NAMING:
        kind, words, sign = _NAMING[event.kind]
        mark = Badge(kind, words.format(node=event.node, other=event.other), sign)
    return replace(mark, words=f"{mark.words}; the turn limit strikes") if event.limit else mark


def _choice_mark(event: EventRecord) -> Badge:
    """Return the outcome of a choice or of a study."""
    why = event.reason.replace("_", " ")
    if event.kind.endswith("_hint"):
        hint = f"; hint {event.hint_level} towards {event.node}" if _is_hint(event) else ""
        return Badge("hint", f"not accepted ({why}){hint}", str(event.hint_level or "×"))
    verb = "enters" if event.kind == "subtopic" else "redoes" if event.decision == "redo" else "runs"
    words = f"forced into {event.node} ({why})" if event.forced else f"{verb} {event.node}"
    if event.kind != "result":
        return Badge("forced", words, "!") if event.forced else Badge("accepted", words, "●")
    if event.fake:
        return Badge("fake", f"{words}; fake result {event.fake} is shown", "F")
    return Badge("true", f"{words}; the true result is shown", "T")


def _verdict(result: EventRecord | None, event: EventRecord) -> str:
    """Return the verdict on a decision at a result; empty for a true result that was believed."""
    if result is None or event.decision == "none":
        return ""
    if event.decision == "redo":
        return "hit: a fake result is redone" if result.fake else "false alarm: a true result is redone"
    return "miss: a fake result is believed" if result.fake else ""
