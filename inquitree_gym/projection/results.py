"""Results of projections: scores of sheets and F1 by level, their aggregates, and the comparison by memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.judges.alignment import Alignment, area_under_levels, level_weights
from inquitree_gym.projection.settings import Area, Variant
from inquitree_gym.projection.sheets import beliefs, brier, brier_skill, sheet_score
from inquitree_gym.results.score import Anchors, KindResults, Measure, Score, disambiguate_agents
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

if TYPE_CHECKING:
    from inquitree_gym.judging.judgement import Judged
    from inquitree_gym.log import Episode, Header
    from inquitree_gym.projection.events import ProjectionEvent
    from inquitree_gym.results.comparison import PairedDifference

VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, slots=True)
class LevelScore:
    """Score of the projection at one level."""

    level: str
    text: str
    """The projection."""
    alignment: Alignment | None = field(compare=False)
    """Claims and ratings. None where the judge found no claims."""
    f1: Mapping[Variant, float | None]
    """F1 in [0, 1] by variant. None for an unscored projection."""

    @property
    def unscored(self) -> bool:
        """True for a projection that the judge could not score."""
        return self.f1["paper"] is None


@dataclass(frozen=True, slots=True)
class SheetScore:
    """The sheet of one level."""

    level: str
    sheet: Sheet
    score: float
    """Mean over claims, in [-1, 1]. See `sheet_score`."""
    brier: float | None
    """Brier score of the probabilities given to the answers, in [0, 1]. None without any."""
    skill: float | None
    """Brier skill of these probabilities, at most 1. See `brier_skill`."""
    beliefs: tuple[float | None, ...]
    """Belief in each true claim. See `sheets.beliefs`."""

    @property
    def belief(self) -> float | None:
        """Mean belief in the claims that were answered. None for none."""
        known = [each for each in self.beliefs if each is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class ProjectionDetail:
    """Part of a score that only projections have."""

    levels: tuple[LevelScore, ...]
    """Scores of the judged projections, in the order of the episode. Those after a sheet are left out."""
    sheets: tuple[SheetScore, ...]
    """The sheets, in the order of the episode. Empty where none was shown."""

    @property
    def unscored(self) -> int:
        """Number of judged projections that have no score."""
        return sum(level.unscored for level in self.levels)

    @property
    def sheet_return(self) -> float | None:
        """Aggregate of the scores of the sheets, in [-1, 1]. None without sheets."""
        if not self.sheets:
            return None
        weights: list[float] = level_weights(len(self.sheets)).tolist()
        return sum(weight * each.score for weight, each in zip(weights, self.sheets, strict=True))

    def f1_at(self, level: str, variant: Variant = "paper") -> float | None:
        """Return the F1 at a level. None without that level, or for an unscored projection."""
        return next((each.f1[variant] for each in self.levels if each.level == level), None)

    def area(self, variant: Variant = "paper", auc: Area = "trapezoid") -> float | None:
        """Return the area under the F1 of the levels. None with an unscored projection, or where sheets were shown."""
        known = [value for level in self.levels if (value := level.f1[variant]) is not None]
        if self.sheets or not known or len(known) < len(self.levels):
            return None
        return float(area_under_levels(np.array(known), auc))

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        levels = [
            {"level": each.level, "projection": each.text, **{f"f1 ({name})": value for name, value in each.f1.items()}}
            for each in self.levels
        ]
        sheets = [
            {"level": each.level, "choices": list(each.sheet.choices), "score": each.score, "brier": each.brier,
             "skill": each.skill, "beliefs": list(each.beliefs)}
            for each in self.sheets
        ]  # fmt: skip
        return {"levels": levels, "auc": self.area(), "sheets": sheets}


ProjectionScores = Score[ProjectionDetail]
"""Score of an episode of projections."""


def level_score(level: str, text: str, alignment: Alignment | None) -> LevelScore:
    """Return the score of one projection. A missing alignment or rating leaves it unscored."""
    if alignment is None or not alignment.complete:
        return LevelScore(level, text, alignment, dict.fromkeys(VARIANTS))
    return LevelScore(level, text, alignment, {name: float(alignment.score(name).f1) for name in VARIANTS})


RETURN = "return"
COIN_F1 = 0.5
"""Expected F1 of a coin that knows the variables and guesses directions, for any number of claims."""
CEILING = "oracle"
AUC = "AUC"
LEGEND = (
    "n: episodes (papers). Means are over papers; [low, high] is the 95 % t interval, given from five papers on.\n"
    "all, mean of domains: each domain has equal weight, as in the paper; all, pooled: each paper has equal weight.\n"
    "return: weighted mean of the scores of the sheets, from -1 to 1; random letters are worth 0.\n"
    "sheet, LEVEL: mean over claims of 1, -1/(k - 1) or 0. sheet brier: of the probabilities given to answers;\n"
    "sheet skill: 1 - brier / brier of chance, 1/k.\n"
    "sheet belief, LEVEL: mean probability given to the true claims; a letter without a probability counts as 1.\n"
    "F1, AUC: by a judge of the written projections (--judge), from 0 to 1 and, with --auc trapezoid, from 0 to 2.\n"
    "Projections after a sheet are not judged: play with reward=none for the paper's figures.\n"
    "unscored: projections that the judge could not score; the means leave them out. A coin that knows the variables\n"
    "has an expected F1 of 0.5."
)


def sheet_at(level: str) -> str:
    """Return the heading of the score of the sheet at a level."""
    return f"sheet, {level}"


def brier_at(level: str) -> str:
    """Return the heading of the Brier score of the sheet at a level."""
    return f"sheet_brier, {level}"


def skill_at(level: str) -> str:
    """Return the heading of the Brier skill of the sheet at a level."""
    return f"sheet_skill, {level}"


def belief_at(level: str) -> str:
    """Return the heading of the mean belief in the true claims on the sheet at a level."""
    return f"sheet_belief, {level}"


def f1_at(level: str) -> str:
    """Return the heading of F1 at a level."""
    return f"F1, {level}"


def normalised_at(level: str) -> str:
    """Return the heading of F1 at a level between a coin's `COIN_F1` (0) and the oracle (1) of the same paper.

    The 0 of the scale is the coin's expected F1, so that the scale does not depend on single tosses.
    """
    return f"normalised F1, {level}"


class ProjectionResults(KindResults[ProjectionTask, ProjectionDetail]):
    """Results of projections. See `KindResults` for the methods."""

    shown = (RETURN, *map(sheet_at, LEVELS), AUC)
    tables: Mapping[str, tuple[str, ...]] = {
        "Sheets": (RETURN, *map(sheet_at, LEVELS)),
        "Probabilities of answers": (*map(brier_at, LEVELS), *map(skill_at, LEVELS)),
        "Projections, by a judge": (*map(f1_at, LEVELS), AUC),
    }
    compared = (RETURN, *map(sheet_at, LEVELS), *map(f1_at, LEVELS), AUC)
    groups = "domain"
    clusters = "papers"
    legend = LEGEND

    def __init__(self, variant: Variant = "paper", auc: Area = "trapezoid") -> None:
        """Use a formula of F1 and one of its aggregate over the levels, by default the paper's."""
        self.variant: Variant = variant
        self.auc: Area = auc
        words = ["strict F1"] if variant == "strict" else []
        if auc == "mean":
            words.append("AUC as the mean of the levels")
        self.formulas = ", ".join(words)
        self.headings = {AUC: f"{AUC} ({'0–1' if auc == 'mean' else '0–2'})"}
        by_level = (
            Measure(f1_at(level), self._f1(level), f"F1 of the projection from the {level}", judged=True,
                    anchors=Anchors(normalised_at(level), COIN_F1, CEILING))
            for level in LEVELS
        )  # fmt: skip
        self.measures = (
            Measure(RETURN, lambda detail: detail.sheet_return, "return of the sheets, in [-1, 1]"),
            *(Measure(sheet_at(level), _sheet_of(level, "score"), f"score at {level}") for level in LEVELS),
            *(Measure(brier_at(level), _sheet_of(level, "brier"), f"Brier score at {level}") for level in LEVELS),
            *(Measure(skill_at(level), _sheet_of(level, "skill"), f"Brier skill at {level}") for level in LEVELS),
            *(Measure(belief_at(level), _sheet_of(level, "belief"), f"mean belief at {level}") for level in LEVELS),
            *by_level,
            Measure(AUC, self._area, "aggregate of F1 over the levels", judged=True),
        )

    def with_formulas(self, formulas: Mapping[str, str]) -> Self:
        """Return the results with another ``variant`` of F1 or aggregate ``auc``. Raise `OptionError` for others."""
        choices: dict[str, tuple[str, ...]] = {"variant": get_args(Variant), "auc": get_args(Area)}
        for name, value in formulas.items():
            if value not in choices.get(name, ()):
                known = " or ".join(choices.get(name, choices))
                raise OptionError(f"{name} must be {known}, got '{value}'. Choose one of them.")
        chosen = {"variant": self.variant, "auc": self.auc, **formulas}
        return type(self)(cast(Variant, chosen["variant"]), cast(Area, chosen["auc"]))

    def detail(self, episode: Episode[ProjectionEvent], task: ProjectionTask, judged: Judged) -> ProjectionDetail:
        """Return the score of each judged projection and of each sheet. See `LevelScore`."""
        levels: list[LevelScore] = []
        sheets: dict[str, SheetScore] = {}  # the last sheet of a level, which may be asked for twice
        for turn in episode.turns:
            event = turn.event
            if event.kind == "projection" and turn.turn in judged.payloads:
                levels.append(level_score(event.level, turn.action, judged.payloads[turn.turn]))
            elif event.sheet is not None:
                sheet = event.sheet.sheet
                sheets[event.level] = SheetScore(
                    event.level, sheet, sheet_score(task.claims, sheet), brier(sheet), brier_skill(task.claims, sheet),
                    beliefs(task.claims, sheet),
                )  # fmt: skip
        return ProjectionDetail(tuple(levels), tuple(sheets.values()))

    def rules(self, header: Header) -> str:
        """Return the form of the projections, what pays, and the levels in order if they are not the paper's."""
        levels = tuple(header.rules["levels"])
        told = [str(header.rules["form"]), f"reward {header.rules['reward']}"]
        return ", ".join(told if levels == LEVELS else [*told, " → ".join(levels)])

    def unscored(self, detail: ProjectionDetail) -> int:
        """Return the number of unscored projections."""
        return detail.unscored

    def plain(self, detail: ProjectionDetail) -> dict[str, Any]:
        """See `ProjectionDetail.as_plain`."""
        return detail.as_plain()

    def _f1(self, level: str) -> Callable[[ProjectionDetail], float | None]:
        return lambda detail: detail.f1_at(level, self.variant)

    def _area(self, detail: ProjectionDetail) -> float | None:
        return detail.area(self.variant, self.auc)


def _sheet_of(
    level: str, name: Literal["score", "brier", "skill", "belief"]
) -> Callable[[ProjectionDetail], float | None]:
    return lambda detail: next((getattr(each, name) for each in detail.sheets if each.level == level), None)


def levels_of(scores: Sequence[ProjectionScores]) -> list[str]:
    """Return the levels of all episodes, in order of first appearance."""
    details = [score.detail for score in scores]
    played = [each.level for detail in details for each in (detail.sheets or detail.levels)]
    return list(dict.fromkeys(played))


def anchoring(
    scores: Sequence[ProjectionScores], results: KindResults[Any, Any] | None = None
) -> list[PairedDifference]:
    """Return the paired differences of agents with ``memory="conversation"`` and the same agents without memory."""
    from inquitree_gym.results.comparison import difference
    from inquitree_gym.results.summary import grouped

    measures = (RESULTS if results is None else results).measures
    found = []
    for group in grouped(disambiguate_agents(scores), _but_memory).values():
        by_memory = grouped(group, lambda score: score.config.get("memory"))
        if {"none", "conversation"} <= by_memory.keys():
            before, after = by_memory["none"], by_memory["conversation"]
            found.append(difference(before, after, f"{after[0].agent} − {before[0].agent}", measures))
    return [each for each in found if each.pairs]


def _but_memory(score: ProjectionScores) -> tuple[str, str, str]:
    """Return the settings of a player other than its memory."""
    others = sorted((name, str(value)) for name, value in score.config.items() if name not in ("memory", "label"))
    return score.rules, score.judged_by, str(others)


RESULTS = ProjectionResults()
