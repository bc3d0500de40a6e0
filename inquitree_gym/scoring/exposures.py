"""The results of an episode as the agent saw them, in order."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import NamedTuple

from inquitree_gym.llm import estimated_tokens
from inquitree_gym.log import Episode, Turn


class Showing(NamedTuple):
    """One observation of a result, and what the agent did about it."""

    study: str
    """Id of the study."""
    fake: int
    """0 for the true result, i for the i-th fake."""
    turn: int
    """The turn whose action led to it, 1 for the first."""
    before: int
    """Results of this study, true or fake, that were shown before in the episode: 0 for a first showing."""
    read: int
    """Tokens of all observations that the agent had read when it answered, this one included: an estimate, see
    `chat.estimate`."""
    prompt_tokens: int | None
    """Tokens of the request that a model answered it with, as the service counted them; None where nobody did."""
    redone: bool | None
    """Whether the study was redone; None where the limit, or the end of the log, left no choice."""


def showings(episode: Episode) -> tuple[Showing, ...]:
    """Return every result that was shown, first to last."""
    shown: Counter[str] = Counter()
    read = list(accumulate(map(_tokens, episode.turns)))
    found = []
    for place, turn in enumerate(episode.turns):
        event = turn.event
        if event.kind != "result" or event.node is None:
            continue
        answered = min(place + 1, len(read) - 1)
        found.append(
            Showing(
                study=event.node,
                fake=event.fake,
                turn=turn.turn,
                before=shown[event.node],
                read=read[answered],
                prompt_tokens=_prompt_tokens(episode, turn.turn + 1),
                redone=_redone(episode.turns, place),
            )
        )
        shown[event.node] += 1
    return tuple(found)


def _tokens(turn: Turn) -> int:
    return estimated_tokens({"role": "user", "content": turn.observation})


def _redone(turns: tuple[Turn, ...], place: int) -> bool | None:
    """Tell whether the decision after a result was to redo; unreadable answers in between are asked again.

    After the limit there are no decisions any more.
    """
    for later in turns[place + 1 :]:
        if later.event.decision != "none":
            return later.event.decision == "redo"
    return None


def _prompt_tokens(episode: Episode, turn: int) -> int | None:
    """Return the tokens of the first request for the move of a turn; a correction is longer by what it corrects."""
    moves = (reply for reply in episode.replies_to(turn) if reply.role == "proposer" and reply.tokens is not None)
    return next((reply.tokens.get("prompt") for reply in moves if reply.tokens is not None), None)
