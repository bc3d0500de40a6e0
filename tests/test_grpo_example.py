"""The example of GRPO trains a tiny model, and its server answers for one, both for real."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import sys
import threading
from pathlib import Path

import httpx
import pytest

from inquitree_gym.prompts import Prompts

pytestmark = [pytest.mark.weights, pytest.mark.e2e]

EXAMPLES = Path(__file__).parents[1] / "examples" / "grpo"


@pytest.fixture
def train(monkeypatch, tmp_path):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("train")
    for name in ("train", "serve", "tiny"):
        sys.modules.pop(name, None)


@pytest.fixture
def tiny(train, tmp_path) -> str:
    importlib.import_module("tiny").make(tmp_path / "model", train.Settings())
    return str(tmp_path / "model")


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")  # TRL's own calls
def test_after_the_warm_start_the_tool_is_called_and_grpo_has_gradients(train, tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny.toml").write_text(
        f'model = "{tiny}"\nseeds = [3]\ntest_trees = 1\nwarm_steps = 150\nwarm_rate = 4e-3\nupdates = 2\n'
        "generations = 6\nbatch = 3\ncalls = 4\nmax_tokens = 1100\nmove_tokens = 60\ntemperature = 0.7\n"
    )
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", "tiny.toml", "--out", "kept"])
    train.main()
    settings, *rows = map(json.loads, (tmp_path / "kept" / "seed3" / "log.jsonl").read_text().splitlines())
    assert (settings["model"], settings["seeds"], settings["temperature"]) == (tiny, [3], 0.7)
    assert [row["update"] for row in rows] == [1, 2]
    assert all(row["calls"] >= 1 for row in rows), "each inquiry calls the tool at least once on average"
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert any(row["spread"] > 0 and row["gradient"] > 0 for row in rows), "no group teaches anything"
    found = json.loads((tmp_path / "kept" / "seed3" / "test.json").read_text())
    assert set(found) == {"trained on", "unseen"}
    for returns in found.values():
        assert set(returns) == {"model", "cover", "bayes"}
    assert (tmp_path / "kept" / "curve.svg").read_text().lstrip().startswith("<?xml")
    assert "seed 3: 2 updates" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")  # TRL's own calls
def test_without_a_warm_start_every_group_has_an_inquiry_of_its_own(train, tiny, tmp_path, monkeypatch):
    (tmp_path / "cold").mkdir()
    settings = train.Settings(model=tiny, warm_steps=0, updates=2, groups=2, calls=1, max_tokens=12, upper_layers=1)
    begun = []
    reset = train.Inquiry.reset
    monkeypatch.setattr(train.Inquiry, "reset", lambda self, **row: begun.append(row["seed"]) or reset(self, **row))
    model, _, rows = train.train(settings, 0, tmp_path / "cold")
    assert sorted(begun) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [row["calls"] for row in rows] == [0, 0], "a model that never saw the tool calls it"
    assert not model.model.layers[0].mlp.up_proj.weight.requires_grad
    assert model.model.layers[1].mlp.up_proj.weight.requires_grad


@pytest.mark.parametrize("name", ["tiny", "cpu", "h100"])
def test_the_settings_can_be_read_and_name_trees_that_can_be_played(train, name):
    settings = train.Settings.read(EXAMPLES / f"{name}.toml")
    assert settings.generations * settings.groups % settings.batch == 0, "an update has whole batches"
    assert settings.generations % settings.batch == 0
    assert train.Inquiry(settings).reset(number=settings.trees - 1, seed=0).startswith("You lead a research project")


def calls(environment, *texts: str) -> list:
    """Play the calls of one message as TRL does, and return the answers and errors."""

    async def gathered() -> list:
        told = await asyncio.gather(*map(environment.move, texts), return_exceptions=True)
        await asyncio.sleep(0)  # as long as a generation takes at least
        return told

    return asyncio.run(gathered())


def test_the_tool_plays_the_inquiry_and_its_reward_is_that_of_the_expected_exam(train):
    settings = train.Settings()
    environment = train.Inquiry(settings)
    chat = train.lesson(settings, 0, 7)["messages"]
    told = [environment.reset(number=0, seed=7)]
    for message in chat[1::2]:
        assert environment.get_reward() == 0
        told += calls(environment, message["tool_calls"][0]["function"]["arguments"]["text"])
    assert told[:-1] == [message["content"] for message in chat[::2]]
    assert environment.get_reward() == 0.25, "one axis of four was read"
    assert calls(environment, "redo the study") == told[-1:], "nothing is played after the end"


def test_of_several_calls_in_one_message_the_first_is_played_and_the_others_are_refused(train):
    environment, alone = train.Inquiry(train.Settings()), train.Inquiry(train.Settings())
    opening = [one.reset(number=0, seed=7) for one in (environment, alone)]
    assert opening[0] == opening[1]
    first, second = [
        message["tool_calls"][0]["function"]["arguments"]["text"]
        for message in train.lesson(train.Settings(), 0, 7)["messages"][1:4:2]
    ]
    told, *others = calls(environment, first, second, first)
    assert [told] == calls(alone, first)
    assert [str(other) for other in others] == ["one move at a time; read the answer first"] * 2
    assert calls(environment, second) == calls(alone, second), "the refused calls changed nothing"


def test_the_server_plays_a_turn(train, tiny):
    serve = importlib.import_module("serve")
    with serve.ChatServer("tiny", *serve.load(tiny), limit=6) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
        body = {"model": "tiny", "messages": [{"role": "user", "content": "Which question comes first?"}]}
        first, again = (httpx.post(address, json=body, timeout=60).json() for _ in range(2))
        warm = httpx.post(address, json=body | {"temperature": 1.5, "seed": 4, "max_tokens": 3}, timeout=60).json()
        missing = httpx.post(address, json=body | {"model": "other"}, timeout=60)
        text = first["choices"][0]["message"]["content"]
        early = httpx.post(address, json=body | {"stop": text[1:4]}, timeout=60).json()
        server.shutdown()
        with serve.ChatServer("tiny", server.model, server.tokenizer, limit=6, stop=[text[1:4]]) as other:
            assert other.complete(body) == early
    assert early["choices"][0]["message"]["content"] == text.split(text[1:4])[0]
    assert early["choices"][0]["finish_reason"] == "stop"
    assert early["usage"]["completion_tokens"] < 6
    assert first["choices"][0]["finish_reason"] == "length"
    assert first == again
    assert first["choices"][0]["message"]["role"] == "assistant"
    assert 0 < first["usage"]["completion_tokens"] <= 6
    assert 0 < warm["usage"]["completion_tokens"] <= 3
    assert missing.status_code == 404
    assert "only tiny" in missing.json()["error"]["message"]


def test_the_prompts_of_the_example_are_those_of_an_agent():
    shown = Prompts(EXAMPLES / "prompts", ("llm_system", "llm_correction"), "inquitree_gym.inquiry")
    assert list(shown.changed) == ["llm_system"]
    assert 'after "ACTION:"' in shown.render("llm_system")
