"""The pages of projections: whole by themselves, harmless whatever was projected, with the numbers of the tables."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path

import pytest

from inquitree_gym.analysis.cutoff_models import load_models
from inquitree_gym.analysis.logs import find_logs
from inquitree_gym.analysis.projection_judging import judge_projections, stated_projections
from inquitree_gym.analysis.projection_summary import Metric, compare_projections, summarise_projections
from inquitree_gym.analysis.projections import ProjectionRun, load_projections
from inquitree_gym.errors import OptionError
from inquitree_gym.report import view_run
from inquitree_gym.report.projections import write_projection_report
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.tasks import load_task
from tests.analysis.projected import PAPERS, UNREADABLE, tell
from tests.cli.test_cli import Inquitree, inquitree  # noqa: F401
from tests.envs.projection.tasks import WORDS
from tests.report.browser import CHROMIUM, PHONE, open_browser
from tests.report.html import HOSTILE, read_page

RISING = {"question": 0.0, "null": 0.5, "procedure": 1.0}


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("projected")
    tell(folder, "rising", RISING)
    tell(folder, "oracle", dict.fromkeys(LEVELS, 1.0))
    tell(folder, "unread", RISING | {"question": -1.0})
    tell(folder, "llm", RISING, model="openai/o3", memory="none")
    tell(folder, "llm", dict.fromkeys(LEVELS, 1.0), model="openai/o3", memory="conversation")
    return folder


@pytest.fixture(scope="module")
def run(logs: Path) -> ProjectionRun:
    return load_projections(logs)


@pytest.fixture(scope="module")
def files(run: ProjectionRun, tmp_path_factory) -> list[Path]:
    differences = compare_projections(run.scores)
    out = tmp_path_factory.mktemp("report") / "out.html"
    return write_projection_report([run], out, differences=differences, models=load_models(), example="paper2")


def test_a_report_of_projections_has_the_files_of_a_report(files: list[Path]):
    assert [file.name for file in files] == [
        "out.html", "out.md", "out.csv", "out-episodes.csv", "out-episodes.html", "out-figures", "out-tables",
    ]  # fmt: skip
    figures = {file.name for file in files[-2].iterdir()}
    assert {f"{stem}.{end}" for stem in ("auc", "f1-0", "f1-3", "papers") for end in ("svg", "pdf", "png")} <= figures
    assert "\\toprule" in (files[-1] / "auc-auc-by-domain.tex").read_text(encoding="utf-8")


def test_the_page_holds_the_tables_and_figures_of_the_paper(files: list[Path], run: ProjectionRun):
    page = read_page(files[0])
    assert [a["id"] for tag, a in page.tags if tag == "section"] == [
        "auc", "levels", "papers", "example", "comparison", "anchoring", "memory", "cost", "missing", "threats",
    ]  # fmt: skip
    for found in summarise_projections(run.scores):
        if found.auc.mean is not None:
            assert f"{found.auc.mean:.3f}" in page.text
    assert "6 of 90 projections could not be scored by the judge" in page.text
    assert "coin, analytic" in (files[-2] / "f1-0.svg").read_text(encoding="utf-8")


def test_every_table_and_figure_names_the_judge_and_its_version(files: list[Path]):
    for table in files[-1].glob("*.md"):
        judged = not table.name.startswith(("cost", "missing", "example-true-claims"))
        assert ("judged by partial v3" in table.read_text(encoding="utf-8")) == judged, table.name
    page = read_page(files[0])
    assert all("judged by partial v3" in (a["aria-label"] or "") for tag, a in page.tags if tag == "svg")


def test_the_papers_before_the_cutoff_are_counted_from_their_dates(files: list[Path]):
    before = sum(load_task(paper).paper.published.written < "2024-06" for paper in PAPERS)
    assert 0 < before < len(PAPERS)
    assert f"{before} of {len(PAPERS)} papers appeared before the cutoff of" in read_page(files[0]).text


def test_the_example_shows_sentences_claims_and_ratings(files: list[Path], run: ProjectionRun):
    task = load_task("paper2")
    with (files[-1] / "example-claims-and-ratings.csv").open(encoding="utf-8") as stream:
        rows = [line for line in csv.DictReader(stream) if (line["agent"], line["level"]) == ("rising", "null")]
    assert [line["true claim"] for line in rows] == [claim.text for claim in task.claims]
    assert [float(line["mean"]) for line in rows] == [1, 1, 1, -1, -1, -1]
    assert rows[-1]["projected claim"] == task.claims[-1].contraries[0]
    with pytest.raises(OptionError, match="no episode is about 'paper12', so it cannot be the example"):
        write_projection_report([run], files[0].parent / "none", example="paper12")


def test_numbers_are_unrounded_in_the_csv_files(files: list[Path], run: ProjectionRun):
    with files[2].open(encoding="utf-8") as stream:
        means = list(csv.DictReader(stream))
    found = summarise_projections(run.scores)[0]
    (line,) = (
        each for each in means
        if (each["agent"], each["papers"], each["measure"]) == (found.player.agent, found.group, "F1, null")
    )  # fmt: skip
    assert (float(line["mean"]), float(line["std"])) == (found.f1["null"].mean, found.std["null"])
    with files[3].open(encoding="utf-8") as stream:
        episodes = list(csv.DictReader(stream))
    assert len(episodes) == len(run.episodes)
    assert {each["F1, question (paper)"] for each in episodes if each["agent"] == "unread"} == {""}


def test_other_formulas_are_named_on_the_page(run: ProjectionRun, tmp_path: Path):
    page, *_ = write_projection_report([run], tmp_path, metric=Metric("strict", "mean"))
    told = read_page(page).text
    assert "AUC by domain, strict F1, AUC as the mean of the levels, judged by" in told
    assert "It is the mean of F1 over the levels, in [0, 1]" in told


# The viewer


def test_the_list_and_the_pages_of_episodes_show_projections(logs: Path, tmp_path: Path):
    index = read_page(view_run(logs, tmp_path))
    assert "unscored" in index.text
    assert "paper10" in index.text
    pages = sorted((tmp_path / "index-episodes").glob("*.html"))
    assert len(pages) == 30
    (unread,) = (page for page in pages if page.name == "paper2-unread.html")
    page = read_page(unread)
    task = load_task("paper2")
    for told in (task.disclosure.question, task.disclosure.null_hypothesis, UNREADABLE, task.claims[0].text):
        assert told in page.text
    assert "The judge could not score this projection. It counts as unscored, not as 0." in page.text
    assert page.has("article", id="turn-3")


def test_a_page_shows_the_ratings_of_the_judge_that_was_chosen(tmp_path: Path):
    tell(tmp_path, "unread", RISING | {"question": -1.0}, PAPERS[:1])
    logs = find_logs(tmp_path)
    asyncio.run(judge_projections(tmp_path, stated_projections(logs), WORDS, 1, lambda name: None))
    told = read_page(view_run(tmp_path, judge="words")).text
    assert "judged by words v1" in told
    assert "The judge could not score" not in told
    assert "The judge could not score" in read_page(view_run(tmp_path)).text


@pytest.mark.e2e
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_the_pages_without_a_fault(logs: Path, files: list[Path], tmp_path: Path):
    view_run(logs, tmp_path)
    episode = tmp_path / "index-episodes" / "paper2-rising.html"
    with open_browser() as tab:
        tab.open(episode.as_uri())
        tab.press("ArrowRight")
        assert tab.run("location.hash") == "#turn-2"
        for page in (files[0], tmp_path / "index.html", episode):
            tab.open(page.as_uri(), PHONE)
            assert tab.run("document.documentElement.scrollWidth") <= PHONE[0]
        assert tab.faults == []


def test_what_agents_say_can_neither_run_nor_break_a_page(tmp_path: Path):
    from inquitree_gym.envs.projection.env import ProjectionEnv
    from inquitree_gym.rollout import play
    from tests.analysis.projected import PartialJudge, Teller

    class Hostile(Teller):
        def act(self, observation, info):
            return HOSTILE

    env = ProjectionEnv("paper1", judge=PartialJudge())
    play(env, Hostile(HOSTILE, load_task("paper1"), RISING), 0, file=tmp_path / "hostile.jsonl")
    read_page(view_run(tmp_path / "hostile.jsonl"))
    page, *_ = write_projection_report([load_projections(tmp_path)], tmp_path / "report")
    assert "alert(1)" in read_page(page).text


# The command line


def test_score_and_report_find_out_what_logs_hold(inquitree: Inquitree, logs: Path, tmp_path: Path):  # noqa: F811
    done = inquitree("score", logs, "--variant", "strict", "--auc", "mean", "--json")
    assert done.status == 0
    assert len(json.loads(done.out)) == 30
    assert "judged by partial v3" in " ".join(inquitree("score", logs).out.split())
    found = json.loads(inquitree("report", logs, "--compare", "--agent", "oracle", "--agent", "rising", "--json").out)
    assert found["judged_by"] == ["partial v3"]
    assert [each["name"] for each in found["differences"]] == ["rising − oracle"]
    assert found["anchoring"][0]["pairs"] == 6
    written = inquitree("report", logs, "--out", tmp_path / "r.html", "--example", "paper2")
    assert "Before − after the training cutoff" in written.out
    assert read_page(tmp_path / "r.html").has("section", id="example")


def test_an_episode_that_is_given_twice_counts_once(inquitree: Inquitree, logs: Path, tmp_path: Path):  # noqa: F811
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((logs / "paper1-oracle.jsonl").read_bytes())
    done = inquitree("report", logs, copy, "--json")
    assert "1 episode given more than once" in done.said
    assert json.loads(done.out)["rows"] == json.loads(inquitree("report", logs, "--json").out)["rows"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("report", "--closed-book", "nowhere"), "--closed-book is about conclusions"),
        (("report", "--env", "inquiry"), "is a log of --env projection, not inquiry"),
        (("report", "--compare", "--agent", "nobody"), "no agent is called 'nobody' here"),
        (("score", "--judge", "nli:x"), "nli:x has not judged the projections of"),
        (("judge", "--repeats", "2"), "are about conclusions; leave them out for projections"),
    ],
)
def test_wrong_words_about_projections_end_with_status_2(
    inquitree: Inquitree,  # noqa: F811
    logs: Path,
    arguments: tuple[str, ...],
    told: str,
):
    done = inquitree(arguments[0], logs, *arguments[1:])
    assert done.status == 2
    assert told in done.said
