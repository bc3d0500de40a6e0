"""The results of an episode in the order the agent saw them, with its responses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from inquitree_gym.llm import estimated_tokens
from inquitree_gym.log import Episode, Turn


@dataclass(frozen=True, slots=True)
class Exposure:
    """One observation of a result, and the agent's response."""

    study: str
    """Id of the study."""
    fake: int
    """0 for the true result, i for the i-th fake."""
    turn: int
    """The turn whose action led to the result, from 1."""
    before: int
    """Earlier results of this study in the episode, true or fake: 0 for a first exposure."""
    tokens_read: int
    """Estimated tokens of all observations up to and including the one the agent answered; see `estimated_tokens`."""
    prompt_tokens: int | None
    """Tokens of the request that a model answered, as counted by the service; None without such a count."""
    redone: bool | None
    """True if the agent redid the study; None if the turn limit, or the end of the log, left no choice."""


def exposures(episode: Episode) -> tuple[Exposure, ...]:
    """Return every result of an episode, first to last."""
    shown: Counter[str] = Counter()
    tokens = (estimated_tokens({"role": "user", "content": turn.observation}) for turn in episode.turns)
    read = list(accumulate(tokens))
    found = []
    for place, turn in enumerate(episode.turns):
        study = turn.event.node
        if turn.event.kind == "result" and study is not None:
            so_far = read[min(place + 1, len(read) - 1)]
            prompt_tokens, redone = _prompt_tokens(episode, turn.turn + 1), _redone(episode.turns, place)
            found.append(Exposure(study, turn.event.fake, turn.turn, shown[study], so_far, prompt_tokens, redone))
            shown[study] += 1
    return tuple(found)


def _redone(turns: tuple[Turn, ...], place: int) -> bool | None:
    """Return whether the first decision after a result was to redo; None if there is none, as after the turn limit."""
    for later in turns[place + 1 :]:
        if later.event.decision != "none":
            return later.event.decision == "redo"
    return None


def _prompt_tokens(episode: Episode, turn: int) -> int | None:
    """Return the prompt tokens of the first request for a turn; corrections have longer prompts."""
    moves = (reply for reply in episode.replies_to(turn) if reply.role == "proposer" and reply.tokens is not None)
    return next((reply.tokens.get("prompt") for reply in moves if reply.tokens is not None), None)
