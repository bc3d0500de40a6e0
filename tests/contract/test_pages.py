"""Reports and pages of every kind: whole by themselves, harmless whatever the logs hold, true to the scores."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.log import Episode
from inquitree_gym.results import ReportOptions, ScoredRun, write_report
from inquitree_gym.results.listing import Columns, ListedEpisode, listed_values, write_list
from inquitree_gym.results.logs import Missing
from inquitree_gym.results.report import build_report, shown_of
from inquitree_gym.results.score import Score, score_episode
from inquitree_gym.results.summary import format_estimate
from inquitree_gym.results.viewer import write_view
from inquitree_gym.rollout import play
from tests.contract.conftest import CASES, KindCase
from tests.results.html import HOSTILE, read_page

COMMON = {"leaderboard", "tasks", "comparison", "cost", "missing", "threats", "settings"}


def played(case: KindCase) -> Episode[Any]:
    return play(case.make(), case.agent(), 0)


def named(score: Score[Any], agent: str, seed: int, **changes: Any) -> Score[Any]:
    return replace(score, agent=agent, config={"name": agent}, seed=seed, **changes)


def run_of(case: KindCase, *agents: str, **missing: str) -> ScoredRun:
    """Two episodes of each agent, on each value of the grid."""
    score = score_episode(played(case), case.task)
    cells = case.kind.settings.model_validate(case.settings).cells()
    scores = [named(score, agent, seed, cell=cell) for agent in agents for cell in cells for seed in (0, 1)]
    gone = tuple(Missing(name, "failed", error, case.name) for name, error in missing.items())
    return ScoredRun(Path("run"), tuple(scores), gone, tasks={(case.name, score.task): case.task})


@pytest.fixture
def run(kind_case: KindCase) -> ScoredRun:
    return run_of(kind_case, "one", "other", log="ServiceError: try later")


def test_a_report_has_every_section_figure_and_table_with_their_files(run: ScoredRun, tmp_path: Path):
    files = write_report([run], tmp_path / "deep" / "out.html", ReportOptions(paired=True))
    assert {"out.html", "out.md", "out.csv", "out-episodes.csv", "out-episodes.html"} <= {file.name for file in files}
    page = read_page(files[0])
    assert "out-episodes.html" in read_page(files[0].with_name("out-episodes-pair.html")).attributes("href")
    assert page.scripts == []
    sections = {a["id"] for tag, a in page.tags if tag == "section"}
    assert sections >= COMMON
    assert {f"#{name}" for name in sections} <= set(page.attributes("href"))
    places = {link.partition("#")[0] for link in page.attributes("href") if not link.startswith("#")}
    assert all((files[0].parent / unquote(place)).is_file() for place in places)
    for name, suffixes in (("figures", ("svg", "pdf", "png")), ("tables", ("csv", "md", "tex"))):
        made = sorted(file.name for file in (files[0].parent / f"out-{name}").iterdir())
        stems = {file.partition(".")[0] for file in made}
        assert made == sorted(f"{stem}.{suffix}" for stem in stems for suffix in suffixes)
        assert {f"out-{name}/{file}" for file in made} <= places
    assert "ServiceError: try later" in page.text


def test_numbers_of_the_page_and_the_csv_files_are_those_of_the_summaries(run: ScoredRun, tmp_path: Path):
    page, _, *files = write_report([run], tmp_path / "out.html")
    report, text = build_report([run]), read_page(page).text
    for row in report.table:
        for name in shown_of(report.results):
            assert all(part in text for part in format_estimate(row.estimates[name]))
    means, episodes = (list(csv.DictReader(file.read_text(encoding="utf-8").splitlines())) for file in files[:2])
    assert len(means) == sum(len(row.estimates) for row in report.table)
    assert [line["seed"] for line in episodes] == [str(score.seed) for score in run.scores]
    first = run.scores[0]
    assert all(episodes[0][name] == ("" if value is None else str(value)) for name, value in first.values.items())


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn")
def test_pages_are_the_same_for_the_same_runs(run: ScoredRun, tmp_path: Path):
    write_report([run], tmp_path / "a" / "out.html")
    write_report([run], tmp_path / "b" / "out.html")
    first, second = (
        {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.*")}
        for folder in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second


def test_a_report_of_several_kinds_has_a_page_for_each_that_links_the_others(tmp_path: Path):
    runs = [run_of(case, "one") for case in CASES.values()]
    whole = ScoredRun(
        Path("run"), tuple(score for run in runs for score in run.scores),
        tasks={name: task for run in runs for name, task in run.tasks.items()},
    )  # fmt: skip
    pages = write_report([whole], tmp_path / "out.html")[: len(CASES)]
    assert [page.name for page in pages] == [f"out-{name}.html" for name in CASES]
    for page in pages:
        others = {f"out-{name}.html" for name in CASES} - {page.name}
        assert others <= set(read_page(page).attributes("href"))


def hostile_report(case: KindCase, folder: Path) -> Path:
    run = run_of(case, HOSTILE, "\ud800 =1+1\n日本", **{HOSTILE: HOSTILE})
    page, *_ = write_report([replace(run, folder=Path(HOSTILE))], folder, ReportOptions(paired=True))
    return page


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn")
def test_what_logs_hold_can_neither_run_nor_break_a_figure(kind_case: KindCase, tmp_path: Path):
    page = read_page(hostile_report(kind_case, tmp_path))
    assert len([tag for tag, _ in page.tags if tag == "svg"]) > 1
    assert page.scripts == []


def test_what_logs_hold_can_neither_run_nor_break_a_page(kind_case: KindCase, tmp_path: Path):
    for file in (hostile_report(kind_case, tmp_path), tmp_path / "report-episodes.html"):
        text = read_page(file).text
        assert "alert(1)" in text
        assert "{{ 7 * 7 }}" in text
    episode = played(kind_case)
    turns = tuple(turn.model_copy(update={"action": HOSTILE, "observation": HOSTILE}) for turn in episode.turns)
    header = episode.header.model_copy(update={"agent": {"name": HOSTILE}})
    write_view(Episode(header, turns, None), kind_case.task, tmp_path / "page.html", back="index.html")
    assert read_page(tmp_path / "page.html").text.count("alert(1)") > len(turns)


def test_a_page_has_an_article_and_a_link_per_turn_and_the_scores(kind_case: KindCase, tmp_path: Path):
    episode = played(kind_case)
    score = write_view(episode, kind_case.task, tmp_path / "page.html")
    assert score is not None
    page = read_page(tmp_path / "page.html")
    wanted = [*(f"turn-{turn.turn}" for turn in episode.turns), "scores"]
    assert [a["id"] for tag, a in page.tags if tag == "article"] == wanted
    assert [link[1:] for link in page.attributes("href") if link.startswith(("#turn-", "#scores"))] == wanted
    assert all(turn.observation in page.text and turn.action in page.text for turn in episode.turns)


def test_an_unfinished_episode_has_a_page_and_no_score(kind_case: KindCase, tmp_path: Path):
    episode = played(kind_case)
    for turns in ((), episode.turns[:1]):
        assert write_view(Episode(episode.header, turns, None), kind_case.task, tmp_path / "page.html") is None
        assert "it is not scored" in read_page(tmp_path / "page.html").text


def test_a_list_has_the_measures_of_its_kinds(tmp_path: Path):
    for names in (*([name] for name in CASES), list(CASES)):
        scores = [score_episode(played(CASES[name]), CASES[name].task) for name in names]
        lines = [
            ListedEpisode(
                score.kind, score.task, score.agent, score.cell, score.seed, "concluded", values=listed_values(score)
            )
            for score in scores
        ]
        columns = Columns.of_kinds(names)
        write_list(tmp_path / "index.html", "Episodes", lines, columns)
        heads = read_page(tmp_path / "index.html").text
        assert all(head.replace("_", " ") in heads for head in (*columns.values, columns.noun))
        assert ("kind" in heads) == (len(names) > 1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (ReportOptions(paired=True, agents=("nobody",)), "no agent is called 'nobody' here"),
        (ReportOptions(own={name: {"gravity": "strict"} for name in CASES}), "gravity"),
    ],
)
def test_options_that_do_not_fit_are_told(run: ScoredRun, tmp_path: Path, options: ReportOptions, match: str):
    with pytest.raises(OptionError, match=match):
        write_report([run], tmp_path, options)


def test_a_place_that_cannot_be_written_is_told(run: ScoredRun, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OptionError, match="choose another place with --out"):
        write_report([run], tmp_path / "file" / "out.html")
