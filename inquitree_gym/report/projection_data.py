"""Data of a report of projections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from inquitree_gym.analysis.cutoff import CutoffAnalysis
from inquitree_gym.analysis.cutoff_models import ModelDates
from inquitree_gym.analysis.projection_summary import (
    PAPER,
    Metric,
    PairedProjections,
    ProjectionPlayer,
    ProjectionSummary,
    levels_of,
    projection_player,
    split_projections,
    summarise_projections,
)
from inquitree_gym.analysis.projections import ProjectionRun, ScoredProjections, projection_agents_apart
from inquitree_gym.report.figures import Chart
from inquitree_gym.report.tables import Table

Shown = TypeVar("Shown", Chart, Table)


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """Scores and summaries that the sections of a report of projections show."""

    runs: Sequence[ProjectionRun]
    metric: Metric
    table: list[ProjectionSummary]
    names: dict[ProjectionPlayer, str]
    """Agent of each player, with its rules and its judge if the report has several."""
    levels: list[str]
    differences: Sequence[PairedProjections]
    cutoffs: CutoffAnalysis[ProjectionPlayer]
    models: Sequence[ModelDates]
    example: str | None
    """Id of the paper whose projections are shown in full; None for the first one."""

    @property
    def episodes(self) -> list[ScoredProjections]:
        """Finished episodes of all runs."""
        return [facts for run in self.runs for facts in run.episodes]

    @property
    def judged_by(self) -> str:
        """Names and versions of the judges."""
        return ", ".join(dict.fromkeys(facts.score.judged_by for facts in self.episodes))

    def groups(self) -> list[str]:
        """Return the groups of papers: the domains, then all papers."""
        return list(dict.fromkeys(row.group for row in sorted(self.table, key=lambda row: row.group.startswith("all"))))

    def of_group(self, group: str) -> dict[str, ProjectionSummary]:
        """Return the summaries of a group by name of the player."""
        return {self.names[row.player]: row for row in self.table if row.group == group}

    def by_player(self) -> Iterator[tuple[str, list[ScoredProjections]]]:
        """Yield the names of the players with their episodes."""
        for player, name in self.names.items():
            yield name, [facts for facts in self.episodes if projection_player(facts.score) == player]

    def judged(self, shown: Shown) -> Shown:
        """Return a table or chart whose caption names the judge, and the formulas where they are not the paper's."""
        changed = f", {self.metric.words}" if self.metric.words else ""
        return replace(shown, caption=f"{shown.caption}{changed}, judged by {self.judged_by}")


def projection_data(
    runs: Sequence[ProjectionRun],
    metric: Metric = PAPER,
    differences: Sequence[PairedProjections] = (),
    models: Sequence[ModelDates] = (),
    example: str | None = None,
) -> ProjectionReport:
    """Return the data of a report on ``runs``; see `write_projection_report` for the arguments."""
    runs = projection_agents_apart(runs)
    scores = [score for run in runs for score in run.scores]
    players = list(dict.fromkeys(map(projection_player, scores)))
    several = [len({player[i] for player in players}) > 1 for i in range(3)]
    names = {player: ", ".join([player[0], *(player[i] for i in (1, 2) if several[i])]) for player in players}
    return ProjectionReport(
        runs=runs,
        metric=metric,
        table=summarise_projections(scores, metric),
        names=names,
        levels=levels_of(scores),
        differences=differences,
        cutoffs=split_projections(scores, models, metric),
        models=models,
        example=example,
    )
