"""Results of projections: the paper's averages, unscored projections apart, pairs of players, other judges."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.analysis.cutoff_models import load_models
from inquitree_gym.analysis.logs import OTHER_ENV, OTHER_TREE, find_logs
from inquitree_gym.analysis.projection_judging import judge_projections, stated_projections
from inquitree_gym.analysis.projection_summary import (
    AUC,
    COIN_F1,
    MEAN_OF_DOMAINS,
    POOLED,
    Metric,
    ProjectionSummary,
    anchoring,
    compare_projections,
    paired_projections_table,
    projection_table,
    split_projections,
    summarise_projections,
)
from inquitree_gym.analysis.projections import ProjectionRun, load_projections
from inquitree_gym.baselines import RandomMenuAgent
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import JudgeError, LogError, OptionError
from inquitree_gym.judges.projections.judgement import InProcessProjectionJudge
from inquitree_gym.rollout import play
from inquitree_gym.scoring.projection import LevelScore, ProjectionEpisodeScore
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.tasks import load_task
from tests.analysis.projected import PAPERS, tell, tell_one
from tests.envs.projection.tasks import WORDS

RISING = {"question": 0.0, "null": 0.5, "procedure": 1.0}
FIRST_UNREAD = RISING | {"question": -1.0}
UNEVEN = PAPERS[:5]
"""One domain has a single paper."""


def score(f1: tuple[float, ...], domain: str = "d", task: str = "t") -> ProjectionEpisodeScore:
    levels = tuple(
        LevelScore(level, "", None, {"paper": value, "strict": value / 2})
        for level, value in zip(LEVELS, f1, strict=False)
    )
    return ProjectionEpisodeScore(task, domain, "a", None, "2020", 0, "sentence", "local", 1, levels)


def row(rows: list[ProjectionSummary], agent: str, group: str) -> ProjectionSummary:
    (found,) = (each for each in rows if (each.player.agent, each.group) == (agent, group))
    return found


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("projections")
    tell(folder, "rising", RISING, UNEVEN)
    tell(folder, "oracle", dict.fromkeys(LEVELS, 1.0), UNEVEN)
    tell(folder, "unread", FIRST_UNREAD, UNEVEN)
    return folder


@pytest.fixture(scope="module")
def run(logs: Path) -> ProjectionRun:
    return load_projections(logs)


# Averages


@pytest.mark.parametrize(
    ("f1", "area"),
    [
        ((0.6127, 0.7478, 0.7660), 1.43715),
        ((0.5256, 0.7172, 0.7044), 1.3322),
        ((0.6033, 0.7545, 0.7639), 1.4381),
        ((0.3398, 0.5431, 0.6293), 1.02765),
    ],
)
def test_the_area_is_that_of_the_paper(f1: tuple[float, ...], area: float):
    (pooled,) = (each for each in summarise_projections([score(f1)]) if each.group == POOLED)
    assert pooled.auc.mean == pytest.approx(area)
    by_mean = summarise_projections([score(f1)], Metric(auc="mean"))[0].auc.mean
    assert by_mean == pytest.approx(sum(f1) / 3)
    assert summarise_projections([score(f1)], Metric("strict"))[0].auc.mean == pytest.approx(area / 2)


def test_all_is_the_mean_of_the_domains_and_pooled_that_of_the_papers():
    of_domains = [
        score((value, 0.5, 0.5), name, name) for name, value in zip("abc", (0.6957, 0.4819, 0.6604), strict=True)
    ]
    more = [replace(of_domains[0], task="t9")]
    rows = summarise_projections([*of_domains, *more])
    assert row(rows, "a", MEAN_OF_DOMAINS).f1["question"].mean == pytest.approx(0.6127, abs=5e-5)
    assert row(rows, "a", POOLED).f1["question"].mean == pytest.approx((2 * 0.6957 + 0.4819 + 0.6604) / 4)
    assert [each.group for each in rows] == ["a", "b", "c", MEAN_OF_DOMAINS, POOLED]


def test_the_deviation_is_over_papers_with_the_divisor_n():
    values = (0.1, 0.4, 0.9)
    scores = [score((value, 0.5, 0.5), task=str(value)) for value in values]
    assert row(summarise_projections(scores), "a", "d").std["question"] == pytest.approx(np.std(values))
    spread = [replace(each, domain="e" if each.task == "0.9" else "d") for each in scores]
    rows = summarise_projections(spread)
    assert row(rows, "a", POOLED).std["question"] == pytest.approx(np.std(values))
    middle = (0.25 + 0.9) / 2
    expected = np.sqrt(((0.15**2) + (0.25 - middle) ** 2 + (0.9 - middle) ** 2) / 2)
    assert row(rows, "a", MEAN_OF_DOMAINS).std["question"] == pytest.approx(expected)


def test_repeats_of_one_paper_are_one_paper():
    twice = [score((0.2, 0, 0)), replace(score((0.4, 0, 0)), seed=1), score((0.9, 0, 0), task="other")]
    found = row(summarise_projections(twice), "a", "d")
    assert (found.papers, found.episodes) == (2, 3)
    assert found.f1["question"].mean == pytest.approx((0.3 + 0.9) / 2)
    assert found.std["question"] == pytest.approx(0.3)


def test_unscored_projections_are_counted_and_in_no_mean(run: ProjectionRun):
    rows = summarise_projections(run.scores)
    unread = row(rows, "unread", POOLED)
    assert unread.unscored == len(UNEVEN)
    assert (unread.f1["question"].mean, unread.std["question"], unread.auc.mean) == (None, None, None)
    assert unread.f1["null"] == row(rows, "rising", POOLED).f1["null"]
    *_, line = projection_table([unread], LEVELS)
    assert (line[3], line[-2], line[-1]) == ("–", "–", "5")


def test_scores_lie_between_the_expected_coin_and_the_oracle(run: ProjectionRun):
    rows = summarise_projections(run.scores)
    found = row(rows, "rising", POOLED)
    assert (found.normalised["question"].mean, found.normalised["procedure"].mean) == (-1.0, 1.0)
    assert found.normalised["null"].mean == pytest.approx((found.f1["null"].mean - COIN_F1) / (1 - COIN_F1))
    without = [each for each in run.scores if each.agent != "oracle"]
    assert row(summarise_projections(without), "rising", POOLED).normalised["null"].mean is None


def test_rules_and_judges_are_told_apart():
    other = replace(score((1, 1, 1)), rules="claims")
    judged = replace(score((0, 0, 0)), judge="nli:x", judge_version=2)
    rows = [each for each in summarise_projections([score((0.5, 0.5, 0.5)), other, judged]) if each.group == POOLED]
    assert [each.player for each in rows] == [
        ("a", "sentence", "local v1"), ("a", "claims", "local v1"), ("a", "sentence", "nli:x v2"),
    ]  # fmt: skip
    assert next(projection_table(rows, LEVELS))[:2] == ["agent", "rules"]
    with pytest.raises(OptionError, match="two agents that share rules, papers and seeds"):
        compare_projections([score((0.5, 0.5, 0.5)), other])


# Pairs


def test_two_players_are_compared_on_the_papers_of_both(run: ProjectionRun):
    (found,) = compare_projections([each for each in run.scores if each.agent in ("oracle", "rising")])
    assert (found.name, found.pairs) == ("rising − oracle", len(UNEVEN))
    assert (found.estimates["question"].mean, found.estimates["procedure"].mean) == (-1.0, 0.0)
    assert found.estimates[AUC].mean == pytest.approx(
        np.mean([each.area() for each in run.scores if each.agent == "rising"]) - 2
    )
    heads, line = paired_projections_table([found])
    assert heads == ["pair", "pairs", *LEVELS, AUC]
    assert line[:2] == ["rising − oracle", "5"]


def test_anchoring_is_the_conversation_minus_no_memory(tmp_path: Path):
    tell(tmp_path, "llm", dict.fromkeys(LEVELS, 1.0), PAPERS, model="m", memory="none")
    tell(tmp_path, "llm", RISING | {"question": 1.0}, PAPERS, model="m", memory="conversation")
    tell(tmp_path, "llm", RISING, PAPERS[:1], model="other", memory="none")
    (found,) = anchoring(load_projections(tmp_path).scores)
    assert found.pairs == len(PAPERS)
    assert "memory=conversation" in found.name.split(" − ")[0]
    assert (found.estimates["question"].mean, found.estimates["procedure"].mean) == (0.0, 0.0)
    assert found.estimates["null"].mean == pytest.approx(-0.5, abs=0.05)


def test_papers_are_split_at_the_cutoff_of_the_model(tmp_path: Path):
    tell(tmp_path, "llm", RISING, PAPERS, model="openai/o3")
    tell(tmp_path, "llm", RISING, PAPERS[:1], model="nobody/knows")
    found = split_projections(load_projections(tmp_path).scores, load_models())
    (split,) = found.splits
    assert set(split.difference) == {*(f"F1, {level}" for level in LEVELS), AUC}
    before = [paper for paper in PAPERS if load_task(paper).paper.published.written < "2024-06"]
    assert (split.before[AUC].trees, split.after[AUC].trees) == (len(before), len(PAPERS) - len(before))
    assert found.unnamed == {"nobody/knows": 1}


# Logs


def test_torn_and_foreign_logs_are_named_and_not_scored(logs: Path, tmp_path: Path):
    whole = sorted(logs.glob("*.jsonl"))[0].read_text().splitlines(keepends=True)
    (tmp_path / "torn.jsonl").write_text("".join(whole[:-1]))
    (tmp_path / "whole.jsonl").write_text("".join(whole))
    (tmp_path / "strange.jsonl").write_text("".join(whole).replace(load_task("paper1").digest, "0" * 64))
    tree = load_tree("paper12")
    play(InquiryEnv(tree), RandomMenuAgent(tree), 0, file=tmp_path / "inquiry.jsonl")
    found = load_projections(tmp_path)
    assert len(found.episodes) == 1
    assert {each.name: each.status for each in found.missing} == {
        "torn.jsonl": "torn", "strange.jsonl": OTHER_TREE, "inquiry.jsonl": OTHER_ENV,
    }  # fmt: skip
    assert find_logs(tmp_path).kinds == {"inquiry", "projection"}
    with pytest.raises(LogError, match="holds no finished episode of projections yet"):
        load_projections(tmp_path / "torn.jsonl")


def test_a_kind_of_log_is_not_taken_for_the_other(logs: Path):
    from inquitree_gym.analysis.load import load_run

    with pytest.raises(LogError, match="is a log of --env projection, not inquiry"):
        load_run(logs)


# Other judges


def judge_again(folder: Path, judge: InProcessProjectionJudge) -> list[int]:
    logs = find_logs(folder)
    done = asyncio.run(judge_projections(folder, stated_projections(logs), judge, 2, lambda name: None))
    return [done.judged, done.found, done.unscored]


def test_another_judge_rescores_from_its_file_and_judges_nothing_twice(tmp_path: Path):
    tell(tmp_path, "unread", FIRST_UNREAD, PAPERS[:2])
    assert judge_again(tmp_path, WORDS) == [6, 0, 0]
    assert judge_again(tmp_path, WORDS) == [0, 6, 0]
    found = load_projections(tmp_path, judge="words")
    assert {each.judged_by for each in found.scores} == {"words v1"}
    assert [each.f1_at("question") for each in found.scores] == [0.0, 0.0]
    assert [each.unscored for each in load_projections(tmp_path).scores] == [1, 1]
    assert load_projections(tmp_path, judge="words v1").scores == found.scores
    assert {each.judged_by for each in load_projections(tmp_path, judge="partial").scores} == {"partial v3"}


def test_a_judge_that_has_not_judged_is_an_error_that_tells_what_to_do(tmp_path: Path):
    tell(tmp_path, "rising", RISING, PAPERS[:1])
    with pytest.raises(JudgeError, match=r"words has not judged the projections of .* yet; run: inquitree judge"):
        load_projections(tmp_path, judge="words")
    judge_again(tmp_path, WORDS)
    tell(tmp_path, "rising", RISING, PAPERS[1:2])
    with pytest.raises(JudgeError, match="words v1 has not judged turn 1 of paper2"):
        load_projections(tmp_path, judge="words")
    other = replace(WORDS, make_config=lambda: {"version": 1, "reads": "words"})
    judge_again(tmp_path, other)
    with pytest.raises(OptionError, match="several settings"):
        load_projections(tmp_path, judge="words")


def test_a_judgement_of_another_projection_is_refused(tmp_path: Path):
    file = tmp_path / "one.jsonl"
    task = load_task("paper1")
    tell_one(file, "rising", RISING, task)
    judge_again(tmp_path, WORDS)
    file.unlink()
    tell_one(file, "rising", dict.fromkeys(LEVELS, 1.0), task)
    with pytest.raises(JudgeError, match=r"at turn 1 of one\.jsonl that is not the given one; judge the run again"):
        load_projections(tmp_path, judge="words")
    assert judge_again(tmp_path, WORDS) == [2, 1, 0]
    assert load_projections(tmp_path, judge="words").scores[0].area() == 2
