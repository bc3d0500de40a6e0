"""Studies of projections: played, kept, resumed, grown and merged, and what they do not have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.analysis.logs import find_logs
from inquitree_gym.analysis.projection_judging import judge_projections, stated_projections
from inquitree_gym.analysis.projections import load_projections
from inquitree_gym.errors import LogError, OptionError, TreeError
from inquitree_gym.judges.projections.records import read_projection_judgements
from inquitree_gym.judges.projections.registry import load_projection_judge
from inquitree_gym.llm import Budget
from inquitree_gym.log import ProjectionRecord
from inquitree_gym.report.pack import pack_run
from inquitree_gym.runner import RunOptions, RunSummary, merge_runs, run_study
from inquitree_gym.runner.environment_kinds import PROJECTIONS
from inquitree_gym.runner.folder import load_manifest
from inquitree_gym.runner.study import read_study
from inquitree_gym.runner.trees import run_task
from inquitree_gym.trees.tasks import load_task
from tests.runner import test_reader
from tests.runner.played import episodes, fingerprints, logs, small_study
from tests.runner.projecting import RIGHT, TASK, Aligner, asked, judges, projections, task_file
from tests.servers import COMPLETION_TOKENS, KEY, PROMPT_TOKENS, Service, failed

inquitree = test_reader.inquitree
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
        'env = "projection"\nagents = ["empty", "llm"]\ntrees = ["2", "paper8"]\nseeds = 2\n'
        'rules = {levels = ["question", "procedure"], form = "claims", reward = "end"}\n'
        'judge = {model = "gpt-4o-mini", alignment = "table", ratings = "real", undirected = -1, repeat = 2}\n'
        '[[models]]\nmodel = "gpt-4o"\nmemory = "conversation"\nreply = "thought"\n'
    )
    study = read_study(file)
    assert [spec.file_name for spec in study.specs()][:3] == [
        "paper2_empty_s0.jsonl", "paper2_empty_s1.jsonl", "paper2_llm_gpt-4o_s0.jsonl",
    ]  # fmt: skip
    assert study.rules == {"levels": ("question", "procedure"), "form": "claims", "reward": "end"}
    assert study.judge_name == "llm:gpt-4o-mini"
    assert study.judge is not None
    assert (study.judge.llm.alignment, study.judge.llm.ratings, study.judge.llm.repeat) == ("table", "real", 2)
    assert study.agent_settings("llm", study.models[0]) == {
        "prompts": "default", "context": None, "memory": "conversation", "reply": "thought",
    }  # fmt: skip
    assert type(study).model_validate(json.loads(study.model_dump_json())) == study


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fake_levels": (3,)}, "fake_levels: only for inquiries, and env is 'projection'; remove it"),
        ({"reader": "llm:gpt-4o-mini", "max_turns": 9}, "max_turns, reader: only for inquiries"),
        ({"threshold": 0.5, "embedder": "all-MiniLM-L6-v2"}, "embedder, threshold: only for inquiries"),
        ({"agents": ("random",)}, "no agent is called 'random'.*known: .*coin"),
        ({"agents": ("llm",), "models": [{"model": "gpt-4o", "belief": True}]}, "belief: not a setting of agents"),
        ({"rules": {"levels": ("question", "question")}}, "rules: levels is a sequence of one or more of"),
        ({"rules": {"levels": ("answer",)}}, "rules: levels is a sequence"),
        ({"rules": {"explore": "hub"}}, "rules: unknown option 'explore'.*known: levels, form, reward"),
        ({"rules": "paper"}, "rules: projections have no preset 'paper'; their rules are levels, form, reward"),
        ({"judge": "llm-paper:gpt-4o"}, "the judge of a study of projections is 'local' or 'llm:MODEL'"),
        ({"judge": {"model": "gpt-4o", "orders": 1}}, r"judge\.orders: is an unknown setting"),
        ({"judge": {"model": "gpt-4o", "alignment": "list"}}, r"judge\.alignment: needs 'pairs' or 'table'"),
        ({"env": "essay"}, "env: needs 'inquiry' or 'projection'"),
        ({"trees": ("bread",)}, "bread"),
    ],
)
def test_settings_that_projections_do_not_have_are_told(settings: dict[str, Any], told: str):
    with pytest.raises((OptionError, TreeError), match=told):
        projections(**settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"agents": ("coin",)}, "no agent is called 'coin'"),
        ({"agents": ("llm",), "models": [{"model": "gpt-4o", "memory": "conversation"}]}, "memory: not a setting"),
        ({"judge": {"model": "gpt-4o", "alignment": "table"}}, r"judge\.alignment: is an unknown setting"),
    ],
)
def test_settings_that_inquiries_do_not_have_are_told(settings: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        small_study(**settings)


# Runs


@pytest.mark.weights
def test_a_run_of_projections_is_played_once_and_scored(tmp_path: Path):
    study = projections("oracle", "empty", "coin", trees=("2", str(task_file(tmp_path))), seeds=2)
    folder = tmp_path / "run"
    assert run_study(study, folder) == RunSummary(played=12, found=0)
    before = logs(folder)
    assert run_study(study, folder) == RunSummary(played=0, found=12)
    assert logs(folder) == before
    found = episodes(folder)
    header = found["paper2_oracle_s1.jsonl"].header
    assert (header.task, header.seed) == (PROJECTIONS.ref(load_task("paper2")), 1)
    assert header.rules == {"levels": ["question", "null", "procedure"], "form": "sentence", "reward": "each"}
    assert (header.embedder, header.judge and header.judge["name"]) == (None, "local")
    assert all(isinstance(turn.event, ProjectionRecord) for episode in found.values() for turn in episode.turns)
    assert {episode.footer.episode_return for name, episode in found.items() if "empty" in name} == {0.0}
    scores = load_projections(folder).scores
    assert len(scores) == 12
    assert {score.task for score in scores} == {"paper2", TASK.id}


@pytest.mark.weights
def test_rules_hold_for_every_episode(tmp_path: Path):
    rules = {"levels": ("procedure", "question"), "form": "claims", "reward": "end"}
    run_study(projections(rules=rules), tmp_path)
    (episode,) = episodes(tmp_path).values()
    assert episode.header.rules == {**rules, "levels": ["procedure", "question"]}
    assert [turn.projection.level for turn in episode.turns] == ["procedure", "question"]
    assert [turn.reward for turn in episode.turns] == [0.0, 1.0]
    assert load_manifest(tmp_path).rules == {**rules, "levels": ["procedure", "question"]}


@pytest.mark.weights
def test_a_run_keeps_its_task_and_refuses_another_version(tmp_path: Path):
    file = task_file(tmp_path)
    folder = tmp_path / "run"
    run_study(projections("empty", trees=(str(file),)), folder)
    assert run_task(PROJECTIONS, folder, load_manifest(folder), TASK.id) == TASK
    file.unlink()
    (row,) = load_projections(folder).episodes
    assert row.task == TASK
    task_file(tmp_path, topic="Bread again")
    with pytest.raises(LogError, match=f"a tree was changed|{TASK.id} has the digest"):
        run_study(projections("empty", "oracle", trees=(str(file),)), folder)
    summary = run_study(projections("empty", trees=(str(file),)), folder, RunOptions(as_new_version=True))
    assert (summary.played, len(list((folder / "tasks").iterdir()))) == (1, 2)


def judge_all_of(folder: Path) -> None:
    """Judge the projections of a run once more, by the local judge."""
    stated = stated_projections(find_logs(folder))
    judge = load_projection_judge("local")
    asyncio.run(judge_projections(folder, stated, judge, max_concurrency=1, progress=lambda name: None))


@pytest.mark.weights
def test_a_run_grows_and_merges_but_takes_no_inquiries(tmp_path: Path):
    run_study(projections("empty"), tmp_path / "one")
    assert run_study(projections("empty", "oracle", seeds=2), tmp_path / "one").played == 3
    with pytest.raises(LogError, match="env is projection there and inquiry here"):
        run_study(small_study(), tmp_path / "one")
    with pytest.raises(LogError, match="rules reward is each there and end here"):
        run_study(projections("empty", rules={"reward": "end"}), tmp_path / "one")
    run_study(projections("empty", "null", trees=("8",)), tmp_path / "two")
    judge_all_of(tmp_path / "two")
    merged = merge_runs([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert (merged.episodes, merged.doubles, merged.damaged) == (6, 0, ())
    assert len(load_projections(tmp_path / "both").scores) == 6
    (kept,) = read_projection_judgements(tmp_path / "both")
    assert {episode for episode, _ in kept.by_turn} == {"paper8_empty_s0.jsonl", "paper8_null_s0.jsonl"}
    assert len(kept.by_turn) == 6
    with pytest.raises(OptionError, match="is a run of projections; inquitree pack takes runs of inquiries"):
        pack_run(tmp_path / "both", tmp_path / "both.zip")


OWN = """
class Parrot:
    needs_privileged, config = False, {"name": "parrot"}
    def reset(self, seed): self.seed = seed
    def act(self, observation, info): return f"{info['level']} {observation[-20:]}"
    def recall(self, observation, info, action): pass

def make(env):
    return Parrot()
"""


@pytest.mark.weights
def test_an_agent_of_ones_own_projects(tmp_path: Path):
    (tmp_path / "parrot.py").write_text(OWN)
    assert run_study(projections(f"{tmp_path / 'parrot.py'}:make"), tmp_path / "run").played == 1
    (episode,) = episodes(tmp_path / "run").values()
    assert [turn.action.split()[0] for turn in episode.turns] == ["question", "null", "procedure"]


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
    assert [turn.reward for turn in episode.turns] == [0.25, 0.5, 0.25]
    assert [turn.projection.pair_ratings for turn in episode.turns] == [((1.0, 1.0),) * CLAIMS] * 3
    assert (episode.judge or {})["name"] == "llm:gpt-4o-mini"
    assert KEY not in (folder / "run.json").read_text()
    assert budget.usage.replies == len(aligning.requests)
    # The same projection at three levels is judged once: two extractions, and one table in each order.
    assert sum(judges(request.body) for request in aligning.requests) == 4
    sent = len(aligning.requests)
    assert run_study(study, folder) == RunSummary(played=0, found=1)
    assert len(aligning.requests) == sent


@pytest.mark.e2e
@pytest.mark.parametrize("good", [1, 2, 4])
def test_a_judge_that_dies_half_way_costs_only_the_missing_replies(aligning: Service, tmp_path: Path, good: int):
    study = projections("oracle", judge=asked(aligning, alignment="table"), trees=(str(task_file(tmp_path)),))
    aligning.planned.extend([lambda: None] * (good - 1) + [failed(500)])
    summary = run_study(study, tmp_path / "run")
    assert (len(summary.failures), summary.ended) == (1, "")
    assert "the judge could not grade a projection" in summary.failures[0].error
    assert run_study(study, tmp_path / "run") == RunSummary(played=1, found=0)
    assert len(aligning.requests) == 4 + 1
    run_study(study, tmp_path / "whole")
    assert fingerprints(tmp_path / "run") == fingerprints(tmp_path / "whole")


@pytest.mark.e2e
def test_a_projection_with_an_unread_rating_is_unscored_and_counted(aligning: Service, tmp_path: Path):
    aligning.reply = Aligner(rating="maybe")
    study = projections("oracle", judge=asked(aligning, alignment="table"), trees=(str(task_file(tmp_path)),))
    assert run_study(study, tmp_path / "run").played == 1
    (episode,) = episodes(tmp_path / "run").values()
    assert (episode.unscored, [turn.projection.f1 for turn in episode.turns]) == (3, [None] * 3)
    assert [turn.reward for turn in episode.turns] == [0.0] * 3


@pytest.mark.e2e
def test_a_cap_holds_for_alignments(aligning: Service, tmp_path: Path):
    budget = Budget(max_total_tokens=2 * (PROMPT_TOKENS + COMPLETION_TOKENS))
    study = projections("oracle", judge=asked(aligning), trees=(str(task_file(tmp_path)),))
    summary = run_study(study, tmp_path / "run", RunOptions(max_concurrency=1, budget=budget))
    assert (summary.played, summary.left, len(aligning.requests)) == (0, 1, 2)


# Command line


@pytest.mark.e2e
def test_the_command_line_runs_projections(
    inquitree: Callable[..., tuple[int, str, str]], aligning: Service, tmp_path: Path
):
    flags: tuple[object, ...] = (
        "--env", "projection", "--agent", "llm,oracle", "--papers", task_file(tmp_path), "--seeds", 1, "--out",
        tmp_path / "run", "--rule", 'levels=["question","procedure"]', "--rule", "form=claims", "--model",
        "gpt-4o-mini", "--base-url", aligning.address, "--memory", "conversation", "--judge", "llm:gpt-4o-mini",
        "--judge-base-url", aligning.address,
    )  # fmt: skip
    status, out, err = inquitree("run", *flags, "--dry-run", "--json")
    assert (status, aligning.requests) == (0, []), err
    (plan,) = json.loads(out)["models"]
    assert plan["least"] == plan["most"]
    assert (plan["episodes"], plan["least"]["requests"]) == (1, 2)
    status, out, err = inquitree("run", *flags, "--dry-run")
    assert "One request for each level" in out
    assert "judges the projections" in out
    status, _, err = inquitree("run", *flags)
    assert status == 0, err
    found = episodes(tmp_path / "run")
    played = found[f"{TASK.id}_llm_gpt-4o-mini_s0.jsonl"]
    assert [turn.projection.level for turn in played.turns] == ["question", "procedure"]
    assert played.header.agent["memory"] == "conversation"


def test_the_command_line_has_agents_for_projections(inquitree: Callable[..., tuple[int, str, str]], tmp_path: Path):
    status, out, err = inquitree("run", "--env", "projection", "--out", tmp_path, "--dry-run", "--json")
    assert status == 0, err
    assert [row["agent"] for row in json.loads(out)["episodes"]] == ["coin", "oracle"]
