"""Models that judge the rewards of a study: their settings, and the judges that ask them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from inquitree_gym.errors import OptionError
from inquitree_gym.judges import LLMJudge
from inquitree_gym.judges.llm import LLM_PREFIX, PAPER_PREFIX
from inquitree_gym.judges.projections.llm import LLMProjectionJudge, LLMProjectionSettings, Pairing, Requests
from inquitree_gym.judges.projections.requests import Scale
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.log import TaskKind
from inquitree_gym.runner.models import ModelSettings, RunOptions, StopConditions, study_chat
from inquitree_gym.runner.models import reply_cache as cache_of


class JudgeSettings(ModelSettings):
    """Settings of a model that judges the conclusions of a study for the reward; see `LLMJudge`."""

    repeats: int = Field(default=1, ge=1)
    orders: int = Field(default=2, ge=1, le=2)
    variants: bool = True

    @classmethod
    def named(cls, name: str) -> dict[str, Any]:
        """Return the settings of a judge's name.

        Raises:
            OptionError: the name is not that of a judge that asks a model.
        """
        if name.startswith(PAPER_PREFIX) and name != PAPER_PREFIX:
            return {"model": name.removeprefix(PAPER_PREFIX), "orders": 1, "variants": False}
        if name.startswith(LLM_PREFIX) and name != LLM_PREFIX:
            return {"model": name.removeprefix(LLM_PREFIX)}
        raise OptionError(
            f"the judge of a study is 'local', '{LLM_PREFIX}MODEL' or '{PAPER_PREFIX}MODEL', not '{name:.80}'; "
            "for any other judge, run inquitree judge after the study"
        )

    @property
    def judge_name(self) -> str:
        """Name of the judge."""
        return f"{PAPER_PREFIX if self.orders == 1 and not self.variants else LLM_PREFIX}{self.model}"

    @property
    def judged(self) -> str:
        """Requests of the judge, in words."""
        number = self.orders * self.repeats
        return f"the conclusions, {number} request{'s' * (number != 1)} each"


class ProjectionJudgeSettings(ModelSettings):
    """Settings of a model that aligns the claims of a study of projections for the reward; see `LLMProjectionJudge`."""

    alignment: Requests = "pairs"
    pairing: Pairing = "analogous"
    ratings: Scale = "steps"
    undirected: Literal[-1, 0, 1] = 0
    repeat: int = Field(default=0, ge=0)

    @classmethod
    def named(cls, name: str) -> dict[str, Any]:
        """Return the settings of a judge's name; see `JudgeSettings.named`."""
        if name.startswith(LLM_PREFIX) and name != LLM_PREFIX:
            return {"model": name.removeprefix(LLM_PREFIX)}
        raise OptionError(
            f"the judge of a study of projections is 'local' or '{LLM_PREFIX}MODEL', not '{name:.80}'; "
            "for any other judge, run inquitree judge after the study"
        )

    @property
    def judge_name(self) -> str:
        """Name of the judge."""
        return f"{LLM_PREFIX}{self.model}"

    @property
    def judged(self) -> str:
        """Requests of the judge, in words."""
        each = "2 for every pair of claims" if self.alignment == "pairs" else "2 for all pairs of claims"
        return f"the projections, 2 requests each and {each}"

    @property
    def llm(self) -> LLMProjectionSettings:
        """The settings of the judge, apart from the model."""
        return LLMProjectionSettings(
            **{name: getattr(self, name) for name in LLMProjectionSettings.__dataclass_fields__}
        )


class _ProjectionTable(dict[str, Any]):
    """A table of `ProjectionJudgeSettings` that has not been validated yet."""


def named_judge_settings(given: Any, kind: TaskKind) -> Any:
    """Return the settings of a judge's name, or a table of them as it is; TOML has no null.

    Raises:
        OptionError: the name is not that of a judge that asks a model.
    """
    if given in (None, LOCAL):
        return None
    if kind == "inquiry":
        return JudgeSettings.named(given) if isinstance(given, str) else given
    table = ProjectionJudgeSettings.named(given) if isinstance(given, str) else given
    return _ProjectionTable(table) if isinstance(table, dict) else table


def _tag(given: Any) -> str:
    """Return the kind of a table or of settings; a tag is not an identifier, so that messages leave it out."""
    return "of projections" if isinstance(given, _ProjectionTable | ProjectionJudgeSettings) else "of conclusions"


RewardJudgeSettings = Annotated[
    Annotated[JudgeSettings, Tag("of conclusions")] | Annotated[ProjectionJudgeSettings, Tag("of projections")],
    Discriminator(_tag),
]


def build_judge(settings: JudgeSettings | None, options: RunOptions, stop: StopConditions) -> LLMJudge | None:
    """Return the judge that sets the rewards of a study of inquiries, if it asks a model; see `build_reader`."""
    if settings is None:
        return None
    return LLMJudge(
        study_chat(settings, options, stop),
        repeats=settings.repeats,
        orders=settings.orders,
        variants=settings.variants,
        cache=cache_of(options),
    )


def build_projection_judge(
    settings: ProjectionJudgeSettings | None, options: RunOptions, stop: StopConditions
) -> LLMProjectionJudge | None:
    """Return the judge that sets the rewards of a study of projections, if it asks a model; see `build_reader`."""
    if settings is None:
        return None
    return LLMProjectionJudge(study_chat(settings, options, stop), settings=settings.llm, cache=cache_of(options))
