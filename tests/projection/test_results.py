"""Results of projections: sheets, the paper's averages, unscored projections apart, pairs, other judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.errors import JudgeError, OptionError
from inquitree_gym.projection.judges.alignment import level_weights
from inquitree_gym.projection.results import (
    AUC,
    COIN_F1,
    RESULTS,
    RETURN,
    LevelScore,
    ProjectionDetail,
    ProjectionScores,
    anchoring,
    belief_at,
    brier_at,
    f1_at,
    normalised_at,
    sheet_at,
)
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.results.comparison import compare_agents, differences_table
from inquitree_gym.results.load import ScoredRun, load_run
from inquitree_gym.results.score import EpisodeCost, Score
from inquitree_gym.results.summary import POOLED, SettingSummary, mean_of_groups, summarise, summary_table
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.projected import PAPERS, fill_in, judge_again, tell, tell_one
from tests.projection.tasks import WORDS

RISING = {"question": 0.0, "null": 0.5, "procedure": 1.0}
FIRST_UNREAD = RISING | {"question": -1.0}
MEAN = mean_of_groups(RESULTS)
UNEVEN = PAPERS[:5]
"""One domain has a single paper."""


def score(f1: tuple[float, ...], domain: str = "d", task: str = "t") -> ProjectionScores:
    levels = tuple(
        LevelScore(level, "", None, {"paper": value, "strict": value / 2})
        for level, value in zip(LEVELS, f1, strict=False)
    )
    return Score(
        kind="projection", task=task, version=1, group=domain, published="2020", agent="a", model=None, effort=None,
        config={}, cell={}, limit="", rules="sentence", seed=0, judge="local", judge_version=1, values={},
        detail=ProjectionDetail(levels, ()), turns=len(levels), unscored=0, cost=EpisodeCost.total([]),
    )  # fmt: skip


def row(rows: list[SettingSummary], agent: str, group: str) -> SettingSummary:
    (found,) = (each for each in rows if (each.agent, each.group) == (agent, group))
    return found


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("projections")
    tell(folder, "rising", RISING, UNEVEN)
    tell(folder, "oracle", dict.fromkeys(LEVELS, 1.0), UNEVEN)
    tell(folder, "unread", FIRST_UNREAD, UNEVEN)
    return folder


@pytest.fixture(scope="module")
def run(logs: Path) -> ScoredRun:
    return load_run(logs)


# Averages


def test_the_area_is_that_of_the_paper_unless_another_formula_is_chosen():
    f1 = (0.6127, 0.7478, 0.7660)
    for formulas, area in (({}, 1.43715), ({"auc": "mean"}, sum(f1) / 3), ({"variant": "strict"}, 1.43715 / 2)):
        rows = summarise([score(f1)], RESULTS.with_formulas(formulas))
        assert [each.estimates[AUC].mean for each in rows if each.group == POOLED] == [pytest.approx(area)]


def test_all_is_the_mean_of_the_domains_and_pooled_that_of_the_papers():
    of_domains = [
        score((value, 0.5, 0.5), name, name) for name, value in zip("abc", (0.6957, 0.4819, 0.6604), strict=True)
    ]
    more = [replace(of_domains[0], task="t9")]
    rows = summarise([*of_domains, *more])
    assert row(rows, "a", MEAN).estimates[f1_at("question")].mean == pytest.approx(0.6127, abs=5e-5)
    assert row(rows, "a", POOLED).estimates[f1_at("question")].mean == pytest.approx((2 * 0.6957 + 0.4819 + 0.6604) / 4)
    assert [each.group for each in rows] == ["a", "b", "c", MEAN, POOLED]


def test_the_deviation_is_over_papers_with_the_divisor_n():
    values = (0.1, 0.4, 0.9)
    scores = [score((value, 0.5, 0.5), task=str(value)) for value in values]
    assert row(summarise(scores), "a", "d").deviations[f1_at("question")] == pytest.approx(np.std(values))
    spread = [replace(each, group="e" if each.task == "0.9" else "d") for each in scores]
    rows = summarise(spread)
    assert row(rows, "a", POOLED).deviations[f1_at("question")] == pytest.approx(np.std(values))
    middle = (0.25 + 0.9) / 2
    expected = np.sqrt(((0.15**2) + (0.25 - middle) ** 2 + (0.9 - middle) ** 2) / 2)
    assert row(rows, "a", MEAN).deviations[f1_at("question")] == pytest.approx(expected)


def test_unscored_projections_are_counted_and_in_no_mean(run: ScoredRun):
    rows = summarise(run.scores)
    unread = row(rows, "unread", POOLED)
    first = f1_at("question")
    assert unread.unscored == len(UNEVEN)
    assert (unread.estimates[first].mean, unread.deviations[first], unread.estimates[AUC].mean) == (None, None, None)
    assert unread.estimates[f1_at("null")] == row(rows, "rising", POOLED).estimates[f1_at("null")]
    *_, line = summary_table([unread], RESULTS.shown, RESULTS)
    assert (line[2], line[-2], line[-1]) == ("–", "–", "5")


def test_scores_lie_between_the_expected_coin_and_the_oracle(run: ScoredRun):
    found = row(summarise(run.scores), "rising", POOLED).estimates
    assert (found[normalised_at("question")].mean, found[normalised_at("procedure")].mean) == (-1.0, 1.0)
    expected = (found[f1_at("null")].mean - COIN_F1) / (1 - COIN_F1)
    assert found[normalised_at("null")].mean == pytest.approx(expected)
    without = [each for each in run.scores if each.agent != "oracle"]
    assert row(summarise(without), "rising", POOLED).estimates[normalised_at("null")].mean is None


def test_rules_and_judges_are_told_apart():
    other = replace(score((1, 1, 1)), rules="claims")
    judged = replace(score((0, 0, 0)), judge="nli:x", judge_version=2)
    rows = [each for each in summarise([score((0.5, 0.5, 0.5)), other, judged]) if each.group == POOLED]
    assert [each.player for each in rows] == [
        ("a", "", "sentence", "local v1"), ("a", "", "claims", "local v1"), ("a", "", "sentence", "nli:x v2"),
    ]  # fmt: skip
    assert next(summary_table(rows, RESULTS.shown, RESULTS))[:3] == ["agent", "rules", "judged by"]
    with pytest.raises(OptionError, match="two agents that share a setting, task and seed"):
        compare_agents([score((0.5, 0.5, 0.5))])


# Pairs


def test_the_range_of_the_area_stands_with_its_column(run: ScoredRun):
    for formulas, heading in (({}, "AUC (0–2)"), ({"auc": "mean"}, "AUC (0–1)")):
        results = RESULTS.with_formulas(formulas)
        heads, *_ = summary_table(summarise(run.scores, results), results.shown, results)
        assert heading in heads
    assert AUC in run.scores[0].values, "the name has no range"


def test_two_players_are_compared_on_the_papers_of_both(run: ScoredRun):
    (found,) = compare_agents([each for each in run.scores if each.agent in ("oracle", "rising")])
    assert (found.name, found.pairs) == ("rising − oracle", len(UNEVEN))
    assert (found.estimates[f1_at("question")].mean, found.estimates[f1_at("procedure")].mean) == (-1.0, 0.0)
    area = np.mean([each.detail.area() for each in run.scores if each.agent == "rising"])
    assert found.estimates[AUC].mean == pytest.approx(area - 2)
    heads, line = differences_table([found], RESULTS.shown, RESULTS)
    assert (heads, line[:2]) == (["pair", "pairs", *RESULTS.shown[:-1], "AUC (0–2)"], ["rising − oracle", "5"])


def test_anchoring_is_the_conversation_minus_no_memory(tmp_path: Path):
    tell(tmp_path, "llm", dict.fromkeys(LEVELS, 1.0), PAPERS, model="m", memory="none")
    tell(tmp_path, "llm", RISING | {"question": 1.0}, PAPERS, model="m", memory="conversation")
    tell(tmp_path, "llm", RISING, PAPERS[:1], model="other", memory="none")
    (found,) = anchoring(load_run(tmp_path).scores)
    assert found.pairs == len(PAPERS)
    assert "memory=conversation" in found.name.split(" − ")[0]
    assert (found.estimates[f1_at("question")].mean, found.estimates[f1_at("procedure")].mean) == (0.0, 0.0)
    assert found.estimates[f1_at("null")].mean == pytest.approx(-0.5, abs=0.05)


# Sheets


def test_sheets_are_scored_by_level_and_their_probabilities_apart(tmp_path: Path):
    fill_in(tmp_path, "rising", RISING, PAPERS[:2])
    fill_in(tmp_path, "oracle", dict.fromkeys(LEVELS, 1.0), PAPERS[:2])
    fill_in(tmp_path, "unread", FIRST_UNREAD, PAPERS[:2])
    scores = load_run(tmp_path).scores
    found = {(each.task, each.agent): each for each in scores}
    for task in map(load_task, PAPERS[:2]):
        claims = task.claims
        shares = [-1 / len(claim.contraries) for claim in claims[:-1]]
        right = round(len(claims) / 2)
        middle = right - (right == len(claims))
        expected = [sum(shares), middle + sum(shares[middle:]), len(shares)]
        rising, oracle, unread = (found[task.id, name] for name in ("rising", "oracle", "unread"))
        by_level = [each / len(claims) for each in expected]
        assert [rising.values[sheet_at(level)] for level in LEVELS] == pytest.approx(by_level)
        assert rising.values[RETURN] == pytest.approx(level_weights(3) @ by_level)
        briers = [1, 1 - middle / len(shares), 0]
        assert [rising.values[brier_at(level)] for level in LEVELS] == pytest.approx(briers)
        trusted = [0, middle / len(shares), 1]
        assert [rising.values[belief_at(level)] for level in LEVELS] == pytest.approx(trusted)
        assert unread.values[belief_at("question")] is None
        assert oracle.values[RETURN] == pytest.approx(len(shares) / len(claims))
        assert (unread.values[sheet_at("question")], unread.values[brier_at("question")]) == (0, None)
        assert [each.level for each in unread.detail.sheets] == list(LEVELS), "the sheet that was asked for again"
    assert {each.judged_by for each in scores} == {""}
    assert {each.rules for each in scores} == {"claims, reward sheet"}
    assert {each.values[name] for each in scores for name in (AUC, *map(f1_at, LEVELS))} == {None}
    table = [" ".join(line) for line in summary_table(summarise(scores), RESULTS.shown, RESULTS)]
    assert all(name in table[0] for name in (RETURN, sheet_at("null")))


def test_a_judge_of_episodes_with_sheets_judges_the_first_projection_and_gives_no_area(tmp_path: Path):
    fill_in(tmp_path, "rising", RISING, PAPERS[:1])
    assert judge_again(tmp_path, WORDS) == [1, 0, 0]
    (found,) = load_run(tmp_path, judge="words").scores
    assert [each.level for each in found.detail.levels] == ["question"]
    assert (found.values[f1_at("question")], found.values[f1_at("null")], found.values[AUC]) == (0, None, None)
    assert found.values[RETURN] is not None


# Other judges


def test_another_judge_rescores_from_its_file_and_judges_nothing_twice(tmp_path: Path):
    tell(tmp_path, "unread", FIRST_UNREAD, PAPERS[:2])
    assert judge_again(tmp_path, WORDS) == [6, 0, 0]
    assert judge_again(tmp_path, WORDS) == [0, 6, 0]
    found = load_run(tmp_path, judge="words")
    assert {each.judged_by for each in found.scores} == {"words v1"}
    assert [each.detail.f1_at("question") for each in found.scores] == [0.0, 0.0]
    assert [each.unscored for each in load_run(tmp_path).scores] == [1, 1]
    assert {each.judged_by for each in load_run(tmp_path, judge="partial").scores} == {"partial v3"}


def test_a_judge_that_has_not_judged_is_an_error_that_tells_what_to_do(tmp_path: Path):
    tell(tmp_path, "rising", RISING, PAPERS[:1])
    with pytest.raises(OptionError, match="no judge is called 'words'"):
        load_run(tmp_path, judge="words")
    with pytest.raises(JudgeError, match=r"nli:x has not judged 'paper1-rising.*' of .* yet; run: inquitree judge"):
        load_run(tmp_path, judge="nli:x")
    judge_again(tmp_path, WORDS)
    tell(tmp_path, "rising", RISING, PAPERS[1:2])
    with pytest.raises(JudgeError, match="words has not judged 'paper2"):
        load_run(tmp_path, judge="words")
    other = replace(WORDS, make_config=lambda: {"version": 1, "reads": "words"})
    judge_again(tmp_path, other)
    assert len(load_run(tmp_path, judge="words").scores) == 2, "the settings that were asked last count"


def test_a_judgement_of_another_projection_is_refused(tmp_path: Path):
    file, task = tmp_path / "one.jsonl", load_task("paper1")
    tell_one(file, "rising", RISING, task)
    judge_again(tmp_path, WORDS)
    file.unlink()
    tell_one(file, "rising", dict.fromkeys(LEVELS, 1.0), task)
    with pytest.raises(JudgeError, match=r"words has not judged \'one.jsonl\'"):
        load_run(tmp_path, judge="words")
    assert judge_again(tmp_path, WORDS) == [2, 1, 0]
    assert load_run(tmp_path, judge="words").scores[0].detail.area() == 2
