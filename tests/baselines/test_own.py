"""Agents that the package does not know, by the name of their factory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inquitree_gym import InquiryEnv, make_agent, play
from inquitree_gym.baselines.agent import asks_models
from inquitree_gym.errors import AgentError, OptionError
from inquitree_gym.llm import ChatModel
from inquitree_gym.results.load import load_run
from inquitree_gym.results.summary import summarise
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.runs.folder import load_manifest
from inquitree_gym.runs.specs import EpisodeSpec, agent_part, is_own
from inquitree_gym.trees import load_tree
from tests.servers import Rote, Service

AGENTS = """
import sys

from inquitree_gym.baselines import BaselineAgent, LLMAgent, RandomAgent


class Patient(BaselineAgent):
    name = "patient"

    def __init__(self, env, patience=2):
        super().__init__()
        self.patience = patience

    @property
    def config(self):
        return {"name": self.name, "patience": self.patience}

    def act(self, observation, info):
        return "draw conclusion" if info["turn"] >= self.patience else "Let us see."


def very_patient(env):
    return Patient(env, 4)


def critic(env, chat):
    return LLMAgent(chat=chat)


class Mute(Patient):
    name = "mute"

    def act(self, observation, info):
        return None


class Failing(Patient):
    name = "failing"

    def act(self, observation, info):
        raise KeyError("two\\nlines")


class Nameless(Patient):
    config = {"patience": 1}


class Odd(Patient):
    config = {"name": "odd", "tree": object()}


class Leaving(Patient):
    name = "leaving"

    def reset(self, seed):
        sys.exit("bye")


class Peeking(Patient):
    name = "peeking"
    needs_privileged = True

    def act(self, observation, info):
        return "draw conclusion" if info["privileged"] else ""


def nothing(env):
    return None


def in_pieces(env):
    raise ValueError("no such thing")


def random_again(env):
    return RandomAgent(env.trees[0])


constant = 3
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of agents in the current folder."""
    file = tmp_path / "mine.py"
    file.write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    return file


def test_a_factory_of_a_file_is_played_and_logged_with_its_settings(agents: Path):
    env = InquiryEnv("paper8", max_turns=4)
    agent = make_agent("mine.py:Patient", env, patience=3)
    episode = play(env, agent, 0)
    assert episode.header.agent == {"name": "patient", "patience": 3}
    assert [turn.action for turn in episode.turns][2:4] == ["Let us see.", "draw conclusion"]
    assert make_agent(f"{agents}:very_patient", env).config["patience"] == 4
    with pytest.raises(OptionError, match=r"the mine\.py:Peeking agent needs an environment made with privileged=True"):
        make_agent("mine.py:Peeking", env)
    open_env = InquiryEnv("paper8", privileged=True)
    assert make_agent("mine.py:Peeking", open_env).config == {"name": "peeking", "patience": 2, "privileged": True}


def test_a_factory_of_an_installed_module_is_found_but_not_one_of_the_current_folder(agents: Path, monkeypatch):
    env = InquiryEnv("paper8")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", str(agents.parent))])
    with pytest.raises(AgentError, match=r"'mine:Patient' failed in its import: ModuleNotFoundError: No module named"):
        make_agent("mine:Patient", env)
    monkeypatch.syspath_prepend(agents.parent)
    assert make_agent("mine:Patient", env).config["patience"] == 2
    del sys.modules["mine"]


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("none.py:f", r"failed in its import: FileNotFoundError"),
        ("mine.py:Pateint", r"failed in its import: AttributeError: .* has no attribute 'Pateint'"),
        ("mine.py:constant", r"constant is no factory but int; name a callable"),
        ("mine.py:nothing", r"its factory returned NoneType without needs_privileged, config, reset, act, recall"),
        ("mine.py:in_pieces", r"failed in its factory: ValueError: no such thing$"),
        ("mine.py:critic", r"failed in its factory: TypeError: .* missing 1 required positional argument: 'chat'"),
        ("mine.py:Mute", r"returned NoneType from act; an action is a string"),
        ("mine.py:Failing", r"failed in act: KeyError: 'two\\nlines'$"),
        ("mine.py:Nameless", r"its config has no name; add one, as text"),
        ("mine.py:Odd", r"failed in config: TypeError: Object of type object is not JSON serializable"),
        ("mine.py:Leaving", r"failed in reset: SystemExit: bye"),
        ("broken.py:f", r"failed in its import: SyntaxError"),
    ],
)
def test_a_fault_names_agent_and_place_in_one_line(agents: Path, factory: str, told: str):
    (agents.parent / "broken.py").write_text("def f(:\n")
    env = InquiryEnv("paper8", max_turns=4)
    with pytest.raises(AgentError, match=told) as caught:
        play(env, make_agent(factory, env), 0)
    assert f"the agent '{factory}'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names(agents: Path):
    for name in ("a:b", "a.b.c:D.e", "../x y/z.py:f", "chat:a.py:f", "policy:runs/model.zip"):
        assert is_own(name)
    for name in ("random", "a:", ":f", "a b:f", "policy:", "a.py:f\n", "chat:policy:", "a.py:\x1b[31m"):
        assert not is_own(name)
    assert agent_part("../a/b.py:f") != agent_part("../a-b.py:f")
    name = EpisodeSpec("../../a b/ü.py:f", "paper8", (("fake_level", 0),), 1).file_name
    assert name.isascii()
    assert (name[:7], name[-12:], "/" in name) == ("paper8_", "_f0_s1.jsonl", False)
    with pytest.raises(OptionError, match=r"unknown agent 'orcale' \(did you mean 'oracle'\?\).*FILE\.py:factory"):
        make_agent("orcale", InquiryEnv("paper8"))


def test_own_agents_stand_beside_the_baselines_and_a_failing_one_stops_no_other(agents: Path, tmp_path: Path):
    names = ("random", "mine.py:Patient", "mine.py:very_patient", "mine.py:Failing", "mine.py:random_again", "no.py:f")
    study = make_study(agents=names, trees=("paper8",), seeds=2, max_turns=5)
    summary = run_study(study, tmp_path / "run")
    assert (summary.played, len(summary.failures)) == (6, 6)
    told = {outcome.spec.agent: outcome.error for outcome in summary.failures}
    assert told.keys() == {"mine.py:Failing", "mine.py:random_again", "no.py:f"}
    assert "'mine.py:random_again' and 'random' have the same config" in told["mine.py:random_again"]
    agents.unlink()
    assert load_manifest(tmp_path / "run").studies[0].agents == names
    table = summarise(load_run(tmp_path / "run").scores)
    assert [(row.agent, row.episodes) for row in table] == [
        ("random", 2), ("patient (patience=2)", 2), ("patient (patience=4)", 2),
    ]  # fmt: skip


def test_a_study_is_read_without_its_code(agents: Path, tmp_path: Path):
    trap = tmp_path / "trap.py"
    trap.write_text("import pathlib\npathlib.Path('sprung').touch()\n")
    study = make_study(agents=("random", "trap.py:f"), trees=("paper8",), seeds=1, max_turns=3)
    assert not Path("sprung").exists()
    run_study(make_study(agents=("random",), trees=("paper8",), seeds=1, max_turns=3), tmp_path / "run")
    manifest = tmp_path / "run" / "run.json"
    manifest.write_text(manifest.read_text().replace('"random"', '"random", "trap.py:f"', 1))
    assert load_run(tmp_path / "run").scores
    assert not Path("sprung").exists()
    run_study(study, tmp_path / "other")
    assert Path("sprung").exists(), "a run imports it"


@pytest.mark.e2e
def test_a_factory_with_a_model_is_played_with_every_model(agents: Path, tmp_path: Path, service: Service):
    with pytest.raises(OptionError, match=r"agents that ask a model \(chat:mine\.py:critic\) need one"):
        make_study(agents=("chat:mine.py:critic",), trees=("2",))
    agent = make_agent("chat:mine.py:critic", InquiryEnv("paper2"), chat=ChatModel("gpt-4o-mini"))
    assert (asks_models(agent), agent.config["model"]) == (True, "gpt-4o-mini")
    service.reply = Rote(load_tree("paper2"))
    here = {"model": "gpt-4o-mini", "base_url": service.address}
    names, models = ("chat:mine.py:critic", "random"), [here, {**here, "name": "twin"}]
    study = make_study(agents=names, models=models, trees=("2",), seeds=1)
    assert [spec.model for spec in study.specs()] == ["gpt-4o-mini", "twin", ""]
    assert run_study(study, tmp_path / "run").is_complete
    rows = summarise(load_run(tmp_path / "run").scores)
    assert [row.agent for row in rows] == ["llm gpt-4o-mini", "llm twin", "random"]
