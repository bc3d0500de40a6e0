"""Data of a report, built once for each kind of environment, and what a kind adds to its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from inquitree_gym.judging.judgement import Judged
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode
from inquitree_gym.protocols import Outline, Scalar
from inquitree_gym.results.comparison import PairedDifference, compare_runs
from inquitree_gym.results.cutoff import CutoffAnalysis, ModelDates, split_by_cutoff
from inquitree_gym.results.figures import Chart
from inquitree_gym.results.load import ScoredRun, disambiguate_runs, without_doubles
from inquitree_gym.results.score import EpisodeCost, KindResults, Measure, Score
from inquitree_gym.results.summary import (
    POOLED,
    Player,
    SettingSummary,
    axis_name,
    by_player,
    first_cell,
    mean_of_groups,
    own_parts,
    player_of,
    summarise,
)
from inquitree_gym.results.tables import Table, counted, linked, make_table
from inquitree_gym.results.templating import has_block, paragraphs
from inquitree_gym.results.turns import EpisodeBody, plain_view

REPLIES = {
    "replies": "replies", "corrections": "corrections", "cut short": "cut_short", "without text": "without_text",
    "retries": "retries", "refusals": "refused",
}  # fmt: skip
"""Field of `EpisodeCost` by heading of the table of replies."""

D = TypeVar("D")
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


class FurtherResult(NamedTuple):
    """Further result of a kind, for the printed report and its JSON."""

    key: str
    """Key in JSON."""
    title: str
    records: Any
    rows: Sequence[list[str]]
    """Rows of the printed table, headings first. Without rows nothing is printed."""


class KindPages:
    """Base of ``PAGES`` of ``<kind>/pages.py``: what a kind adds to reports and to the pages of episodes."""

    charts: Mapping[str, tuple[str, str]] = {}
    """Measure and axis label by name of the charts that compare agents. By default the measures that are shown."""
    order: str = ""
    """Measure by which agents are ordered. By default the last in the charts."""
    board: tuple[str, ...] = ()
    """Columns of the leaderboard. By default the measures that are shown."""
    listed: tuple[str, ...] = ()
    """Columns of the list of episodes. By default the measures that are shown."""
    sections: tuple[Callable[[Any], Section | None], ...] = ()

    def maps(self, results: KindResults[Any, Any]) -> Mapping[str, Measure[Any]]:
        """Return the measures of the tables by task, by title. By default all in the charts."""
        measures = {measure.name: measure for measure in results.measures}
        names = [measure for measure, _ in self.charts.values()] or list(shown_of(results))
        return {name: measures[name] for name in names if name in measures}

    def label(self, score: Score[Any]) -> str:
        """Return the task of an episode as tables by task name it."""
        return score.task

    def csvs(self, report: Report[Any]) -> Mapping[str, str]:
        """Return further CSV files by the end of their names."""
        return {}

    def further_results(self, report: Report[Any]) -> Iterator[FurtherResult]:
        """Yield further results."""
        return iter(())

    def addition(self, options: Mapping[str, Any], runs: Sequence[ScoredRun], models: Sequence[ModelDates]) -> Any:
        """Return what the kind's own options add to a report, `KindSettings.report`. None for nothing.

        Raises:
            OptionError: an option does not fit the runs.
        """

    def view(self, episode: Episode[Any], task: Any, judged: Judged, score: Score[Any] | None) -> EpisodeBody:
        """Return what the page of an episode shows, finished or not.

        It was ``judged`` by the chosen judge. An unfinished one has no ``score``.
        """
        return plain_view(episode)

    def found(self, episode: Episode[Any], task: Any) -> Outline | None:
        """Return what the player of an episode has found so far, and from its end on the rest. None without a drawing.

        Before the end it holds nothing that the observations have not told.
        """

    def beliefs(self, episode: Episode[Any], task: Any) -> Table | None:
        """Return what an ideal observer of the observations believes, from the end on beside the answers and the truth.

        None where no such observer is defined.
        """


class ReportOptions(NamedTuple):
    """Choices for a report."""

    paired: bool = False
    """Compare two runs, or the agents of one run."""
    agents: Sequence[str] = ()
    """Agents that are compared, in this order. All by default."""
    models: Sequence[ModelDates] = ()
    """Models with their training cutoffs."""
    own: Mapping[str, Mapping[str, Any]] = {}
    """Options of a kind by its name: `KindSettings.formulas` and `KindSettings.report`."""


USUAL = ReportOptions()


@dataclass(frozen=True)
class Report(Generic[D]):
    """Scores and summaries of the episodes of one kind, which the sections of a report show."""

    kind: str
    results: KindResults[Any, D]
    runs: Sequence[ScoredRun]
    """Runs without copies of episodes, each configuration of an agent with a label of its own."""
    table: list[SettingSummary]
    """Summaries of all settings and groups of tasks."""
    cutoffs: CutoffAnalysis
    options: ReportOptions = USUAL
    differences: Sequence[PairedDifference] = ()
    addition: Any = None
    """See `KindPages.addition`."""
    doubles: int = 0
    """Number of copies of episodes that were left out."""

    @cached_property
    def pages(self) -> KindPages:
        """The additions of the kind to pages."""
        return pages_of(self.kind)

    @cached_property
    def scores(self) -> list[Score[D]]:
        """Scores of all runs."""
        return [score for run in self.runs for score in run.scores]

    @cached_property
    def unreviewed(self) -> list[str]:
        """Tasks that a model wrote and that no person has reviewed, by `Score.task`."""
        of_kind = kind(self.kind).tasks
        found = {name for run in self.runs for (_, name), task in run.tasks.items() if not of_kind.is_reviewed(task)}
        return sorted(found)

    @cached_property
    def names(self) -> dict[Player, str]:
        """Agent of each player, with its limit, rules and judge if the report has several."""
        players = list(dict.fromkeys(map(player_of, self.scores)))
        labels = [own_parts([getattr(player, name) for player in players]) for name in Player._fields[1:]]
        return {
            player: ", ".join(filter(None, (player.agent, *own))) for player, *own in zip(players, *labels, strict=True)
        }

    @property
    def clusters(self) -> str:
        """Word for several tasks."""
        return self.results.clusters

    @property
    def noun(self) -> str:
        """Word for one task."""
        return self.clusters.removesuffix("s")

    @cached_property
    def grid(self) -> tuple[str, ...]:
        """Names on the grid of the kind."""
        return tuple(dict.fromkeys(name for score in self.scores for name in score.cell))

    @cached_property
    def judged_by(self) -> str:
        """Names and versions of the judges of the tables and figures."""
        return ", ".join(dict.fromkeys(score.judged_by for score in self.scores if score.judged_by))

    @property
    def missing(self) -> list[Any]:
        """Episodes without a score."""
        return [missing for run in self.runs for missing in run.missing]

    @cached_property
    def charts(self) -> Mapping[str, tuple[str, str]]:
        """Measure and axis label of the charts that compare agents, by name. Those without a value are left out."""
        charts = self.pages.charts or {file_name(name): (name, name) for name in shown_of(self.results)}
        known = {name for row in self.table for name, each in row.estimates.items() if each.mean is not None}
        return {name: chart for name, chart in charts.items() if chart[0] in known} or charts

    @property
    def order(self) -> str:
        """Measure by which agents are ordered."""
        return self.pages.order or list(self.charts.values())[-1][0]

    @property
    def place(self) -> str:
        """The cell at which agents are compared, in words. Empty without a grid."""
        return cell_words(self.cell)

    @cached_property
    def cell(self) -> Mapping[str, Scalar]:
        """The cell at which agents are compared, which has the smallest values."""
        return first_cell(self.scores)

    @property
    def pooled(self) -> list[SettingSummary]:
        """Rows over all tasks."""
        return [row for row in self.table if row.group == POOLED]

    @cached_property
    def base(self) -> list[SettingSummary]:
        """Rows over all tasks in `cell`, best first, rows without a value last."""
        rows = [row for row in self.pooled if row.cell == self.cell]
        return sorted(rows, key=lambda row: _rank(row, self.order))

    def groups(self) -> list[str]:
        """Return the groups of tasks, then those over all tasks."""
        over_all = (mean_of_groups(self.results), POOLED)
        return list(dict.fromkeys(row.group for row in sorted(self.table, key=lambda row: row.group in over_all)))

    def of_group(self, group: str) -> dict[str, SettingSummary]:
        """Return the summaries of a group in `cell` by name of the player."""
        return {self.name(row): row for row in self.table if row.group == group and row.cell == self.cell}

    def by_player(self, scores: Sequence[Score[D]] | None = None) -> dict[str, list[Score[D]]]:
        """Return the scores by name of the player. All of them by default."""
        return {
            self.names[player]: group for player, group in by_player(self.scores if scores is None else scores).items()
        }

    def in_cell(self) -> list[Score[D]]:
        """Return the scores in `cell`."""
        return [score for score in self.scores if score.cell == self.cell]

    def name(self, of: SettingSummary | Score[D] | Player) -> str:
        """Return the name of a player, or of the player of a row or an episode."""
        if isinstance(of, SettingSummary):
            of = of.player
        return self.names[of if isinstance(of, Player) else player_of(of)]

    def words(self, block: str, **values: Any) -> tuple[str, ...]:
        """Return a block of prose: that of the kind, or the common one."""
        package = kind(self.kind).package
        own = has_block(block, package)
        common = {name: getattr(self, name) for name in ("place", "clusters", "noun")}
        values = common | {"formulas": self.results.formulas} | values
        return paragraphs(block, package=package if own else "", **values)

    def name_judge(self, shown: Shown, *measures: str) -> Shown:
        """Return a table or chart with the judge in its caption if one of its measures comes from a judge."""
        measured = self.results.measures
        judged = {measure.name for measure in measured if measure.judged}
        judged |= {measure.anchors.name for measure in measured if measure.judged and measure.anchors}
        if judged.isdisjoint(measures) or not self.judged_by:
            return shown
        changed = f", {self.results.formulas}" if self.results.formulas else ""
        return replace(shown, caption=f"{shown.caption}{changed}, judged by {self.judged_by}")

    def rows_table(self, caption: str, rows: Sequence[SettingSummary], measures: Sequence[str]) -> Table:
        """Return some rows as a table. A cell states its number of tasks if it is not that of the row."""
        grouped = len({row.group for row in rows}) > 1
        labels = ["agent", *map(axis_name, self.grid), *([self.clusters] if grouped else [])]
        lines = [
            [
                self.name(row), *(str(row.cell[name]) for name in self.grid), *([row.group] if grouped else []),
                *linked(
                    (f"{row.episodes:,} ({row.tasks})", *(_value(row, measure) for measure in measures)),
                    **selection(self.name(row), row.cell),
                ),
            ]
            for row in rows
        ]  # fmt: skip
        heads = [*labels, f"n ({self.clusters})", *measures]
        headings = {name: self.results.heading(name) for name in measures}
        return self.name_judge(make_table(caption, heads, lines, len(labels), headings), *measures)


def build_reports(runs: Sequence[ScoredRun], options: ReportOptions = USUAL) -> list[Report[Any]]:
    """Return one report for each kind of the episodes. See `build_report` for the errors."""
    names = dict.fromkeys(name for run in runs for name in run.by_kind)
    return [build_report([run.of_kind(name) for run in runs], options) for name in names]


def build_report(runs: Sequence[ScoredRun], options: ReportOptions = USUAL) -> Report[Any]:
    """Return the data of a report on runs of one kind. Raise `OptionError` for an option that does not fit the kind."""
    name = next(score.kind for run in runs for score in run.scores)
    own, further = dict(options.own.get(name, {})), kind(name).settings.report.model_fields
    added = {option: own.pop(option) for option in further if option in own}
    results = kind(name).results.with_formulas(own)
    differences = (
        compare_runs([run.scores for run in runs if run.scores], options.agents, results) if options.paired else []
    )
    runs, doubles = without_doubles(runs)
    runs = disambiguate_runs([run for run in runs if run.scores or run.missing])
    scores = [score for run in runs for score in run.scores]
    return Report(
        kind=name,
        results=results,
        runs=runs,
        table=summarise(scores, results),
        cutoffs=split_by_cutoff(scores, options.models, results),
        options=options,
        differences=differences,
        addition=pages_of(name).addition(added, runs, options.models),
        doubles=doubles,
    )


def pages_of(name: str) -> KindPages:
    """Return what a kind adds to pages."""
    own: KindPages | None = kind(name).pages
    return KindPages() if own is None else own


def replies(report: Report[Any]) -> tuple[Table, ...]:
    """Return the table of the replies of the agents that asked a model: the first look at a new one."""
    spent = {name: EpisodeCost.total(score.cost for score in group) for name, group in report.by_player().items()}
    lines = [
        [name, *linked((getattr(each, field) for field in REPLIES.values()), agent=name)]
        for name, each in spent.items()
        if each.replies
    ]
    return (make_table("Replies", ("agent", *REPLIES), lines),) if lines else ()


def shown_of(results: KindResults[Any, Any]) -> tuple[str, ...]:
    """Return the names of the measures of a kind that tables show."""
    return results.shown or tuple(measure.name for measure in results.measures)


def cell_words(cell: Mapping[str, Scalar]) -> str:
    """Return a cell in words, such as ``fake level 3``. Empty without a grid."""
    return ", ".join(f"{axis_name(name)} {value}" for name, value in cell.items())


def selection(agent: str, cell: Mapping[str, Scalar]) -> dict[str, object]:
    """Return the selection of the episodes of an agent in a cell, by heading of the list of episodes."""
    return {"agent": agent, **{axis_name(name): value for name, value in cell.items()}}


def file_name(text: str) -> str:
    """Return a text as a word for files and anchors."""
    return make_table(text, (), ()).name


def _value(row: SettingSummary, name: str) -> object:
    return row.facts[name] if name in row.facts else counted(row.estimates.get(name), row.tasks)


def _rank(row: SettingSummary, measure: str) -> tuple[bool, float]:
    estimate = row.estimates.get(measure)
    mean = None if estimate is None else estimate.mean
    return mean is None, -(mean or 0.0)
