"""Turns of an episode as a page shows them, for every kind of environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inquitree_gym.log import Episode, Reply, Turn

PAGE = "turns.html"
"""Template of a page of turns, which those of the kinds extend."""


@dataclass(frozen=True, slots=True)
class Badge:
    """Short, coloured description of an observation or an event."""

    kind: str
    """``accepted``, ``hint``, ``forced``, ``true``, ``fake`` or ``decision``. The CSS class."""
    words: str
    sign: str = ""
    """One character for the strip of turns."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn of an episode."""

    turn: Turn[Any]
    replies: tuple[Reply, ...]
    state: str
    """State in which the action was taken. Empty if it is not known."""
    mark: Badge
    """Outcome of the action."""


@dataclass(frozen=True, slots=True)
class EpisodeBody:
    """Contents of the page of an episode beside the texts of its turns."""

    views: Sequence[TurnView]
    signs: Sequence[tuple[str, str, str]] = ()
    """Class, sign and meaning of the signs of the turns."""
    template: str = PAGE
    """Name of a template of the kind that extends `PAGE`."""
    paper: Any = None
    """Paper of the task, with ``title``, ``journal`` and ``year``. None without one."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the episode, shown as JSON."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Further variables of the template."""


def plain_view(episode: Episode[Any]) -> EpisodeBody:
    """Return the view of an episode whose kind has none of its own."""
    states = ["", *(turn.event.state for turn in episode.turns)]
    views = [
        TurnView(turn, episode.replies_to(turn.turn), state, Badge("decision", turn.event.kind, turn.event.kind[:1]))
        for turn, state in zip(episode.turns, states, strict=False)
    ]
    meanings = dict.fromkeys((view.mark.kind, view.mark.sign, view.mark.words) for view in views)
    return EpisodeBody(views, list(meanings))
