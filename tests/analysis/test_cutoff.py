"""Before and after the cutoff: who is on which side, what differs, what the same trees say, and what a page shows."""

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

from inquitree_gym.analysis.cutoff import (
    CUTOFF_MEASURES,
    CutoffAnalysis,
    CutoffObservation,
    cutoff_table,
    diff_in_diff,
    mean_grade,
    side_of,
    split_by_cutoff,
)
from inquitree_gym.analysis.cutoff_models import DateRange, ModelDates, load_models, parse_date
from inquitree_gym.analysis.load import ScoredRun, scored_episode
from inquitree_gym.report import write_report
from inquitree_gym.report.comparisons import cutoffs
from inquitree_gym.report.sections import report_data
from inquitree_gym.scoring import EpisodeScore
from tests.analysis.test_aggregate import WHOLE, score
from tests.report.html import read_page
from tests.scoring.test_episode import GivenJudge
from tests.scoring.test_trajectory import episode_of
from tests.strategies import make_tree

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
    tree = make_tree([[], []], [1, 1])
    facts = scored_episode(episode_of(tree, *WHOLE), tree, GivenJudge(1, 1))
    return ScoredRun(Path("run"), [replace(facts, score=score) for score in scores], [], {})


# Sides


@pytest.mark.parametrize(
    ("published", "cutoff", "side"),
    [
        ("2024-05-31", "2024-06-01", "before"),
        ("2024-06-01", "2024-06-01", "before"),
        ("2024-06-02", "2024-06-01", "after"),
        ("2024-05", "2024-06-01", "before"),
        ("2024-06", "2024-06-01", "unclear"),
        ("2024-07", "2024-06-01", "after"),
        ("2024", "2024-06-01", "unclear"),
        ("2024-06-15", "2024-06", "unclear"),
        ("2024-06-01", "2024-06", "before"),
        ("2024-06", "2024-06", "unclear"),
        ("2024-07-01", "2024-06", "after"),
        ("2025", "2024", "after"),
    ],
)
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
    assert split_by_cutoff(scores, []) == CutoffAnalysis(0, (), {}, {"x": 4, "y": 4})


def test_players_are_split_apart_at_the_lowest_fake_level():
    scores = [asked(1, "2023", "x", 1, 1, fake_level=level) for level in (3, 6)]
    scores += [asked(1, "2023", "x", 0, 0, fake_level=3, agent="sceptic")]
    found = split_by_cutoff(scores, [model("x", "2024")])
    assert found.level == 3
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
    assert mean_grade(score("t1", 1, 0.6)) == pytest.approx(0.8)
    assert mean_grade(score("t1", 1, None)) is None
    assert mean_grade(replace(score("t1", 1, 1), verdicts=())) is None


def test_the_text_table_has_a_line_per_split():
    scores = [asked(i, f"202{i}", "x", 1, 0.6) for i in range(1, 8)] + [asked(1, "2021", None, 1, 1, agent="random")]
    heads, ours, control = cutoff_table(split_by_cutoff(scores, [model("x", "2024-01")]))
    assert heads == ["agent", "cutoff", "trees before", "after", "unclear", *CUTOFF_MEASURES]
    assert ours[:5] == ["llm x", "2024-01", "3", "3", "1"]
    assert control[0] == "random, control"


# The same trees


def observations(
    effect: float, crossed: int, others: int, noise: float = 0.0, seed: int = 0
) -> list[CutoffObservation]:
    """Two models; the first ``crossed`` trees lie before the cutoff of the later one alone."""
    draws = np.random.default_rng(seed)
    found = []
    for tree in range(crossed + others):
        level = draws.normal()
        for name, of_model in (("early", 0.0), ("late", 0.7)):
            before = name == "late" if tree < crossed else tree % 2 == 0
            value = of_model + level + effect * before + noise * draws.normal()
            found.append(CutoffObservation(name, f"t{tree}", before, value))
    return found


def test_the_effect_is_found_whatever_the_levels_of_trees_and_models():
    found = diff_in_diff(observations(0.3, crossed=6, others=8))
    assert found.effect.mean == pytest.approx(0.3)
    assert found.effect[1:3] == pytest.approx((0.3, 0.3))
    assert (found.effect.trees, found.others, found.models, found.effect.episodes) == (6, 8, 2, 28)


@given(st.integers(0, 1000))
def test_with_two_models_it_is_a_difference_in_differences(seed: int):
    made = observations(0.3, crossed=5, others=7, noise=1.0, seed=seed)
    by_tree = {f"t{i}": {each.model: each.value for each in made if each.tree == f"t{i}"} for i in range(12)}
    gains = [each["late"] - each["early"] for each in by_tree.values()]
    assert diff_in_diff(made).effect.mean == pytest.approx(np.mean(gains[:5]) - np.mean(gains[5:]))


def test_the_interval_of_the_effect_covers_it():
    covered = 0
    for seed in range(150):
        estimate = diff_in_diff(observations(0.3, crossed=7, others=9, noise=0.5, seed=seed)).effect
        covered += estimate.low <= 0.3 <= estimate.high
    assert 0.92 <= covered / 150 <= 1.0


def test_the_interval_of_the_effect_is_a_jackknife_with_the_degrees_of_the_fewer_trees():
    from scipy.stats import t

    made = observations(0.3, crossed=5, others=8, noise=1.0)
    gains = np.array([late.value - early.value for early, late in zip(made[::2], made[1::2], strict=True)])
    places = np.arange(13)
    without = [
        gains[(places != tree) & (places < 5)].mean() - gains[(places != tree) & (places >= 5)].mean()
        for tree in range(13)
    ]
    half = t.ppf(0.975, 4) * np.sqrt(12 * np.var(without))
    estimate = diff_in_diff(made).effect
    assert estimate.high - estimate.mean == pytest.approx(half)
    assert estimate.mean - estimate.low == pytest.approx(half)


@pytest.mark.parametrize(("crossed", "others"), [(4, 9), (9, 4)])
def test_with_few_trees_the_effect_has_no_interval(crossed: int, others: int):
    found = diff_in_diff(observations(0.3, crossed, others))
    assert found.effect.mean == pytest.approx(0.3)
    assert found.effect.low is None


def test_without_a_tree_on_both_sides_there_is_no_effect():
    found = diff_in_diff(observations(0.3, crossed=0, others=8))
    assert (found.effect.mean, found.effect.trees, found.others) == (None, 0, 8)
    assert diff_in_diff([]).effect.mean is None
    assert diff_in_diff([CutoffObservation("m", "t", True, 1.0)]).others == 0


def test_where_all_trees_are_crossed_alike_nothing_tells_model_and_cutoff_apart():
    assert diff_in_diff(observations(0.3, crossed=8, others=0)).effect.mean is None


def test_several_episodes_of_a_cell_are_one_value():
    made = observations(0.3, crossed=6, others=8)
    twice = [replace(each, value=each.value + shift) for each in made for shift in (-1, 1)]
    assert diff_in_diff(twice).effect.mean == pytest.approx(0.3)
    assert diff_in_diff(twice).effect.episodes == 56


def test_the_same_trees_of_a_report_are_compared():
    models = [model("early", "2022"), model("late", "2025")]
    years = ["2023", "2024", "2020", "2021", "2027"]
    scores = [asked(i, year, "early", 0, 0) for i, year in enumerate(years)]
    scores += [asked(i, year, "late", 1 if year in ("2023", "2024") else 0, 0) for i, year in enumerate(years)]
    # The date of this one leaves open on which side of the first cutoff it lies.
    scores += [asked(9, "2022", each.name, 1, 1) for each in models]
    found = split_by_cutoff(scores, models).crossings
    assert found["mean S"].effect.mean == pytest.approx(0.5)
    assert (found["mean S"].effect.trees, found["mean S"].others) == (2, 3)
    assert found["coverage"].effect.mean == pytest.approx(0)


# The page


@pytest.fixture(scope="module")
def scores() -> list[EpisodeScore]:
    published = [f"202{2 + i % 4}" for i in range(12)]
    found = [asked(i, day, "openai/o3", int(day < "2024"), 1) for i, day in enumerate(published)]
    found += [asked(i, day, None, 0, 0, agent="random") for i, day in enumerate(published)]
    return [*found, asked(0, "2022", "openai/our-own", 1, 1)]


@pytest.mark.e2e
def test_the_section_shows_splits_controls_and_what_is_left_out(scores: list[EpisodeScore], tmp_path: Path):
    run = run_of(*scores)
    split = split_by_cutoff(run.scores, load_models())
    files = write_report([run], tmp_path, split=split)
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
    assert len(lines) == 2 * len(CUTOFF_MEASURES) * 3
    wanted = {"agent": "llm openai/o3", "measure": "mean S", "side": "before", "control": "False"}
    (before,) = [line for line in lines if wanted.items() <= line.items()]
    assert (float(before["mean"]), before["trees"], before["cutoff"]) == (1.0, "6", "2024-06-01")
    (left,) = [split.unclear for split in split.splits if not split.control]
    assert left == 3


@pytest.mark.e2e
def test_without_a_known_cutoff_the_section_says_so(scores: list[EpisodeScore], tmp_path: Path):
    run = run_of(*(score for score in scores if score.model != "openai/o3"))
    section = cutoffs(report_data([run], (), split_by_cutoff(run.scores, load_models())))
    assert section.charts == section.tables == ()
    assert "No agent here has a known training cutoff" in section.words[0]
    assert "openai/our-own (1 episodes)" in section.words[1]
    assert cutoffs(report_data([run])).words == section.words[:1]
    names = [file.name for file in write_report([run], tmp_path, split=split_by_cutoff(run.scores, load_models()))]
    assert "report-cutoff.csv" not in names
