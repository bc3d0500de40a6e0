"""The paper's experiments: their shapes as studies, and their figures by the paper's own definitions.

Whatever the paper's text does not settle for this package (its ten papers, its fake levels) is chosen here, once, and
named on every page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any, Literal, Self, get_args

from inquitree_gym.inquiry.probe import ProbeComparison, ProbeResult, compare_with_probe
from inquitree_gym.inquiry.results import LEVEL, RESULTS, EpisodeScore
from inquitree_gym.inquiry.vigilance import ALL as ALL_SHOWINGS
from inquitree_gym.inquiry.vigilance import Counts
from inquitree_gym.protocols import Scalar
from inquitree_gym.results.cutoff import CutoffSplit, ModelDates, SourcedDate, find_model, load_models, split_at
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.logs import Logs
from inquitree_gym.results.summary import Player, grouped, player_of
from inquitree_gym.runner.check import make_study
from inquitree_gym.runs.specs import EpisodeSpec, ModelSettings
from inquitree_gym.runs.study import ALL, StudyConfig

Target = Literal["table2", "fig3", "fig4", "table3", "bounds"]
TARGETS: tuple[Target, ...] = get_args(Target)
"""Tables and figures of the paper that can be reproduced. ``bounds`` is its appendix B."""
PRESET = "paper"
"""Preset of the rules of every study here."""
RUNS = 3
"""Runs of each paper, as in the paper."""
TEN_PAPERS = tuple(f"paper{number}" for number in (1, 2, 3, 4, 5, 7, 8, 10, 12, 18))
"""Trees of Figure 3, our choice: the first ten by number with the evidence tier A or B."""
LEVELS = (0, 3, 6, 9)
"""Fake levels of Figure 3, our choice: no fakes and three steps up to 9 in 10."""
SHAPES: dict[str, dict[str, Any]] = {
    "table2": {"trees": (ALL,), "fake_level": (0,), "seeds": RUNS},
    "fig3": {"trees": TEN_PAPERS, "fake_level": LEVELS, "seeds": RUNS},
}
"""Settings of the studies by name, apart from the agents. ``studies/paper`` has the same as files."""
STUDIES: dict[Target, str] = {"table2": "table2", "fig3": "fig3", "fig4": "table2"}
"""Study of each target that plays episodes. Figure 4 splits the episodes of Table 2."""
PRINTED_CUTOFFS = {
    "DeepSeek-R1": "2024-07-01", "Gemini 2.5 Pro": "2025-01-01", "o3": "2024-06-01", "GPT-5": "2024-09-30",
    "Claude Sonnet 4.5": "2025-09-01",
}  # fmt: skip
"""Training cutoffs printed in the paper's Table 3, by the names of the package's list of models."""


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """Figure 3 of one player at one fake level, pooled over all showings of all its episodes."""

    player: Player
    level: int
    counts: Counts
    baseline: Counts
    """Counts of the same player at level 0. Empty if it was not played there."""

    @property
    def change(self) -> float | None:
        """Figure 3b: change of the redo frequency relative to level 0, in percent.

        None where it is undefined: without a result, at a level 0 that was not played, or where nothing was redone at
        level 0.
        """
        before, now = self.baseline.redo_rate, self.counts.redo_rate
        return None if not before or now is None else 100 * (now - before) / before


@dataclass(frozen=True, slots=True)
class Control:
    """A model's verdicts on bare statements, and its agents in the inquiry on the same results."""

    model: str
    """Label of the model."""
    alone: ProbeResult
    compared: tuple[ProbeComparison, ...]
    """In the inquiry − alone, by agent."""

    @classmethod
    def of(cls, model: ModelSettings, alone: ProbeResult, run: ScoredRun) -> Self:
        """Compare the verdicts of a model with its agents in a run."""
        asked = (model.model, model.reasoning_effort)
        own = [each for each in run.scores if (each.model, each.effort) == asked]
        return cls(model.label, alone, tuple(compare_with_probe(alone.doubts, own)))

    @property
    def fakes(self) -> int:
        """Number of fakes with a verdict."""
        return sum(bool(item.fake) for item in self.alone.doubts)

    @property
    def detected(self) -> float | None:
        """Share of the fakes called invalid, each counted once. None without a verdict."""
        return fmean(doubt for item, doubt in self.alone.doubts.items() if item.fake) if self.fakes else None


def paper_study(name: str, **settings: Any) -> StudyConfig:
    """Return a study of `SHAPES` under the rules of the paper. ``settings`` are further fields of `StudyConfig`.

    Raises:
        OptionError: a setting is invalid. See `make_study` for further errors.
    """
    return make_study(**{**SHAPES[name], "rules": PRESET, **settings})


def departures(study: StudyConfig, name: str) -> list[str]:
    """Return the differences of a study from the shape of the paper's, in words."""
    whole = paper_study(name, agents=("random",))
    levels, whole_levels = study.settings.fake_level, whole.settings.fake_level
    parts = (
        ("papers", len(study.trees), len(whole.trees), study.trees == whole.trees),
        ("fake levels", len(levels), len(whole_levels), levels == whole_levels),
        ("runs", study.seeds, whole.seeds, study.seeds == whole.seeds),
    )
    return [
        f"other {noun}" if mine == theirs else f"{noun}: {mine} in the place of {theirs}"
        for noun, mine, theirs, same in parts
        if not same
    ]


def level_figures(scores: Sequence[EpisodeScore]) -> list[LevelFigures]:
    """Return Figure 3 of every player, levels in order."""
    found = []
    for player, group in grouped(scores, player_of).items():
        levels = grouped(group, lambda score: int(score.cell[LEVEL] or 0))
        pooled = {
            level: sum((score.detail.trajectory.showings[ALL_SHOWINGS] for score in levels[level]), Counts())
            for level in sorted(levels)
        }
        found += [LevelFigures(player, level, each, pooled.get(0, Counts())) for level, each in pooled.items()]
    return found


def part_of_logs(logs: Logs, study: StudyConfig) -> Logs:
    """Return the logs on the trees, at the fake levels and with the seeds of ``study``.

    They are those of every agent that was to play all of them, in this study or an earlier one.
    """
    wanted = set(product(study.trees, study.settings.fake_level, range(study.seeds)))
    players = grouped(logs.entries, lambda each: each.spec.player)
    entries = [
        each
        for group in players.values()
        if wanted <= {_place(entry.spec) for entry in group}
        for each in group
        if _place(each.spec) in wanted
    ]
    return replace(logs, entries=entries)


def _place(spec: EpisodeSpec) -> tuple[str, Scalar, int]:
    return spec.task, dict(spec.cell)["fake_level"], spec.seed


def printed_models() -> tuple[ModelDates, ...]:
    """Return the models of the paper's Table 3 with the cutoffs printed there."""
    known = {model.name: model for model in load_models()}
    return tuple(
        known[name].model_copy(update={"cutoff": SourcedDate(date=day, source="Table 3"), "latest": None})
        for name, day in PRINTED_CUTOFFS.items()
    )


def splits(scores: Sequence[EpisodeScore], models: Sequence[ModelDates]) -> list[CutoffSplit]:
    """Split each player at the cutoff of its model. A player without a model is a control at every cutoff.

    A player whose model is not among ``models`` is left out.
    """
    return list(_splits(grouped(scores, player_of), models))


def _splits(players: Mapping[Player, Sequence[EpisodeScore]], models: Sequence[ModelDates]) -> Iterator[CutoffSplit]:
    for player, group in players.items():
        model = group[0].model
        if model is None:
            yield from (split_at(player, group, dates, RESULTS.split) for dates in models)
        elif (dates := find_model(models, model)) is not None:
            yield split_at(player, group, dates, RESULTS.split)
