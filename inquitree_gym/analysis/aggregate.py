"""Sums over the episodes of an agent: how its choices were read, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from inquitree_gym.analysis.load import EpisodeFacts

Number = TypeVar("Number", int, float)
Player = tuple[str, str, str]
"""Agent, turn limit and reading: what fake levels are pooled over."""


class ReadingTally(NamedTuple):
    """How all choices of one player were read."""

    choices: int
    outcomes: Counter[str]
    """See `Reads.outcomes`."""
    reasons: Counter[str]
    taken: list[float]
    refused: list[float]

    def share(self, outcome: str) -> float | None:
        """Return the share of choices that came out so; None without a choice."""
        return self.outcomes[outcome] / self.choices if self.choices else None


class SpentTally(NamedTuple):
    """What all episodes of one player cost."""

    episodes: int
    turns: int
    replies: int
    corrections: int
    cut_short: int
    prompt_tokens: int | None
    completion_tokens: int | None
    dollars: float | None
    unpriced: int
    agent_seconds: float | None
    env_seconds: float


def by_player(facts: Iterable[EpisodeFacts]) -> dict[Player, list[EpisodeFacts]]:
    """Return the episodes by player, in order of appearance."""
    found: dict[Player, list[EpisodeFacts]] = {}
    for each in facts:
        found.setdefault((each.score.agent, each.score.limit, each.score.reading), []).append(each)
    return found


def tally_reading(facts: Sequence[EpisodeFacts]) -> ReadingTally:
    """Pool the readings of some episodes."""
    outcomes: Counter[str] = sum((each.reads.outcomes for each in facts), Counter())
    return ReadingTally(
        choices=outcomes.total(),
        outcomes=outcomes,
        reasons=sum((each.reads.reasons for each in facts), Counter()),
        taken=[similarity for each in facts for similarity in each.reads.taken],
        refused=[similarity for each in facts for similarity in each.reads.refused],
    )


def tally_spent(facts: Sequence[EpisodeFacts]) -> SpentTally:
    """Add up what some episodes cost; what none of them knows stays None."""
    spent = [each.spent for each in facts]
    return SpentTally(
        episodes=len(facts),
        turns=sum(len(each.coverage) for each in facts),
        replies=sum(each.replies for each in spent),
        corrections=sum(each.corrections for each in spent),
        cut_short=sum(each.cut_short for each in spent),
        prompt_tokens=_sum(each.prompt_tokens for each in spent),
        completion_tokens=_sum(each.completion_tokens for each in spent),
        dollars=_sum(each.dollars for each in spent),
        unpriced=sum(each.unpriced for each in spent),
        agent_seconds=_sum(each.agent_seconds for each in spent),
        env_seconds=sum(each.env_seconds for each in spent),
    )


def _sum(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
