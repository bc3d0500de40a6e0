"""What no verb can do: it is told with status 2 and what to do instead, prints no result and writes nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.contract.command_line import inquitree
from tests.servers import KEY

NEAREST = "no tree has the id 'papper12' (did you mean 'paper12'?)"
LLM = "run --agent llm --papers 2"
ORACLE = "run --agent oracle --papers 2"

REFUSED = [
    ("lsit", "No such command 'lsit'"),
    ("show", "Missing argument 'TASK'"),
    ("score", "Missing argument 'LOGS…'"),
    ("report", "Missing argument"),
    ("list paper8", "unexpected extra argument"),
    ("show papper12", NEAREST),
    ("play papper12", NEAREST),
    ("check papper12", NEAREST),
    ("run --papers papper12", NEAREST),
    ("show paper8 --svg tree.png", "must name an .svg file, which it writes, got 'tree.png'"),
    ("show paper8 --svg tree", "must name an .svg file, which it writes, got 'tree'"),
    ("new paper12", "is the id of a shipped tree; take another one"),
    ("new 'A b'", "'A b' is not an id"),
    ("match 12 Why? --result --subtopic s3", "error: --result and --subtopic exclude each other; give one of them"),
    ("play paper8 --seed none", "Invalid value for '--seed'"),
    ("play paper8 --fake-level 11", "fake_level.0: needs at most 10"),
    ("play paper8 --max-turns 0", "max_turns must be an integer from 1"),
    ("run --agnet random", "No such option: --agnet"),
    ("run --agent oracel", "no agent is called 'oracel' (did you mean 'oracle'?)"),
    ("run --agent patience", "an agent of your own is module:factory, FILE.py:factory or policy:FILE"),
    ("run --fake-level 0,x", "fake_level.1: needs a whole number"),
    ("run --seeds many", "Invalid value for '--seeds'"),
    ("run --max-turns many", "a formula such as '3n'"),
    ("run --study none.toml", "cannot read 'none.toml'"),
    (f"{ORACLE} --out /dev/null/run", "choose another folder with --out"),
    (f"{ORACLE} --max-cost 0", "max_cost must be a number above 0"),
    (f"{ORACLE} --rule feedback", "--rule must be NAME=VALUE, such as"),
    (f"{ORACLE} --rule redo_turn=first", "redo_turn must be True or False, got 'first'"),
    (f"{ORACLE} --max-concurrency 0", "Invalid value for '--max-concurrency'"),
    (f"{ORACLE} --device gpu", "'gpu' is not one of 'auto', 'cpu', 'cuda'"),
    (LLM, "agents that ask a model (llm) need one: give --model"),
    (f"{ORACLE} --temperature 1", "--temperature without a model does nothing; name one"),
    (f"{ORACLE} --reply-tokens 9", "--reply-tokens without a model does nothing"),
    (f"{LLM} --model gpt-4o --temperature warm", "temperature: needs a number"),
    (f"{LLM} --model gpt-4o --reply-tokens many", "max_tokens: needs a whole number"),
    (f"{LLM} --model gpt-4o --reply-tokens 0", "max_tokens must be an integer from 1 or None, got 0"),
    (f"{LLM} --model gpt-4o --base-url http://a:{KEY}@b", "base_url must be http(s)://HOST/PATH"),
    (f"{LLM} --model my-own --base-url http://x/v1 --max-cost 1", "knows no price for"),
    (f"{ORACLE} --reader gpt-4o", "a reader must be 'local' or 'llm:MODEL', got 'gpt-4o'"),
    (f"{ORACLE} --reader llm:no-such-model", "litellm knows no provider for the model 'no-such-model'"),
    (f"{ORACLE} --reader-base-url http://x/v1", "--reader-base-url without a model does nothing"),
    (f"{ORACLE} --judge gpt-4o", "must be 'llm:MODEL' or 'llm-paper:MODEL', got 'gpt-4o'"),
    (f"{ORACLE} --judge local", "must be 'llm:MODEL' or 'llm-paper:MODEL', got 'local'"),
    (f"{ORACLE} --judge llm:", "the judge of a study must be"),
    (f"{ORACLE} --judge llm:no-such-model", "litellm knows no provider for the model 'no-such-model'"),
    (f"{ORACLE} --judge-base-url http://x/v1", "--judge-base-url without a model does nothing"),
    ("judge nowhere", "it does not exist"),
    ("judge nowhere --max-cost 0", "must be a number above 0"),
    ("view none.jsonl", "cannot read"),
    ("view .", "'.' holds no episode log"),
]


@pytest.mark.parametrize(("command", "told"), REFUSED, ids=[command for command, _ in REFUSED])
def test_it_is_told_and_nothing_is_written(command: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = inquitree(*shlex.split(command))
    assert (done.status, done.out) == (2, "")
    assert told in done.said
    assert KEY not in done.err
    assert not list(tmp_path.iterdir())
