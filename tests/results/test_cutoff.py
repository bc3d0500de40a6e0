"""Before and after the cutoff: who is on which side, what differs, and what a page shows."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.results import RESULTS, EpisodeScore
from inquitree_gym.results.cutoff import (
    CutoffAnalysis,
    DateRange,
    ModelDates,
    cutoff_table,
    load_models,
    parse_date,
    side_of,
    split_by_cutoff,
)
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.pages import write_report
from inquitree_gym.results.report import ReportOptions, build_report
from inquitree_gym.results.sections import cutoffs
from tests.results.html import read_page
from tests.results.test_aggregate import score

DAYS = st.dates(date(2020, 1, 1), date(2027, 12, 31))


def model(name: str, cutoff: str, latest: str | None = None) -> ModelDates:
    dates = {"cutoff": {"date": cutoff, "source": "s"}} | (
        {"latest": {"date": latest, "source": "s"}} if latest else {}
    )
    return ModelDates.model_validate({"name": name, "patterns": [name], **dates})


def asked(
    tree: int, published: str, model: str | None, *grades: float | None, agent: str = "llm", **more
) -> EpisodeScore:
    made = score(f"t{tree}", *grades, agent=agent, **more)
    return replace(made, agent=agent if model is None else f"{agent} {model}", model=model, published=published)


def run_of(*scores: EpisodeScore) -> ScoredRun:
    return ScoredRun(Path("run"), scores)


# Sides


@pytest.mark.parametrize(
    ("published", "cutoff", "side"),
    [
        ("2024-05-31", "2024-06-01", "before"), ("2024-06-01", "2024-06-01", "before"),
        ("2024-06-02", "2024-06-01", "after"), ("2024-05", "2024-06-01", "before"),
        ("2024-06", "2024-06-01", "unclear"), ("2024-07", "2024-06-01", "after"), ("2024", "2024-06-01", "unclear"),
        ("2024-06-15", "2024-06", "unclear"), ("2024-06-01", "2024-06", "before"), ("2024-06", "2024-06", "unclear"),
        ("2024-07-01", "2024-06", "after"), ("2025", "2024", "after"),
    ],
)  # fmt: skip
def test_a_paper_is_before_after_or_unclear(published: str, cutoff: str, side: str):
    assert side_of(parse_date(published), parse_date(cutoff)) == side


@given(DAYS, DAYS, st.integers(0, 400), st.integers(0, 400))
def test_a_side_is_told_only_where_every_day_agrees(paper: date, end: date, vague: int, wide: int):
    published, cutoff = DateRange(paper, paper + timedelta(vague)), DateRange(end, end + timedelta(wide))
    sides = {"before" if p <= c else "after" for p in published for c in cutoff}
    assert side_of(published, cutoff) == (sides.pop() if len(sides) == 1 else "unclear")


# Splits


def test_a_player_is_split_at_the_cutoff_of_its_model():
    scores = [asked(i, f"202{i}", "x", 1, 1 if i < 4 else 0) for i in range(1, 8)]
    found = split_by_cutoff(scores, [model("x", "2024-01")])
    (split,) = found.splits
    assert (split.cutoff, split.control, split.unclear) == ("2024-01", False, 1)
    assert split.before["Q/|C|"][:1] + split.after["Q/|C|"][:1] == (1.0, 0.5)
    assert (split.before["coverage"].trees, split.after["coverage"].trees) == (3, 3)
    assert split.difference["Q/|C|"].mean == 0.5
    assert split.difference["Q/|C|"].low is None
    assert split.degrees["Q/|C|"] is None
    assert found.unnamed == {}


def test_the_difference_has_welchs_interval_from_five_trees_on_a_side():
    grades = [1, 0.6, 1, 0, 1, 0, 0.6, 0, 0, 0, 1]
    scores = [asked(i, "2023" if i < 5 else "2025", "x", grade, 1) for i, grade in enumerate(grades)]
    (split,) = split_by_cutoff(scores, [model("x", "2024")]).splits
    from scipy.stats import ttest_ind

    means = [(grade + 1) / 2 for grade in grades]
    expected = ttest_ind(means[:5], means[5:], equal_var=False)
    low, high = expected.confidence_interval()
    assert split.difference["mean S"][1:3] == pytest.approx((low, high))
    assert split.degrees["mean S"] == pytest.approx(expected.df)


def test_a_control_is_split_at_the_median_of_the_cutoffs():
    models = [model("a", "2022-06"), model("b", "2023-06"), model("c", "2024-06", "2024-12")]
    scores = [asked(1, "2023-05", each.name, 1, 1) for each in models]
    scores += [asked(i, published, None, 1, 1, agent="random") for i, published in enumerate(("2023-05", "2023-07"))]
    *asking, control = split_by_cutoff(scores, models).splits
    assert [split.cutoff for split in asking] == ["2022-06", "2023-06", "2024-06 to 2024-12"]
    assert [split.control for split in asking] == [False] * 3
    assert (control.player[0], control.control, control.cutoff) == ("random", True, "2023-06")
    assert (control.before["coverage"].trees, control.after["coverage"].trees) == (1, 1)


def test_what_no_entry_names_is_left_out_and_counted():
    scores = [asked(i, "2023", name, 1, 1, fake_level=level) for i in (1, 2) for name in ("x", "y") for level in (0, 3)]
    found = split_by_cutoff([*scores, asked(1, "2023", None, 1, 1, agent="random")], [model("x", "2024")])
    assert found.unnamed == {"y": 4}
    assert [split.player[0] for split in found.splits] == ["llm x", "random"]
    assert split_by_cutoff(scores, []) == CutoffAnalysis({"fake_level": 0}, (), {"x": 4, "y": 4})


def test_players_are_split_apart_at_the_lowest_fake_level():
    scores = [asked(1, "2023", "x", 1, 1, fake_level=level) for level in (3, 6)]
    scores += [asked(1, "2023", "x", 0, 0, fake_level=3, agent="sceptic")]
    found = split_by_cutoff(scores, [model("x", "2024")])
    assert found.cell == {"fake_level": 3}
    assert [split.before["Q/|C|"].episodes for split in found.splits] == [1, 1]
    assert [split.before["Q/|C|"].mean for split in found.splits] == [1, 0]


@pytest.mark.e2e
def test_an_agent_of_chance_shows_no_difference_beyond_its_interval():
    """Over many samples Welch's interval of a difference that is none holds 0 about as often as it says."""
    draws = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        grades = draws.choice([0.0, 0.6, 1.0], size=(18, 2))
        scores = [asked(i, "2023" if i < 11 else "2025", None, *grades[i], agent="random") for i in range(18)]
        scores.append(asked(0, "2023", "x", 1, 1))
        estimate = split_by_cutoff(scores, [model("x", "2024")]).splits[-1].difference["mean S"]
        held += estimate.low <= 0 <= estimate.high
    assert 0.9 <= held / 200 <= 0.99


def test_the_mean_grade_is_absent_where_an_item_is():
    assert score("t1", 1, 0.6).detail.mean_grade == pytest.approx(0.8)
    assert score("t1", 1, None).detail.mean_grade is None
    assert replace(score("t1", 1, 1).detail, verdicts=()).mean_grade is None


def test_the_text_table_has_a_line_per_split():
    scores = [asked(i, f"202{i}", "x", 1, 0.6) for i in range(1, 8)] + [asked(1, "2021", None, 1, 1, agent="random")]
    heads, ours, control = cutoff_table(split_by_cutoff(scores, [model("x", "2024-01")]), RESULTS)
    assert heads[:5] == ["agent", "cutoff", "trees before", "after", "unclear"]
    assert heads[5:] == ["return", "coverage", "unaided coverage", "Q/|C|", "mean S"]
    assert ours[:5] == ["llm x", "2024-01", "3", "3", "1"]
    assert control[0] == "random, control"


# The page


@pytest.fixture(scope="module")
def scores() -> list[EpisodeScore]:
    published = [f"202{2 + i % 4}" for i in range(12)]
    found = [asked(i, day, "openai/o3", int(day < "2024"), 1) for i, day in enumerate(published)]
    found += [asked(i, day, None, 0, 0, agent="random") for i, day in enumerate(published)]
    return [*found, asked(0, "2022", "openai/our-own", 1, 1)]


@pytest.mark.e2e
@pytest.mark.usefixtures("drawn")
def test_the_section_shows_splits_controls_and_what_is_left_out(scores: list[EpisodeScore], tmp_path: Path):
    run = run_of(*scores)
    split = split_by_cutoff(run.scores, load_models())
    files = write_report([run], tmp_path, ReportOptions(models=load_models()))
    page = read_page(files[0])
    for wanted in (
        "Before and after the training cutoff",
        "llm openai/o3",
        "random, control",
        "2024-06-01",
        "openai/our-own (1 episodes)",
        "cannot be told apart",
        "before the cutoff",
    ):
        assert wanted in page.text
    drawn = [a["aria-label"] for tag, a in page.tags if tag == "svg"]
    assert sum("before the cutoff and after it" in label for label in drawn) == 3
    (table,) = [file for file in files if file.name == "report-cutoff.csv"]
    lines = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(lines) == 2 * len(RESULTS.split) * 3
    wanted = {"agent": "llm openai/o3", "measure": "mean S", "side": "before", "control": "False"}
    (before,) = [line for line in lines if wanted.items() <= line.items()]
    assert (float(before["mean"]), before["trees"], before["cutoff"]) == (1.0, "6", "2024-06-01")
    (left,) = [split.unclear for split in split.splits if not split.control]
    assert left == 3


@pytest.mark.e2e
def test_without_a_known_cutoff_the_section_says_so(scores: list[EpisodeScore], tmp_path: Path):
    run = run_of(*(score for score in scores if score.model != "openai/o3"))
    options = ReportOptions(models=load_models())
    section = cutoffs(build_report([run], options))
    assert section.charts == section.tables == ()
    assert "No agent here has a known training cutoff" in section.words[0]
    assert "openai/our-own (1 episodes)" in section.words[1]
    assert cutoffs(build_report([run])).words == section.words, "without any model nothing is known of one either"
    names = [file.name for file in write_report([run], tmp_path, options)]
    assert "report-cutoff.csv" not in names
