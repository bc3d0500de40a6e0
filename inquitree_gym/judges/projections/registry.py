"""Judges of projections about any task, by name: ``local``, ``nli:MODEL``, ``llm:MODEL``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.judges.nli import CrossEncoderInference
from inquitree_gym.judges.projections.judgement import AsyncProjectionJudge, InProcessProjectionJudge
from inquitree_gym.judges.projections.llm import LLMProjectionJudge, LLMProjectionSettings
from inquitree_gym.judges.projections.local import (
    PROJECTION_SETTINGS,
    LocalProjectionSettings,
    local_projection_config,
    local_projection_judge,
)
from inquitree_gym.judges.projections.nli import VERSION as NLI_VERSION
from inquitree_gym.judges.projections.nli import NLIProjectionJudge
from inquitree_gym.judges.registry import LOCAL, ChatOptions, check_members, check_name
from inquitree_gym.judges.sense import JUDGE_EMBEDDER

PROJECTION_KINDS = ("local", "nli:MODEL", "llm:MODEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionJudgeOptions(ChatOptions):
    """Options of the judges of projections."""

    llm: LLMProjectionSettings = field(default_factory=LLMProjectionSettings)
    """Settings of judges that ask a chat model."""
    local: LocalProjectionSettings = PROJECTION_SETTINGS
    """Settings of the local judge."""


def load_projection_judge(
    judge: str | AsyncProjectionJudge, options: ProjectionJudgeOptions | None = None
) -> AsyncProjectionJudge:
    """Return the judge of projections with a name, or a given judge as it is.

    Raises:
        OptionError: the name is unknown, the object lacks members of `AsyncProjectionJudge`, or the cost is capped for
            a model of unknown price.
    """
    if isinstance(judge, str):
        return _make(judge, options or ProjectionJudgeOptions())
    expected = f"a name ({', '.join(PROJECTION_KINDS)}) or has the members of AsyncProjectionJudge"
    check_members(judge, ("name", "config", "align"), expected)
    return judge


def make_projection_judges(
    names: Sequence[str], options: ProjectionJudgeOptions | None = None
) -> list[AsyncProjectionJudge]:
    """Return the judges of projections with these names, without duplicates; see `load_projection_judge`."""
    return [load_projection_judge(name, options) for name in dict.fromkeys(names)]


def _make(name: str, options: ProjectionJudgeOptions) -> AsyncProjectionJudge:
    check_name(name, PROJECTION_KINDS)
    kind, _, model = name.partition(":")
    if name == LOCAL:
        return _local(options.local)
    if kind == "nli":
        return _nli(model)
    return LLMProjectionJudge(
        options.chat(model), settings=options.llm, cache=options.reply_cache, budget=options.budget
    )


def _local(settings: LocalProjectionSettings) -> InProcessProjectionJudge:
    def config() -> dict[str, Any]:
        return local_projection_config(load_embedder(JUDGE_EMBEDDER), settings)

    return InProcessProjectionJudge(LOCAL, config, partial(local_projection_judge, settings=settings))


def _nli(model: str) -> InProcessProjectionJudge:
    inference = CrossEncoderInference(model)
    config = partial(inference.config, NLI_VERSION)
    return InProcessProjectionJudge(f"nli:{model}", config, cache(lambda task: NLIProjectionJudge(task, inference)))
