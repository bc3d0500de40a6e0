"""Studies of models that project with and without memory, killed while they run, and of swapped disclosures."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.analysis.projection_summary import anchoring
from inquitree_gym.analysis.projections import load_projections
from inquitree_gym.errors import TreeError
from inquitree_gym.runner import RunOptions, RunSummary, run_study
from inquitree_gym.runner.study import read_study
from inquitree_gym.trees.tasks import load_task, swapped_tasks
from tests.runner.played import episodes, fingerprints, small_study
from tests.runner.projecting import RIGHT, TASK, asked, projections, task_file
from tests.servers import Body, Service

WRONG = " ".join(claim.contraries[0] for claim in TASK.claims)
RUN = "from inquitree_gym.cli import main; main()"


def anchored(body: Body) -> str:
    """Errs without a procedure, and stays with what it said before; otherwise it is right."""
    system, *talk = (message["content"] for message in body["messages"])
    stays = any(WRONG in text for text in talk)
    text = RIGHT if "Procedure" in talk[-1] and not stays else WRONG
    return f"THOUGHT: so it is.\nACTION: {text}" if "ACTION:" in system else text


def models(service: Service) -> list[dict[str, Any]]:
    """One model under two names: each level apart in plain replies, and in a conversation with thoughts."""
    return [asked(service, name="apart"), asked(service, name="talk", memory="conversation", reply="thought")]


@pytest.mark.weights
@pytest.mark.e2e
def test_anchoring_is_the_difference_between_a_conversation_and_levels_apart(service: Service, tmp_path: Path):
    service.reply = anchored
    both = [asked(service, name=memory, memory=memory) for memory in ("none", "conversation")]
    study = projections("llm", models=both, trees=(str(task_file(tmp_path)),))
    assert run_study(study, tmp_path / "run") == RunSummary(played=2, found=0)
    found = {episode.header.agent["memory"]: episode for episode in episodes(tmp_path / "run").values()}
    assert found["none"].actions == (WRONG, WRONG, RIGHT)
    assert found["conversation"].actions == (WRONG, WRONG, WRONG)
    right, wrong = (found[memory].turns[-1].projection.f1 for memory in ("none", "conversation"))
    (pair,) = anchoring(load_projections(tmp_path / "run").scores)
    assert pair.estimates["procedure"].mean == pytest.approx(wrong - right) == pytest.approx(-1.0, abs=0.3)


@pytest.mark.weights
@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("at", [2, 5])
def test_a_killed_run_goes_on_and_pays_nothing_twice(at: int, service: Service, tmp_path: Path):
    service.reply = anchored
    toml, folder = tmp_path / "study.toml", tmp_path / "run"
    study = projections("llm", models=models(service), trees=(str(task_file(tmp_path)),))
    toml.write_text(study_file(study.trees[0], models(service)))
    assert read_study(toml) == study
    process: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        process[-1].kill()
        process[-1].wait()

    service.planned.extend([*[lambda: None] * at, kill])
    flags = ("run", "--study", str(toml), "--out", str(folder), "--max-concurrency", "1")
    process.append(subprocess.Popen([sys.executable, "-c", RUN, *flags]))
    assert process[-1].wait() == -signal.SIGKILL
    assert run_study(study, folder, RunOptions(max_concurrency=1)).is_complete
    replies = [reply for episode in episodes(folder).values() for reply in episode.replies]
    assert (len(replies), len(service.requests)) == (6, 7), "only the request whose answer never came is made again"
    run_study(study, tmp_path / "whole")
    assert fingerprints(folder) == fingerprints(tmp_path / "whole")


def study_file(task: str, models: list[dict[str, Any]]) -> str:
    """The TOML of a study of one episode by each model."""
    head = f'env = "projection"\nagents = ["llm"]\ntrees = [{json.dumps(task)}]\nseeds = 1\n'
    tables = ("".join(f"{name} = {json.dumps(value)}\n" for name, value in model.items()) for model in models)
    return head + "".join(f"[[models]]\n{table}" for table in tables)


def test_swapped_stands_for_the_control_of_every_shipped_task():
    assert projections("coin", trees=("swapped", "2")).trees == (*swapped_tasks(), "paper2")
    with pytest.raises(TreeError, match="paper1-told-paper10"):
        small_study(trees=("swapped",))


@pytest.mark.weights
def test_a_run_keeps_its_controls(tmp_path: Path):
    name = swapped_tasks()[1]
    study = projections("oracle", "question", trees=(name,), rules={"form": "claims"})
    assert run_study(study, tmp_path) == RunSummary(played=2, found=0)
    run = load_projections(tmp_path)
    assert {episode.task for episode in run.episodes} == {load_task(name)}
    assert sorted(episode.header.task.id for episode in episodes(tmp_path).values()) == [name] * 2
    assert run_study(study, tmp_path) == RunSummary(played=0, found=2)
