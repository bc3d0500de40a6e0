"""The rules of an inquiry, as properties over generated trees."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import (
    Decision,
    Engine,
    Event,
    ObservationKind,
    Phase,
    Reading,
    Reason,
    Rules,
    State,
    event_values,
    rows,
)
from inquitree_gym.inquiry.engine.rules import expand_preset
from inquitree_gym.seeds import splitmix64
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import HINT_LEVELS, Tree
from tests.strategies import make_tree, trees, with_rewordings

MISS = Reading()
RULE_SETS = st.builds(
    Rules,
    threshold=st.sampled_from([0.2, 0.5, 0.9]),
    fake_level=st.integers(0, 10),
    max_turns=st.one_of(st.sampled_from(["3n", "11n", "n+5"]), st.integers(1, 120), st.none()),
    bare_decisions=st.booleans(),
    feedback=st.sampled_from(["hint", "reason"]),
    reruns=st.sampled_from(["redo", "match"]),
    replication=st.sampled_from(["exact", "varied"]),
    redo_turn=st.booleans(),
    named_at_result=st.sampled_from(["unvisited", "any"]),
    evidence=st.sampled_from(["groups", "results"]),
)
ACTIONS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([0.0, 0.3, 0.6, 1.0]), st.sampled_from(list(Decision))), max_size=80
)


EXPLORE = Reading(decision=Decision.EXPLORE)


def hit(candidate: int) -> Reading:
    return Reading(candidate, 1.0)


def engine_of(tree: Tree, **rules) -> Engine:
    return Engine(tree, Rules(**{"threshold": 0.5, "max_turns": None} | rules))


def follow(engine: Engine, *readings: Reading) -> Event:
    event = engine.start(0)
    for reading in readings:
        event = engine.advance(event.state, reading)
    return event


def reading(engine: Engine, state: State, action: tuple[int, float, Decision]) -> Reading:
    """Turn a drawn action into one that a matcher could give."""
    choice, similarity, decision = action
    candidates = engine.candidates(state)
    candidate = candidates[choice % len(candidates)] if candidates else -1
    if len(candidates) < 2:
        return Reading(candidate, similarity, decision)
    second = (candidates[(choice + 1) % len(candidates)], similarity - 0.1)
    return Reading(candidate, similarity, decision, 0.1, ((candidate, similarity), second))


def walk(engine: Engine, seed: int, actions: list[tuple[int, float, Decision]]) -> list[Event]:
    events = [engine.start(seed)]
    for action in actions:
        state = events[-1].state
        if state.phase == Phase.END:
            break
        events.append(engine.advance(state, reading(engine, state, action)))
    return events


def oracle(engine: Engine, state: State) -> Reading:
    """Never fails, visits everything once, then concludes."""
    unvisited = [i for i in engine.admissible(state) if not state.visited >> i & 1]
    if state.phase == Phase.TOPIC:
        return hit(unvisited[0])
    if state.phase == Phase.SUBTOPIC:
        return hit(engine.studies_of[state.subtopic][0])
    if state.phase == Phase.RESULT:
        return Reading(unvisited[0], 1.0, Decision.EXPLORE) if unvisited else Reading(decision=Decision.CONCLUDE)
    return MISS


def worst(engine: Engine, state: State) -> Reading:
    """Fails every choice until it is forced."""
    if state.phase == Phase.RESULT:
        done = state.visited == (1 << engine.n) - 1
        return Reading(decision=Decision.CONCLUDE if done else Decision.EXPLORE)
    return MISS


def length(engine: Engine, policy, seed: int = 0) -> int:
    """L: turns up to and including the decision to conclude."""
    state = engine.start(seed).state
    while state.phase < Phase.CONCLUSION:
        event = engine.advance(state, policy(engine, state))
        assert not event.limit
        state = event.state
        assert state.turn <= engine.n * (2 * HINT_LEVELS + 3), "a traversal that never ends"
    return state.turn


@given(trees())
def test_oracle_takes_3n_turns_and_worst_case_n_times_2h_plus_3(tree: Tree):
    n = len(tree.subtopics)
    engine = Engine(tree, Rules(threshold=0.5, **expand_preset({"rules": "paper"})))
    assert length(engine, oracle) == 3 * n
    assert length(engine, worst) == n * (2 * HINT_LEVELS + 3)
    assert engine.rules.fewest_turns(n) == length(engine, oracle)
    assert engine.rules.most_turns(n) == length(engine, worst) == engine.turn_limit


@given(trees(), RULE_SETS, ACTIONS, st.integers(0, 2**64 - 1))
def test_every_walk_is_legal_ends_in_time_and_can_be_had_again(tree: Tree, rules: Rules, actions, seed: int):
    engine = Engine(tree, rules)
    events = walk(engine, seed, actions)
    copies = [(event, tuple(event.state.row)) for event in events]
    for before, after in itertools.pairwise(event.state for event in events):
        entered = after.visited & ~before.visited
        allowed = [not engine.prerequisites[i] & ~before.visited for i in range(engine.n) if entered >> i & 1]
        assert all(allowed), "a subtopic was entered before its prerequisites"
        assert engine.candidates(after) or after.phase not in (Phase.TOPIC, Phase.SUBTOPIC), "nothing can be chosen"
        assert engine.admissible(after) or after.phase != Phase.TOPIC
    taken = sum(event.state.phase < Phase.EXAM for event in events)
    assert [event.state.turn for event in events[:taken]] == list(range(taken)), "the exam counts by itself"
    struck = [(event.state.turn, event.state.phase) for event in events if event.limit]
    assert struck in ([], [(engine.turn_limit, Phase.CONCLUSION)])
    assert engine.turn_limit is None or events[-1].state.turn <= engine.turn_limit + 3, (
        "conclusion, and exam asked twice"
    )
    assert walk(Engine(tree, rules), seed, actions) == events
    assert all(tuple(event.state.row) == copy for event, copy in copies), "inputs stay"


@given(trees(), st.integers(0, 7), st.lists(st.booleans(), min_size=HINT_LEVELS, max_size=HINT_LEVELS))
def test_hint_target_stays_and_the_move_is_forced_after_the_last_hint(tree: Tree, seed: int, locked: list[bool]):
    engine = engine_of(tree, feedback="hint")
    state = engine.start(seed).state
    targets, levels = set(), []
    for use_locked in locked:
        closed = [i for i in range(engine.n) if engine.prerequisites[i]]
        event = engine.advance(state, hit(closed[0]) if use_locked and closed else MISS)
        assert event.kind == ObservationKind.SUBTOPIC_HINT
        assert event.reason == (Reason.PREREQUISITE_UNMET if use_locked and closed else Reason.BELOW_THRESHOLD)
        state = event.state
        targets.add(event.node)
        levels.append(event.hint_level)
    assert levels == [1, 2, 3, 4]
    assert len(targets) == 1
    forced = engine.advance(state, MISS)
    assert forced.forced
    assert not forced.accepted
    assert forced.state.subtopic == targets.pop()


@given(trees(shapes=("random", "chain")), st.lists(st.booleans(), max_size=12))
def test_a_locked_proposal_waits_for_a_turn_and_leaves_the_hints_as_they_are(tree: Tree, waits: list[bool]):
    engine = engine_of(tree)
    state = engine.start(0).state
    closed = [i for i in range(engine.n) if engine.prerequisites[i]]
    for wait in waits:
        event = engine.advance(state, hit(closed[-1]) if wait and closed else MISS)
        if wait and closed:
            assert (event.kind, event.reason) == (ObservationKind.WAIT, Reason.PREREQUISITE_UNMET)
            assert (event.accepted, event.forced, event.hint_level) == (False, False, 0)
            assert event.state == state.replace(turn=state.turn + 1), "no hint, whatever was hinted before"
        state = event.state
        if state.phase != Phase.TOPIC:
            break


@given(trees(shapes=("chain",)), st.integers(1, 60))
def test_where_proposals_wait_only_the_limit_bounds_the_turns(tree: Tree, turns: int):
    engine = engine_of(tree, max_turns=turns)
    assert engine.rules.most_turns(engine.n) == engine.turn_limit == turns
    assert Rules(max_turns=None).most_turns(engine.n) is None
    if engine.n > 1:
        waiting = follow(engine, *[hit(engine.n - 1)] * turns)
        assert (waiting.limit, waiting.state.visited, waiting.state.hint_level) == (True, 0, 0)


@given(trees(shapes=("random",)))
def test_hint_target_is_the_least_visited_admissible_subtopic_first_in_tree_order(tree: Tree):
    engine = engine_of(tree)
    state = engine.start(0).state
    for _ in range(min(3, engine.n)):  # with everything visited, nothing is hinted at
        expected = min(engine.admissible(state), key=lambda i: (state.visits[i], i))
        hinted = engine.advance(state, MISS)
        assert hinted.node == expected
        inside = engine.advance(state, hit(expected)).state
        shown = engine.advance(inside, hit(engine.studies_of[expected][0])).state
        state = engine.advance(shown, Reading(decision=Decision.EXPLORE)).state


ONE, THREE = make_tree([[]], [1]), make_tree([[], [], [1]], [1, 1, 1])


def test_study_hints_lead_to_the_least_run_study():
    engine = engine_of(make_tree([[]], [3]), max_turns=None)
    assert follow(engine, hit(0), hit(0), EXPLORE, hit(0), MISS).node == 1


@pytest.mark.parametrize("failures", [0, 5], ids=["chosen", "forced"])
def test_a_study_that_was_run_is_run_again_by_a_decision_to_redo_alone(failures: int):
    choice = [MISS] * failures or [hit(0)]
    before = follow(engine_of(ONE, fake_level=5), hit(0), hit(0), EXPLORE, hit(0)).state
    engine = engine_of(ONE, fake_level=5)
    event = follow(engine, hit(0), hit(0), EXPLORE, hit(0), *choice)
    assert (event.kind, event.node, event.accepted, event.forced) == (
        ObservationKind.RECALL, 0, not failures, bool(failures),
    )  # fmt: skip
    assert (event.state.phase, event.state.runs, event.state.shown) == (Phase.RESULT, before.runs, before.shown)
    again = engine.advance(event.state, Reading(decision=Decision.REDO))
    assert (again.kind, again.state.runs, again.fake) == (ObservationKind.RESULT, (2,), engine.fake_shown(0, 0, 2))
    as_printed = follow(engine_of(ONE, reruns="match"), hit(0), hit(0), EXPLORE, hit(0), *choice)
    assert (as_printed.kind, as_printed.state.runs) == (ObservationKind.RESULT, (2,))


def test_similarity_exactly_at_the_threshold_is_accepted():
    assert follow(engine_of(ONE), Reading(0, 0.5)).accepted
    assert not follow(engine_of(ONE), Reading(0, math.nextafter(0.5, 0))).accepted
    assert not follow(engine_of(ONE), Reading(0, math.nan)).accepted


@pytest.mark.parametrize("other", [MISS, hit(0), Reading(1, 0.4)])
def test_a_result_without_a_decision_is_asked_about_again_and_costs_a_turn(other: Reading):
    event = follow(engine_of(THREE), hit(0), hit(0), other)
    assert (event.kind, event.state.phase, event.state.turn) == (ObservationKind.ASK_AGAIN, Phase.RESULT, 3)
    assert event.reason == Reason.UNREADABLE_DECISION


def test_the_limit_still_shows_a_result_just_obtained_and_concluding_with_the_last_turn_is_none():
    engine = engine_of(ONE, max_turns=2)
    event = follow(engine, hit(0), hit(0))
    assert (event.kind, event.limit, event.state.phase, event.state.proven) == (
        ObservationKind.RESULT,
        True,
        Phase.CONCLUSION,
        1,
    )
    exam = engine.advance(event.state, MISS)
    assert (exam.state.phase, exam.state.turn) == (Phase.EXAM, 3)
    end = engine.answer(exam.state, Sheet((0,)))
    assert (end.state.phase, end.state.turn) == (Phase.END, 4)
    assert engine_of(ONE, max_turns=2, exam="none").advance(event.state, MISS).state.phase == Phase.END
    concluded = follow(engine_of(ONE, max_turns=3), hit(0), hit(0), Reading(decision=Decision.CONCLUDE))
    assert (concluded.kind, concluded.limit) == (ObservationKind.CONCLUSION, False)


def test_what_an_engine_cannot_take_is_refused():
    with pytest.raises(ValueError, match="over"):
        follow(engine_of(ONE, max_turns=1), MISS, MISS, MISS, MISS)
    with pytest.raises(ValueError, match="study 1 is not in subtopic 0"):
        follow(engine_of(THREE), hit(0), hit(1))
    with pytest.raises(OptionError, match="threshold"):
        Engine(ONE, Rules())


@given(trees(), st.integers(0, 2**64 - 1), st.integers(0, 9), ACTIONS)
def test_two_levels_differ_only_in_fakes(tree: Tree, seed: int, level: int, actions):
    low = walk(Engine(tree, Rules(threshold=0.5, fake_level=level)), seed, actions)
    high = walk(Engine(tree, Rules(threshold=0.5, fake_level=level + 1)), seed, actions)
    for one, other in zip(low, high, strict=True):
        assert blind(one) == blind(other)
        assert one.fake in (0, other.fake), "a fake of a lower level is shown at every higher one"


def blind(event: Event) -> tuple[object, ...]:
    """Everything in an event but which outcomes were shown."""
    values, state = event_values(event), event.state
    return values | {"fake": 0}, state.visits, state.runs, state.told, state.credit, state.turn, state.target


@given(st.integers(0, 2**64 - 1), st.integers(0, 10), st.integers(0, 3))
def test_each_run_draws_a_wording_whatever_it_shows(seed: int, level: int, rewordings: int):
    tree = with_rewordings(make_tree([[]], [1]), rewordings)
    rules = Rules(threshold=0.5, fake_level=level, max_turns=None, replication="varied")
    redo = [(0, 0.0, Decision.REDO)] * 30
    engine = Engine(tree, rules)
    events = walk(engine, seed, [(0, 1.0, Decision.NONE), (0, 1.0, Decision.NONE), *redo])[2:]
    drawn = [splitmix64(seed, engine.fake_keys[0], 0, run) % (1 + rewordings) for run in range(1, 32)]
    assert [event.wording for event in events] == drawn
    exact = Engine(tree, Rules(threshold=0.5, fake_level=level, max_turns=None, replication="exact"))
    plain = walk(exact, seed, [(0, 1.0, Decision.NONE), (0, 1.0, Decision.NONE), *redo])[2:]
    assert [event.state.row for event in plain] == [unworded(event) for event in events], "nothing else changes"


def unworded(event: Event) -> list[int]:
    row = list(event.state.row)
    row[rows.WORDING] = 0
    return row


@pytest.mark.e2e
@settings(deadline=None)
@given(st.integers(0, 10), st.integers(0, 2**32))
def test_fakes_come_as_often_as_the_level_says(level: int, seed: int):
    engine = Engine(make_tree([[]], [1]), Rules(threshold=0.5, fake_level=level))
    shown = [engine.fake_shown(seed + i, 0, 1) for i in range(2_000)]
    assert set(shown) <= {0, 1, 2}
    share = sum(fake > 0 for fake in shown) / len(shown)
    assert abs(share - level / 10) <= 5.5 * math.sqrt(level / 10 * (1 - level / 10) / 2_000)


RUNS = 6


def share_of(found: list[bool]) -> float:
    return sum(found) / len(found)


@pytest.mark.e2e
@settings(deadline=None, max_examples=20)
@given(st.integers(1, 9), st.integers(0, 2**32))
def test_at_each_showing_a_fake_is_as_likely_as_the_level_says(level: int, seed: int):
    engine = Engine(make_tree([[]], [1]), Rules(threshold=0.5, fake_level=level))
    for run in range(1, RUNS):
        shown = [engine.fake_shown(seed + i, 0, run) > 0 for i in range(2_000)]
        assert abs(share_of(shown) - level / 10) <= 5.5 * math.sqrt(level / 10 * (1 - level / 10) / 2_000)


@pytest.mark.e2e
@settings(deadline=None, max_examples=20)
@given(st.integers(1, 10), st.integers(0, 2**32))
def test_a_repetition_draws_afresh(level: int, seed: int):
    engine = Engine(make_tree([[]], [1]), Rules(threshold=0.5, fake_level=level))
    law = [1 - level / 10, *[level / 20] * 2]
    alike = sum(chance**2 for chance in law)
    for run in (2, 3, RUNS):
        same = [engine.fake_shown(seed + i, 0, 1) == engine.fake_shown(seed + i, 0, run) for i in range(3_000)]
        assert abs(share_of(same) - alike) <= 5.5 * math.sqrt(alike * (1 - alike) / 3_000)


@given(st.integers(0, 2**64 - 1), st.integers(1, 30), st.integers(0, 9))
def test_fakes_of_a_level_are_shown_at_every_higher_one(seed: int, run: int, level: int):
    tree = make_tree([[]], [1])
    low, high = (
        Engine(tree, Rules(threshold=0.5, fake_level=level + more)).fake_shown(seed, 0, run) for more in (0, 1)
    )
    assert low in (0, high)


def test_trees_and_studies_do_not_share_the_pattern_of_a_seed():
    one, other = (make_tree([[], []], [1, 1], tree_id=name) for name in ("one", "other"))
    engines = [Engine(tree, Rules(threshold=0.5, fake_level=5)) for tree in (one, other, one)]
    draws = [[engine.fake_shown(seed, study, 1) for seed in range(400)] for engine in engines for study in (0, 1)]
    assert draws[:2] == draws[4:]
    same = [
        sum((a > 0) == (b > 0) for a, b in zip(draws[i], draws[j], strict=True)) for i, j in ((0, 1), (0, 2), (1, 3))
    ]
    assert all(150 < number < 250 for number in same), "the draws of two studies are independent"


def test_a_study_keeps_its_fakes_when_another_study_is_added_before_it():
    small, large = make_tree([[]], [1]), make_tree([[], []], [1, 1])
    moved = large.model_copy(update={"subtopics": large.subtopics[::-1]})
    engines = [Engine(tree, Rules(threshold=0.5, fake_level=5)) for tree in (small, moved)]
    assert moved.studies[1].id == small.studies[0].id
    assert [engines[0].fake_shown(seed, 0, 1) for seed in range(99)] == [
        engines[1].fake_shown(seed, 1, 1) for seed in range(99)
    ]


def test_splitmix64_is_the_published_one():
    # First outputs of SplitMix64 seeded with 0: each is the finaliser of the counter times the golden gamma.
    gamma = 0x9E3779B97F4A7C15
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [splitmix64((i * gamma) & (2**64 - 1)) for i in range(3)] == expected
