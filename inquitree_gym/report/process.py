"""The sections of a report that say how its numbers came about: readings, cost, what is missing, what to doubt."""

from __future__ import annotations

from collections.abc import Sequence

from inquitree_gym.analysis.aggregate import by_player
from inquitree_gym.analysis.load import EpisodeCost, ReadingCounts, ScoredEpisode
from inquitree_gym.report import figures
from inquitree_gym.report.contents import Contents, Section
from inquitree_gym.report.tables import grid, written_dollars

OUTCOMES = ("accepted", "hinted", "forced", "limit")
REASONS = ("below_threshold", "prerequisite_unmet", "unreadable_decision")
MOST_SHOWN = 10
"""Missing episodes that a page shows at once."""
MAX_ERROR = 300
"""Characters of a failure's message that are shown."""


def readings(report: Contents) -> Section:
    """What became of every choice."""
    tallies = {
        report.names[player]: ReadingCounts.total(each.readings for each in group)
        for player, group in by_player(report.episodes).items()
    }
    thresholds = {facts.threshold for facts in report.episodes}
    mark = thresholds.pop() if len(thresholds) == 1 else None
    spreads = {
        "accepted": {name: tally.accepted for name, tally in tallies.items() if tally.accepted},
        "refused": {name: tally.refused for name, tally in tallies.items() if tally.refused},
    }
    panels = tuple(
        figures.spreads(f"{kind}-similarity", f"cosine similarity of {kind} choices", found, mark)
        for kind, found in spreads.items()
        if found
    )
    lines = [
        [name, tally.choices, *map(tally.share, OUTCOMES), *(tally.reasons[reason] for reason in REASONS)]
        for name, tally in tallies.items()
    ]
    heads = ("agent", "choices", *OUTCOMES, *(reason.replace("_", " ") for reason in REASONS))
    words = (
        "What became of the choices at the topic and at subtopics, as shares over all episodes and levels: accepted, "
        "answered by a hint, forced after the last hint, or cut off by the turn limit. Then the counts of why actions "
        "were not accepted; an unreadable decision is one at a result. In the pictures a box holds the middle half of "
        "the similarities to the nearest candidate, its stroke the median, the line the 5th to the 95th percentile. A "
        "refused choice above τ named a subtopic that was still locked.",
    )
    return Section("reading", "How actions were read", words, panels, (grid("Readings", heads, lines),))


def spending(report: Contents) -> Section:
    """Tokens, dollars and seconds."""
    groups = {report.names[player]: group for player, group in by_player(report.episodes).items()}
    cost = (
        "agent", "episodes", "turns", "replies", "corrections", "cut short", "prompt tokens", "completion tokens",
        "US dollars", "unpriced replies",
    )  # fmt: skip
    time = ("agent", "agent s", "agent ms/turn", "env s", "env ms/turn")
    grids = (
        grid("Cost", cost, [[name, *_cost_line(group)] for name, group in groups.items()]),
        grid("Time", time, [[name, *_time_line(group)] for name, group in groups.items()]),
    )
    words = (
        "Of the scored episodes. A dash is unknown, not zero; replies of unknown price make the dollars a lower bound "
        "(≥). Replies from a cache cost nothing and are left out of tokens and dollars. Replies cut short had used "
        "up max_tokens; many of them say that it is too low for the model. The environment's time holds the embedding "
        "of the actions.",
    )
    return Section("cost", "Cost and time", words, (), grids)


def missing(report: Contents) -> Section:
    """What is not scored, and why."""
    gone = [(run.folder.name, each) for run in report.runs for each in run.missing]
    unscored = sum(row.unscored for row in report.table)
    words = (
        f"{len(report.episodes):,} episodes are scored. {len(gone):,} are missing, torn, failed or damaged, and "
        f"{unscored:,} whole ones have no conclusion score; none of these counts as 0, and where failures fall on hard "
        "trees the means are too good.",
    )
    if not gone:
        return Section("missing", "Failures and missing episodes", words)
    lines = [[run, each.name, each.status, each.error[:MAX_ERROR] or None] for run, each in gone]
    table = grid("Not scored", ("run", "episode", "status", "error"), lines, names=4)
    return Section("missing", "Failures and missing episodes", words, (), (table,), folded=len(gone) > MOST_SHOWN)


def threats(report: Contents) -> Section:
    """What a reader should doubt; the evidence is in the docs."""
    judges = ", ".join(dict.fromkeys(facts.score.judge for facts in report.episodes))
    embedders = ", ".join(dict.fromkeys(facts.score.reading for facts in report.episodes))
    words = (
        "Hints and forced moves carry any text through a tree under the default turn limit, so coverage alone shows "
        "little; unaided coverage and coverage at 3n are what was earned.",
        f"Actions were read by {embedders}. An embedder refuses some good proposals and takes some vague ones or near "
        "misses; inquitree reread shows how far results hang on the threshold.",
        f"Conclusions were scored by the judge {judges}. The local judge compares embeddings: it takes many hedged "
        "conclusions for claims, misses distant paraphrases, and was tuned on the very set that its validity is "
        "measured on. Scores of different judges do not compare.",
        "The trees are rewritten from public papers, some statements from abstracts alone. A model may have read the "
        "paper; only the split by training cutoff and closed-book questions speak to that.",
        "Fake results were revised until simple classifiers stayed near chance; a reader with other features may still "
        "find a cue.",
        "Intervals take the trees for a random sample of trees and are approximate for few trees or values near 0 or "
        "1. Repeated seeds of a deterministic agent add nothing, and nothing is corrected for many comparisons.",
    )
    return Section("threats", "Threats to validity", words)


def _cost_line(episodes: Sequence[ScoredEpisode]) -> list[object]:
    spent = EpisodeCost.total(each.cost for each in episodes)
    return [
        len(episodes), _turns(episodes), spent.replies, spent.corrections, spent.cut_short, spent.prompt_tokens,
        spent.completion_tokens, written_dollars(spent.dollars, spent.unpriced), spent.unpriced,
    ]  # fmt: skip


def _time_line(episodes: Sequence[ScoredEpisode]) -> list[object]:
    spent, turns = EpisodeCost.total(each.cost for each in episodes), _turns(episodes)
    return [
        spent.agent_seconds, _milliseconds(spent.agent_seconds, turns),
        spent.env_seconds, _milliseconds(spent.env_seconds, turns),
    ]  # fmt: skip


def _turns(episodes: Sequence[ScoredEpisode]) -> int:
    return sum(len(each.coverage) for each in episodes)


def _milliseconds(seconds: float | None, turns: int) -> float | None:
    return None if seconds is None or not turns else 1000 * seconds / turns
