"""The pages of projections: whole by themselves, harmless whatever was projected, with the numbers of the tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from inquitree_gym.baselines import make_agent
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.projection.results import AUC
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.results import ReportOptions, ScoredRun, load_run, summarise, write_report
from inquitree_gym.results.cutoff import load_models
from inquitree_gym.results.viewer import view_run
from inquitree_gym.rollout import play
from inquitree_gym.trees.disclosure import LEVELS
from tests.contract.command_line import inquitree
from tests.projection.projected import PAPERS, UNREADABLE, fill_in, judge_again, tell
from tests.projection.tasks import WORDS
from tests.results.drawing import drawing
from tests.results.html import read_page

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
def run(logs: Path) -> ScoredRun:
    return load_run(logs)


@pytest.fixture(scope="module")
def files(run: ScoredRun, tmp_path_factory) -> list[Path]:
    options = ReportOptions(paired=True, models=load_models(), own={"projection": {"example": "paper2"}})
    with drawing():
        return write_report([run], tmp_path_factory.mktemp("report") / "out.html", options)


def test_the_page_holds_the_tables_and_figures_of_the_paper(files: list[Path], run: ScoredRun):
    page = read_page(files[0])
    assert [a["id"] for tag, a in page.tags if tag == "section"] == [
        "leaderboard", "tasks", "comparison", "levels", "example", "anchoring", "memory", "cutoff", "cost", "missing",
        "threats", "settings",
    ]  # fmt: skip
    means = [row.estimates[AUC].mean for row in summarise(run.scores)]
    assert all(f"{mean:.3f}" in page.text for mean in means if mean is not None)
    assert "6 texts of whole ones could not be scored by the judge" in page.text
    assert "coin, analytic" in (files[-2] / "f1-0.svg").read_text(encoding="utf-8")


def test_every_table_and_figure_names_the_judge_and_its_version(files: list[Path]):
    for table in files[-1].glob("*.md"):
        unjudged = ("cost", "missing", "example-true-claims", "settings-sheets", "settings-probabilities")
        judged = not table.name.startswith(unjudged)
        assert ("judged by partial v3" in table.read_text(encoding="utf-8")) == judged, table.name
    page = read_page(files[0])
    assert all("judged by partial v3" in (a["aria-label"] or "") for tag, a in page.tags if tag == "svg")


def test_the_papers_before_the_cutoff_are_counted_from_their_dates(files: list[Path]):
    before = sum(load_task(paper).paper.published.written < "2024-06" for paper in PAPERS)
    assert 0 < before < len(PAPERS)
    assert f"{before} of {len(PAPERS)} papers appeared before the cutoff of" in read_page(files[0]).text


def test_the_example_shows_sentences_claims_and_ratings(files: list[Path], run: ScoredRun):
    task = load_task("paper2")
    with (files[-1] / "example-claims-and-ratings.csv").open(encoding="utf-8") as stream:
        rows = [line for line in csv.DictReader(stream) if (line["agent"], line["level"]) == ("rising", "null")]
    assert [line["true claim"] for line in rows] == [claim.text for claim in task.claims]
    assert [float(line["mean"]) for line in rows] == [1, 1, 1, -1, -1, -1]
    assert rows[-1]["projected claim"] == task.claims[-1].contraries[0]


def test_other_formulas_are_named_on_the_page_and_in_the_csv_files(run: ScoredRun, tmp_path: Path):
    options = ReportOptions(own={"projection": {"variant": "strict", "auc": "mean"}})
    page, _, *files = write_report([run], tmp_path, options)
    told = read_page(page).text
    assert "AUC (0–1) by domain, strict F1, AUC as the mean of the levels, judged by" in told
    assert "It is the mean of F1 over the levels, in [0, 1]" in told
    for file in files[:2]:
        lines = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        assert {line["formulas"] for line in lines} == {"strict F1, AUC as the mean of the levels"}


# Sheets


@pytest.fixture(scope="module")
def sheets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sheets")
    fill_in(folder, "rising", RISING, PAPERS[:2])
    fill_in(folder, "unread", RISING | {"question": -1.0}, PAPERS[:2])
    return folder


def test_a_report_on_sheets_shows_their_scores_and_those_of_the_probabilities(sheets: Path, tmp_path: Path):
    with drawing():
        files = write_report([load_run(sheets)], tmp_path / "out.html", ReportOptions(paired=True))
    page = read_page(files[0])
    assert [a["id"] for tag, a in page.tags if tag == "section"] == [
        "leaderboard", "tasks", "comparison", "sheets", "example", "cost", "missing", "threats", "settings",
    ]  # fmt: skip
    names = {file.stem for file in files[-2].glob("*.svg")}
    assert names >= {"return", "sheet-score", "sheet-skill", "belief"}
    assert "chance, 1/k" in (files[-2] / "belief.svg").read_text(encoding="utf-8")
    with (files[-1] / "sheets-belief-in-the-true-claims-by-level.csv").open(encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    beliefs = {line["agent"]: [line[f"sheet_belief, {level}"] for level in LEVELS] for line in lines}
    assert [float(beliefs["rising"][place]) for place in (0, 2)] == [0, 1]
    assert beliefs["unread"] == ["", *beliefs["rising"][1:]]
    assert not (files[-2] / "auc.svg").exists(), "nothing was judged"
    assert "judged by" not in page.text
    with (files[-1] / "sheets-sheets-by-level.csv").open(encoding="utf-8") as stream:
        lines = {line["agent"]: line for line in csv.DictReader(stream)}
    assert (float(lines["rising"]["sheet_brier, procedure"]), lines["unread"]["sheet_brier, question"]) == (0, "")
    with (files[-1] / "example-sheets.csv").open(encoding="utf-8") as stream:
        rows = [line for line in csv.DictReader(stream) if (line["agent"], line["level"]) == ("rising", "procedure")]
    *answered, last = load_task(PAPERS[0]).claims
    assert [line["statement chosen"] for line in rows] == [*(claim.text for claim in answered), ""]
    assert [line["right"] for line in rows] == ["yes"] * len(answered) + [""]
    assert rows[-1]["true claim"] == last.text


def test_scores_of_probabilities_are_shown_where_some_were_given(tmp_path: Path):
    env = ProjectionEnv(load_task(PAPERS[0]), privileged=True)
    play(env, make_agent("oracle", env), 0, file=tmp_path / "oracle.jsonl")
    with drawing():
        files = write_report([load_run(tmp_path)], tmp_path / "out.html")
    assert {file.stem for file in files[-2].glob("*.svg")} >= {"sheet-score", "belief"}
    assert not (files[-2] / "sheet-skill.svg").exists()
    heads = (files[-1] / "sheets-sheets-by-level.csv").read_text(encoding="utf-8").splitlines()[0]
    assert ("sheet, procedure" in heads, "brier" in heads) == (True, False)


def test_the_page_of_an_episode_draws_the_belief_in_each_claim(sheets: Path, tmp_path: Path):
    view_run(sheets, tmp_path)
    claims = load_task(PAPERS[0]).claims
    for agent, first, joined in (("rising", "0.000", 2), ("unread", "left out", 1)):
        page = read_page(tmp_path / "index-episodes" / f"{PAPERS[0]}-{agent}.html")
        pictures = [a for tag, a in page.tags if tag == "svg"]
        titles = {a["id"] for tag, a in page.tags if tag == "title" and "id" in a}
        assert len(pictures) == len(claims)
        assert all(a["role"] == "img" and a["aria-labelledby"] in titles for a in pictures)
        assert f"Belief in claim 1: question {first}, null 1.000, procedure 1.000, chance 0.333" in page.text
        assert f"claim {len(claims)}: question left out, null left out, procedure left out" in page.text
        lines = [a for tag, a in page.tags if tag == "path" and a["class"] == "line"]
        assert len(lines) == joined * (len(claims) - 1), "a claim that was left out is a gap"


def test_the_page_of_an_episode_shows_its_sheets_and_what_could_not_be_read(sheets: Path, tmp_path: Path):
    view_run(sheets, tmp_path)
    page = read_page(tmp_path / "index-episodes" / f"{PAPERS[0]}-unread.html")
    claim = load_task(PAPERS[0]).claims[0]
    for told in ("Sheets by level", "Answers to the sheet", claim.text, claim.contraries[0], "Return = "):
        assert told in page.text
    assert page.text.count("an answer must be an item's number and a letter") == 2, "asked for twice"
    assert page.has("article", id="turn-7")
    assert "Ratings of the claims" not in page.text
    assert "AUC" not in page.text


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
    judge_again(tmp_path, WORDS)
    told = read_page(view_run(tmp_path, judge="words")).text
    assert "judged by words v1" in told
    assert "The judge could not score" not in told
    assert "The judge could not score" in read_page(view_run(tmp_path)).text


# The command line


def test_score_and_report_find_out_what_logs_hold(logs: Path, tmp_path: Path):
    usual, others = (
        [score["values"]["AUC"] for score in inquitree("score", logs, *flags, "--json").json]
        for flags in ((), ("--variant", "strict", "--auc", "mean"))
    )
    assert len(usual) == len(others) == 30
    assert max(filter(None, others)) <= 1 < max(filter(None, usual))
    assert "judged by partial v3" in " ".join(inquitree("score", logs).out.split())
    found = inquitree("report", logs, "--compare", "--agent", "oracle", "--agent", "rising", "--json").json
    assert found["judged_by"] == "partial v3"
    assert [line["name"] for line in found["differences"]] == ["rising − oracle"]
    assert found["anchoring"][0]["pairs"] == 6
    written = inquitree("report", logs, "--all", "--out", tmp_path / "r.html", "--example", "paper2")
    assert "Before − after the training cutoff" in written.out
    assert read_page(tmp_path / "r.html").has("section", id="example")


def test_an_episode_that_is_given_twice_counts_once(logs: Path, tmp_path: Path):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((logs / "paper1-oracle.jsonl").read_bytes())
    done = inquitree("report", logs, copy, "--json")
    assert "1 episode given more than once" in done.said
    assert done.json["rows"] == inquitree("report", logs, "--json").json["rows"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("report", "--out", "r.html", "--example", "paper99"), "no episode is about 'paper99'"),
        (("score", "--variant", "lax"), "--variant: "),
        (("report", "--env", "inquiry"), "holds no finished episode that can be scored"),
        (("score", "--judge", "nli:x"), "nli:x has not judged 'paper1-llm"),
        (("judge", "--repeats", "2"), "--repeats is a flag of --env inquiry, not of"),
        (("judge", "--undirected", "2"), "--undirected: "),
    ],
)
def test_wrong_words_about_projections_end_with_status_2(logs: Path, arguments: tuple[str, ...], told: str):
    done = inquitree(arguments[0], logs, *arguments[1:])
    assert (done.status, told in done.said) == (2, True), done.said
