"""The example of GRPO trains a tiny model, and its server answers for one, both for real."""

from __future__ import annotations

import importlib
import json
import math
import sys
import threading
from pathlib import Path

import httpx
import pytest

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
    importlib.import_module("tiny").make(tmp_path / "model", train.Settings(), words=900, width=64)
    return str(tmp_path / "model")


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")  # TRL's own calls
def test_grpo_trains_after_its_warm_start_and_compares_on_unseen_trees(train, tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny.toml").write_text(
        f'model = "{tiny}"\nseeds = [3]\ntest_trees = 1\nwarm_steps = 3\nupdates = 2\ncalls = 2\nmax_tokens = 40\n'
        "move_tokens = 8\nupper_layers = 1\niterations = 2\n"
    )
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", "tiny.toml", "--out", "kept"])
    train.main()
    settings, *rows = map(json.loads, (tmp_path / "kept" / "seed3" / "log.jsonl").read_text().splitlines())
    assert (settings["model"], settings["seeds"], settings["upper_layers"]) == (tiny, [3], 1)
    assert [row["update"] for row in rows] == [1, 2]
    assert all(math.isfinite(row["loss"]) for row in rows)
    found = json.loads((tmp_path / "kept" / "seed3" / "test.json").read_text())
    assert set(found) == {"trained on", "unseen"}
    for returns in found.values():
        assert set(returns) == {"model", "cover", "bayes"}
    assert (tmp_path / "kept" / "curve.svg").read_text().lstrip().startswith("<?xml")
    assert "seed 3: 2 updates" in capsys.readouterr().out


def test_the_tool_plays_the_inquiry_and_its_reward_is_that_of_the_expected_exam(train):
    settings = train.Settings()
    environment = train.Inquiry(settings)
    chat = train.lesson(settings, 0, 7)["messages"]
    told = [environment.reset(number=0, seed=7)]
    for message in chat[1::2]:
        assert environment.get_reward() == 0
        told.append(environment.move(message["tool_calls"][0]["function"]["arguments"]["text"]))
    assert told[:-1] == [message["content"] for message in chat[::2]]
    assert environment.get_reward() == 0.25, "one axis of four was read"
    assert environment.move("redo the study") == told[-1]


def test_the_server_plays_a_turn(train, tiny):
    serve = importlib.import_module("serve")
    with serve.ChatServer("tiny", *serve.load(tiny), limit=6) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
        body = {"model": "tiny", "messages": [{"role": "user", "content": "Which question comes first?"}]}
        first, again = (httpx.post(address, json=body, timeout=60).json() for _ in range(2))
        warm = httpx.post(address, json=body | {"temperature": 1.5, "seed": 4, "max_tokens": 3}, timeout=60).json()
        missing = httpx.post(address, json=body | {"model": "other"}, timeout=60)
        server.shutdown()
    assert first == again
    assert first["choices"][0]["message"]["role"] == "assistant"
    assert 0 < first["usage"]["completion_tokens"] <= 6
    assert 0 < warm["usage"]["completion_tokens"] <= 3
    assert missing.status_code == 404
    assert "only tiny" in missing.json()["error"]["message"]
