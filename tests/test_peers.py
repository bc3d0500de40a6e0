"""The peers benchmark: drivers are asked, fail and end as processes do, and what is told of it is right."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
DRIVER = """
import os, sys, time
sys.path.insert(0, {peers!r})
from pace import serve

def steady():
    print("chatter on standard output")
    return lambda: time.sleep(0.001) or 3

def broken():
    raise LookupError("no corpus\\n  is here\\n***\\n")

def dying():
    sys.stderr.write("out of memory\\n")
    sys.stderr.flush()
    os._exit(3)

def silent():
    time.sleep(600)

serve({{"steady": steady, "broken": broken, "dying": dying, "silent": silent}}, ["pytest"], java="17")
"""


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The modules of the benchmark, gone again afterwards: their names are common ones."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(PEERS), *sys.path])
    import pace
    import results
    import roster
    import run
    import venvs
    import workers

    yield SimpleNamespace(pace=pace, results=results, roster=roster, run=run, venvs=venvs, workers=workers)
    for name in ("pace", "results", "roster", "run", "venvs", "workers", "measure"):
        if name not in before:
            del sys.modules[name]


@pytest.fixture
def start(parts: SimpleNamespace, tmp_path: Path) -> Callable[[str], Any]:
    def start(source: str) -> Any:
        file = tmp_path / "driver.py"
        file.write_text(source, encoding="utf-8")
        return parts.workers.Worker([sys.executable, str(file)])

    return start


def test_a_driver_tells_versions_and_rates_whatever_it_prints_besides(start):
    with start(DRIVER.format(peers=str(PEERS))) as worker:
        assert worker.versions == {"pytest": pytest.__version__, "java": "17"}
        assert 0 < worker.rate("steady", 0.01) < 3_000
        assert 0 < worker.rate("steady", 0.01) < 3_000


def test_a_silent_driver_is_ended_with_all_that_it_started(start, parts, monkeypatch, tmp_path):
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    child = f"import subprocess\nwith open({str(tmp_path / 'held')!r}, 'w') as held:\n"
    child += "    subprocess.Popen(['sleep', '60'], stdin=-1, stdout=held)\n"
    with start(child + DRIVER.format(peers=str(PEERS))) as worker:
        monkeypatch.setattr(parts.workers, "PATIENCE", 0.1)
        assert not select.select([held], [], [], 0)[0]
        with pytest.raises(parts.workers.DriverError, match=r"^no answer within 0 s$"):
            worker.rate("silent", 0.01)
        with pytest.raises(parts.workers.DriverError, match="status -9"):
            worker.rate("steady", 0.01)
    assert select.select([held], [], [], 30)[0]  # nobody has the other end any more
    os.close(held)


def test_every_peer_has_its_files_and_exact_pins(parts):
    for peer in parts.roster.PEERS:
        source = peer.driver.read_text(encoding="utf-8")
        assert [name.name for name in peer.settings if f'"{name.name}": ' not in source] == []
        pins = [line for line in peer.pins.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert [pin for pin in pins if pin.count("==") != 1] == []
        ours = (PEERS.parents[1] / "constraints.txt").read_text(encoding="utf-8").splitlines()
        assert [pin for pin in pins if pin.startswith("torch==") and pin not in ours] == []


def test_a_peer_that_fails_is_noted_and_the_others_are_measured_in_every_round(parts, monkeypatch, tmp_path, capsys):
    file = tmp_path / "driver.py"
    file.write_text(DRIVER.format(peers=str(PEERS)), encoding="utf-8")
    peer, setting, key = parts.roster.Peer, parts.roster.Setting, parts.results.Key
    ours = peer("ours", file, (setting("steady", "sleeps"),), None)
    halting = peer("halting", file, (setting("broken", "fails"), setting("steady", "sleeps")), None)
    absent = peer("absent", tmp_path / "absent.py", (setting("steady", "sleeps"),), None)
    monkeypatch.setattr(parts.run, "OURS", ours)
    found = parts.results.Results(seconds=0.01, rounds=3, loads=[])
    with ExitStack() as stack:
        parts.run.play(parts.run.start([absent, halting], tmp_path, found, stack), found)
    assert {name: len(rates) for name, rates in found.rates.items()} == {
        key("ours", "steady"): 3,
        key("halting", "steady"): 3,
    }
    assert found.failures[key("halting", "broken")] == "is here"
    assert "absent.py" in found.failures[key("absent", "steady")]
    first, second, third = (line for line in capsys.readouterr().err.splitlines() if line.startswith("round "))
    assert first == "round 1 of 3: ours/steady halting/broken halting/steady"
    assert second == "round 2 of 3: halting/steady ours/steady"
    assert third == "round 3 of 3: ours/steady halting/steady"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--rounds", "1"], "2 rounds or more"),
        (["--seconds", "0"], "more than 0"),
        (["--only", "Nobody"], "TextWorld"),
        (["--json", "absent/file"], "no folder 'absent'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_installed(parts, monkeypatch, capsys, options, fault):
    monkeypatch.setattr(sys, "argv", ["run.py", *options])
    with pytest.raises(SystemExit, match="2"):
        parts.run.main()
    assert fault in capsys.readouterr().err


@pytest.fixture
def found(parts: SimpleNamespace) -> Any:
    """Ours at 100 and 300, a world at 4 and at 8, a game at 50; the batch did not run."""
    key, found = parts.results.Key, parts.results.Results(seconds=2, rounds=2, loads=[0.5])
    found.rates = {
        key("inquitree-gym", "text"): [100.0, 100.0],
        key("inquitree-gym", "menu"): [300.0, 300.0],
        key("TextWorld", "recorded"): [4.0, 4.0],
        key("TextWorld", "admissible"): [8.0, 8.0],
        key("aviary", "dummy"): [50.0, 50.0],
    }
    found.fail(key("inquitree-gym", "batch"), "not | there")
    return found


def lines(text: str) -> dict[str, list[str]]:
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows}


def test_a_world_is_held_to_both_single_environments_and_everything_to_the_batch(found, parts):
    rows = lines(parts.results.as_markdown(found, "machine"))
    assert rows["TextWorld, recorded"][0] == "yes"
    assert rows["TextWorld, recorded"][2:5] == ["25 [25, 25]", "75 [75, 75]", "–"]
    assert rows["TextWorld, recorded"][-2] == "yes"
    assert rows["TextWorld, admissible"][-2] == "no"  # 12.5 times as text, 37.5 times as a menu
    assert rows["aviary, dummy"][-2] == "–"
    found.failures.clear()
    found.rates[parts.results.Key("inquitree-gym", "batch")] = [40.0, 60.0]
    rows = lines(parts.results.as_markdown(found, "machine"))
    assert rows["aviary, dummy"][-1] == "yes"
    found.rates[parts.results.Key("inquitree-gym", "batch")] = [40.0, 50.0]
    assert lines(parts.results.as_markdown(found, "machine"))["aviary, dummy"][-1] == "no"
