"""The environment of projections under Gymnasium's interface, on a task of its own."""

from __future__ import annotations

from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.trees.disclosure import LEVELS
from tests.envs.projection.tasks import WordJudge, make_task


def test_an_episode_discloses_one_level_per_turn_and_pays_the_weighted_f1():
    task = make_task()
    env = ProjectionEnv(task, judge=WordJudge())
    first, info = env.reset(seed=3)
    told = task.disclosure
    assert info == {"state": "project", "level": "question", "turn": 0}
    assert told.question in first
    assert told.null_hypothesis not in first
    right = "\n".join(claim.text for claim in task.claims)
    found = [env.step(action) for action in (right, "", right)]
    assert told.null_hypothesis in found[0][0]
    assert told.procedure[0] not in found[0][0]
    assert all(text in found[1][0] for text in (told.question, told.null_hypothesis, *told.procedure))
    assert [step[1] for step in found] == [0.25, 0, 0.25]
    assert [step[2] for step in found] == [False, False, True]
    assert [step[4]["level"] for step in found] == [*LEVELS[1:], LEVELS[-1]]
