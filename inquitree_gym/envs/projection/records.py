"""Records of the episodes of `ProjectionEnv`."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from inquitree_gym.envs.projection.rules import ProjectionRules
from inquitree_gym.envs.projection.runtime import ProjectionTransition, projection_info
from inquitree_gym.envs.recorded import RecordedStep, ServiceReply
from inquitree_gym.judges.asking import JUDGE_ROLE
from inquitree_gym.judges.projections.records import alignment_record, recorded_alignment
from inquitree_gym.log import Header, ProjectionRecord, TaskRef, Turn

if TYPE_CHECKING:
    from inquitree_gym.envs.projection.env import ProjectionEnv


class ProjectionRecords:
    """Records of the episode of one projection environment; see `EpisodeRecords` for the methods."""

    def __init__(self, env: ProjectionEnv) -> None:
        """Describe the episodes of ``env``."""
        self._env = env

    @property
    def agent_seed(self) -> int:
        """See `ProjectionEnv.agent_seed`."""
        return self._env.agent_seed

    def header(self, *, agent: Mapping[str, Any], versions: Mapping[str, str | None], started: str) -> Header:
        """Name the task, the rules and the judge; no embedder reads the actions."""
        env, task = self._env, self._env.task
        return Header(
            versions=dict(versions),
            task=TaskRef(kind="projection", id=task.id, version=task.version, digest=task.digest),
            rules=env.episode_rules.as_dict(),
            seed=env.state.seed,
            embedder=None,
            judge=json.loads(json.dumps(dict(self.judge()))),
            prompts=env.prompts.digest,
            agent=dict(agent),
            started=started,
        )

    def observation(self) -> str:
        """Render the text after the last turn."""
        return self._env.runtime.observations.render(self._env.state.turn)

    def last_step(self) -> RecordedStep:
        """Record the claims of the last projection with their ratings."""
        last = self._last
        assert last.level is not None
        assert last.assessment is not None
        aligned = alignment_record(last.assessment.alignment, last.assessment.f1)
        state = projection_info(self._env.episode_rules, last.state.turn)["state"]
        return RecordedStep(last.action, ProjectionRecord(level=last.level, state=state, **dict(aligned)))

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the judge's replies about the last projection."""
        judging = self._env.judging
        for each in () if judging is None or judging.judgement is None else judging.judgement.replies:
            yield ServiceReply(JUDGE_ROLE, each.reply, each.fault)

    def judge(self) -> Mapping[str, Any]:
        """Return name, version and settings of the judge."""
        env = self._env
        return env.runtimes.judge_config if env.judging is None else env.judging.config

    def recall(self, turn: Turn) -> None:
        """Take the judge's alignment from a logged turn."""
        if self._env.judging is not None:
            self._env.judging.recall(recorded_alignment(turn.projection))

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """See `ProjectionEnv.ask_ahead`."""
        return self._env.ask_ahead(action)

    def former_options(self, header: Header) -> dict[str, Any]:
        """Return an empty dict: every log of projections names all rules."""
        return {}

    def in_current_form(self, header: Header) -> Header:
        """Name every rule."""
        return header.model_copy(update={"rules": ProjectionRules().override(header.rules).as_dict()})

    @property
    def _last(self) -> ProjectionTransition:
        assert self._env.last_transition is not None
        return self._env.last_transition
