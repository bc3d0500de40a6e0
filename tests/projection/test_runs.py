"""Studies of projections: played, kept, resumed and grown, and what they do not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.errors import LogError, OptionError, TreeError
from inquitree_gym.llm import Budget
from inquitree_gym.runner import RunOptions, RunSummary, run_study
from inquitree_gym.runner.check import read_study
from inquitree_gym.runner.services import judge_settings
from tests.contract.command_line import inquitree
from tests.projection.projecting import RIGHT, TASK, Aligner, asked, judges, projections, task_file
from tests.runner.played import episodes
from tests.servers import KEY, Service

CLAIMS = len(TASK.claims)


@pytest.fixture
def aligning(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A model that projects and judges, and an empty cache of replies."""
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    service.reply = Aligner()
    return service


# Settings


def test_a_study_of_projections_says_so_in_its_file(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text(
        'env = "projection"\nagents = ["null", "llm"]\ntrees = ["2", "paper8"]\nseeds = 2\n'
        'levels = ["question", "procedure"]\nform = "claims"\nreward = "judge"\n'
        'judge = {model = "gpt-4o-mini", alignment = "table", ratings = "real", undirected = -1, repeat = 2}\n'
        '[[models]]\nmodel = "gpt-4o"\nmemory = "conversation"\nreply = "thought"\n'
    )
    study = read_study(file)
    assert [spec.file_name for spec in study.specs()][:3] == [
        "paper2_null_s0.jsonl", "paper2_null_s1.jsonl", "paper2_llm_gpt-4o_s0.jsonl",
    ]  # fmt: skip
    assert study.settings.all_rules() == {"levels": ["question", "procedure"], "form": "claims", "reward": "judge"}
    judge = judge_settings(study)
    assert judge.judge_name == "llm:gpt-4o-mini"
    assert (judge.alignment, judge.ratings, judge.repeat) == ("table", "real", 2)
    assert study.agent_settings("llm", study.models[0]) == {
        "prompts": "default", "context": None, "memory": "conversation", "reply": "thought",
    }  # fmt: skip
    assert type(study).model_validate(json.loads(study.model_dump_json())) == study


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fake_level": (3,)}, "fake_level: is an unknown setting; remove it"),
        ({"reader": "llm:gpt-4o-mini", "max_turns": 9}, "reader: is an unknown setting; remove it; max_turns"),
        ({"threshold": 0.5, "embedder": "all-MiniLM-L6-v2"}, "threshold: is an unknown setting; remove it; embedder"),
        ({"agents": ("random",)}, "no agent is called 'random'.*known: .*coin"),
        ({"agents": ("llm",), "models": [{"model": "gpt-4o", "belief": True}]}, "belief: is an unknown setting"),
        ({"levels": ("answer",)}, "levels.0: needs 'question', 'null' or 'procedure'"),
        ({"rules": "paper"}, "rules: is an unknown setting; remove it"),
        ({"judge": "llm-paper:gpt-4o"}, "the judge of a study must be 'llm:MODEL', got 'llm-paper"),
        ({"judge": {"model": "gpt-4o", "orders": 1}}, "study cannot be asked; orders: is an unknown"),
        (
            {"judge": {"model": "gpt-4o", "alignment": "list"}},
            r"judge of the study cannot be asked; alignment: needs 'pairs' or 'table'",
        ),
        ({"judge": "local"}, "judge of a study must be 'llm:MODEL'"),
        ({"agents": ("optimist",)}, "no agent is called 'optimist'"),
        ({"env": "essay"}, "no kind of environment is called 'essay'"),
        ({"trees": ("bread",)}, "bread"),
    ],
)
def test_settings_that_projections_do_not_have_are_told(settings: dict[str, Any], told: str):
    with pytest.raises((OptionError, TreeError), match=told):
        projections(**settings)


# Runs


def test_rules_hold_for_every_episode(tmp_path: Path):
    rules = {"levels": ("procedure", "question"), "form": "claims", "reward": "none"}
    run_study(projections(**rules), tmp_path)
    (episode,) = episodes(tmp_path).values()
    assert episode.header.rules == {**rules, "levels": ["procedure", "question"]}
    assert [turn.event.level for turn in episode.turns] == ["procedure", "question"]
    with pytest.raises(LogError, match="the run has reward=none, this study reward=sheet"):
        run_study(projections(**{**rules, "reward": "sheet"}), tmp_path)


def test_the_default_study_pays_sheets(tmp_path: Path):
    run_study(projections("oracle", "reversed", "coin"), tmp_path)
    returns = {episode.header.agent["name"]: episode.footer.episode_return for episode in episodes(tmp_path).values()}
    assert returns["oracle"] == 1 > returns["coin"] > returns["reversed"] >= -1


# Models


@pytest.mark.e2e
def test_a_model_projects_and_another_judges_and_nothing_is_paid_twice(aligning: Service, tmp_path: Path):
    budget = Budget()
    study = projections(
        "llm", models=[asked(aligning)], judge=asked(aligning, alignment="table"), trees=(str(task_file(tmp_path)),)
    )
    folder = tmp_path / "run"
    assert run_study(study, folder, RunOptions(budget=budget)) == RunSummary(played=1, found=0)
    (episode,) = episodes(folder).values()
    assert episode.actions == (RIGHT,) * 3
    assert [turn.reward for turn in episode.turns] == [0, 0, 1]
    assert [turn.event.judged.pair_ratings for turn in episode.turns] == [((1.0, 1.0),) * CLAIMS] * 3
    assert (episode.judge or {})["name"] == "llm:gpt-4o-mini"
    assert KEY not in (folder / "run.json").read_text()
    assert budget.usage.replies == len(aligning.requests)
    # The same projection at three levels is judged once: two extractions, and one table in each order.
    assert sum(judges(request.body) for request in aligning.requests) == 4
    sent = len(aligning.requests)
    assert run_study(study, folder) == RunSummary(played=0, found=1)
    assert len(aligning.requests) == sent


# Command line


@pytest.mark.e2e
def test_the_command_line_runs_projections(aligning: Service, tmp_path: Path):
    flags: tuple[object, ...] = (
        "run", "--env", "projection", "--agent", "llm,oracle", "--papers", task_file(tmp_path), "--seeds", 1, "--out",
        tmp_path / "run", "--levels", "question,procedure", "--form", "claims", "--model",
        "gpt-4o-mini", "--base-url", aligning.address, "--memory", "conversation", "--judge", "llm:gpt-4o-mini",
        "--judge-base-url", aligning.address, "--reward", "judge",
    )  # fmt: skip
    (plan,) = inquitree(*flags, "--dry-run", "--json").json["models"]
    assert plan["least"] == plan["most"]
    assert (plan["episodes"], plan["least"]["requests"]) == (1, 2)
    told = " ".join(inquitree(*flags, "--dry-run").out.split())
    assert "One request for each projection and each sheet" in told
    assert "judges the projections" in told
    assert aligning.requests == []
    done = inquitree(*flags)
    assert done.status == 0, done.err
    played = episodes(tmp_path / "run")[f"{TASK.id}_llm_gpt-4o-mini_s0.jsonl"]
    assert [turn.event.level for turn in played.turns] == ["question", "procedure"]
    assert played.header.agent["memory"] == "conversation"
