"""Inquiries in inspect_ai: the episodes of `inquitree run`, our scores, and its own agents over MCP.

These tests need inspect_ai, which does not go with litellm's pins; scripts/test.sh runs them with an overlay.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import mcp.client  # noqa: F401  (here, as CPython 3.11 may fail to compile a module while other threads run)
import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai._util.registry import registry_info
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import Model, ModelOutput, get_model
from inspect_ai.tool import mcp_server_stdio

from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.integrations.inspect import VERSION, research
from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.tasks import make_tasks
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.results.score import score_episode
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import load_tree
from tests.contract.command_line import inquitree
from tests.frames import FRAMES, Framed
from tests.servers import REFUSED, Body, Rote, Service, calling, failed, said
from tests.test_docs import DOCS, blocks

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.weights,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # inspect_ai leaves streams open
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TREES = ("paper2", "paper17")
MODEL = "openai-api/loop/m"
SCORES = {"reward", "coverage", "unaided_coverage", "turns", "actions"}
ROOT = Path(__file__).parents[2]


class Sloppy(Rote):
    """Plays by heart, but forgets the form of every third answer until it is corrected."""

    def __call__(self, body: Body) -> str:
        messages = body["messages"]
        corrected = messages[-1]["content"].startswith("Your answer could not be read")
        if len(messages) % 3 == 0 and not corrected and "VERDICT" not in messages[0]["content"]:
            return "I would look closer."
        return super().__call__(body)


@pytest.fixture(autouse=True)
def playing(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A server that plays, where inspect_ai looks for it."""
    service.reply = Sloppy(*map(load_tree, TREES))
    monkeypatch.setenv("LOOP_BASE_URL", service.address)
    monkeypatch.setenv("LOOP_API_KEY", "sk-loop")
    return service


def run(*command: object, overlay: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a Python module's command; without ``overlay`` in the environment of the other tests."""
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if not overlay:
        paths = [path for path in paths if not (Path(path) / "inspect_ai").exists()]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=env, cwd=ROOT)


def evaluate(folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run ``inspect eval``, which leaves its log in ``folder``."""
    command = ("-m", "inspect_ai", "eval", "inquitree_gym/research", "--model", MODEL, "--max-retries", 0)
    return run(*command, "--display", "none", "--log-dir", folder, *options)


def played(folder: Path) -> dict[tuple[str, int, int], Episode]:
    """The episodes of a folder by tree, fake level and seed."""
    episodes = [read_episode(file) for file in folder.rglob("*.jsonl")]
    return {(each.header.task.id, each.header.rules["fake_level"], each.header.seed): each for each in episodes}


def evaluated(log: str | Path, **settings: Any) -> EvalLog:
    """Evaluate in this process."""
    given = {"papers": "paper2", "seeds": 1, **settings}
    limits = {name: given.pop(name) for name in ("token_limit",) if name in given}
    (found,) = inspect_eval(
        research(**given), model=get_model(MODEL, memoize=False), log_dir=str(log), display="none", **limits
    )
    return found


# Played and scored


def test_the_command_plays_and_scores_the_episodes_of_inquitree_run(tmp_path: Path, playing: Service):
    ours = ["run", "--agent", "llm", "--model", "openai/m", "--base-url", playing.address, "--papers", ",".join(TREES)]
    ours += ["--fake-level", "0,3", "--seeds", "1", "--out", tmp_path / "run"]
    done = run("-c", "from inquitree_gym.cli import main; main()", *ours, overlay=False)
    assert done.returncode == 0, done.stderr
    options = ("-T", f"papers={','.join(TREES)}", "-T", "fake_level=0,3", "-T", "seeds=1")
    done = evaluate(tmp_path / "logs", *options, "-T", f"episodes={tmp_path / 'episodes'}")
    assert done.returncode == 0, done.stdout + done.stderr

    expected, found = played(tmp_path / "run"), played(tmp_path / "episodes")
    assert len(found) == 4
    assert {name: each.fingerprint for name, each in found.items()} == {
        name: each.fingerprint for name, each in expected.items()
    }
    for name, episode in found.items():
        assert [reply.text for reply in episode.replies] == [reply.text for reply in expected[name].replies]
        assert {reply.role for reply in episode.replies} == {"proposer", "correction"}
        assert episode.replies[0].tokens == expected[name].replies[0].tokens

    (file,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(file))
    assert (log.status, log.eval.task_version, log.eval.metadata) == ("success", VERSION, None)
    for sample in log.samples:
        (score,) = sample.scores.values()
        episode = found[sample.metadata["task"], sample.metadata["cell"]["fake_level"], sample.metadata["seed"]]
        ours = score_episode(episode, load_tree(episode.header.task.id))
        values = {name: value for name, value in ours.values.items() if value is not None}
        reward = {"reward": episode.footer.episode_return, "actions": len(episode.turns)}
        assert score.value == pytest.approx(reward | values)
        assert score.metadata["fingerprint"] == episode.fingerprint
        assert score.answer == episode.actions[-1]
        assert sample.messages[1].text == episode.turns[0].observation
        assert len(sample.messages) == 1 + 2 * len(episode.turns)
    assert {each.name for each in log.results.scores} >= SCORES
    assert {"mean", "ci_lower", "ci_upper"} <= {key for each in log.results.scores for key in each.metrics}

    report = run("-c", "from inquitree_gym.cli import main; main()", "report", tmp_path / "episodes", overlay=False)
    assert report.returncode == 0, report.stderr
    assert "llm openai-api/loop/m" in " ".join(report.stdout.split())


def test_settings_reach_the_episode(tmp_path: Path):
    settings = {"fake_level": 2, "seeds": [7], "max_turns": "5n", "agent": "sceptic", "embedder": "hashed-words"}
    log = evaluated(tmp_path / "logs", **settings, episodes=str(tmp_path / "episodes"))
    ((name, episode),) = played(tmp_path / "episodes").items()
    assert name == ("paper2", 2, 7)
    version = load_tree("paper2").version
    assert log.samples[0].id == f"paper2@{version}/fake_level=2/s7/embedder=hashed-words/max_turns=5n"
    assert (episode.header.rules["max_turns"], episode.header.setup.embedder.name) == ("5n", "hashed-words")
    assert (episode.header.agent["name"], episode.header.agent["harness"]) == ("sceptic", "inspect_ai")


def test_an_inquiry_without_a_conclusion_is_not_scored(tmp_path: Path):
    log = evaluated(tmp_path / "logs", token_limit=500, episodes=str(tmp_path / "episodes"))
    assert log.status == "success"
    (score,) = log.samples[0].scores.values()
    assert (math.isnan(score.value), score.reason) == (True, "not_concluded")
    assert {each.unscored_samples for each in log.results.scores} == {1}


def test_a_model_that_gives_no_answer_is_an_error_without_a_score(tmp_path: Path, playing: Service):
    playing.planned.append(failed(400, "no such model"))
    done = evaluate(tmp_path, "-T", "papers=paper2", "-T", "seeds=1", "-T", f"episodes={tmp_path / 'episodes'}")
    (file,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(file))
    assert (done.returncode != 0 or log.status == "error", log.samples[0].scores or None) == (True, None)
    ((_, episode),) = played(tmp_path / "episodes").items()
    assert (episode.status, "no such model" in episode.failure.error) == ("failed", True)


@pytest.mark.parametrize("first", [0, len(FRAMES) // 2])
def test_framed_and_cut_replies_give_the_same_game(first: int, tmp_path: Path, playing: Service):
    playing.reply = Rote(*map(load_tree, TREES))
    evaluated(tmp_path / "logs", episodes=str(tmp_path / "clean"))
    playing.reply = Framed(playing.reply, first)
    playing.planned.extend([
        said("Okay, so the user wants … Let me think about", "length"), None, None,
        said("ACTION: How steady is a fly's sense of hea", "length"), None, REFUSED,
    ])  # fmt: skip
    evaluated(tmp_path / "logs", episodes=str(tmp_path / "framed"))
    (clean,), (framed,) = (played(tmp_path / name).values() for name in ("clean", "framed"))
    assert framed.fingerprint == clean.fingerprint
    assert sum(reply.fault.startswith("its tokens were used up") for reply in framed.replies) == 2


def test_a_request_too_long_fails_the_episode_unscored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    planned = iter([("ACTION: a", "stop"), ("ACTION: b", "stop"), ("context length exceeded", "model_length")])

    async def generate(*arguments: Any, **more: Any) -> ModelOutput:
        text, ended = next(planned)
        return ModelOutput.from_content(MODEL, text, stop_reason=ended)

    monkeypatch.setattr(Model, "generate", generate)
    log = evaluated(tmp_path / "logs", episodes=str(tmp_path / "episodes"))
    ((_, episode),) = played(tmp_path / "episodes").items()
    assert (log.status, log.samples[0].scores or None) == ("error", None)
    assert (episode.status, episode.actions, "smaller context" in episode.failure.error) == ("failed", ("a", "b"), True)


def test_a_torn_log_is_resumed_without_asking_again(tmp_path: Path, playing: Service):
    evaluated(tmp_path / "logs", episodes=str(tmp_path / "episodes"))
    (file,) = (tmp_path / "episodes").iterdir()
    whole, asked = read_episode(file), len(playing.requests)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:8]))
    log = evaluated(tmp_path / "logs", episodes=str(tmp_path / "episodes"))
    assert read_episode(file).fingerprint == whole.fingerprint
    assert len(playing.requests) < 2 * asked
    (score,) = log.samples[0].scores.values()
    assert score.metadata["fingerprint"] == whole.fingerprint


# Its own agents, over MCP


def test_react_plays_over_mcp(tmp_path: Path, playing: Service):
    (task,) = make_tasks("paper2", seeds=[3], fake_level=3)
    actions = play_task(task).actions

    def call_tools(body: Body) -> Any:
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done == 0:
            return calling("look")
        return calling("move", text=actions[done - 1]) if done <= len(actions) else calling("submit", answer="done")

    playing.reply = call_tools
    program = "from inquitree_gym.cli import main; main()"
    options = ["mcp", "paper2", "--seed", "3", "--fake-level", "3", "--log", str(tmp_path / "one.jsonl")]
    server = mcp_server_stdio(command=sys.executable, args=["-c", program, *options], env=dict(os.environ))
    agent = react(prompt="Lead the research project with your tools.", tools=[server])
    (log,) = inspect_eval(
        Task(dataset=[Sample(input="Begin.")], solver=agent), model=get_model(MODEL, memoize=False),
        log_dir=str(tmp_path / "logs"), display="none",
    )  # fmt: skip
    assert log.status == "success", log.error
    assert read_episode(tmp_path / "one.jsonl").fingerprint == play_task(task).fingerprint
    assert log.samples[0].output.completion == "done"


# Our episodes in its viewer


def test_episodes_are_exported_as_its_logs(tmp_path: Path):
    run_study(make_study(agents=("oracle", "random"), trees=("paper2",), fake_level=(3,), seeds=2), tmp_path / "run")
    assert inquitree("export", tmp_path / "run", "--to", "inspect", "--out", tmp_path / "logs").status == 0
    done = inquitree("export", tmp_path / "run", "--to", "inspect")
    assert (done.status, done.out) == (0, "")
    episodes = [read_episode(file) for file in (tmp_path / "run" / "episodes").glob("*oracle*")]
    for folder in (tmp_path / "run" / "inspect", tmp_path / "logs"):
        assert {file.name for file in folder.iterdir()} == {"oracle.eval", "random.eval"}
    log = read_eval_log(str(tmp_path / "run" / "inspect" / "oracle.eval"))
    assert (log.status, log.eval.model, log.results.completed_samples) == ("success", "oracle", 2)
    assert {sample.metadata["fingerprint"] for sample in log.samples} == {each.fingerprint for each in episodes}
    name = f"paper2@{load_tree('paper2').version}/fake_level=3/s0"
    sample = next(sample for sample in log.samples if sample.id == name)
    assert sample.scores["episode_scores"].value["coverage"] == 1.0
    assert sample.messages[1].text == episodes[0].turns[0].observation
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert means["reward"] == pytest.approx(sum(each.footer.episode_return for each in episodes) / 2)
    done = inquitree("export", tmp_path / "run", "--to", "inspect", "--benchmark")
    assert (done.status, "--benchmark concerns messages" in done.said) == (2, True)


# Wrong settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"papers": "/etc/shadow"}, "a task is named by its id"),
        ({"papers": "paper6"}, "may not be distributed"),
        ({"agent": "oracle"}, "agent must be llm or sceptic or recall, got 'oracle'"),
        ({"fake_level": 11}, "fake_level"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises((OptionError, TreeError), match=message):
        research(**settings)


# How it is found


def test_the_entry_point_names_the_task():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = import_module(project["entry-points"]["inspect_ai"]["inquitree_gym"])
    assert registry_info(module.research).name == "inquitree_gym/research"


@pytest.mark.parametrize("papers", [2, "2", ["paper2"]])
def test_papers_are_named_in_every_form_of_the_command_line(papers):
    samples = research(papers=papers, seeds=["1", "3"], fake_level=["0", "2"]).dataset
    found = {(each.metadata["task"], each.metadata["seed"], each.metadata["cell"]["fake_level"]) for each in samples}
    assert found == {("paper2", seed, level) for seed in (1, 3) for level in (0, 2)}


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (source,) = [source for _, needs, source in blocks(DOCS / "integrations.md", "python") if needs == "inspect_ai"]
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "integrations.md", "exec"), names)
    assert names["log"].status == "success"
    assert json.dumps(names["log"].samples[0].scores["episode_scores"].value)
