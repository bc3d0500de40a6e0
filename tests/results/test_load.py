"""What a report knows of its episodes beyond their scores, and two runs side by side."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from inquitree_gym.errors import JudgeError, LogError, OptionError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.inquiry.results import RESULTS
from inquitree_gym.inquiry.trajectory import ReadingCounts
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.stored import JudgementFile
from inquitree_gym.log import Episode, Failure, Reply, read_episode, to_line
from inquitree_gym.results.comparison import compare, differences_table
from inquitree_gym.results.load import load_run, without_doubles
from inquitree_gym.results.logs import Missing
from inquitree_gym.results.offline_judging import stated_texts
from inquitree_gym.results.score import EpisodeCost, Score, score_episode
from inquitree_gym.results.summary import as_plain, by_player, summarise
from inquitree_gym.results.viewer import view_run
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import Tree, load_tree
from tests.inquiry.test_scoring import GivenJudge
from tests.inquiry.test_trajectory import ASKED_AGAIN, CONCLUDE, END, EXPLORE, enter, episode_of, failed, redo, result
from tests.results.html import read_page
from tests.results.test_aggregate import score
from tests.runner.played import small_study
from tests.strategies import make_tree

TREE = make_tree([[], []], [1, 1], tree_id="t1")


def facts_of(episode: Episode, tree: Tree) -> Score:
    return score_episode(episode, tree, GivenJudge(1.0, 1.0))


def reply(turn: int, role: str = "proposer", **given) -> Reply:
    return Reply(**{"turn": turn, "role": role, "text": "said", "finish_reason": "stop", "seconds": 1.0, **given})


def with_replies(episode: Episode, *replies: Reply) -> Episode:
    return Episode(episode.header, episode.turns, episode.footer, episode.failure, replies)


# One episode


def test_choices_are_counted_by_what_came_of_them():
    hints = [failed("subtopic_hint", level) for level in (1, 2, 3, 4)]
    forced = enter("s1", accepted=False, forced=True, reason="below_threshold")
    cut = {**failed("study_hint", 0, "s2a"), "limit": True}
    steps = [*hints, forced, result("s1a"), ASKED_AGAIN, EXPLORE, enter("s2"), cut, END]
    facts = facts_of(episode_of(TREE, *steps, threshold=0.3), TREE)
    reads = facts.detail.readings
    assert reads.outcomes == Counter(hinted=4, forced=1, accepted=2, limit=1)
    assert reads.reasons == Counter(below_threshold=6, unreadable_decision=1)
    assert (len(reads.accepted), len(reads.refused)) == (2, 6)
    assert facts.detail.threshold == 0.3


def test_coverage_stands_after_each_turn():
    facts = facts_of(episode_of(TREE, enter("s1"), result("s1a"), EXPLORE, enter("s2"), result("s2a"), CONCLUDE), TREE)
    assert facts.detail.coverage == (0.5, 0.5, 0.5, 1, 1, 1)
    assert facts.detail.subtopics == 2


def test_what_nobody_measured_is_unknown_and_not_zero():
    spent = facts_of(episode_of(TREE, enter("s1")), TREE).cost
    assert (spent.prompt_tokens, spent.completion_tokens, spent.dollars) == (None, None, None)
    assert (spent.replies, spent.corrections, spent.unpriced) == (0, 0, 0)


def test_replies_are_added_up_and_those_from_a_cache_cost_nothing():
    episode = with_replies(
        episode_of(TREE, enter("s1")),
        reply(1, tokens={"prompt": 100, "completion": 20, "reasoning": 15}, cost=0.5, fault="no ACTION"),
        reply(1, "correction", tokens={"prompt": 130, "completion": 30}, cost=None),
        reply(2, tokens={"prompt": 1000, "completion": 1000}, cost=9.0, cached=True),
        reply(2, "sceptic", cost=0.25, finish_reason="length"),
    )
    spent = facts_of(episode, TREE).cost
    assert (spent.replies, spent.corrections, spent.cut_short, spent.unpriced) == (4, 1, 1, 1)
    assert EpisodeCost.total([spent] * 2).cut_short == 2
    assert (spent.prompt_tokens, spent.completion_tokens) == (230, 50)
    assert spent.dollars == pytest.approx(0.75)


# Several episodes


def test_tallies_pool_the_levels_of_a_player_and_keep_players_apart():
    steps = [failed("subtopic_hint", 1), enter("s1"), result("s1a", 1), redo("s1a"), CONCLUDE, END]
    priced = with_replies(episode_of(TREE, *steps, fake_level=3), reply(1, tokens={"prompt": 7}, cost=0.1))
    unpriced = with_replies(episode_of(TREE, *steps, seed=1), reply(1))
    other = episode_of(TREE, enter("s1"), max_turns=6)
    facts = [facts_of(episode, TREE) for episode in (priced, unpriced, other)]
    (pooled, alone) = by_player(facts).values()
    assert (len(pooled), len(alone)) == (2, 1)
    tally = ReadingCounts.total(each.detail.readings for each in pooled)
    assert (tally.choices, tally.share("accepted"), tally.share("hinted")) == (
        6,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    )
    assert tally.reasons == {"below_threshold": 2}
    spent = EpisodeCost.total(each.cost for each in pooled)
    assert (sum(each.turns for each in pooled), spent.replies, spent.unpriced) == (12, 2, 1)
    assert (spent.prompt_tokens, spent.completion_tokens, spent.dollars) == (7, None, pytest.approx(0.1))
    assert EpisodeCost.total(each.cost for each in alone).dollars is None


def test_a_player_without_a_choice_has_no_shares():
    tally = ReadingCounts.total([])
    assert (tally.choices, tally.share("accepted")) == (0, None)


# Runs


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Five episodes: one whole, one torn, one failed, one missing, one damaged."""
    folder = tmp_path_factory.mktemp("run")
    study = make_study(agents=("oracle",), trees=("paper8",), seeds=5)
    run_study(study, folder)
    logs = sorted((folder / "episodes").iterdir())
    logs[1].write_bytes(logs[1].read_bytes()[:-5])
    whole = read_episode(logs[2])
    broken = (whole.header, *whole.turns[:2], Failure(error="TimeoutError: no answer", when="2026-01-01"))
    logs[2].write_text("".join(map(to_line, broken)), encoding="ascii")
    logs[3].unlink()
    logs[4].write_bytes(logs[4].read_bytes().replace(b'"kind":"turn"', b'"kind":"tarn"', 1))
    return folder


def test_what_is_not_whole_is_named_with_its_state_and_reason(run: Path):
    told = []
    found = load_run(run, told.append)
    assert len(told) == 5
    *missing, damaged = found.missing
    assert (damaged.name[-8:-6], damaged.status) == ("s4", "damaged")
    assert "line 2: " in damaged.error
    assert [(s.agent, s.seed) for s in found.scores] == [("oracle", 0)]
    assert [(each.name[-8:-6], each.status, each.error) for each in missing] == [
        ("s1", "torn", ""), ("s2", "failed", "TimeoutError: no answer"), ("s3", "missing", ""),
    ]  # fmt: skip


def header_with(**rules: object) -> Callable[[Episode], Episode]:
    def change(episode: Episode) -> Episode:
        named = {name: value for name, value in (episode.header.rules | rules).items() if value != "absent"}
        return replace(episode, header=episode.header.model_copy(update={"rules": named}))

    return change


def turn_with(index: int, **event: object) -> Callable[[Episode], Episode]:
    def change(episode: Episode) -> Episode:
        turns = list(episode.turns)
        changed = turns[index].event.model_copy(update=event)
        turns[index] = turns[index].model_copy(update={"event": changed})
        return replace(episode, turns=tuple(turns))

    return change


DAMAGE: list[tuple[Callable[[Episode], Episode], str]] = [
    (header_with(gravity=9.81), "unknown option 'gravity'"),
    (header_with(fake_level="x"), "fake_level must be an integer from 0 to 10, got 'x'"),
    (header_with(fake_level="absent"), "names no fake_level"),
    (header_with(threshold=None), "threshold"),
    (turn_with(0, node="nowhere"), "turn 1 of the log cannot have happened in paper8"),
    (turn_with(0, kind="declined"), "turn 1 of the log cannot have happened"),
    (turn_with(1, fake=9), "turn 2 of the log cannot have happened"),
]


@pytest.mark.parametrize(("damage", "told"), DAMAGE)
def test_one_bad_log_is_named_and_the_others_are_read(
    damage: Callable[[Episode], Episode], told: str, whole: Path, tmp_path: Path
):
    bad, good = sorted((whole / "episodes").iterdir())
    episode = damage(read_episode(bad))
    bad.write_text("".join(map(to_line, (episode.header, *episode.turns, episode.footer))), encoding="ascii")
    found = load_run(whole)
    assert len(found.scores) == 1
    damaged: list[Missing] = []
    assert [each.name for each in stated_texts(whole, on_damaged=damaged.append)] == [good.name]
    assert list(found.missing) == damaged
    assert (damaged[0].name, damaged[0].status) == (bad.name, "damaged")
    assert damaged[0].error.startswith(f"'{bad}': ")
    assert told in damaged[0].error
    assert "damaged" in read_page(view_run(whole, tmp_path / "pages")).text
    with pytest.raises(LogError, match=re.escape(told)):
        stated_texts(whole)


def test_a_number_of_turns_is_one_setting_for_trees_of_all_sizes(tmp_path: Path):
    for limit, name in ((21, "21"), ("3n", "3n"), (None, "none")):
        folder = tmp_path / name
        run_study(make_study(agents=("oracle",), trees=("paper8", "paper12"), seeds=1, max_turns=limit), folder)
        found = load_run(folder)
        assert {len(load_tree(score.task).subtopics) for score in found.scores} == {5, 7}
        assert [row.limit for row in summarise(found.scores)] == [name]


def test_a_run_with_nothing_whole_says_so(run: Path, tmp_path: Path):
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    with pytest.raises(LogError, match=r"holds no finished episode that can be scored; run its study first$"):
        load_run(tmp_path)
    (tmp_path / "episodes").mkdir()
    failed = sorted((run / "episodes").iterdir())[2]
    (tmp_path / "episodes" / failed.name).write_bytes(failed.read_bytes())
    with pytest.raises(LogError, match=r"scored \(.*_s2\.jsonl: TimeoutError: no answer\)"):
        load_run(tmp_path)


# Two runs


def test_the_second_run_minus_the_first_over_the_pairs_that_both_have():
    first = [score("t1", 1, 0), score("t2", 0, 0), score("t2", 1, 1, seed=1)]
    second = [score("t1", 1, 1, agent="other"), score("t2", 1, 1, agent="other"), score("t3", 1, 1, agent="other")]
    (difference,) = compare(first, second)
    assert (difference.name, difference.cell["fake_level"], difference.pairs) == ("other − made", 0, 2)
    assert difference.estimates["Q/|C|"].mean == pytest.approx((0.5 + 1) / 2)
    assert difference.estimates["coverage"].mean == 0
    assert difference.estimates["hit_rate"].mean is None
    assert as_plain(difference)["estimates"]["Q/|C|"]["episodes"] == 2


def test_where_a_run_has_several_agents_equal_ones_are_paired():
    first = [score("t1", 1, 0, agent=name) for name in ("a", "b", "c")]
    second = [score("t1", 1, 1, agent=name, max_turns=6) for name in ("b", "a", "d")]
    assert [(d.name, d.pairs) for d in compare(first, second)] == [("a, 6 − 3n", 1), ("b, 6 − 3n", 1)]


def test_fake_level_are_never_mixed():
    first = [score("t1", 1, 0), score("t1", 0, 0, fake_level=3)]
    second = [score("t1", 1, 1, fake_level=3), score("t1", 1, 1, fake_level=6)]
    (difference,) = compare(first, second)
    assert (difference.cell["fake_level"], difference.estimates["Q/|C|"].mean) == (3, 1)


def test_an_equal_run_differs_by_nothing():
    (difference,) = compare([score("t1", 1, 0)], [score("t1", 1, 0)])
    assert (difference.name, difference.estimates["Q/|C|"].mean) == ("made", 0)


@pytest.mark.parametrize(
    "second", [[score("t1", 1, 0, seed=9)], [score("t1", 1, 0, fake_level=2)], [score("t9", 1, 0)]]
)
def test_runs_that_share_nothing_are_refused(second):
    with pytest.raises(OptionError, match="nothing can be paired: made at 0"):
        compare([score("t1", 1, 0)], second)


def test_differences_as_a_text_table():
    heads, line = differences_table(compare([score("t1", 1, 1)], [score("t1", 1, 0)]), RESULTS.compared, RESULTS)
    assert heads == ["pair", "fake level", "pairs", *map(RESULTS.heading, RESULTS.compared)]
    assert line[:3] == ["made", "0", "1"]
    assert line[heads.index("Q/|C|")] == "-0.500"


# Judges


def judged_by(run: Path, name: str, scores: tuple[float | None, ...], **config) -> None:
    """Keep the same verdicts on every conclusion of a run beside it."""
    with JudgementFile(run, name, config) as kept:
        for each in stated_texts(run):
            kept.add(each.key, each.task, each.text, Judgement(tuple(Verdict(s, "said so") for s in scores)))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    run_study(make_study(agents=("oracle",), trees=("paper8",), seeds=2), tmp_path)
    return tmp_path


def test_damaged_judgements_are_named_and_left_out(whole: Path):
    items = len(load_tree("paper8").conclusions)
    judged_by(whole, "llm:model", (0.6,) * items)
    (file,) = (whole / "judgements").iterdir()
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], lines[2].replace('"score":0.6', '"score":99.0')]))
    found = load_run(whole, judge="llm:model")
    assert len(found.scores) == 1
    incomplete, damaged = [each.error for each in found.missing]
    assert "is incomplete" in incomplete
    assert "less than or equal to 1" in damaged
    assert [each.error for each in load_run(whole).missing] == [damaged]
    file.write_text("".join([lines[0], lines[1].replace('"item":"c1"', '"item":"c9"'), lines[2]]))
    assert ["its items must be c1, " in each.error for each in load_run(whole, judge="llm:model").missing] == [True]


def test_a_run_is_scored_by_the_newest_judgements_of_the_judge_that_is_named(whole: Path):
    items = len(load_tree("paper8").conclusions)
    judged_by(whole, "llm:model", (0.6,) * items, version=2)
    (file,) = (whole / "judgements").iterdir()
    os.utime(file, (0, 0))
    judged_by(whole, "llm:model", (0.0,) * items)
    found = load_run(whole, judge="llm:model").scores
    assert {(each.judge, each.judge_version, each.detail.quality_share) for each in found} == {("llm:model", 1, 0.0)}
    with pytest.raises(OptionError, match="no judge is called 'coin v2'"):
        load_run(whole, judge="coin v2")


def test_a_judge_that_has_judged_a_part_of_the_run_is_an_error(whole: Path):
    (stated, _) = stated_texts(whole)
    with JudgementFile(whole, "llm:m", {}) as kept:
        grades = (Verdict(1.0, "it says so"),) * len(stated.task.conclusions)
        kept.add(stated.key, stated.task, stated.text, Judgement(grades))
    with pytest.raises(JudgeError, match=r"not judged 'paper8_oracle_f0_s1\.jsonl'"):
        load_run(whole, judge="llm:m")


# Copies of episodes among runs that are reported together


def test_a_run_that_is_reported_twice_counts_once(tmp_path: Path):
    run_study(small_study(seeds=2), tmp_path / "one")
    run_study(small_study(seeds=3), tmp_path / "again")
    run_study(small_study(max_turns="5n"), tmp_path / "other")
    runs = [load_run(tmp_path / name) for name in ("one", "again", "other")]
    found, doubles = without_doubles(runs)
    assert (doubles, [len(run.scores) for run in found]) == (2, [2, 1, 1])
    assert [score.seed for score in found[1].scores] == [2]
    assert without_doubles(found) == (found, 0)


def test_other_turns_under_the_same_settings_are_no_copy(tmp_path: Path):
    run_study(small_study(seeds=1), tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    for log in (tmp_path / "other" / "episodes").iterdir():
        log.write_text(log.read_text().replace('"action":"', '"action":"Well, ', 1))
    runs = [load_run(tmp_path / name) for name in ("one", "other")]
    assert without_doubles(runs) == (runs, 0)
