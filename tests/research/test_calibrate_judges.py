"""The tool that judges conclusions of known worth: ``python -m research.calibrate_judges``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from inquitree_gym.cli.output import run_app
from research.calibrate_judges import app
from tests.contract.command_line import Done, ended
from tests.inquiry.judges.test_llm import Grader
from tests.servers import Service

pytestmark = pytest.mark.weights

MODEL = "llm:gpt-4o-mini"


def run_tool(tool: Callable[[], object], *arguments: object) -> Done:
    """Run a tool in this process."""
    with patch("sys.argv", ["tool", *map(str, arguments)]):
        return ended(lambda: run_app(tool))


calibrate = partial(run_tool, app)


@pytest.fixture
def reading(service: Service) -> Service:
    service.reply = Grader(lambda place, text, asked: int(asked.count(text) > 1))
    return service


def test_calibrate_as_json_with_judges_beside_each_other(reading: Service, tmp_path: Path):
    options = ("--base-url", reading.address, "--cache", tmp_path, "--papers", 2, "--repeats", 1)
    done = calibrate("--judge", f"local,{MODEL}", *options, "--json")
    found = json.loads(done.out)
    local, asked = found["judges"]
    assert local["trees"][0]["holds"]
    assert local["trees"][0]["means"]["perfect"] > 0.8
    # This model knows items by their very words alone, so it finds none in paraphrases.
    assert asked["trees"][0]["means"] == {kind: 0 for kind in local["trees"][0]["means"]}
    assert [(each["judge"], each["with"]) for each in found["agreement"]] == [
        ("local", "expected"), (MODEL, "expected"), ("local", MODEL),
    ]  # fmt: skip
    assert found["agreement"][1]["kappa"] == 0
    assert asked["usage"]["replies"] == len(reading.requests) == 2 * 6, "the empty conclusion is not asked about"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--max-concurrency", "0"), "--max-concurrency"),
        (("--conclusions", "nowhere"), "no conclusions"),
        (("--papers", "9"), "no calibration conclusions for paper9"),
    ],
)
def test_wrong_words_end_with_status_2(arguments: tuple[str, ...], told: str):
    done = calibrate(*arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.said


@pytest.mark.parametrize("tool", ["validity", "calibrate_judges", "calibrate_played"])
def test_a_tool_runs_as_a_module(tool: str):
    command = [sys.executable, "-m", f"research.{tool}", "--conclusions", "nowhere", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0
    assert "--conclusions" in done.stdout
