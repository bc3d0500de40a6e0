"""Environments of a run: one for each episode, which share judge, embedder, templates and vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.projection.env import ProjectionEnv
from inquitree_gym.envs.projection.judging import LocalProjections
from inquitree_gym.envs.projection.runtime import ProjectionRuntimes
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.judges.registry import LOCAL as LOCAL_JUDGE
from inquitree_gym.log import TaskKind
from inquitree_gym.prompts import Prompts
from inquitree_gym.readers import LOCAL
from inquitree_gym.runner.environment_kinds import PROJECTIONS
from inquitree_gym.runner.judging import (
    JudgeSettings,
    ProjectionJudgeSettings,
    build_judge,
    build_projection_judge,
)
from inquitree_gym.runner.models import RunOptions, StopConditions, build_reader
from inquitree_gym.runner.rules import expanded
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig
from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import ProjectionTask


class EnvironmentMaker(Protocol):
    """Makes the environments of a run."""

    def make(self, task: Any) -> InquiryEnv | ProjectionEnv:
        """Return a new environment for one episode on a task."""

    def options(self, spec: EpisodeSpec, task: Any) -> dict[str, Any]:
        """Return the `reset` options of an episode."""


class _Inquiries:
    def __init__(self, study: StudyConfig, options: RunOptions, stop: StopConditions) -> None:
        self._study = study
        self._reader = build_reader(study.reader, options, stop) or LOCAL
        assert not isinstance(study.judge, ProjectionJudgeSettings)
        self._judge = build_judge(study.judge, options, stop) or LOCAL_JUDGE
        self._embedder = load_embedder(study.embedder, device=options.device)  # its weights are loaded on first use
        self._prompts = Prompts(study.prompts_name)
        self._runtimes = RuntimeCache(self._embedder, self._prompts)
        self._rules: dict[str, Any] = expanded(study.rules) | {"threshold": study.threshold}

    def make(self, task: Tree) -> InquiryEnv:
        env = InquiryEnv(task, embedder=self._embedder, reader=self._reader, judge=self._judge, **self._rules)
        env.prompts, env.runtimes = self._prompts, self._runtimes
        return env

    def options(self, spec: EpisodeSpec, task: Tree) -> dict[str, Any]:
        return self._study.options(spec, task)


class _Projections:
    def __init__(self, study: StudyConfig, options: RunOptions, stop: StopConditions) -> None:
        assert not isinstance(study.judge, JudgeSettings)
        self._rules: dict[str, Any] = PROJECTIONS.all_rules(study.rules)
        self._judge = build_projection_judge(study.judge, options, stop) or LOCAL_JUDGE
        self._prompts = Prompts(study.prompts_name, PROJECTIONS.templates)
        self._runtimes = ProjectionRuntimes(LocalProjections.load(None), self._prompts)

    def make(self, task: ProjectionTask) -> ProjectionEnv:
        env = ProjectionEnv(task, judge=self._judge, **self._rules)
        env.prompts, env.runtimes = self._prompts, self._runtimes
        return env

    def options(self, spec: EpisodeSpec, task: ProjectionTask) -> dict[str, Any]:
        return {}


_MAKERS: dict[TaskKind, Callable[[StudyConfig, RunOptions, StopConditions], EnvironmentMaker]] = {
    "inquiry": _Inquiries,
    "projection": _Projections,
}


def environment_maker(study: StudyConfig, options: RunOptions, stop: StopConditions) -> EnvironmentMaker:
    """Return the maker of the environments of a study.

    Raises:
        OptionError: a setting is out of range, a template is invalid, or the cost of a model is capped and its price
            unknown.
        EmbedderError: the embedder is unknown.
        MissingExtraError: a model is asked, and litellm is not installed.
    """
    return _MAKERS[study.env](study, options, stop)
