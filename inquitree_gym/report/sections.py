"""Data of a report, and its sections on results, readings, costs and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.analysis.aggregate import (
    MEASURES,
    NORMALISED,
    PairedDifference,
    Player,
    Setting,
    SettingSummary,
    by_player,
    grouped,
    setting_of,
    summarise,
)
from inquitree_gym.analysis.cutoff import CutoffAnalysis
from inquitree_gym.analysis.load import EpisodeCost, ReadingCounts, ScoredEpisode, ScoredRun, agents_apart
from inquitree_gym.analysis.logs import MissingEpisode
from inquitree_gym.analysis.memorisation import Memorisation
from inquitree_gym.report.figures import Chart, bars, curves, spreads
from inquitree_gym.report.tables import Table, counted, dollars, linked, make_table, shaded
from inquitree_gym.report.templating import paragraphs
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean

RESULTS = ("coverage", "unaided", "coverage at 3n", "Q", "Q/|C|", NORMALISED)
JUDGED = frozenset({"Q", "Q/|C|", NORMALISED, "mean S"})
"""Measures that depend on the judge."""
STEPS = ("turns L", "stretch", "hints")
AXES = (
    ("coverage", "coverage", "coverage r_c"),
    ("unaided", "unaided", "unaided coverage"),
    ("conclusion", "Q/|C|", "conclusion Q/|C|"),
)
"""Name, measure and axis label of the charts that compare agents."""
HEAT_MAPS = {"Conclusion Q/|C|": "Q/|C|", "Unaided coverage": "unaided", "Coverage": "coverage"}
MAX_COLUMNS = 12
"""Settings that a heat map shows side by side; with more of them, only those of the lowest fake level."""
TURN_STEP = 0.25
"""Step of the coverage curves, in turns per subtopic."""
OUTCOMES = ("accepted", "hinted", "asked", "forced", "limit")
COUNTS = {
    "replies": "replies", "corrections": "corrections", "cut short": "cut_short", "without text": "without_text",
    "retries": "retries", "refusals": "refused", "prompt tokens": "prompt_tokens",
    "completion tokens": "completion_tokens", "reasoning tokens": "reasoning_tokens",
}  # fmt: skip
"""Field of `EpisodeCost` by heading."""
REASONS = ("below_threshold", "prerequisite_unmet", "unreadable_decision")
MAX_OPEN = 10
"""Missing episodes that a page lists without folding the table."""

Shown = TypeVar("Shown", Chart, Table)


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a report, independent of the output format."""

    anchor: str
    title: str
    words: tuple[str, ...] = ()
    """Paragraphs."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    folded: bool = False
    """True if a page hides the tables until the reader asks for them."""

    def file_of(self, table: Table) -> str:
        """Return the name of a table's files, without suffix, which no other table of the report has."""
        return table.name if table.name == self.anchor else f"{self.anchor}-{table.name}"


@dataclass(frozen=True, slots=True)
class ReportData:
    """Scores and summaries that the sections of a report show."""

    runs: Sequence[ScoredRun]
    episodes: list[ScoredEpisode]
    """Finished episodes of all runs."""
    table: list[SettingSummary]
    names: dict[Player, str]
    """Agent of each player, with its turn limit and reading if the report has several."""
    judged: dict[str, list[EpisodeScore]]
    """Scores by judge, the judge of the tables first."""
    differences: Sequence[PairedDifference]
    cutoffs: CutoffAnalysis[Player] | None
    """Split at training cutoffs; None without one."""
    memories: Memorisation | None
    """Closed-book conclusions; None without any."""

    def name(self, of: SettingSummary | EpisodeScore) -> str:
        """Return the name of the player of a row or an episode."""
        return self.names[Player(of.agent, of.limit, of.reading)]

    @property
    def judged_by(self) -> str:
        """Name and version of the judge of the tables and figures."""
        return ", ".join(dict.fromkeys(facts.score.judged_by for facts in self.episodes))

    def name_judge(self, shown: Shown, *measures: str) -> Shown:
        """Return a table or chart of some measures, with the judge in its caption if one of them comes from a judge."""
        if JUDGED.isdisjoint(measures):
            return shown
        return replace(shown, caption=f"{shown.caption}, judged by {self.judged_by}")

    @property
    def level(self) -> int:
        """Lowest fake level of the report, at which agents are compared."""
        return min(row.fake_level for row in self.table)

    @property
    def base(self) -> list[SettingSummary]:
        """Rows at the lowest fake level, best conclusion first, rows without a conclusion score last."""
        base = [row for row in self.table if row.fake_level == self.level]
        means = {id(row): row.estimates["Q/|C|"].mean for row in base}
        return sorted(base, key=lambda row: (means[id(row)] is None, -(means[id(row)] or 0.0)))

    def rows_table(self, caption: str, shown: Sequence[SettingSummary], measures: Sequence[str]) -> Table:
        """Return some rows as a table; a cell tells its number of trees if it is not that of the row."""
        lines = [
            [
                self.name(row), str(row.fake_level),
                *linked(
                    (f"{row.episodes:,} ({row.trees})",
                     *(counted(row.estimates.get(measure), row.trees) for measure in measures)),
                    agent=self.name(row), fakes=row.fake_level,
                ),
            ]
            for row in shown
        ]  # fmt: skip
        return self.name_judge(make_table(caption, ["agent", "fakes", "n (trees)", *measures], lines), *measures)


def report_data(
    runs: Sequence[ScoredRun],
    differences: Sequence[PairedDifference] = (),
    cutoffs: CutoffAnalysis[Player] | None = None,
    memories: Memorisation | None = None,
) -> ReportData:
    """Return the data of a report on ``runs``; see `write_report` for the arguments."""
    runs = agents_apart(runs)
    episodes = [facts for run in runs for facts in run.episodes]
    summary = summarise([facts.score for facts in episodes])
    players = list(dict.fromkeys(row.setting.player for row in summary))
    several = [len({player[i] for player in players}) > 1 for i in range(3)]
    names = {player: ", ".join([player[0], *(player[i] for i in (1, 2) if several[i])]) for player in players}
    return ReportData(runs, episodes, summary, names, scores_by_judge(runs), differences, cutoffs, memories)


def scores_by_judge(runs: Sequence[ScoredRun]) -> dict[str, list[EpisodeScore]]:
    """Return the scores of all runs by judge."""
    found: dict[str, list[EpisodeScore]] = {}
    for score in (score for run in runs for score in run.scores):
        found.setdefault(score.judged_by, []).append(score)
    for label, scores in (item for run in runs for item in run.judged.items()):
        found.setdefault(label, []).extend(scores)
    return found


def leaderboard(report: ReportData) -> Section:
    """Return the agents at the lowest fake level, as in the paper's Table 2."""
    charts = tuple(
        report.name_judge(
            bars(name, axis, {report.name(row): (row.estimates[measure],) for row in report.base}), measure
        )
        for name, measure, axis in AXES
    )
    board = report.rows_table("Leaderboard", report.base, RESULTS)
    return Section("leaderboard", "Leaderboard", paragraphs("leaderboard", level=report.level), charts, (board,))


def turns(report: ReportData) -> Section:
    """Return coverage over turns at the lowest fake level."""
    level = report.level
    shown = by_player(facts for facts in report.episodes if facts.score.fake_level == level)
    found = {name: coverage_curve(shown[player]) for player, name in report.names.items() if player in shown}
    chart = curves("turns", ("turns per subtopic", "coverage r_c"), found, mark=3)
    return Section("turns", "Coverage over turns", paragraphs("turns", level=level), (chart,))


def coverage_curve(episodes: Sequence[ScoredEpisode]) -> list[tuple[float, Estimate]]:
    """Return the mean coverage by turns per subtopic, clustered by tree, up to the longest episode."""
    end = max(len(facts.coverage) / facts.subtopics for facts in episodes)
    steps = np.arange(0, end + TURN_STEP, TURN_STEP)
    by_tree = {
        tree: np.mean([_coverage_at(facts, steps) for facts in group], axis=0)
        for tree, group in groupby(sorted(episodes, key=_tree), key=_tree)
    }
    return [
        (float(step), clustered_mean((tree, float(curve[i])) for tree, curve in by_tree.items()))
        for i, step in enumerate(steps)
    ]


def papers(report: ReportData) -> Section:
    """Return heat maps of the means by tree and setting."""
    columns = report.table if len(report.table) <= MAX_COLUMNS else report.base
    several = len({row.fake_level for row in columns}) > 1
    heads = ["tree", *(report.name(row) + f", f{row.fake_level}" * several for row in columns)]
    names = {_tree(facts): _tree(facts) + (f" (tier {facts.tier})" if facts.tier else "") for facts in report.episodes}
    maps = []
    for title, measure in HEAT_MAPS.items():
        means = _tree_means(report.episodes, measure)
        trees = dict.fromkeys(tree for tree, _ in means)
        lines = [
            [
                names[tree],
                *(
                    each
                    for row in columns
                    for each in linked(
                        [shaded(means.get((tree, row.setting)))],
                        tree=tree, agent=report.name(row), fakes=row.fake_level,
                    )
                ),
            ]
            for tree in trees
        ]  # fmt: skip
        maps.append(report.name_judge(make_table(title, heads, lines), measure))
    words = paragraphs("papers", several=several, level=columns[0].fake_level)
    return Section("papers", "By paper", words, (), tuple(maps))


def readings(report: ReportData) -> Section:
    """Return outcomes, reasons and similarities of the choices."""
    tallies = {
        report.names[player]: ReadingCounts.total(each.readings for each in group)
        for player, group in by_player(report.episodes).items()
    }
    thresholds = {facts.threshold for facts in report.episodes}
    mark = thresholds.pop() if len(thresholds) == 1 else None
    similarities = {
        "accepted": {name: tally.accepted for name, tally in tallies.items() if tally.accepted},
        "refused": {name: tally.refused for name, tally in tallies.items() if tally.refused},
    }
    charts = tuple(
        spreads(f"{kind}-similarity", f"cosine similarity of {kind} choices", found, mark)
        for kind, found in similarities.items()
        if found
    )
    lines = [
        [
            name,
            *linked(
                (tally.choices, *map(tally.share, OUTCOMES), *(tally.reasons[reason] for reason in REASONS)),
                agent=name,
            ),
        ]
        for name, tally in tallies.items()
    ]
    heads = ("agent", "choices", *OUTCOMES, *(reason.replace("_", " ") for reason in REASONS))
    return Section(
        "reading", "How actions were read", paragraphs("readings"), charts, (make_table("Readings", heads, lines),)
    )


def spending(report: ReportData) -> Section:
    """Return tokens, dollars and seconds."""
    players = by_player(report.episodes)
    return spending_of(
        {report.names[player]: [(each.cost, len(each.coverage)) for each in group] for player, group in players.items()}
    )


def spending_of(spent_by: Mapping[str, Sequence[tuple[EpisodeCost, int]]]) -> Section:
    """Return tokens, dollars and seconds from cost and turns of the episodes of each agent."""
    costs, times = [], []
    for name, group in spent_by.items():
        spent, turns = EpisodeCost.total(cost for cost, _ in group), sum(turns for _, turns in group)
        paid = dollars(spent.dollars, spent.unpriced)
        counts = [getattr(spent, field) for field in COUNTS.values()]
        costs.append([name, *linked((len(group), turns, *counts, paid, spent.unpriced), agent=name)])
        seconds = (spent.agent_seconds, spent.env_seconds)
        each_turn = (None if each is None or not turns else 1000 * each / turns for each in seconds)
        by_side = [value for pair in zip(seconds, each_turn, strict=True) for value in pair]
        times.append([name, *linked(by_side, agent=name)])
    heads = ("agent", "episodes", "turns", *COUNTS, "US dollars", "unpriced replies")
    tables = (
        make_table("Cost", heads, costs),
        make_table("Time", ("agent", "agent s", "agent ms/turn", "env s", "env ms/turn"), times),
    )
    return Section("cost", "Cost and time", paragraphs("cost"), (), tables)


def missing(report: ReportData) -> Section:
    """Return the episodes without a score, and the reason."""
    gone = [(run.folder.name, each) for run in report.runs for each in run.missing]
    unscored = sum(row.unscored for row in report.table)
    return missing_from(gone, f"{len(report.episodes):,} episodes", f"{unscored:,} whole ones have no conclusion score")


def missing_from(gone: Sequence[tuple[str, MissingEpisode]], scored: str, unscored: str) -> Section:
    """Return the episodes without a score by run, under two counts in words."""
    words = paragraphs("missing", scored=scored, missing=f"{len(gone):,}", unscored=unscored)
    lines = [[run, each.name, each.status, each.error or None] for run, each in gone]
    found = (make_table("Not scored", ("run", "episode", "status", "error"), lines, labels=4),) if gone else ()
    return Section("missing", "Failures and missing episodes", words, (), found, folded=len(gone) > MAX_OPEN)


def threats(report: ReportData) -> Section:
    """Return the threats to validity."""
    scores = [facts.score for facts in report.episodes]
    embedders = ", ".join(dict.fromkeys(score.reading for score in scores))
    words = paragraphs("threats", judges=report.judged_by, embedders=embedders)
    return Section("threats", "Threats to validity", words)


def _coverage_at(facts: ScoredEpisode, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coverage of an episode after each number of turns per subtopic."""
    curve = np.array([0.0, *facts.coverage])
    return np.asarray(curve[np.minimum(np.floor(steps * facts.subtopics + 1e-9).astype(int), len(curve) - 1)])


def _tree(facts: ScoredEpisode) -> str:
    return facts.score.tree


def _tree_means(episodes: Sequence[ScoredEpisode], measure: str) -> Mapping[tuple[str, Setting], float | None]:
    """Return the mean of a measure by tree and setting; None if no episode has a value."""
    groups = grouped((facts.score for facts in episodes), lambda score: (score.tree, setting_of(score)))
    values = {key: [MEASURES[measure](score) for score in group] for key, group in groups.items()}
    known = {key: [value for value in found if value is not None] for key, found in values.items()}
    return {key: float(np.mean(found)) if found else None for key, found in known.items()}
