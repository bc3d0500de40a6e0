"""`inquitree run` with models: flags, plan, progress, caps, and how it ends."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from inquitree_gym.cli import output
from inquitree_gym.cli import output as live
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.llm import Budget, Completion
from inquitree_gym.log import read_episode
from inquitree_gym.results.load import load_run
from inquitree_gym.results.summary import summarise
from inquitree_gym.runner import Outcome, RunSummary
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.trees import load_tree
from tests.contract.command_line import inquitree
from tests.servers import KEY, Rote, Service, failed, said

pytestmark = pytest.mark.e2e

TREE = load_tree("paper2")
TURNS = 3 * len(TREE.subtopics) + 2


def run(*arguments: object) -> tuple[int, str, str]:
    """Run ``inquitree run``; return status, output and error stream, without their line breaks."""
    done = inquitree("run", *arguments)
    return done.status, " ".join(done.out.split()), done.said


@pytest.fixture
def flags(service: Service, tmp_path: Path) -> tuple[object, ...]:
    service.reply = Rote(TREE)
    return ("--base-url", service.address, "--papers", "2", "--seeds", 2, "--out", tmp_path / "run")


def logs(folder: Path) -> list[Path]:
    return sorted((folder / "run" / "episodes").iterdir())


def test_flags_reach_the_models(flags: tuple, tmp_path: Path):
    more = ("--temperature", "0.3", "--reasoning-effort", "low", "--context", 9000, "--max-concurrency", 3)
    status, _, err = run("--agent", "llm,random", "--model", "gpt-4o-mini, o3-mini", *more, *flags)
    assert status == 0, err
    assert [log.name for log in logs(tmp_path)][:4] == [
        f"paper2_llm_{model}-low_f0_s{seed}.jsonl" for model in ("gpt-4o-mini", "o3-mini") for seed in (0, 1)
    ]
    agent = read_episode(logs(tmp_path)[0]).header.agent
    assert (agent["temperature"], agent["reasoning_effort"], agent["context"]) == (0.3, "low", 9000)
    assert re.search(rf"6 episodes played, 0 already complete: .*run \({4 * TURNS} replies, \$0\.\d+ · 6,720 tok", err)
    assert KEY not in err + (tmp_path / "run" / "run.json").read_text()


def test_every_model_plays_with_every_effort_and_so_many_reply_tokens(service: Service, flags: tuple, tmp_path: Path):
    service.planned.append(said(None, "length", reasoning=70))
    more = ("--reasoning-effort", "low,high", "--reply-tokens", 700, "--max-concurrency", 1)
    status, _, err = run("--agent", "llm", "--model", "o3-mini", *flags, *more)
    assert status == 0, err
    assert [log.name for log in logs(tmp_path)] == [
        f"paper2_llm_o3-mini-{effort}_f0_s{seed}.jsonl" for effort in ("high", "low") for seed in (0, 1)
    ]
    assert {request.body["reasoning_effort"] for request in service.requests} == {"low", "high"}
    assert {request.body["max_completion_tokens"] for request in service.requests} == {700}
    assert f"({4 * TURNS + 1} replies" in err
    inquitree("report", tmp_path / "run", "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "without text" in page
    assert "reasoning tokens" in page


def test_an_effort_that_is_not_sent_is_told(flags: tuple):
    model = ("--agent", "llm", "--model", "gpt-4o-mini", *flags)
    _, _, err = run(*model, "--reasoning-effort", "low", "--dry-run")
    assert "reasoning effort not sent to 'gpt-4o-mini'" in err


def test_beliefs_are_asked_for_logged_and_scored(service: Service, flags: tuple, tmp_path: Path):
    rote = Rote(TREE)
    service.reply = lambda body: f"BELIEF: true 0.9\n{rote(body)}"
    status, _, err = run("--agent", "llm", "--model", "gpt-4o-mini", "--belief", *flags)
    assert status == 0, err
    assert "BELIEF" in service.chats[0][0]["content"]
    assert read_episode(logs(tmp_path)[0]).header.agent["belief"] is True
    (row,) = summarise(load_run(tmp_path / "run").scores)
    assert row.facts["stated"] == 2 * len(TREE.subtopics)
    assert row.estimates["Brier"].mean == pytest.approx(0.01)
    assert "Stated beliefs" in inquitree("report", tmp_path / "run", "--all").out


def test_a_study_file_with_models_takes_flags_about_how_to_play_it(service: Service, flags: tuple, tmp_path: Path):
    study = tmp_path / "s.toml"
    study.write_text(
        'agents = ["llm"]\ntrees = ["2"]\nseeds = 2\n[[models]]\n'
        f'model = "gpt-4o-mini"\nname = "mini"\nbase_url = "{service.address}"\n'
    )
    how = ("--out", tmp_path / "run", "--max-concurrency", 2, "--cache", tmp_path / "cache")
    caps = ("--max-cost", 5, "--max-total-tokens", 10**6, "--max-minutes", 60)
    status, _, err = run("--study", study, *how, *caps)
    assert status == 0, err
    assert logs(tmp_path)[0].name == "paper2_llm_mini_f0_s0.jsonl"
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 2 * TURNS
    status, _, err = run("--study", study, *how, "--temperature", "0.5", "--context", 7)
    assert status == 2
    assert "--study takes what to play from its file; leave out --context, --temperature, or write it" in err


# The plan


def test_a_dry_run_shows_what_is_to_do_and_writes_and_asks_nothing(service: Service, flags: tuple, tmp_path: Path):
    told = (
        "--agent", "llm,sceptic,oracle", "--model", "gpt-4o-mini,my-own", "--fake-level", "0,3", "--max-turns", "11n",
        *flags,
    )  # fmt: skip
    status, out, err = run(*told, "--dry-run")
    assert (status, err) == (0, "")
    assert "│ llm │ gpt-4o-mini │ 0 │ 2 │ 0 │ 0 │ 2 │ 0 │" in out
    assert "│ oracle │ │ 3 │ 2 │ 0 │ 0 │ 2 │ 0 │" in out
    assert "│ all │ │ │ 20 │ 0 │ 0 │ 20 │ 0 │" in out
    assert re.search(r"│ gpt-4o-mini │ 8 │ 128 – 392 │ [\d,]+ – [\d,]+ │ 25,600 – 78,400 │ 0\.\d\d – 0\.\d\d │", out)
    assert re.search(r"│ my-own │ 8 │ 128 – 392 │ [\d,]+ – [\d,]+ │ 25,600 – 78,400 │ unknown │", out)
    assert service.requests == []
    assert not (tmp_path / "run").exists()


def test_a_dry_run_knows_what_is_there_torn_and_damaged(service: Service, flags: tuple, tmp_path: Path):
    told = ("--agent", "llm,oracle", "--model", "gpt-4o-mini", *flags)
    run(*told)
    first, second, third, fourth = logs(tmp_path)
    first.write_bytes(first.read_bytes()[:-40])
    second.unlink()
    third.write_bytes(third.read_bytes().replace(b'"kind":"turn"', b'"kind":"tarn"', 1))
    before, asked = {file: file.read_bytes() for file in logs(tmp_path)}, len(service.requests)
    status, out, _ = run(*told, "--dry-run")
    assert status == 0
    assert "│ llm │ gpt-4o-mini │ 0 │ 2 │ 0 │ 1 │ 1 │ 0 │" in out
    assert "│ oracle │ │ 0 │ 2 │ 1 │ 0 │ 0 │ 1 │" in out
    assert f"damaged, and not played: {third.name}: " in out
    assert fourth in before
    assert ({file: file.read_bytes() for file in logs(tmp_path)}, len(service.requests)) == (before, asked)


def test_a_dry_run_of_another_study_is_refused(flags: tuple):
    run("--agent", "oracle", "--papers", "2", *flags[-2:])
    status, _, err = run("--agent", "oracle", "--papers", "2", "--max-turns", "5n", *flags[-2:], "--dry-run")
    assert status == 2
    assert "the run has max_turns=3n, this study max_turns=5n" in err


def test_a_dry_run_says_what_it_would_add(flags: tuple, tmp_path: Path):
    run("--agent", "oracle", "--papers", "2", "--seeds", 1, *flags[-2:])
    before = (tmp_path / "run" / "run.json").read_bytes()
    status, out, _ = run("--agent", "oracle", "--papers", "2", "--seeds", 3, *flags[-2:], "--dry-run")
    assert (status, "added to the run: 2 episodes; seeds 1, 2" in out) == (0, True)
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_plan_can_be_read_by_a_program(service: Service, flags: tuple, tmp_path: Path):
    told = ("--agent", "llm,oracle", "--model", "gpt-4o-mini,my-own", "--fake-level", "0,3", *flags)
    assert run(*told[:-2], "--out", tmp_path / "other", "--max-total-tokens", 10**6)[0] == 0
    status, out, err = run(*told[:-2], "--out", tmp_path / "other", "--dry-run", "--json")
    assert (status, err) == (0, "")
    plan = json.loads(out)
    kind = {"agent": "llm", "model": "my-own", "fake_level": 3, "episodes": 2, "there": 2, "torn": 0, "missing": 0}
    assert {**kind, "damaged": 0} in plan["episodes"]
    assert [model["episodes"] for model in plan["models"]] == [0, 0]
    (tmp_path / "other" / "episodes" / "paper2_llm_my-own_f3_s1.jsonl").unlink()
    plan = json.loads(run(*told[:-2], "--out", tmp_path / "other", "--dry-run", "--json")[1])
    own = plan["models"][1]
    assert (own["model"], own["episodes"], own["least"]["requests"], own["dollars"]) == ("my-own", 1, TURNS, None)
    assert plan["models"][0]["dollars"] == [0, 0]
    assert (plan["folder"], plan["damaged"], plan["no_key"]) == (str(tmp_path / "other"), {}, {})


def test_a_missing_key_is_told_before_anything_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    told = ("--agent", "llm", "--model", "gpt-4o-mini,anthropic/claude-sonnet-4-5", "--papers", "2", "--seeds", 1)
    status, out, err = run(*told, "--out", tmp_path / "run", "--dry-run")
    assert status == 0
    assert "missing key: the model 'gpt-4o-mini' needs a key: set the environment variable OPENAI_API_KEY" in err
    assert "missing key: litellm finds no key for 'anthropic/claude-sonnet-4-5' in ANTHROPIC_API_KEY; without" in err
    plan = json.loads(run(*told, "--out", tmp_path / "run", "--dry-run", "--json")[1])
    assert [lack["certain"] for lack in plan["no_key"].values()] == [True, False]
    status, out, err = run(*told[:3], "gpt-4o-mini", *told[4:], "--out", tmp_path / "run", "--json")
    assert status == 2
    assert err.startswith("missing key: the model 'gpt-4o-mini' needs a key")
    efforts = ("--model", "gpt-4o-mini", "--reasoning-effort", "low,high", "--dry-run")
    assert run("--agent", "llm", *efforts)[2].count("missing key") == 1, "one key for both efforts"
    assert logs(tmp_path) == []
    summary = json.loads(out)
    assert (summary["left"], summary["failures"], list(summary["models"])) == (1, [], ["gpt-4o-mini"])


# How it ends


def test_failures_are_counted_by_kind_and_the_command_ends_with_status_2(service: Service, flags: tuple):
    service.planned.extend([failed(400, "an odd prompt")] * 2)
    status, _, err = run("--agent", "llm,oracle", "--model", "gpt-4o-mini", "--max-concurrency", 1, *flags)
    assert status == 2
    assert "2 episodes played, 0 already complete" in err
    assert re.search(r"failed: paper2_llm_gpt-4o-mini_f0_s0\.jsonl and 1 more: the model .*an odd prompt", err)
    assert err.endswith(
        "2 episodes failed and 0 left; correct the faults named above, then run the same command again to resume"
    )
    assert run("--agent", "llm,oracle", "--model", "gpt-4o-mini", *flags)[0] == 0


def test_a_wrong_key_is_told_with_what_to_do(service: Service, flags: tuple):
    service.planned.extend([failed(401, f"Incorrect API key: {KEY}")] * 9)
    status, _, err = run("--agent", "llm,oracle", "--model", "gpt-4o-mini", "--max-concurrency", 1, *flags)
    assert status == 2
    assert re.search(
        r"stopped: the rest of 'gpt-4o-mini': .* check the key in the provider's environment variable", err
    )
    assert KEY not in err
    assert "1 episode failed and 1 left" in err


def test_a_cap_is_told_and_a_new_one_goes_on(service: Service, flags: tuple):
    told = ("--agent", "llm", "--model", "gpt-4o-mini", *flags)
    status, _, err = run(*told, "--max-cost", 0.0002, "--max-concurrency", 1)
    assert status == 2
    assert "stopped: the cap of $0.0002 is reached: 8 replies cost $0.0002" in err
    assert run(*told, "--max-cost", 1)[0] == 0
    assert len(service.requests) == 2 * TURNS


def test_a_summary_can_be_read_by_a_program(service: Service, flags: tuple, tmp_path: Path):
    service.planned.append(failed(400, "an odd prompt"))
    status, out, _ = run("--agent", "llm", "--model", "gpt-4o-mini", "--max-concurrency", 1, "--json", *flags)
    summary = json.loads(out)
    assert status == 2
    assert (summary["played"], summary["found"], summary["left"], summary["ended"]) == (1, 0, 0, "")
    assert [failure["episode"] for failure in summary["failures"]] == ["paper2_llm_gpt-4o-mini_f0_s0.jsonl"]
    assert "an odd prompt" in summary["failures"][0]["error"]
    assert summary["paid"]["replies"] == TURNS
    assert summary["folder"] == str(tmp_path / "run")


# Progress


def shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, outcomes: list[str], seconds: float = 0) -> str:
    """Return what is shown of a run whose episodes take ``seconds`` each."""
    stream, budget = io.StringIO(), Budget()
    console = Console(file=stream, force_terminal=terminal, width=150, markup=False)
    for module in (live, output):
        monkeypatch.setattr(module, "err", console)
    now = 0.0
    display = live.RunProgress(len(outcomes), budget, lambda: now)
    with display.display():
        for number, status in enumerate(outcomes):
            budget.add(Completion("", "stop", {"prompt": 1000, "completion": 234}, 0.01))
            now += seconds * (status != "found")
            display.update(Outcome(EpisodeSpec("llm", "paper2", 0, number, "m"), status))
        display.announce_stop("enough")
    return stream.getvalue()


def test_progress_in_a_file_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch):
    lines = shown(monkeypatch, False, ["found"] * 100 + ["played"] * 399 + ["failed"], seconds=1).splitlines()
    assert len(lines) == 11, "one in 10 %"
    assert lines[0] == "40 of 400 episodes · $1.4000 · 172,760 tokens · 0 failed · about 6 min left"
    assert lines[6] == "280 of 400 episodes · $3.8000 · 468,920 tokens · 0 failed · about 2 min left"
    assert lines[7] == "320 of 400 episodes · $4.2000 · 518,280 tokens · 0 failed · about 80 s left"
    assert lines[9] == "400 of 400 episodes · $5.0000 · 617,000 tokens · 1 failed · about 0 s left"
    assert lines[-1] == "stopping: enough. Pending requests have 10 s; press Ctrl-C (again) to quit at once"


@pytest.mark.parametrize(("seconds", "done"), [(0, []), (0.0625, ["160", "320"]), (60, ["40", "80", "120"])])
def test_progress_in_a_file_is_a_line_in_ten_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch, seconds: float, done: list[str]
):
    *lines, _ = shown(monkeypatch, False, ["played"] * 400, seconds).splitlines()
    assert [line.split()[0] for line in lines][:3] == done


def test_no_name_in_a_table_of_a_file_is_cropped():
    stream = io.StringIO()
    names = [f"a-policy-that-was-trained-on-synthetic-trees-{i}" for i in range(2)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(output, "out", Console(file=stream, width=output.PIPE_WIDTH))
        heads = ["agent", "model", *(f"measure{i}" for i in range(8))]
        output.print_table("t", [heads, *([name, name, *["0.123"] * 8] for name in names)])
    table = stream.getvalue()
    assert all(table.count(name) == 2 for name in names)
    assert all(head in table for head in heads)
    assert len({len(line) for line in table.splitlines()[1:]}) == 1


@pytest.mark.parametrize(("replies", "told"), [(1, "(1 reply, $0.0100 · 12 tokens)"), (2, "(2 replies, ")])
def test_one_reply_is_not_replies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replies: int, told: str):
    stream, budget = io.StringIO(), Budget()
    monkeypatch.setattr(output, "err", Console(file=stream, width=500, markup=False))
    for _ in range(replies):
        budget.add(Completion("", "stop", {"prompt": 10, "completion": 2}, 0.01))
    output.print_summary(RunSummary(played=1, found=0), budget, tmp_path)
    assert told in stream.getvalue()


def test_progress_on_a_terminal_is_a_bar_with_cost_tokens_failures_and_time(monkeypatch: pytest.MonkeyPatch):
    drawn = shown(monkeypatch, True, ["found", "played", "failed", "left", "left"])
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    assert "2/4" in last
    assert "$0.0500 · 6,170 tokens · 1 failed" in last
    assert "stopping: enough" in last


def test_a_price_that_is_not_known_is_not_shown_as_nothing():
    budget = Budget()
    assert live.format_usage(budget) == ""
    budget.add(Completion("", "stop", {"prompt": 10, "completion": 2}, None))
    assert live.format_usage(budget) == "price unknown · 12 tokens"
    budget.add(Completion("", "stop", {"prompt": 10, "completion": 2}, 0.5))
    assert live.format_usage(budget) == "$0.5000 + 1 of unknown price · 24 tokens"


def test_models_stand_in_the_manifest_as_the_flags_say(flags: tuple, tmp_path: Path):
    run("--agent", "llm", "--model", "gpt-4o-mini", "--temperature", "none", *flags)
    (model,) = json.loads((tmp_path / "run" / "run.json").read_text())["studies"][0]["models"]
    assert (model["temperature"], model["reasoning_effort"], model["name"]) == (None, None, "")


def test_rules_reach_the_episodes(tmp_path: Path):
    rules = ("--rule", "bare_decisions=false", "--rule", "feedback=hint")
    status, _, err = run("--agent", "random", "--papers", "2", "--seeds", 1, "--out", tmp_path / "run", *rules)
    assert status == 0, err
    (log,) = logs(tmp_path)
    found = read_episode(log).header.rules
    assert (found["bare_decisions"], found["feedback"], found["reruns"]) == (False, "hint", "redo")


def test_a_preset_and_its_prompts_reach_the_episodes_and_what_is_named_beside_it_overrides_it(tmp_path: Path):
    given = ("--agent", "oracle", "--papers", "2", "--seeds", 1, "--fake-level", 4, "--rules", "paper")
    for folder, flags, rules, prompts in (
        ("a", (), {}, "paper"),
        ("b", ("--rule", "decisions=phrases", "--prompts", "default"), {"decisions": "phrases"}, "default"),
    ):
        for _ in range(2):  # the second time, the manifest is compared
            status, _, err = run(*given, *flags, "--out", tmp_path / folder)
            assert status == 0, err
        (file,) = (tmp_path / folder / "episodes").iterdir()
        header = read_episode(file).header
        played = {"threshold": header.rules["threshold"], "fake_level": 4}
        assert Rules(**header.rules) == Rules.preset("paper").override(rules | played)
        assert header.prompts == inquiry_prompts(prompts).digest
        assert json.loads((tmp_path / folder / "run.json").read_text())["studies"][0]["settings"]["rules"] == {
            "preset": "paper",
            **rules,
        }


def test_the_device_goes_with_a_study_file_and_is_told_where_there_is_none(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text('agents = ["retrieval"]\ntrees = ["2"]\nseeds = 1\n')
    given = ("--study", file, "--out", tmp_path / "run")
    if not pytest.importorskip("torch").cuda.is_available():
        status, _, err = run(*given, "--device", "cuda")
        assert status == 2
        assert "device='cuda' needs a CUDA device and a build of torch for it; found none; use 'cpu' or 'auto'" in err
    assert run(*given, "--device", "auto")[0] == 0
    assert len(logs(tmp_path)) == 1


# Agents of one's own

PATIENT = """
from inquitree_gym.baselines import BaselineAgent


class Patient(BaselineAgent):
    name = "patient"

    def __init__(self, env):
        super().__init__()

    def act(self, observation, info):
        return "draw conclusion" if info["turn"] else "Let us see."
"""


def test_a_study_file_says_which_code_it_runs(tmp_path: Path):
    file, study = tmp_path / "mine.py", tmp_path / "study.toml"
    file.write_text(PATIENT)
    study.write_text(f'agents = ["random", "{file}:Patient"]\ntrees = ["paper8"]\nseeds = 1\nmax_turns = 2\n')
    done = inquitree("run", "--study", study, "--out", tmp_path / "run")
    assert done.status == 0
    assert f"'{study}' names the agent '{file}:Patient', whose code is run" in done.said
