"""Results as they were shown: hand-made logs with known answers, and real ones against the path."""

from __future__ import annotations

import dataclasses

import pytest

from inquitree_gym.baselines import RandomMenuAgent
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.trajectory import read_trajectory, world_of
from inquitree_gym.inquiry.vigilance import (
    ALL,
    FIRST,
    LATER,
    SHOWINGS,
    TELLABLE,
    TRUTH_SEEN,
    Belief,
    Counts,
    beliefs,
    exposures,
    tally,
)
from inquitree_gym.llm import estimated_tokens
from inquitree_gym.log import Reply
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import in_world
from tests.inquiry.test_trajectory import ASKED_AGAIN, CONCLUDE, END, EXPLORE, enter, episode_of, redo, result
from tests.strategies import make_tree

STEPS = [
    enter("s1"), result("s1a", 2), redo("s1a", 1), ASKED_AGAIN, redo("s1a"), EXPLORE, enter("s1"), result("s1b"),
    EXPLORE, enter("s1"), result("s1a"), CONCLUDE, END,
]  # fmt: skip


@pytest.fixture(scope="module")
def tree() -> Tree:
    return make_tree([[], []], [2, 1])


def tokens(text: str) -> int:
    return estimated_tokens({"role": "user", "content": text})


def test_results_in_order_with_what_was_done_about_them(tree: Tree):
    shown = exposures(episode_of(tree, *STEPS, fake_level=5), tree)
    assert [(each.study, each.fake, each.turn, each.before, each.redone) for each in shown] == [
        ("s1a", 2, 2, 0, True), ("s1a", 1, 3, 1, True), ("s1a", 0, 5, 2, False), ("s1b", 0, 8, 0, False),
        ("s1a", 0, 11, 3, False),
    ]  # fmt: skip


def test_kinds_of_showings_are_counted_apart(tree: Tree):
    steps = [
        enter("s1"),
        result("s1a", 2),  # a first fake that another study can tell, redone
        redo("s1a", 1),  # a later one, redone
        redo("s1a"),  # the true result, redone
        redo("s1a", 1),  # a fake that can be told, after the true result, taken
        EXPLORE,
        enter("s2"),
        result("s2a", 1),  # a first fake that nothing tells, taken
        CONCLUDE,
        END,
    ]
    shown = exposures(episode_of(tree, *steps, fake_level=5), tree)
    assert [each.tellable for each in shown] == [True, True, False, True, False]
    assert [each.truth_seen for each in shown] == [False, False, False, True, False]
    assert tally(shown) == {
        ALL: Counts(4, 2, 1, 1), FIRST: Counts(2, 1, 0, 0), LATER: Counts(2, 1, 1, 1), TELLABLE: Counts(2, 2, 1, 1),
        TRUTH_SEEN: Counts(1, 0, 0, 0),
    }  # fmt: skip
    assert list(tally([])) == list(SHOWINGS)


def test_a_belief_is_of_the_result_before_it_and_the_last_one_up_to_the_decision_counts(tree: Tree):
    steps = [
        enter("s1", belief=0.9),  # of no result
        result("s1a", 2),
        {**ASKED_AGAIN, "belief": 0.3},
        redo("s1a", belief=0.8),
        {**EXPLORE},
        enter("s1", belief=0.9),
        result("s1b"),
        {**CONCLUDE, "belief": 0.0},
        END,
    ]
    shown = exposures(episode_of(tree, *steps, fake_level=5), tree)
    assert [each.belief for each in shown] == [0.8, None, 0.0]
    assert beliefs(shown) == (Belief(True, 0.8), Belief(False, 0.0))


def test_a_belief_about_the_last_result_counts_without_a_decision(tree: Tree):
    steps = [enter("s1"), result("s1a", 1, limit=True), {**END, "belief": 0.6}]
    (shown,) = exposures(episode_of(tree, *steps, max_turns=2), tree)
    assert (shown.redone, shown.belief) == (None, 0.6)


def test_what_a_service_counted_is_the_first_request_for_the_move(tree: Tree):
    def reply(turn: int, role: str, prompt: int) -> Reply:
        counted = {"prompt": prompt, "completion": 1}
        return Reply(turn=turn, role=role, text="", finish_reason="stop", tokens=counted, seconds=0.0)

    replies = (reply(3, "sceptic", 7), reply(3, "proposer", 500), reply(3, "correction", 900), reply(4, "sceptic", 8))
    episode = dataclasses.replace(episode_of(tree, *STEPS), replies=replies)
    assert [each.prompt_tokens for each in exposures(episode, tree)] == [500, None, None, None, None]


@pytest.mark.parametrize(
    "last",
    [[result("s1a", 1, limit=True), END], [result("s1a", 1), {**ASKED_AGAIN, "limit": True}, END], [result("s1a", 1)]],
)
def test_where_the_limit_or_the_end_of_the_log_left_no_choice_nothing_was_decided(tree: Tree, last: list):
    (shown,) = exposures(episode_of(tree, enter("s1"), *last, max_turns=9), tree)
    assert shown.redone is None
    assert (shown.fake, shown.before) == (1, 0)


@pytest.mark.parametrize("seed", range(3))
def test_of_real_episodes_they_add_up_to_the_path(seed: int):
    tree = load_tree("paper12")
    episode = play(InquiryEnv(tree, fake_level=5), RandomMenuAgent(tree), seed)
    path = read_trajectory(episode, tree)
    answered = [each for each in exposures(episode, tree) if each.redone is not None]
    assert path.showings == tally(answered)
    assert path.showings[FIRST] + path.showings[LATER] == path.showings[ALL]
    controls = {study.id for study in tree.studies if not study.result.axes}
    counted = [each for each in answered if each.study not in controls]
    assert path.showings[ALL] == Counts(
        sum(each.fake > 0 for each in counted),
        sum(each.redone for each in counted if each.fake),
        sum(not each.fake for each in counted),
        sum(each.redone for each in counted if not each.fake),
    )
    texts = [turn.observation for turn in episode.turns]
    for each in answered:
        assert each.tokens_read == sum(map(tokens, texts[: each.turn + 1]))
        study = next(study for study in in_world(tree, world_of(tree, episode)).studies if study.id == each.study)
        assert any(text in texts[each.turn] for text in study.outcomes[each.fake])
