"""Studies of models that project with and without memory, killed while they run, and of swapped disclosures."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquitree_gym.errors import TreeError
from inquitree_gym.projection.results import anchoring, f1_at
from inquitree_gym.projection.tasks import swapped_tasks
from inquitree_gym.results.load import load_run
from inquitree_gym.runner import RunSummary, run_study
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.projected import judge_again
from tests.projection.projecting import TASK, asked, projections, task_file
from tests.projection.tasks import WORDS
from tests.runner.played import episodes, small_study
from tests.servers import Body, Service

RIGHT = "\n".join(claim.text for claim in TASK.claims)
WRONG = "\n".join(claim.contraries[0] for claim in TASK.claims)


def anchored(body: Body) -> str:
    """Errs without a procedure, and stays with what it said before; otherwise it is right."""
    system, *talk = (message["content"] for message in body["messages"])
    stays = any(WRONG in text for text in talk)
    text = RIGHT if "Procedure" in talk[-1] and not stays else WRONG
    return f"THOUGHT: so it is.\nACTION: {text}" if "ACTION:" in system else text


@pytest.mark.weights
@pytest.mark.e2e
def test_anchoring_is_the_difference_between_a_conversation_and_levels_apart(service: Service, tmp_path: Path):
    service.reply = anchored
    both = [asked(service, name=memory, memory=memory) for memory in ("none", "conversation")]
    study = projections("llm", models=both, trees=(str(task_file(tmp_path)),), reward="none")
    assert run_study(study, tmp_path / "run") == RunSummary(played=2, found=0)
    assert judge_again(tmp_path / "run", WORDS)[0] == 6
    found = {episode.header.agent["memory"]: episode for episode in episodes(tmp_path / "run").values()}
    assert found["none"].actions == (WRONG, WRONG, RIGHT)
    assert found["conversation"].actions == (WRONG, WRONG, WRONG)
    (pair,) = anchoring(load_run(tmp_path / "run", judge="words").scores)
    assert [pair.estimates[f1_at(level)].mean for level in LEVELS] == [0, 0, -1]


@pytest.mark.e2e
def test_a_model_answers_sheets_in_the_same_conversation_or_alone(service: Service, tmp_path: Path):
    service.reply = lambda body: "1 A\n2 A 0.9\n3 A" if "Sheet." in body["messages"][-1]["content"] else RIGHT
    both = [asked(service, name=memory, memory=memory) for memory in ("none", "conversation")]
    run_study(projections("llm", models=both, trees=(str(task_file(tmp_path)),)), tmp_path / "run")
    alone, talked = episodes(tmp_path / "run").values()
    assert alone.actions == talked.actions == (RIGHT, "1 A\n2 A 0.9\n3 A") * 3
    assert alone.footer.episode_return == talked.footer.episode_return != 0
    assert sorted(len(chat) for chat in service.chats) == [2] * 7 + [4, 6, 8, 10, 12]


def test_swapped_stands_for_the_control_of_every_shipped_task():
    assert projections("coin", trees=("swapped", "2")).trees == (*swapped_tasks(), "paper2")
    with pytest.raises(TreeError, match="no tree has the id 'swapped'"):
        small_study(trees=("swapped",))
