"""Logs to tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from inquitree_gym.analysis.load import gather
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean, paired_difference
from inquitree_gym.scoring.vigilance import CRITERION, D_PRIME, Counts, sensitivity

Measure = Callable[[EpisodeScore], float | None]


def _stretch(score: EpisodeScore) -> float | None:
    """Where L lies in [3n, n(2H + 3)]: 0 at the lower bound, 1 at the upper one."""
    path = score.path
    return None if path.most_turns is None else (path.turns - path.fewest_turns) / (path.most_turns - path.fewest_turns)


MEASURES: dict[str, Measure] = {
    "coverage": lambda score: score.path.coverage,
    "unaided": lambda score: score.path.unaided_coverage,
    "coverage at 3n": lambda score: score.path.coverage_at_3n,
    "Q": lambda score: score.quality,
    "Q/|C|": lambda score: score.quality_share,
    "turns L": lambda score: float(score.path.turns),
    "stretch": _stretch,
    "hints": lambda score: float(score.path.hints),
    "redo": lambda score: score.path.redo_rate,
    "hits": lambda score: score.path.hit_rate,
    "false alarms": lambda score: score.path.false_alarm_rate,
}
"""What a report shows of an episode, by heading."""
FLOOR, CEILING = "random-menu", "oracle"
NORMALISED = "normalised"
"""Q/|C| between the floor and the oracle; shown where the same report holds both."""
CHANGE = "redo − level 0"
"""Redo frequency minus that of the same tree and seed without fakes; shown where the same report holds both."""


class Row(NamedTuple):
    """One agent at one fake level, turn limit and reading."""

    agent: str
    fake_level: int
    limit: str
    reading: str
    trees: int
    episodes: int
    unscored: int
    """Episodes without a conclusion score; they are counted, never taken as 0."""
    bounds: str
    """[3n, n(2H + 3)] of the trees in the row: the least and the greatest."""
    estimates: dict[str, Estimate]
    """By heading: the `MEASURES`, and what takes more than one episode: `NORMALISED`, `CHANGE`, d′ and c."""


def read_scores(
    folder: str | os.PathLike[str], progress: Callable[[EpisodeSpec], None] | None = None
) -> tuple[list[EpisodeScore], list[str]]:
    """Score every whole episode of a run folder; see `gather` for the errors.

    Returns: the scores, and the names of episodes that are missing or torn.
    """
    found = gather(folder, progress)
    return found.scores, [episode.name for episode in found.missing]


def rows(scores: Sequence[EpisodeScore]) -> list[Row]:
    """Return one row per agent, fake level, turn limit and reading, in order of appearance."""
    groups: dict[tuple[str, int, str, str], list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(_setting(score), []).append(score)
    floor, ceiling = (_share_by_tree(scores, agent) for agent in (FLOOR, CEILING))

    def normalised(score: EpisodeScore) -> float | None:
        """Q/|C| on the scale from the floor (0) to the oracle (1) of the same tree and setting."""
        low, high = (ends.get((score.tree, *_setting(score)[1:])) for ends in (floor, ceiling))
        share = score.quality_share
        return None if share is None or low is None or high is None or high <= low else (share - low) / (high - low)

    measures = {**MEASURES, NORMALISED: normalised}
    return [_row(group, measures, groups.get((setting[0], 0, *setting[2:]), [])) for setting, group in groups.items()]


def _setting(score: EpisodeScore) -> tuple[str, int, str, str]:
    """What episodes have to share to be averaged: agent, fake level, turn limit, and what read the actions."""
    return score.agent, score.fake_level, score.limit, score.reading


def _share_by_tree(scores: Sequence[EpisodeScore], agent: str) -> dict[tuple[str, int, str, str], float]:
    """Return the mean Q/|C| of an agent by tree and setting."""
    found: dict[tuple[str, int, str, str], list[float]] = {}
    for score in scores:
        if score.agent == agent and score.quality_share is not None:
            found.setdefault((score.tree, *_setting(score)[1:]), []).append(score.quality_share)
    return {key: fmean(shares) for key, shares in found.items()}


def report_table(table: Iterable[Row], measures: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of a text table: a heading line, then one line per row; intervals stand below their means."""
    table = list(table)
    several = len({row.reading for row in table}) > 1
    with_bounds = "turns L" in measures
    reading, bounds = ["reading"] * several, ["[3n, n(2H+3)]"] * with_bounds
    yield ["agent", "fakes", "limit", *reading, "n", *measures, *bounds]
    for row in table:
        estimates = ["\n".join(filter(None, written(row.estimates[name]))) for name in measures]
        setting = [row.agent, str(row.fake_level), row.limit, *[row.reading] * several]
        yield [*setting, f"{row.episodes} ({row.trees})", *estimates, *[row.bounds] * with_bounds]


def written(estimate: Estimate) -> tuple[str, str]:
    """Write an estimate in two short pieces: the mean, and the interval with fewer digits."""
    mean, low, high = estimate[:3]
    if mean is None:
        return "–", ""
    digits = 1 if abs(mean) >= 10 else 2
    interval = "" if low is None or high is None else f"[{low:z.{digits}f}, {high:z.{digits}f}]"
    return f"{mean:z.{digits + 1}f}", interval


def as_plain(row: Row) -> dict[str, Any]:
    """Return a row as plain values, for JSON."""
    return {**row._asdict(), "estimates": {name: value._asdict() for name, value in row.estimates.items()}}


def _row(scores: list[EpisodeScore], measures: Mapping[str, Measure], without_fakes: list[EpisodeScore]) -> Row:
    """Return a row; ``without_fakes`` are the episodes of the same setting at level 0, empty where there are none."""
    estimates = {
        name: clustered_mean((score.tree, measure(score)) for score in scores) for name, measure in measures.items()
    }
    sensed = sensitivity(_counts(scores))
    estimates |= {CHANGE: _redo_change(scores, without_fakes), **{name: sensed[name] for name in (D_PRIME, CRITERION)}}
    lows = [score.path.fewest_turns for score in scores]
    highs = [score.path.most_turns or 0 for score in scores]
    agent, level, limit, reading = _setting(scores[0])
    return Row(
        agent=agent,
        fake_level=level,
        limit=limit,
        reading=reading,
        trees=len({score.tree for score in scores}),
        episodes=len(scores),
        unscored=sum(score.quality is None for score in scores),
        bounds=f"[{_span(lows)}, {_span(highs)}]",
        estimates=estimates,
    )


def _counts(scores: Iterable[EpisodeScore]) -> dict[str, Counts]:
    """Return what was shown and redone, by tree."""
    found: dict[str, Counts] = {}
    for score in scores:
        path = score.path
        shown = Counts(path.fakes_shown, path.hits, path.trues_shown, path.false_alarms)
        found[score.tree] = found.get(score.tree, Counts()) + shown
    return found


def _redo_change(scores: Iterable[EpisodeScore], without_fakes: Iterable[EpisodeScore]) -> Estimate:
    """Return redo frequency minus that at level 0, paired by tree and seed; at level 0 itself there is none."""
    rates, before = (
        {(score.tree, score.seed): score.path.redo_rate for score in side} for side in (scores, without_fakes)
    )
    return paired_difference(rates if any(score.fake_level for score in scores) else {}, before)


def _span(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"
