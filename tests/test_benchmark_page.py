"""docs/benchmark.md from its first command to its last, with a real server, a real kill, and a smaller study."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inquitree_gym import read_episode
from inquitree_gym.cli import app
from inquitree_gym.log import has_header

pytestmark = [pytest.mark.weights, pytest.mark.e2e]

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8321/v1"
VERBS = [shlex.split(line)[1:] for line in re.findall(r"^\$ (inquitree .+)$", PAGE, re.MULTILINE)]
PLAYED = ["run", "--study", "studies/loopback.toml", "--out", "runs/loopback"]
PAPERS = {"2,8,10,12,18,24": "2,12"}
"""Papers as the page has them, and fewer."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The players of the page, at an address that is free."""
    command = [sys.executable, str(ROOT / "examples" / "loopback_model.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0]
        process.terminate()


@pytest.fixture(scope="module")
def folder(server, tmp_path_factory) -> Path:
    """Where a reader would be, with the study of the page on two trees and one seed."""
    folder = tmp_path_factory.mktemp("reader")
    study = (ROOT / "studies" / "loopback.toml").read_text(encoding="utf-8").replace(ADDRESS, server)
    study, trees = re.subn(r"^trees = .*$", 'trees = ["2", "12"]', study, flags=re.MULTILINE)
    study, seeds = re.subn(r"^seeds = .*$", "seeds = 1", study, flags=re.MULTILINE)
    assert (trees, seeds) == (1, 1)
    (folder / "studies").mkdir()
    (folder / "studies" / "loopback.toml").write_text(study, encoding="utf-8")
    return folder


HALT_AFTER_FIRST_FOOTER = """
import sys, threading
from inquitree_gym.cli import main
from inquitree_gym.log import Footer, JsonlWriter

def write_and_halt(self, record, write=JsonlWriter.write):
    write(self, record)
    if isinstance(record, Footer):
        print("one episode is whole", flush=True)
        threading.Event().wait()  # in the thread in which all episodes step

JsonlWriter.write = write_and_halt
sys.exit(main())
"""


def kill_after_one_episode(arguments: list[str], folder: Path) -> None:
    """Run a command in a process that halts once the log of one episode is whole, and kill it there."""
    command = [sys.executable, "-c", HALT_AFTER_FIRST_FOOTER, *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one episode is whole\n"
        process.kill()


def test_the_page_plays_reports_and_probes_in_this_order():
    named = [arguments[0] for arguments in VERBS]
    assert named == ["run", "run", "report", "view", "probe", "run", "run"]
    assert VERBS[1] == PLAYED
    assert VERBS[0] == [*PLAYED, "--dry-run"]


def test_every_command_of_the_page_does_what_it_says_and_a_kill_loses_nothing(folder, server, reader, monkeypatch):
    monkeypatch.chdir(folder)
    kill_after_one_episode(PLAYED, folder)
    begun = [file for file in folder.glob("runs/loopback/episodes/*.jsonl") if has_header(file)]
    whole = [file for file in begun if read_episode(file).footer]
    assert len(whole) == 1 < len(begun)
    before = {file: file.read_bytes() for file in whole}

    for arguments in VERBS:
        given = [PAPERS.get(argument, argument.replace(ADDRESS, server)) for argument in arguments]
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 0, (arguments, done.output)
        if arguments == PLAYED:
            assert re.search(rf"\b{len(whole)} already complete", done.stderr)

    files = sorted(folder.glob("runs/loopback/episodes/*.jsonl"))
    assert len(files) == 16
    assert all(read_episode(file).footer for file in files)
    assert {file: file.read_bytes() for file in whole} == before
    for made in ("report/report.html", "report/report.md", "report/report.csv", "pages/index.html", "probes/steady"):
        assert (folder / made).exists()
    assert not (folder / "runs" / "mini").exists()
