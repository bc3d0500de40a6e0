"""Projections paid by a chat model on loopback: logged, resumed and batched, and nothing is paid for twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.log import read_episode
from inquitree_gym.projection.judges.llm import LLMProjectionJudge
from inquitree_gym.rollout import play
from tests.projection.judges.test_llm import SIZE, TASK, TEXT, Model, judge_of
from tests.servers import Service

pytestmark = pytest.mark.e2e
STEPWISE = 2 + 2 * (2 + SIZE)
"""Requests per projection."""


@pytest.fixture
def judge(service: Service, tmp_path: Path) -> LLMProjectionJudge:
    service.reply = Model()
    return judge_of(service, tmp_path / "cache")


def test_the_judge_pays_and_every_reply_is_logged_at_the_turn_that_it_is_about(service, judge, tmp_path):
    episode = play(ProjectionEnv(TASK, judge=judge), ReplayAgent((TEXT, "", TEXT)), 3, file=tmp_path / "a.jsonl")
    assert read_episode(tmp_path / "a.jsonl") == episode
    assert [turn.event.judged.f1 for turn in episode.turns] == [pytest.approx(1 / 3), 0, pytest.approx(1 / 3)]
    assert episode.footer.episode_return == pytest.approx(1 / 6)
    replies = [(reply.turn, reply.cached) for reply in episode.replies if reply.role == "judge"]
    assert replies == [(1, False)] * STEPWISE + [(3, True)] * STEPWISE
    assert len(service.requests) == STEPWISE, "the same projection is not asked about again"
    assert episode.header.setup.judge == episode.judge == {"name": "llm:gpt-4o-mini", **judge.config}
