"""The sections of a report that say how well agents did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from inquitree_gym.analysis.aggregate import MEASURES, NORMALISED
from inquitree_gym.analysis.compare import SHOWN
from inquitree_gym.analysis.load import ScoredEpisode
from inquitree_gym.report import figures
from inquitree_gym.report.contents import Contents, Section, rows_grid
from inquitree_gym.report.tables import grid, shaded
from inquitree_gym.report.vigilance import COLUMNS
from inquitree_gym.scoring import Estimate, clustered_mean

REPORT_TABLES = {
    "Results": ("coverage", "unaided", "coverage at 3n", "Q", "Q/|C|", NORMALISED),
    "Steps": ("turns L", "stretch", "hints"),
    "Vigilance": COLUMNS,
}
MAPPED = {"Conclusion Q/|C|": "Q/|C|", "Unaided coverage": "unaided", "Coverage": "coverage"}
MOST_COLUMNS = 12
"""Settings that the heat map shows side by side; with more of them, those of the lowest fake level."""
TURN_STEP = 0.25
"""Grid of the coverage curves, in turns per subtopic."""


def leaderboard(report: Contents) -> Section:
    """Agents side by side at the lowest fake level, as the paper's Table 2 has them."""
    kinds = (
        ("coverage", "coverage", "coverage r_c"),
        ("unaided", "unaided", "unaided coverage"),
        ("conclusion", "Q/|C|", "conclusion Q/|C|"),
    )
    panels = tuple(
        figures.bars(name, axis, [(report.name(row), row.estimates[measure]) for row in report.base])
        for name, measure, axis in kinds
    )
    words = (
        f"Agents at fake level {report.level}, the best conclusion first. Means over trees with the 95 % interval of a "
        "t over tree means, from five trees on. Coverage counts forced moves too; unaided coverage counts subtopics "
        "entered on a choice that had needed no hint.",
    )
    table = rows_grid("Leaderboard", report, report.base, REPORT_TABLES["Results"])
    return Section("leaderboard", "Leaderboard", words, panels, (table,))


def comparison(report: Contents) -> Section | None:
    """The second run minus the first; None where nothing is compared."""
    if not report.differences:
        return None
    panels = tuple(
        figures.differences(
            f"difference-{number}",
            f"difference in {measure}",
            [(f"{each.name}, f{each.fake_level}", each.estimates[measure]) for each in report.differences],
        )
        for number, measure in enumerate(("coverage", "Q/|C|"))
    )
    lines = [
        [each.name, str(each.fake_level), each.pairs, *map(each.estimates.get, SHOWN)] for each in report.differences
    ]
    words = (
        "The second run minus the first, over the episodes that both have by tree and seed, clustered by tree. The "
        "intervals are not corrected for looking at several measures.",
    )
    table = grid("Paired differences", ("agent", "fakes", "pairs", *SHOWN), lines)
    return Section("comparison", "Comparison", words, panels, (table,))


def turns(report: Contents) -> Section:
    """Coverage over turns at the lowest fake level."""
    groups: dict[str, list[ScoredEpisode]] = {name: [] for name in report.names.values()}
    for facts in report.episodes:
        if facts.score.fake_level == report.level:
            groups[report.name(facts.score)].append(facts)
    found = {name: _coverage_curve(group) for name, group in groups.items() if group}
    panel = figures.curves("turns", ("turns per subtopic", "coverage r_c"), found, mark=3)
    words = (
        f"Coverage after each turn at fake level {report.level}. Turns are counted per subtopic of the tree, so that "
        "trees of different size compare; the dotted line is 3n, where an inquiry without a failure is through. An "
        "episode that has ended keeps its last coverage. The band is the 95 % interval.",
    )
    return Section("turns", "Coverage over turns", words, (panel,))


def papers(report: Contents) -> Section:
    """Means by tree and setting, as a heat map."""
    columns = report.table if len(report.table) <= MOST_COLUMNS else report.base
    several = len({row.fake_level for row in columns}) > 1
    heads = ["tree", *(report.name(row) + f", f{row.fake_level}" * several for row in columns)]
    grids = []
    for title, measure in MAPPED.items():
        means = _tree_means(report.episodes, measure)
        trees = dict.fromkeys(tree for tree, *_ in means)
        lines = [[tree, *(shaded(means.get((tree, *row.setting))) for row in columns)] for tree in trees]
        grids.append(grid(title, heads, lines))
    words = (
        "Means over the episodes of each tree: the stronger the colour, the higher; a dash is no value."
        + (" f stands for the fake level." if several else f" Fake level {columns[0].fake_level}."),
    )
    return Section("papers", "By paper", words, (), tuple(grids))


def settings(report: Contents) -> Section:
    """Every row of the report, folded."""
    grids = tuple(rows_grid(title, report, report.table, measures) for title, measures in REPORT_TABLES.items())
    return Section("settings", "Every setting", (), (), grids, folded=True)


def _coverage_curve(episodes: Sequence[ScoredEpisode]) -> list[tuple[float, Estimate]]:
    """Return the mean coverage at steps of turns per subtopic, clustered by tree, up to the longest episode."""
    end = max(len(facts.coverage) / facts.subtopics for facts in episodes)
    steps = np.arange(0, end + TURN_STEP, TURN_STEP)
    by_tree = {
        tree: np.mean([_at(facts, steps) for facts in group], axis=0)
        for tree, group in groupby(sorted(episodes, key=_tree), key=_tree)
    }
    return [
        (float(step), clustered_mean((tree, float(curve[i])) for tree, curve in by_tree.items()))
        for i, step in enumerate(steps)
    ]


def _at(facts: ScoredEpisode, steps: np.ndarray) -> np.ndarray:
    """Return the coverage of an episode after so many turns per subtopic."""
    curve = np.array([0.0, *facts.coverage])
    return np.asarray(curve[np.minimum(np.floor(steps * facts.subtopics + 1e-9).astype(int), len(curve) - 1)])


def _tree(facts: ScoredEpisode) -> str:
    return facts.score.tree


def _tree_means(episodes: Sequence[ScoredEpisode], measure: str) -> dict[tuple[str, str, int, str, str], float | None]:
    """Return the mean of a measure by tree and setting; None where no episode has a value."""
    found: dict[tuple[str, str, int, str, str], list[float]] = {}
    for score in (facts.score for facts in episodes):
        values = found.setdefault((score.tree, score.agent, score.fake_level, score.limit, score.reading), [])
        if (value := MEASURES[measure](score)) is not None:
            values.append(value)
    return {key: float(np.mean(values)) if values else None for key, values in found.items()}
