"""Runs of every kind: played once, grown, killed and resumed, scored, reported and shown."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from inquitree_gym import kinds
from inquitree_gym.results.load import load_run
from inquitree_gym.runs.folder import load_manifest
from tests.contract.command_line import OWN_AGENT, Run, begin, episodes, fingerprints, inquitree, logs
from tests.contract.conftest import CASES, SITE, KindCase


@pytest.fixture(scope="module")
def all_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """One run of each kind. Not to be changed."""
    return {name: begin(case, tmp_path_factory.mktemp(name)) for name, case in CASES.items()}


@pytest.fixture
def run(kind_case: KindCase, all_runs: dict[str, Run]) -> Run:
    return all_runs[kind_case.name]


@pytest.fixture
def copied(run: Run, tmp_path: Path) -> Run:
    """A copy of a run, to be changed."""
    shutil.copytree(run.folder, tmp_path / "run")
    return Run(run.case, tmp_path / "run", run.task_file)


def test_every_episode_is_logged_as_the_study_says_and_played_once(run: Run):
    before = run.logs
    assert len(before) == 2 * len(run.case.agents)
    assert {episode.status for episode in episodes(run.folder).values()} <= {"concluded", "truncated"}
    assert {episode.header.task.digest for episode in episodes(run.folder).values()} == {run.case.task.digest}
    manifest = load_manifest(run.folder)
    assert set(manifest.tasks) == {run.case.task.id}
    assert inquitree(*run.flags(), "--json").json["played"] == 0
    assert run.logs == before


def test_a_run_grows_and_keeps_what_it_has(copied: Run):
    before = copied.logs
    grown = inquitree(*copied.flags(seeds=3), "--json").json
    assert grown["played"] == len(copied.case.agents)
    assert copied.logs.items() > before.items()
    alone = copied.folder.parent / "alone"
    inquitree(*copied.flags(seeds=3, folder=alone))
    assert fingerprints(alone) == fingerprints(copied.folder)


def test_missing_and_torn_episodes_are_named_and_finished(copied: Run):
    expected, torn = fingerprints(copied.folder), sorted((copied.folder / "episodes").iterdir())
    torn[0].write_bytes(torn[0].read_bytes()[:-9])
    torn[1].write_bytes(torn[1].read_bytes().splitlines(keepends=True)[0])
    torn[2].unlink()
    for verb in ("score", "report"):
        done = inquitree(verb, copied.folder)
        assert (done.status, "missing or torn, and not scored: " in done.said) == (0, True), done.err
    assert inquitree(*copied.flags(), "--json").json["played"] == 3
    assert fingerprints(copied.folder) == expected


KILLED = """
import os, signal, sys
from inquitree_gym.cli import main
from inquitree_gym.log import JsonlWriter
write, left = JsonlWriter.write, [int(sys.argv[1])]

def write_or_die(self, record):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, record)

JsonlWriter.write = write_or_die
main(sys.argv[2:])
"""


@pytest.mark.e2e
@pytest.mark.weights
def test_a_killed_process_loses_nothing(run: Run, tmp_path: Path):
    path = os.pathsep.join(map(str, [SITE, Path(__file__).parents[2]]))
    arguments = [str(each) for each in run.flags(folder=tmp_path / "run")]
    command = [sys.executable, "-c", KILLED, "7", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(logs(tmp_path / "run")) < len(run.logs)
    assert inquitree(*arguments).status == 0
    assert fingerprints(tmp_path / "run") == fingerprints(run.folder)


def test_an_agent_of_ones_own_plays_every_kind(run: Run, tmp_path: Path):
    (tmp_path / "parrot.py").write_text(OWN_AGENT)
    done = inquitree(*run.flags(f"{tmp_path / 'parrot.py'}:make", seeds=1, folder=tmp_path / "run"))
    assert done.status == 0, done.err
    (episode,) = episodes(tmp_path / "run").values()
    assert episode.turns[0].action == episode.turns[0].observation[-20:]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--agent", "nobody"), "nobody"),
        (("--papers", "nowhere"), "nowhere"),
        (("--env", "essay"), "no kind of environment is called 'essay'"),
        (("--seeds", "0"), "seeds"),
        (("--gravity", "9"), "No such option"),
    ],
)
def test_wrong_values_write_nothing(run: Run, tmp_path: Path, flags: tuple[str, str], told: str):
    done = inquitree(*run.flags(folder=tmp_path / "new"), *flags)
    assert (done.status, done.out) == (2, "")
    assert told in done.said
    assert not (tmp_path / "new").exists()


def test_another_study_in_the_folder_is_refused(run: Run, all_runs: dict[str, Run]):
    other = all_runs["toy" if run.case.name != "toy" else "inquiry"]
    done = inquitree(*other.flags(folder=run.folder))
    assert done.status == 2
    assert f"env is {run.case.name} there and {other.case.name} here" in done.said


def test_a_plan_is_shown_without_playing(run: Run, tmp_path: Path):
    plan = inquitree(*run.flags(folder=tmp_path / "new"), "--dry-run", "--json").json
    assert {row["agent"] for row in plan["episodes"]} == set(run.case.agents)
    assert not (tmp_path / "new").exists()


def test_scores_have_the_measures_of_the_kind(run: Run):
    results = run.case.kind.results
    scores = inquitree("score", run.folder, "--json").json
    assert len(scores) == len(run.logs)
    names = {measure.name for measure in results.measures}
    for score in scores:
        assert (score["kind"], score["task"]) == (run.case.name, run.case.task.id)
        assert score["values"].keys() == names
    printed = inquitree("score", run.folder)
    assert (printed.status, printed.err.strip()) == (0, "")
    assert printed.out.count("oracle") >= 2
    best = {score["agent"]: score["values"][run.case.measure] for score in scores if score["seed"] == 0}
    assert 0 < best["oracle"] <= 1


def test_a_report_has_a_row_for_every_agent(run: Run):
    found = inquitree("report", run.folder, "--json").json
    assert found["missing"] == []
    assert {row["agent"] for row in found["rows"]} == set(run.case.agents)
    printed = inquitree("report", run.folder)
    assert (printed.status, printed.err.strip()) == (0, "")
    assert all(agent in printed.out for agent in run.case.agents)


def test_a_report_and_the_episodes_are_written_as_pages(run: Run, tmp_path: Path):
    done = inquitree("report", run.folder, "--out", tmp_path / "report.html")
    assert done.status == 0, done.err
    assert run.case.task.id in (tmp_path / "report.html").read_text()
    done = inquitree("view", run.folder, "--out", tmp_path / "pages")
    assert done.status == 0, done.err
    pages = {str(page): page.read_text() for page in (tmp_path / "pages").rglob("*.html")}
    assert len(pages) >= len(run.logs)
    assert all("<html" in page for page in pages.values())


@pytest.fixture(scope="module")
def mixed(all_runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run folder with the episodes of every kind."""
    folder = tmp_path_factory.mktemp("mixed") / "run"
    for run in all_runs.values():
        shutil.copytree(run.folder, folder, dirs_exist_ok=True)
    assert len(logs(folder)) == sum(len(run.logs) for run in all_runs.values())
    return folder


def test_one_folder_with_every_kind_is_scored_reported_and_judged_apart(all_runs: dict[str, Run], mixed: Path):
    expected = {name: len(run.logs) for name, run in all_runs.items()}
    scores = inquitree("score", mixed, "--json").json
    assert Counter(score["kind"] for score in scores) == expected
    assert {score["kind"] for score in inquitree("score", mixed, "--env", "toy", "--json").json} == {"toy"}
    reports = inquitree("report", mixed, "--json").json
    assert {report["kind"] for report in reports} == set(CASES)
    assert [report["missing"] for report in reports] == [[]] * len(CASES)
    judged = inquitree("judge", mixed, "--judge", "local", "--json").json
    local = {name: count for name, count in expected.items() if "local" in CASES[name].kind.judging.judges}
    assert {each["kind"]: len(*each["scores"].values()) for each in judged if each["scores"]} == local
    for verb in ("score", "report", "judge"):
        printed = inquitree(verb, mixed, *(("--judge", "local") if verb == "judge" else ()))
        assert printed.status == 0, printed.err
        assert "left out" not in printed.said
        assert all(f"{name}: " in printed.out for name in (local if verb == "judge" else CASES)), verb


def test_one_folder_with_every_kind_is_shown_and_exported_whole(mixed: Path, tmp_path: Path):
    count = len(logs(mixed))
    assert inquitree("view", mixed, "--out", tmp_path / "pages").status == 0
    assert len(list((tmp_path / "pages" / "index-episodes").rglob("*.html"))) == count
    assert inquitree("export", mixed, "--out", tmp_path / "messages.jsonl").status == 0
    rows = [json.loads(line) for line in (tmp_path / "messages.jsonl").read_text().splitlines()]
    assert len(rows) == count
    assert {row["kind"] for row in rows} == set(CASES)


def test_what_one_kind_lacks_keeps_no_other_from_being_judged(mixed: Path, tmp_path: Path):
    """Of a folder without copies of the tasks, only the logs on a task of this machine can be judged."""
    shutil.copytree(mixed / "episodes", tmp_path / "logs")
    done = inquitree("judge", tmp_path / "logs", "--judge", "local", "--json")
    assert [report["kind"] for report in done.json] == ["toy"]
    assert done.said.count("which is not at hand") == len(CASES) - 1
    for log in (tmp_path / "logs").glob("bread*shown*"):
        log.unlink()
    done = inquitree("judge", tmp_path / "logs", "--judge", "local")
    assert (done.status, "to judge yet" in done.said) == (2, True)
    assert done.said.count("which is not at hand") == len(CASES) - 1


def test_a_log_of_an_unknown_kind_is_named_and_left_out(copied: Run):
    strange = sorted((copied.folder / "episodes").iterdir())[0]
    header, *turns = strange.read_text().splitlines(keepends=True)
    document = json.loads(header)
    document["task"]["kind"] = "essay"
    strange.write_text("".join([json.dumps(document) + "\n", *turns]))
    done = inquitree("score", copied.folder, "--json")
    assert len(done.json) == len(copied.logs) - 1
    assert "essay" in done.said
    assert strange.name in done.said.replace(" ", "")


def test_what_a_kind_lacks_breaks_no_other(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Scores of one kind ask nothing of another."""
    kept = [kind for kind in kinds.KINDS if kind.name == run.case.name]
    monkeypatch.setattr(kinds, "KINDS", tuple(kept))
    assert len(load_run(run.folder).scores) == len(run.logs)
