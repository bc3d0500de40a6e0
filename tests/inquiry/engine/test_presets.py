"""The preset `paper`: each choice as the paper prints it, frozen, and its bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.engine import Decision, Engine, ObservationKind, Phase, Reading, Reason, Rules
from inquitree_gym.inquiry.engine.rules import expand_preset
from inquitree_gym.trees import HINT_LEVELS, Tree
from tests.inquiry.engine.test_machine import ACTIONS, hit, length, oracle, walk, worst
from tests.strategies import make_tree, trees

REDO, CONCLUDE = Reading(decision=Decision.REDO), Reading(decision=Decision.CONCLUDE)
MISS = Reading()
PAPER = Rules.preset("paper").override({"threshold": 0.5})


def test_the_preset_is_frozen():
    assert Rules.preset("paper").as_dict() == {
        "threshold": None, "world": "actual", "fake_level": 0, "max_turns": "11n", "redo_turn": True,
        "decisions": "tokens", "bare_decisions": False, "named_at_result": "any", "feedback": "hint", "reruns": "match",
        "replication": "exact", "evidence": "results", "exam": "none", "briefing": False,
    }  # fmt: skip
    assert Rules.preset("default") == Rules()


def test_a_preset_sets_the_choices_and_single_rules_override_it():
    rules = Rules(threshold=0.4, fake_level=3, max_turns=9, reruns="redo")
    paper = rules.override(expand_preset({"rules": "paper", "decisions": "phrases"}))
    assert (paper.threshold, paper.fake_level, paper.max_turns) == (0.4, 3, "11n"), "its turn limit comes with it"
    assert expand_preset({"rules": "paper", "max_turns": 9})["max_turns"] == 9
    assert (paper.reruns, paper.decisions, paper.redo_turn) == ("match", "phrases", True)
    assert paper.override(expand_preset({"rules": "default"})) == Rules(threshold=0.4, fake_level=3)


def test_rules_are_named_by_the_nearest_preset():
    assert Rules(threshold=0.4, fake_level=3, max_turns=9).label == "default"
    assert PAPER.label == "paper"
    assert PAPER.override({"reruns": "redo"}).label == "paper, reruns=redo"
    assert Rules(redo_turn=True, feedback="hint").label == "default, redo_turn=True, feedback=hint"


@given(trees())
def test_the_bounds_are_those_of_the_paper(tree: Tree):
    n, engine = len(tree.subtopics), Engine(tree, PAPER)
    assert length(engine, oracle) == 3 * n == engine.rules.fewest_turns(n)
    assert length(engine, worst) == n * (2 * HINT_LEVELS + 3) == engine.rules.most_turns(n) == engine.turn_limit


def test_seven_subtopics_take_21_and_77_turns():
    engine = Engine(make_tree([[] for _ in range(7)], [1] * 7), PAPER)
    assert (length(engine, oracle), length(engine, worst)) == (21, 77)


@pytest.fixture
def at_result() -> tuple[Engine, int]:
    engine = Engine(make_tree([[], [], [1]], [2, 1, 1]), PAPER.override({"fake_level": 5}))
    return engine, engine.advance(engine.advance(engine.start(3).state, hit(0)).state, hit(1)).state


@given(seed=st.integers(0, 2**64 - 1), level=st.integers(0, 10))
def test_a_redo_takes_a_turn_with_a_text_of_its_own_and_shows_the_result_of_a_redo_without_one(seed: int, level: int):
    tree = make_tree([[]], [1])
    with_turn = Engine(tree, PAPER.override({"fake_level": level}))
    without = Engine(tree, PAPER.override({"fake_level": level, "redo_turn": False}))
    start = with_turn.advance(with_turn.advance(with_turn.start(seed).state, hit(0)).state, hit(0)).state
    asked = with_turn.advance(start, REDO)
    assert (asked.kind, asked.state.phase, asked.decision) == (ObservationKind.REDO, Phase.STUDY, Decision.REDO)
    assert asked.accepted
    shown, at_once = with_turn.advance(asked.state, MISS), without.advance(start, REDO)
    assert (shown.kind, shown.fake, shown.state.runs) == (ObservationKind.RESULT, at_once.fake, at_once.state.runs)
    assert (shown.state.turn, at_once.state.turn) == (start.turn + 2, start.turn + 1)


def test_a_redo_at_the_limit_shows_no_result(at_result):
    engine, state = at_result
    late = engine.advance(state.replace(turn=engine.turn_limit - 1), REDO)
    assert (late.kind, late.limit, late.state.phase) == (ObservationKind.REDO, True, Phase.CONCLUSION)


@pytest.mark.parametrize("named", [0, 1, 2])
def test_a_text_at_a_result_may_name_any_subtopic(at_result, named: int):
    engine, state = at_result
    event = engine.advance(state, hit(named))
    assert (event.decision, event.state.phase) == (Decision.EXPLORE, Phase.TOPIC)
    assert engine.advance(state, Reading(named, 0.4)).reason == Reason.UNREADABLE_DECISION


@given(trees(), st.integers(0, 2**64 - 1), st.integers(0, 10), ACTIONS)
def test_every_showing_draws_anew_and_every_redo_has_its_turn(tree: Tree, seed: int, level: int, actions):
    engine = Engine(tree, PAPER.override({"fake_level": level}))
    events = walk(engine, seed, actions)
    for before, after in itertools.pairwise(events):
        if after.kind == ObservationKind.RESULT:
            run = after.state.runs[after.node]
            assert after.fake == engine.fake_shown(engine.start(seed).state.seed, after.node, run)
            assert before.state.phase in (Phase.SUBTOPIC, Phase.STUDY)
        if before.state.phase == Phase.STUDY and before.state.turn < engine.turn_limit:
            assert (before.kind, after.kind) == (ObservationKind.REDO, ObservationKind.RESULT)
            assert after.state.runs == before.state.runs, "the run was counted when it was decided"
