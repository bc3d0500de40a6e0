"""Sections of a report on inquiries, from scores of made episodes."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from inquitree_gym.inquiry.results import EpisodeScore
from inquitree_gym.inquiry.sections import coverage_curve, turns, vigilance
from inquitree_gym.inquiry.trajectory import ReadingCounts
from inquitree_gym.results import ScoredRun, write_report
from inquitree_gym.results.comparison import compare_runs
from inquitree_gym.results.logs import Missing
from inquitree_gym.results.report import build_report
from inquitree_gym.results.sections import leaderboard, tasks
from inquitree_gym.results.tables import shaded
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, redo, result
from tests.results.html import read_page
from tests.results.test_aggregate import WHOLE, score

FAKES = [enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s2"), result("s2a", 2), CONCLUDE, END]
READS = ReadingCounts(Counter(accepted=3, hinted=1), Counter(below_threshold=1), (0.7, 0.8, 0.9), (0.2,))


def detailed(score: EpisodeScore, **changes: Any) -> EpisodeScore:
    return replace(score, detail=replace(score.detail, **changes))


def run_of(*scores: EpisodeScore, name: str = "run", missing: tuple[Missing, ...] = (), **spent: Any) -> ScoredRun:
    """A run of made scores, each with some readings and costs."""
    whole = (
        replace(detailed(score, readings=READS, coverage=(0.5, 0.5, 0.5, 1.0)), cost=replace(score.cost, **spent))
        for score in scores
    )
    return ScoredRun(Path(name), tuple(whole), missing)


@pytest.fixture(scope="module")
def run() -> ScoredRun:
    """Two agents on six trees, one of them at two levels."""
    ours = [score(f"t{i}", 1, i % 2, agent="ours", steps=WHOLE) for i in range(6)]
    tempted = [score(f"t{i}", 1, 0, agent="ours", steps=FAKES, fake_level=3) for i in range(6)]
    floor = [score(f"t{i}", 0, 0, agent="random-menu") for i in range(6)]
    return run_of(*ours, *tempted, *floor, dollars=0.5, unpriced=2, prompt_tokens=1200, retries=3)


@pytest.fixture(scope="module")
def files(run: ScoredRun, tmp_path_factory) -> list[Path]:
    return write_report([run], tmp_path_factory.mktemp("report") / "out.html")


def test_the_page_holds_every_section_and_figure(files: list[Path]):
    page = read_page(files[0])
    assert [a["id"] for tag, a in page.tags if tag == "section"] == [
        "leaderboard", "grid", "tasks", "gains", "vigilance", "vigilance-over-time",
        "turns", "reading", "cost", "missing",
        "threats", "settings",
    ]  # fmt: skip
    assert len([a["aria-label"] for tag, a in page.tags if tag == "svg"]) == 3 + 3 + 4 + 1 + 2, "no exam was taken"
    assert page.has("meta", name="viewport")


class Cell(dict):
    """A cell that counts how often it is read."""

    reads = 0

    def __iter__(self):
        Cell.reads += 1
        return super().__iter__()


def test_the_episodes_are_looked_through_a_few_times_however_many_they_are(tmp_path: Path):
    made = [score(f"t{i % 3}", 1, 0, seed=i, steps=FAKES, fake_level=3) for i in range(40)]
    before = Cell.reads
    write_report([run_of(*(replace(each, cell=Cell(each.cell)) for each in made))], tmp_path)
    assert 40 <= Cell.reads - before <= 200


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn")
def test_figures_take_their_colours_from_the_page(run: ScoredRun, tmp_path: Path):
    page, *_ = write_report([run], tmp_path / "out.html")
    drawn = re.findall(r"<svg.*?</svg>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(drawn) == 13
    assert all("var(--ink)" in svg for svg in drawn)
    assert not [found for svg in drawn for found in re.findall(r"(?:fill|stroke): #(?!fff)\w+", svg)]


def test_the_cost_is_added_up_and_a_lower_bound_without_every_price(files: list[Path]):
    text = read_page(files[0]).text
    assert "≥ 6.0000" in text  # twelve episodes of ours at half a dollar, with replies of unknown price
    assert "14,400" in text
    table = files[0].parent / "out-tables" / "cost.csv"
    first, *_ = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    assert first["prompt tokens"] == "14400"


def test_replies_of_models_stand_beside_the_leaderboard():
    scores = (score("t1", 1, 1, agent="asks"), score("t1", 1, 1, agent="oracle"))
    asked = replace(scores[0], cost=replace(scores[0].cost, replies=9, corrections=2, cut_short=1))
    board, replies = leaderboard(build_report([run_of(asked, scores[1])])).tables
    assert "hints" in board.heads
    assert replies.heads[:4] == ("agent", "replies", "corrections", "cut short")
    assert [[cell.text for cell in line][:4] for line in replies.lines] == [["asks", "9", "2", "1"]]


def test_episodes_of_one_seed_are_averaged_before_they_are_paired():
    twice = [score("t1", 1, 1, agent="two"), score("t1", 0, 0, agent="two"), score("t1", 0, 0, agent="one")]
    (found,) = compare_runs([twice], ("one", "two"))
    assert (found.pairs, found.estimates["Q/|C|"].mean) == (1, 0.5)


def test_a_number_leads_to_its_episodes(files: list[Path]):
    links = {unquote_plus(link) for link in read_page(files[0]).attributes("href")}
    for wanted in ("agent=ours&fake level=3", "tree=t4&agent=random-menu&fake level=0", "agent=ours"):
        assert f"out-episodes.html#{wanted}" in links
    listed = read_page(files[0].with_name("out-episodes.html"))
    assert listed.text.count("random-menu") == 6
    assert "18 episodes" in listed.text


def test_without_fakes_the_figures_of_vigilance_say_how_to_get_them():
    section = vigilance(build_report([run_of(score("t1", 1, 1))]))
    assert section.charts == ()
    assert "--fake-level" in section.words[0]


def test_coverage_over_turns_is_a_mean_over_trees_that_keeps_the_last_value():
    slow = detailed(score("t1", 1, 1), coverage=(0.0, 0.0, 0.5, 0.5, 0.5, 1.0))
    fast = detailed(score("t2", 1, 1), coverage=(0.5, 1.0))
    twice = detailed(score("t2", 1, 1, seed=1), coverage=(0.5, 1.0))
    report = build_report([ScoredRun(Path("r"), (slow, fast, twice))])
    (chart,) = turns(report).charts
    assert "turns per subtopic" in chart.caption
    curve = dict(coverage_curve(report.scores))
    assert [curve[at].mean for at in (0, 0.5, 1, 1.5, 3)] == [0, 0.25, 0.5, 0.75, 1]
    assert curve[1].trees == 2


def test_the_table_by_tree_tells_the_evidence_tier():
    known = detailed(score("t1", 1, 1), tier="B")
    (first, *_) = tasks(build_report([ScoredRun(Path("r"), (known, score("t2", 1, 1)))])).tables
    assert [line[0].text for line in first.lines] == ["t1 (tier B)", "t2"]


def test_the_table_by_tree_has_a_line_per_tree_and_a_column_per_setting():
    table = tasks(build_report([run_of(*(score(f"t{i}", 1, i, agent=name) for i in (0, 1) for name in "ab"))])).tables[
        -1
    ]
    assert table.heads == ("tree", "a", "b")
    assert [line[0].text for line in table.lines] == ["t0", "t1"]
    assert [line[1] for line in table.lines] == [shaded(0.5), shaded(1.0)]


def test_with_many_settings_the_table_by_tree_keeps_to_the_lowest_level():
    scores = [score("t1", 1, 0, agent=name, fake_level=level) for name in "ab" for level in range(1, 9)]
    assert tasks(build_report([run_of(*scores)])).tables[0].heads == ("tree", "a", "b")
    few = tasks(build_report([run_of(*scores[:8])])).tables[0]
    assert few.heads[:3] == ("tree", "a, fake level 1", "a, fake level 2")


@pytest.mark.parametrize(
    ("rules", "names"),
    [({"max_turns": 6}, ["made, 3n", "made, 6"]), ({"threshold": 0.7}, ["made, none τ=0.5", "made, none τ=0.7"])],
)
def test_turn_limits_and_readings_are_named_where_a_report_has_several(rules: dict[str, Any], names: list[str]):
    report = build_report([run_of(score("t1", 1, 0), score("t1", 1, 0, **rules))])
    assert list(report.names.values()) == names


def test_agents_stand_by_their_conclusion_and_those_without_one_last():
    grades = {"unscored": (None, 0), "half": (1, 0), "nothing": (0, 0), "best": (1, 1)}
    scores = [score("t1", *of_agent, agent=agent) for agent, of_agent in grades.items()]
    assert [row.agent for row in build_report([run_of(*scores)]).base] == ["best", "half", "nothing", "unscored"]


def test_a_rate_of_fewer_trees_than_its_row_says_so():
    run = run_of(score("t1", 1, 0, steps=FAKES, fake_level=3), score("t2", 1, 0, fake_level=3))
    table, *_ = vigilance(build_report([run])).tables
    (line,) = table.lines
    assert line[table.heads.index("n (trees)")].text == "2 (2)"
    assert line[table.heads.index("hit rate")].below == "n = 1"
    assert line[table.heads.index("redo rate")].below == ""


def test_two_configurations_of_one_agent_are_listed_apart():
    scores = [replace(score("t1", 1, 1, seed=seed), config={"name": "made", "warmth": seed}) for seed in (0, 1)]
    assert list(build_report([run_of(*scores)]).names.values()) == ["made (warmth=0)", "made (warmth=1)"]
