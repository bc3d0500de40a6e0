"""The section of a report that sets judges side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from inquitree_gym.analysis.aggregate import Setting, grouped, setting_of
from inquitree_gym.report import figures
from inquitree_gym.report.contents import Contents, Section
from inquitree_gym.report.tables import Cell, Grid, grid
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean
from inquitree_gym.scoring.agreement import Agreement, agreement, item_pairs

ItemScores = dict[tuple[str, str], tuple[float | None, ...]]
"""Scores of the conclusion items by tree and episode."""


def judges(report: Contents) -> Section | None:
    """Q/|C| by every judge that has judged, and how far they agree; None where the local judge is the only one."""
    if len(report.judged) < 2:
        return None
    means = {name: _by_setting(scores) for name, scores in report.judged.items()}
    bars = [
        (f"{report.name(row)}, {judge}", found.get(row.setting, _NOTHING))
        for row in report.base
        for judge, found in means.items()
    ]
    lines = [
        [report.name(row), str(row.fake_level), *(found.get(row.setting) for found in means.values())]
        for row in report.table
    ]
    table = grid("Conclusion Q/|C| by judge", ("agent", "fakes", *means), lines)
    words = (
        f"The same conclusions before several judges; the picture shows fake level {report.level}. A judge has judged "
        "what inquitree judge put before it; a dash is nothing judged or nothing scored. κ is Cohen's, with linear "
        "weights over the grades 0, 0.6 and 1, over the items that both judges have scored.",
    )
    panel = figures.bars("judges", "conclusion Q/|C|", bars)
    return Section("judges", "Judges side by side", words, (panel,), (table, _agreements(report)))


def _agreements(report: Contents) -> Grid:
    scores = {name: _item_scores(found) for name, found in report.judged.items()}
    lines = [
        [one, other, *_line(agreement(item_pairs(scores[one], scores[other])))]
        for one, other in combinations(scores, 2)
    ]
    heads = ("judge", "judge", "κ", "same grade", "mean |ΔS|", "items", "unscored")
    return grid("Agreement", heads, lines, names=2)


def _line(found: Agreement) -> list[object]:
    interval = "" if found.low is None or found.high is None else f"[{found.low:z.2f}, {found.high:z.2f}]"
    kappa = None if found.kappa is None else Cell(f"{found.kappa:z.3f}", interval)
    return [kappa, found.same, found.difference, found.items, found.unscored]


_NOTHING = Estimate(None, None, None, 0, 0)


def _by_setting(scores: Sequence[EpisodeScore]) -> dict[Setting, Estimate]:
    return {
        setting: clustered_mean((score.tree, score.quality_share) for score in group)
        for setting, group in grouped(scores, setting_of).items()
    }


def _item_scores(scores: Sequence[EpisodeScore]) -> ItemScores:
    return {
        (score.tree, f"{setting_of(score)} {score.seed}"): tuple(verdict.score for verdict in score.verdicts)
        for score in scores
        if score.verdicts
    }
