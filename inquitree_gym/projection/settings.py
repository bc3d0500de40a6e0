"""Rules of projections, and the settings of a study of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field

from inquitree_gym.errors import OptionError
from inquitree_gym.kind_settings import AgentSettings, KindSettings, OptionTable, as_tuple
from inquitree_gym.ruleset import RuleSet
from inquitree_gym.trees.disclosure import LEVELS, Level

Form = Literal["sentence", "claims"]
Reward = Literal["sheet", "judge", "none"]
"""Source of the reward: sheets, judged projections, or none, as in the paper. Only the first shows sheets."""
Variant = Literal["paper", "strict"]
"""Score as printed in the paper, or strict: from paired claims alone, P = TP over all projected claims, R = TP/M."""
Area = Literal["trapezoid", "mean"]
"""Aggregate of the F1 of the levels: the area of the trapezoid with unit steps, in [0, 2] for three, or their mean."""

_CHOICES = {"form": Form, "reward": Reward}
"""Rules with a fixed set of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionRules(RuleSet):
    """Rules of a projection environment. The defaults are our reading of ProjectionBench (arXiv:2605.30284)."""

    levels: Sequence[Level] = LEVELS
    """Levels in the order in which they are disclosed, each at most once. One projection per level."""
    form: Form = "sentence"
    """Form of a projection: ``"sentence"`` for all claims in one sentence, ``"claims"`` for one claim per line."""
    reward: Reward = "sheet"
    """``"sheet"`` shows a sheet after each projection and pays its score, ``"judge"`` pays F1, ``"none"`` nothing."""

    def __post_init__(self) -> None:
        """Validate every rule.

        Raises:
            OptionError: a rule is out of range.
        """
        levels = tuple(self.levels) if isinstance(self.levels, list | tuple) else ()
        unknown = [level for level in levels if level not in LEVELS]
        if not levels or unknown or len(set(levels)) < len(levels):
            raise OptionError(
                f"levels must be one or more of {', '.join(LEVELS)}, each at most once, got {self.levels!r}"
            )
        object.__setattr__(self, "levels", levels)  # a specification in JSON holds a list
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in get_args(kind):
                raise OptionError(f"{name} must be one of {get_args(kind)}, got {getattr(self, name)!r}")

    @property
    def turns(self) -> int:
        """Turns of an episode: a projection at each level, and a sheet after each if sheets pay."""
        return len(self.levels) * (1 + (self.reward == "sheet"))

    def as_dict(self) -> dict[str, Any]:
        """Return the rules by name as plain values, for logs and for the constructor."""
        return {"levels": list(self.levels), "form": self.form, "reward": self.reward}


class ProjectionAgentSettings(AgentSettings):
    """Settings of the agents that project with a model. See `ProjectingLLMAgent`."""

    memory: Literal["none", "conversation"] = Field(
        default="none", description="Memory of models between levels: none, or one conversation."
    )
    reply: Literal["plain", "thought"] = Field(
        default="plain", description="Replies of models: plain, or thought for THOUGHT and ACTION."
    )


class ProjectionFormulas(OptionTable):
    """Choices of formulas for the scores of projections."""

    variant: Variant = Field(default="paper", description="Formula of F1: paper, or strict, from paired claims alone.")
    auc: Area = Field(
        default="trapezoid", description="Aggregate of F1 over the levels: trapezoid, their area, or their mean."
    )


class ProjectionReportOptions(OptionTable):
    """Further options of a report on projections."""

    example: str | None = Field(
        default=None, description="Paper whose projections are shown in full; the first one by default."
    )


class ProjectionSettings(KindSettings):
    """Settings of a study of projections, all of them rules. See `KindSettings` for the methods."""

    agent: ClassVar[type[AgentSettings]] = ProjectionAgentSettings
    formulas: ClassVar[type[OptionTable]] = ProjectionFormulas
    report: ClassVar[type[OptionTable]] = ProjectionReportOptions

    levels: Annotated[tuple[Level, ...], BeforeValidator(as_tuple)] = Field(
        default=LEVELS,
        min_length=1,
        description="Levels in the order in which they are disclosed, one projection for each.",
    )
    form: Form = Field(
        default="sentence", description="Form of a projection: all claims in one sentence, or one claim per line."
    )
    reward: Reward | None = Field(
        default=None,
        description="What pays: sheet, judge, or none, as in the paper; judge where the study has one by default.",
    )

    def all_rules(self) -> dict[str, Any]:
        """Return the rules."""
        return {"levels": list(self.levels), "form": self.form, "reward": self.reward or "sheet"}


SETTINGS = ProjectionSettings
