"""What a report is made of, and how its agents are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from inquitree_gym.analysis.aggregate import Player, SettingSummary, summarise
from inquitree_gym.analysis.compare import PairedDifference
from inquitree_gym.analysis.cutoff import Cutoffs
from inquitree_gym.analysis.load import ScoredEpisode, ScoredRun
from inquitree_gym.analysis.memorisation_summary import Memories
from inquitree_gym.report.drawing import Panel
from inquitree_gym.report.tables import Grid, grid
from inquitree_gym.scoring import EpisodeScore


class Section(NamedTuple):
    """One part of a report: words, pictures and tables, whatever they are rendered to."""

    anchor: str
    title: str
    words: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    grids: tuple[Grid, ...] = ()
    folded: bool = False
    """Whether a page shows its tables on request only."""


class Contents(NamedTuple):
    """Everything that a report is made of."""

    runs: Sequence[ScoredRun]
    episodes: list[ScoredEpisode]
    """The whole episodes of all runs."""
    table: list[SettingSummary]
    names: dict[Player, str]
    """A name for every player: its agent, and its turn limit and reading where the report has several."""
    judged: dict[str, list[EpisodeScore]]
    """By judge the scores of the episodes that it has judged, the local judge first."""
    differences: Sequence[PairedDifference]
    cutoffs: Cutoffs | None
    """None where nothing was split."""
    memories: Memories | None
    """None without closed-book conclusions."""

    def name(self, of: SettingSummary | EpisodeScore) -> str:
        """Name the player of a row or of an episode."""
        return self.names[Player(of.agent, of.limit, of.reading)]

    @property
    def level(self) -> int:
        """The lowest fake level of the report, at which agents are set side by side."""
        return min(row.fake_level for row in self.table)

    @property
    def base(self) -> list[SettingSummary]:
        """The rows at the lowest fake level, best conclusion first, those without one last."""
        means = {id(row): row.estimates["Q/|C|"].mean for row in self.table}
        base = [row for row in self.table if row.fake_level == self.level]
        return sorted(base, key=lambda row: (means[id(row)] is None, -(means[id(row)] or 0.0)))

    @property
    def by_player(self) -> dict[str, list[SettingSummary]]:
        """The rows by name of the player, each list by rising fake level."""
        found: dict[str, list[SettingSummary]] = {name: [] for name in self.names.values()}
        for row in sorted(self.table, key=lambda row: row.fake_level):
            found[self.name(row)].append(row)
        return found


def contents(
    runs: Sequence[ScoredRun],
    differences: Sequence[PairedDifference] = (),
    cutoffs: Cutoffs | None = None,
    memories: Memories | None = None,
) -> Contents:
    """Gather what the sections of a report are made from."""
    episodes = [facts for run in runs for facts in run.episodes]
    table = summarise([facts.score for facts in episodes])
    players = list(dict.fromkeys(row.setting.player for row in table))
    several = [len({player[i] for player in players}) > 1 for i in range(3)]
    names = {player: ", ".join([player[0], *(player[i] for i in (1, 2) if several[i])]) for player in players}
    return Contents(runs, episodes, table, names, by_judge(runs), differences, cutoffs, memories)


def by_judge(runs: Sequence[ScoredRun]) -> dict[str, list[EpisodeScore]]:
    """Put the judges of all runs side by side."""
    found: dict[str, list[EpisodeScore]] = {}
    for score in (score for run in runs for score in run.scores):
        found.setdefault(score.judge, []).append(score)
    for label, scores in (item for run in runs for item in run.judged.items()):
        found.setdefault(label, []).extend(scores)
    return found


def rows_grid(caption: str, report: Contents, shown: Sequence[SettingSummary], measures: Sequence[str]) -> Grid:
    """Return a table of some rows of a report."""
    lines = [
        [report.name(row), str(row.fake_level), f"{row.episodes:,} ({row.trees})", *map(row.estimates.get, measures)]
        for row in shown
    ]
    return grid(caption, ["agent", "fakes", "n (trees)", *measures], lines)
