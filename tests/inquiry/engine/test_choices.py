"""What the engine understands at the topic and at a subtopic besides a choice: decisions, early proposals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.engine import Decision, ObservationKind, Phase, Reading, Reason
from inquitree_gym.trees import HINT_LEVELS, Tree
from tests.inquiry.engine.test_machine import EXPLORE, MISS, engine_of, follow, hit, length, oracle, worst
from tests.strategies import make_tree, trees

CONCLUDE, REDO = Reading(decision=Decision.CONCLUDE), Reading(decision=Decision.REDO)


@pytest.mark.parametrize("before", [(), (MISS,), (MISS,) * 4, (hit(0),), (hit(0), MISS)], ids=len)
def test_a_decision_to_conclude_is_taken_at_the_topic_and_at_a_subtopic(before: tuple[Reading, ...]):
    event = follow(engine_of(make_tree([[], [0]], [2, 1])), *before, CONCLUDE)
    assert (event.kind, event.state.phase, event.decision) == (
        ObservationKind.CONCLUSION,
        Phase.CONCLUSION,
        Decision.CONCLUDE,
    )
    assert (event.accepted, event.state.turn, event.state.hint_level) == (True, len(before) + 1, 0)
    assert event.state.visited == (1 if hit(0) in before else 0), "the subtopic stays entered"


@pytest.mark.parametrize("reading", [EXPLORE, REDO])
def test_at_the_topic_no_other_decision_is_taken(reading: Reading):
    event = follow(engine_of(make_tree([[], [0]], [1, 1])), reading)
    assert (event.kind, event.reason) == (ObservationKind.SUBTOPIC_HINT, Reason.BELOW_THRESHOLD)


@pytest.mark.parametrize("entry", [(hit(0),), (MISS,) * (HINT_LEVELS + 1)], ids=["chosen", "forced"])
@pytest.mark.parametrize("failures", [0, 2])
def test_a_declined_subtopic_leaves_no_trace_but_its_turns_and_hints(entry: tuple[Reading, ...], failures: int):
    engine = engine_of(make_tree([[], [0]], [2, 1]))
    event = follow(engine, *entry, *(MISS,) * failures, EXPLORE)
    assert (event.kind, event.node, event.accepted, event.decision) == (
        ObservationKind.DECLINED,
        0,
        True,
        Decision.EXPLORE,
    )
    start = engine.start(0).state
    turns = len(entry) + failures + 1
    told = (4 * (entry[0] == MISS), 0, failures, 0, 0)
    credit = (0 if entry[0] == MISS else -1, *start.credit[1:])
    assert event.state == start.replace(turn=turns, subtopic=0, told=told, credit=credit), "a lost credit stays lost"
    locked = engine.advance(event.state, hit(1))
    assert locked.reason == Reason.PREREQUISITE_UNMET, "what the entry had opened is closed again"


@pytest.mark.parametrize("policy", [(MISS,), (hit(0),)], ids=["forced each time", "chosen each time"])
def test_declining_for_ever_ends_at_the_turn_limit(policy: tuple[Reading, ...]):
    engine = engine_of(make_tree([[], []], [1, 1]), max_turns="3n+1")
    event = engine.start(0)
    while event.state.phase < Phase.CONCLUSION:
        reading = EXPLORE if event.state.phase == Phase.SUBTOPIC else policy[0]
        event = engine.advance(event.state, reading)
        assert event.state.visited in (0, 1)
    assert (event.limit, event.state.turn) == (True, engine.turn_limit)


def test_without_bare_decisions_they_are_failures():
    engine = engine_of(make_tree([[], []], [1, 1]), bare_decisions=False)
    assert follow(engine, CONCLUDE).kind == ObservationKind.SUBTOPIC_HINT
    for reading in (EXPLORE, CONCLUDE):
        event = follow(engine, hit(0), reading)
        assert (event.kind, event.state.visited) == (ObservationKind.STUDY_HINT, 1)


@given(trees(), st.sampled_from(["hint", "reason"]), st.booleans())
def test_the_bounds_hold_for_the_new_rules_where_nothing_is_declined(tree: Tree, feedback: str, bare: bool):
    n = len(tree.subtopics)
    engine = engine_of(tree, feedback=feedback, bare_decisions=bare)
    assert length(engine, oracle) == 3 * n
    assert length(engine, worst) == n * (2 * HINT_LEVELS + 3)


def test_hints_lead_to_what_is_open_and_unvisited_while_there_is_any():
    engine = engine_of(make_tree([[], [0], [0]], [1, 1, 1]))
    visit = (hit(0), hit(0), EXPLORE)
    assert follow(engine, *visit, *visit, *visit, MISS).node == 1
    assert follow(engine, *visit, hit(1), EXPLORE, MISS).node == 1, "a declined subtopic was not visited"
