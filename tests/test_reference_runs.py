"""The page of the reference runs is what the script makes of the studies, and says what is so."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from inquitree_gym.baselines import BASELINE_NAMES, WorstCaseAgent
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.results.load import ScoredRun, load_run
from inquitree_gym.rollout import play
from inquitree_gym.runner.check import make_study, read_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.runs.study import StudyConfig
from inquitree_gym.trees import builtin_ids, load_tree

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reference-runs.md").read_text(encoding="utf-8")
STUDIES = {name: read_study(ROOT / "studies" / f"{name}.toml") for name in ("reference", "reference-3n")}
MEND = "run both studies and scripts/reference_runs.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_runs", ROOT / "scripts" / "reference_runs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[ScoredRun]:
    """The studies in small: the same agents and levels, on one tree."""
    runs = []
    for name, study in STUDIES.items():
        folder = tmp_path_factory.mktemp(name)
        agents = [agent for agent in study.agents if agent != "random-words"]  # its words are slow to embed
        less = make_study(**{**study.model_dump(), "agents": agents, "trees": ("paper2",), "seeds": 1})
        run_study(less, folder)
        runs.append(load_run(folder))
    return runs


def tables(page: str) -> dict[tuple[str, str], list[list[str]]]:
    """Return the lines of every table by the headings above it."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    section = caption = ""
    for line in page.splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        caption = line.strip("*") if line.startswith("**") else caption
        if line.startswith("| ") and "---" not in line:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault((section, caption), []).append(cells)
    return found


def test_the_studies_are_the_same_but_for_the_limit_and_leave_no_baseline_out():
    default, three = STUDIES.values()
    assert (default.settings.max_turns, three.settings.max_turns) == ("11n", "3n")
    exceptions = {"settings": {"max_turns"}}
    assert default.model_dump(exclude=exceptions) == three.model_dump(exclude=exceptions)
    assert set(default.agents) == set(BASELINE_NAMES)
    assert default.trees == builtin_ids()
    assert (default.settings.fake_level, default.seeds) == ((0, 3, 6, 9), 5)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("caption", ["Results", "Vigilance"])
def test_the_page_has_every_agent_and_level_of_a_study_over_all_its_episodes(
    name: str, caption: str, script: ModuleType
):
    study: StudyConfig = STUDIES[name]
    _, *lines = tables(PAGE)[script.LIMITS[study.settings.max_turns], caption]
    wanted = [(f"`{agent}`", str(level)) for agent in study.agents for level in study.settings.fake_level]
    found = [(line[0], level) for line in lines for level in line[1].split(", ")]
    assert len(found) == len(wanted), MEND
    assert set(found) == set(wanted), MEND
    assert {line[2] for line in lines} == {f"{study.seeds * len(study.trees)} ({len(study.trees)})"}
    assert f"inquitree run --study studies/{name}.toml --out runs/{name}" in PAGE
    assert (ROOT / "docs" / "figures" / f"{name}.svg").is_file()


@pytest.mark.usefixtures("drawn")
def test_the_page_has_the_form_that_the_script_gives_it(script: ModuleType, small: list[ScoredRun]):
    made = script.pages(small)
    assert set(made) == {"reference-runs.md", "figures/reference.svg", "figures/reference-3n.svg"}
    ours, theirs = tables(made["reference-runs.md"]), tables(PAGE)
    assert {where: lines[0] for where, lines in ours.items()} == {where: lines[0] for where, lines in theirs.items()}
    words = [
        re.sub(r"^\|.*\n|means. The seeds.*\n", "", text, flags=re.MULTILINE)
        for text in (made["reference-runs.md"], PAGE)
    ]
    assert words[0] == words[1], MEND
    assert made["figures/reference.svg"].startswith("<?xml")


def test_what_redoing_is_worth_is_paired(script: ModuleType, small: list[ScoredRun]):
    lines = tables(script.pages(small)["reference-runs.md"])["What redoing is worth", script.LIMITS["11n"]]
    assert [(line[0], line[1]) for line in lines[1:]] == [
        (f"`{agent}`", level) for agent in ("random", "retrieval") for level in "0369"
    ]
    by_agent = {
        (score.agent, score.cell["fake_level"]): score.detail.trajectory.exam.score
        for score in small[0].scores
        if "retrieval" in score.agent
    }
    shown = float(lines[7][5])
    assert shown == pytest.approx(by_agent["retrieval-redo", 6] - by_agent["retrieval", 6], abs=1e-3)


def test_unfinished_or_other_runs_make_no_page(script: ModuleType, small: list[ScoredRun]):
    with pytest.raises(SystemExit, match="was not run with the limit '11n'"):
        script.pages(small[::-1])
    with pytest.raises(SystemExit, match="lacks 1 episodes"):
        script.pages([replace(small[0], missing=[None]), small[1]])


def test_what_the_notes_say_of_the_tables_is_so(script: ModuleType):
    for limit in ("11n", "3n"):
        head, *lines = tables(PAGE)[script.LIMITS[limit], "Results"]
        unaided = {line[0]: float(line[head.index("unaided coverage")].split()[0]) for line in lines}
        assert unaided["`worst-case`"] == 0
        assert unaided["`random-words`"] == {"11n": 0.012, "3n": 0.005}[limit]
        assert unaided["`oracle`"] == 1
        for agent in ("`random`", "`random-menu`", "`random-words`", "`worst-case`"):
            assert len({tuple(line[3:]) for line in lines if line[0] == agent}) == 1
    head, *lines = tables(PAGE)[script.LIMITS["3n"], "Vigilance"]
    assert {line[head.index("redo rate")].split()[0] for line in lines if line[0] == "`oracle`"} == {"0.000"}


@pytest.mark.parametrize("tree", builtin_ids())
def test_who_says_nothing_scores_nothing_unaided_at_3n(tree: str):
    found = load_tree(tree)
    env = InquiryEnv(found, privileged=True, max_turns=3 * len(found.subtopics))
    assert read_trajectory(play(env, WorstCaseAgent(), 0), found).unaided_coverage == 0
