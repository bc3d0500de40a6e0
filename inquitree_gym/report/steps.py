"""An episode turn by turn, as a person wants to see it: what was read, said, understood, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inquitree_gym.log import Episode, Event, Reply, Turn
from inquitree_gym.trees import HINT_LEVELS, Tree


class Bar(NamedTuple):
    """One candidate of a reading."""

    id: str
    name: str
    similarity: float
    percent: float
    """Length of the bar: the similarity in percent, 0 where it is negative."""


class Mark(NamedTuple):
    """What came of an action, in one sign and one sentence."""

    kind: str
    """``accepted``, ``hint``, ``forced``, ``true``, ``fake`` or ``decision``."""
    sign: str
    words: str


class Shown(NamedTuple):
    """What an observation is, beyond its text."""

    kind: str
    """``true``, ``fake`` or ``hint``."""
    words: str


class Step(NamedTuple):
    """One turn, and where the inquiry stands after it."""

    turn: Turn
    replies: tuple[Reply, ...]
    state: str
    """The phase that the action was taken in."""
    shown: Shown | None
    bars: tuple[Bar, ...]
    mark: Mark
    verdict: str
    """Of a decision on a result: a hit, a miss or a false alarm; empty where there is nothing to say."""
    truth: str
    """The true result, where the observation held a fake one."""
    path: tuple[str, ...]
    """Subtopics as they were entered, revisits included."""
    current: str
    """The subtopic under study; empty at the topic and at the conclusion."""
    target: str
    """What the hint shown next leads to; empty without one."""
    results: dict[str, int]
    """By study the result seen last: 0 the true one, i the i-th fake."""


_WITHIN = ("subtopic", "study", "result")
"""Phases in which a subtopic is under study."""


def steps(episode: Episode, tree: Tree) -> list[Step]:
    """Follow an episode through its tree; it may be torn."""
    return list(_follow(episode, tree))


def _follow(episode: Episode, tree: Tree) -> Iterator[Step]:
    names = {s.id: s.name for s in tree.subtopics} | {s.id: s.text for s in tree.studies}
    truths = {study.id: study.result for study in tree.studies}
    path: tuple[str, ...] = ()
    results: dict[str, int] = {}
    before: Event | None = None
    result: Event | None = None
    for turn in episode.turns:
        event = turn.event
        if event.kind == "subtopic" and event.node is not None:
            path = (*path, event.node)
        if event.kind == "result" and event.node is not None:
            results = {**results, event.node: event.fake}
        yield Step(
            turn=turn,
            replies=episode.replies_to(turn.turn),
            state="topic" if before is None else before.state,
            shown=_shown(before),
            bars=tuple(Bar(i, names.get(i, ""), s, round(100 * max(s, 0.0), 2)) for i, s in turn.reading.top),
            mark=_mark(event),
            verdict=_verdict(result, event),
            truth=truths.get(before.node or "", "") if before is not None and before.fake else "",
            path=path,
            current=path[-1] if path and event.state in _WITHIN else "",
            target=event.node or "" if _is_hint(event) else "",
            results=results,
        )
        result = event if event.kind == "result" else result
        before = event


def _shown(event: Event | None) -> Shown | None:
    """Name what an event put before the agent, where a reader would not see it from the text."""
    if event is None or event.node is None:
        return None
    if event.kind == "result":
        which = f"fake result {event.fake}" if event.fake else "true result"
        return Shown("fake" if event.fake else "true", f"{which} of {event.node}")
    if _is_hint(event):
        return Shown("hint", f"hint {event.hint_level} of {HINT_LEVELS}, towards {event.node}")
    return None


def _is_hint(event: Event) -> bool:
    """Tell whether a hint is shown; at the turn limit its prompt stands in the hint's place."""
    return event.kind.endswith("_hint") and not event.limit


def _mark(event: Event) -> Mark:
    mark = _DECIDED.get(event.kind) or _moved(event)
    return mark._replace(words=f"{mark.words}; the turn limit strikes") if event.limit else mark


_DECIDED = {
    "topic": Mark("decision", "→", "decides to explore"),
    "conclusion": Mark("decision", "■", "decides to conclude"),
    "ask_again": Mark("hint", "?", "no decision can be read; asked again"),
    "end": Mark("decision", "■", "the conclusion is filed"),
}


def _moved(event: Event) -> Mark:
    """Tell what became of a choice or of the running of a study."""
    why = event.reason.replace("_", " ")
    if event.kind.endswith("_hint"):
        hint = f"; hint {event.hint_level} towards {event.node}" if _is_hint(event) else ""
        return Mark("hint", str(event.hint_level or "×"), f"not accepted ({why}){hint}")
    verb = "enters" if event.kind == "subtopic" else "redoes" if event.decision == "redo" else "runs"
    words = f"forced into {event.node} ({why})" if event.forced else f"{verb} {event.node}"
    if event.kind != "result":
        return Mark("forced" if event.forced else "accepted", "!" if event.forced else "●", words)
    if event.fake:
        return Mark("fake", "F", f"{words}; fake result {event.fake} is shown")
    return Mark("true", "T", f"{words}; the true result is shown")


def _verdict(result: Event | None, event: Event) -> str:
    """Tell what a decision on a result was worth; empty for a true result that was believed."""
    if result is None or event.decision == "none":
        return ""
    if event.decision == "redo":
        return "hit: a fake result is redone" if result.fake else "false alarm: a true result is redone"
    return "miss: a fake result is believed" if result.fake else ""
