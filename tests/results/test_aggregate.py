"""Logs to tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.inquiry.gains import CHOOSING
from inquitree_gym.inquiry.recall import ESTIMATES
from inquitree_gym.inquiry.results import (
    AGAINST_POSTERIOR,
    BOUNDS,
    CONFLICTS,
    MEASURES,
    REDO_PROBABILITIES,
    RESULTS,
    SPLIT,
    STATED,
    EpisodeScore,
)
from inquitree_gym.results.load import load_run
from inquitree_gym.results.score import score_episode
from inquitree_gym.results.summary import as_plain, summarise, summary_table
from inquitree_gym.runner import StudyConfig, run_study
from inquitree_gym.runner.check import make_study
from tests.inquiry.test_scoring import GivenJudge
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, episode_of, failed, redo, result
from tests.strategies import make_tree

WHOLE = [enter("s1"), result("s1a"), EXPLORE, enter("s2"), result("s2a"), CONCLUDE, END]


def score(
    tree_id: str, *scores: float | None, agent: str = "made", seed: int = 0, steps=WHOLE, **rules
) -> EpisodeScore:
    tree = make_tree([[], []], [1, 1], tree_id=tree_id)
    return score_episode(episode_of(tree, *steps, agent={"name": agent}, seed=seed, **rules), tree, GivenJudge(*scores))


# Rows


def test_a_row_is_an_agent_at_a_fake_level():
    scores = [
        score("t1", 1, 1, agent="a"),
        score("t1", 0, 0, agent="b"),
        score("t2", 1, 0, agent="a"),
        score("t1", 1, 1, agent="a", fake_level=3),
        score("t1", 1, 0, agent="a", seed=1),
    ]
    table = summarise(scores)
    assert [(row.agent, row.cell["fake_level"], row.tasks, row.episodes) for row in table] == [
        ("a", 0, 2, 3), ("b", 0, 1, 1), ("a", 3, 1, 1),
    ]  # fmt: skip
    # Tree t1 has the mean of 1 and 1/2, tree t2 has 1/2.
    assert table[0].estimates["Q/|C|"].mean == pytest.approx(0.625)
    assert table[0].estimates["Q"].mean == pytest.approx(1.25)
    assert table[1].estimates["Q"].mean == 0


def test_normalised_runs_from_the_floor_to_the_oracle_of_the_same_tree_and_level():
    ends = [score("t1", 1, 0, agent="random-menu"), score("t1", 1, 1, agent="oracle")]
    floor, oracle, ours, elsewhere = summarise(
        [*ends, score("t1", 1, 0.6, agent="ours"), score("t1", 1, 1, agent="ours", fake_level=3)]
    )
    assert [row.estimates["normalised"].mean for row in (floor, oracle, ours)] == pytest.approx([0, 1, 0.6])
    assert elsewhere.estimates["normalised"].mean is None


def test_unscored_episodes_are_counted_and_are_not_zero():
    (row,) = summarise([score("t1", 1, 1), score("t2", 1, None), score("t3", steps=WHOLE[:4])])
    assert (row.episodes, row.tasks, row.unscored) == (3, 3, 1)
    assert row.estimates["Q/|C|"].mean == 1
    assert (row.estimates["Q/|C|"].trees, row.estimates["Q/|C|"].episodes) == (1, 1)
    assert row.estimates["coverage"].episodes == 3


@pytest.mark.parametrize(("trees", "interval"), [(4, False), (5, True)])
def test_an_interval_takes_five_trees(trees: int, interval: bool):
    (row,) = summarise([score(f"t{i}", i % 2, 1, seed=seed) for i in range(trees) for seed in (0, 1)])
    estimate = row.estimates["Q"]
    assert (estimate.low is not None) == (estimate.high is not None) == interval
    assert estimate.trees == trees


def test_measures_of_one_episode():
    steps = [
        failed("subtopic_hint", 1), enter("s1"), result("s1a", 1), redo("s1a"), redo("s1a"), EXPLORE, enter("s2"),
        result("s2a", 2), CONCLUDE, END,
    ]  # fmt: skip
    (row,) = summarise([score("t1", 1.0, 0.6, steps=steps, fake_level=5, max_turns="11n")])
    expected = {
        "coverage": 1, "unaided_coverage": 0.5, "coverage_at_3n": 0.5, "Q": 1, "Q/|C|": 0.5, "turns": 9,
        "stretch": (9 - 6) / (22 - 6), "hints": 1, "redo_rate": 0.5, "hit_rate": 0.5, "false_alarm_rate": 0.5,
    }  # fmt: skip
    assert expected.keys() <= {measure.name for measure in MEASURES}
    assert {name: row.estimates[name].mean for name in expected} == pytest.approx(expected)


def test_rates_by_kind_of_showing():
    steps = [
        enter("s1"), result("s1a", 1), redo("s1a"), redo("s1a", 2), EXPLORE, enter("s2"), result("s2a", 2), CONCLUDE,
        END,
    ]  # fmt: skip
    (row,) = summarise([score("t1", 1.0, 0.6, steps=steps, fake_level=5, max_turns="11n")])
    expected = {
        "hit_rate, first": 0.5, "false_alarm_rate, first": None,
        "hit_rate, detectable": None, "false_alarm_rate, detectable": 1,
        "hit_rate, true result seen": 0, "false_alarm_rate, true result seen": None,
    }  # fmt: skip
    assert {measure.name: row.estimates[measure.name].mean for measure in SPLIT} == expected


def test_beliefs_are_pooled_by_tree():
    def stating(first: float, second: float | None) -> list:
        return [
            enter("s1"), result("s1a", 1), {**EXPLORE, "belief": first}, enter("s2"), result("s2a"),
            {**CONCLUDE, "belief": second}, END,
        ]  # fmt: skip

    scores = [
        score("t1", 1, 1, steps=stating(0.9, None), fake_level=5),
        score("t1", 1, 1, steps=stating(0.5, 0.6), fake_level=5, seed=1),
        score("t2", 1, 1, steps=stating(1.0, None), fake_level=5),
        score("t2", 1, 1, fake_level=3),
    ]
    row, silent = summarise(scores)
    assert (row.facts[STATED], silent.facts[STATED]) == (4, 0)
    assert row.estimates["Brier"].mean == pytest.approx(((0.01 + 0.25 + 0.36) / 3 + 0) / 2)
    assert (row.estimates["AUC"].mean, row.estimates["AUC"].trees) == (0.5, 1)
    assert silent.estimates["Brier"].mean is silent.estimates["AUC"].mean is None
    _, line, other = summary_table([row, silent], RESULTS.tables["Stated beliefs"], RESULTS)
    assert line[-3:] == ["4", "0.103", "0.500\nn = 1"]
    assert other[-3:] == ["0", "–", "–"]


def test_where_nothing_is_forced_there_is_no_upper_bound_and_no_stretch():
    (row,) = summarise([score("t1", 1, 1, feedback="reason", max_turns=None)])
    assert row.estimates["stretch"].mean is None
    assert row.estimates["turns"].mean == 6


def test_bounds_span_the_trees_of_a_row():
    three = make_tree([[], [], []], [1, 1, 1], tree_id="three")
    other = score_episode(episode_of(three, *WHOLE), three, GivenJudge(1, 1, 1))
    (row,) = summarise([score("t1", 1, 1), other])
    assert all(number in row.facts[BOUNDS] for number in ("[6–9, 6–9]",))


def test_a_row_as_json():
    (row,) = summarise([score("t1", 1, 0, fake_level=2)])
    plain = json.loads(json.dumps(as_plain(row)))
    assert (plain["agent"], plain["fake_level"], plain["tasks"], plain["episodes"], plain["unscored"]) == (
        "made", 2, 1, 1, 0,
    )  # fmt: skip
    assert set(plain["estimates"]) == {
        *(measure.name for measure in MEASURES), "normalised", "return / oracle", "redo_rate − level 0", CHOOSING,
        *REDO_PROBABILITIES, *AGAINST_POSTERIOR, *CONFLICTS, *ESTIMATES, "c", "Brier", "AUC",
    }  # fmt: skip
    assert plain["estimates"]["Q/|C|"] == {
        "mean": 0.5, "low": None, "high": None, "trees": 1, "episodes": 1, "values": [0.5],
    }  # fmt: skip
    assert plain["estimates"]["hit_rate"]["mean"] is None, "absent is not zero"


def test_a_table_has_a_heading_and_a_line_per_row():
    heading, *lines = summary_table(
        summarise([score("t1", 1, 0, agent="a"), score("t1", 1, 1, agent="b")]), ["Q", "hit_rate"], RESULTS
    )
    assert heading[-2:] == ["Q", "hit rate"]
    assert [line[0] for line in lines] == ["a", "b"]
    assert [line[-2:] for line in lines] == [["1.000", "–"], ["2.000", "–"]]
    assert all(len(line) == len(heading) for line in lines)


def test_a_mean_over_fewer_trees_than_its_row_names_their_number():
    fakes = [enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s2"), result("s2a", 2), CONCLUDE, END]
    scores = [score("t1", 1, 0, steps=fakes, fake_level=3), score("t2", 1, 0, fake_level=3)]
    _, line = summary_table(summarise(scores), ["redo_rate", "hit_rate", "false_alarm_rate", "coverage"], RESULTS)
    assert line[-4:] == ["0.167", "0.500\nn = 1", "0.000", "1.000"]


# Run folders


@pytest.fixture(scope="module")
def study() -> StudyConfig:
    return make_study(
        agents=("oracle", "worst-case", "random-menu"), trees=("paper8", "paper12"), seeds=2, max_turns="3n"
    )


@pytest.fixture(scope="module")
def run(study: StudyConfig, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run_study(study, folder)
    return folder


def test_a_run_is_scored_whole(study: StudyConfig, run: Path):
    told = []
    found = load_run(run, told.append)
    scores = found.scores
    assert told == list(study.specs())
    assert found.missing == ()
    assert [(s.agent, s.task, s.cell["fake_level"], s.seed) for s in scores] == [
        (spec.agent, spec.task, dict(spec.cell)["fake_level"], spec.seed) for spec in study.specs()
    ]
    assert {s.judge for s in scores} == {""}


def test_what_a_report_says_of_the_two_ends_at_3n(run: Path):
    by_agent = {row.agent: row.estimates for row in summarise(load_run(run).scores)}
    assert by_agent["random-menu"]["return"].mean < by_agent["oracle"]["return"].mean <= 1
    assert by_agent["oracle"]["coverage_at_3n"].mean == 1
    assert by_agent["oracle"]["stretch"].mean is None, "the bounds of L are one"
    assert by_agent["worst-case"]["unaided_coverage"].mean == 0
    assert 0 < by_agent["worst-case"]["coverage_at_3n"].mean < 1
    assert by_agent["worst-case"]["return"].mean == 0
    assert by_agent["random-menu"]["coverage"].mean < 1
