"""Logged and replayed projections, with the local judge and with one that is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import JudgeError, ServiceError
from inquitree_gym.judging.judgement import Judgement, JudgeReply
from inquitree_gym.llm import Completion, Usage
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.projection.judges.alignment import Alignment
from inquitree_gym.projection.judging import recorded_alignment
from inquitree_gym.rollout import play
from inquitree_gym.trees import ProjectionTask
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.tasks import WORDS, WordJudge
from tests.projection.test_projection import HALF, RIGHT, RULES, WRONG
from tests.tasks import make_task

TASK = make_task()
ACTIONS = (RIGHT, HALF, WRONG)
REPLY = Completion(text="1", finish_reason="stop", tokens={"prompt": 3}, cost=0.25, seconds=0.1, retries=0)


class Service:
    """Judge that answers as `WordJudge` does, unless another answer or an error is planned."""

    name, config = "own:words", {"version": 7}

    def __init__(self, *planned: Judgement | ServiceError) -> None:
        self.planned = list(planned)
        self.asked: list[str] = []

    async def judge(self, task: ProjectionTask, projection: str) -> Judgement:
        self.asked.append(projection)
        answer = self.planned.pop(0) if self.planned else None
        if isinstance(answer, ServiceError):
            raise answer
        aligned = WordJudge(task).judge(projection)
        return answer or Judgement(aligned, Usage(replies=1), replies=(JudgeReply(REPLY),))


def unread(extras: bool = False) -> Alignment:
    """An alignment in which one rating is missing."""
    whole = WordJudge(TASK).judge(HALF)
    pairs, extra = whole.pair_ratings.copy(), whole.extra_ratings.copy()
    (extra[0] if extras else pairs)[0, 1] = np.nan
    return Alignment(whole.analogous, whole.extraneous, pairs, extra)


def played(judge: Any = "local", file: Path | None = None, actions: Any = ACTIONS, **rules: Any) -> Episode:
    return play(ProjectionEnv(TASK, judge=judge, **rules), ReplayAgent(actions), 5, file=file)


def test_an_episode_is_logged_with_task_rules_judge_claims_and_ratings(tmp_path):
    episode = played(WORDS, tmp_path / "a.jsonl", **RULES)
    assert read_episode(tmp_path / "a.jsonl") == episode
    header = episode.header
    assert header.task.model_dump() == {
        "kind": "projection", "id": "bread", "version": 1, "digest": TASK.digest,
    }  # fmt: skip
    assert header.rules == {**RULES, "levels": list(RULES["levels"])}
    assert header.seed == 5
    assert header.setup.judge == episode.footer.judge == {"name": "words", "version": 1, "reads": "lines"}
    first, second = (turn.event for turn in episode.turns)
    assert (first.level, first.state, first.f1) == ("procedure", "project", 1)
    assert (second.level, second.state) == ("question", "end")
    assert second.analogous == (TASK.claims[0].text, TASK.claims[1].contraries[0], None)
    assert second.pair_ratings == ((1, 1), (-1, -1), (None, None))
    assert second.extraneous == ("Ovens cool.",)
    assert recorded_alignment(second).score().f1 == pytest.approx(second.f1) == pytest.approx(0.4)
    assert [turn.reward for turn in episode.turns] == [0, pytest.approx(0.7)]


@pytest.mark.weights
def test_the_local_judge_is_named_with_version_embedder_and_settings(minilm):
    judge = played().header.setup.judge
    assert (judge["name"], judge["embedder"]) == ("local", "inquitree-judge-1")
    assert judge["version"] >= 1
    assert judge["settings"]["pair_at"] > 0
    own = play(ProjectionEnv(TASK, embedder=minilm), ReplayAgent(ACTIONS), 5).header.setup.judge
    assert (own["embedder"], own["digest"]) == (minilm.name, minilm.digest)


def test_replies_of_the_judge_are_logged_at_their_turn_and_nothing_is_asked_again(tmp_path):
    file = tmp_path / "torn.jsonl"
    whole = played(Service(), file)
    assert [(reply.turn, reply.role, reply.cost) for reply in whole.replies] == [
        (1, "judge", 0.25), (2, "judge", 0.25), (3, "judge", 0.25),
    ]  # fmt: skip
    assert [turn.tokens for turn in whole.turns] == [{"prompt": 3}] * 3
    lines = file.read_bytes().splitlines(keepends=True)
    turns = [i for i, line in enumerate(lines) if json.loads(line)["kind"] == "turn"]
    for kept in (1, 2, 3):
        file.write_bytes(b"".join(lines[: turns[kept - 1] + 1]))
        judge = Service()
        resumed = played(judge, file)
        assert resumed.fingerprint == whole.fingerprint
        assert judge.asked == list(ACTIONS[kept:])
        assert [reply.turn for reply in resumed.replies] == [1, 2, 3]


@pytest.mark.parametrize(
    "judgement",
    [
        Judgement(None, why="no claims were found"),
        Judgement(unread(), unread=1),
        Judgement(unread(extras=True), unread=1),
    ],
    ids=["no claims", "no rating of a pair", "no rating of an extra"],
)
def test_an_unread_answer_earns_nothing_and_is_logged_as_unscored(judgement, tmp_path):
    file = tmp_path / "a.jsonl"
    episode = played(Service(judgement), file)
    assert [turn.event.f1 for turn in episode.turns] == [None, pytest.approx(0.4), 0]
    assert episode.turns[0].reward == 0
    again = recorded_alignment(read_episode(file).turns[0].event)
    assert (again is None) == (judgement.payload is None)
    env = ProjectionEnv(TASK, judge=Service(judgement), privileged=True)
    env.reset(seed=1)
    privileged = env.step(HALF)[4]["privileged"]
    assert privileged["f1"] is privileged["true_positives"] is None
    assert ("pairs" in privileged) == (judgement.payload is not None)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    assert played(Service(), file).fingerprint == episode.fingerprint


def test_a_judge_that_aligns_too_few_claims_is_an_error():
    few = Alignment((None,), (), np.full((1, 2), np.nan), np.zeros((0, 1, 2)))
    env = ProjectionEnv(TASK, judge=Service(Judgement(few)))
    env.reset(seed=1)
    with pytest.raises(JudgeError, match="a judgement of bread must have 3 pairs, one per claim in their order, got 1"):
        env.step(RIGHT)


@pytest.mark.e2e
def test_a_named_judge_is_loaded_once_for_a_whole_vector():
    env = ProjectionVectorEnv(2, task=TASK, judge="llm:gpt-4o-mini")
    first, second = (one.judging.judge for one in env.envs)
    assert first is second
    assert first.name == "llm:gpt-4o-mini"


def test_a_vector_asks_its_judge_about_every_projection_of_a_step():
    judge = Service()
    env = ProjectionVectorEnv(3, task=TASK, judge=judge, autoreset_mode="Disabled")
    env.reset(seed=1)
    rewards = [env.step([RIGHT, HALF, WRONG])[1].tolist() for _ in LEVELS]
    assert rewards == [[w, pytest.approx(w * 0.4), 0] for w in (0.25, 0.5, 0.25)]
    assert judge.asked == [RIGHT, HALF, WRONG] * 3
    env.close()
