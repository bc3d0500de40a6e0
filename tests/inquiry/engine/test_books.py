"""The state of an inquiry is what its events add up to, over generated trees and long courses."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.inquiry.engine import Decision, Engine, Event, ObservationKind, Phase, Rules, State
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees import HINT_LEVELS, Tree
from tests.inquiry.engine.test_machine import MISS, RULE_SETS, engine_of, hit, walk
from tests.strategies import make_tree, trees

COURSES = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([Decision.NONE, Decision.NONE, Decision.REDO, Decision.EXPLORE]),
    ),
    min_size=30,
    max_size=80,
)
"""Long courses: none of their actions concludes, so that the same nodes are hinted, entered and run many times."""
SEEDS = st.integers(0, 2**64 - 1)


@dataclass
class Books:
    """An account of an inquiry by its events alone."""

    engine: Engine
    told: dict[tuple[ObservationKind, int], int] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    outcomes: dict[int, list[int]] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)

    def enter(self, before: State, event: Event) -> None:
        kind, node = event.kind, event.node
        if kind in (ObservationKind.SUBTOPIC_HINT, ObservationKind.STUDY_HINT):
            self.told[kind, node] = max(self.told.get((kind, node), 0), event.hint_level)
        if kind in (ObservationKind.SUBTOPIC, ObservationKind.DECLINED):
            self.entries[node] = self.entries.get(node, 0) + (1 if kind == ObservationKind.SUBTOPIC else -1)
        if kind == ObservationKind.DECLINED and before.credit[node] == 0:
            self.lost.add(node)
        if kind in (ObservationKind.RESULT, ObservationKind.REDO) and before.phase != Phase.STUDY:
            self.runs[node] = self.runs.get(node, 0) + 1
        if kind == ObservationKind.RESULT:
            self.outcomes.setdefault(node, []).append(event.fake)

    def check(self, event: Event) -> None:
        state, subtopics, studies = event.state, range(self.engine.n), range(len(self.engine.subtopic_of))
        told = [self.told.get((ObservationKind.SUBTOPIC_HINT, i), 0) for i in subtopics]
        told += [self.told.get((ObservationKind.STUDY_HINT, k), 0) for k in studies]
        assert state.told == tuple(told), "the highest hint of each node"
        assert state.visits == tuple(self.entries.get(i, 0) for i in subtopics)
        assert state.left == state.visits.count(0)
        assert state.runs == tuple(self.runs.get(k, 0) for k in studies)
        assert state.shown == tuple(self.outcomes.get(k, [-1])[-1] for k in studies), "the outcome seen last"
        assert state.proven == sum(1 << k for k in studies if 0 in self.outcomes.get(k, [])), "true outcomes alone"
        chosen = [number > 0 for number in (*state.visits, *state.runs)]
        held = [credit >= 0 and not (credit == 0 and i in self.lost) for i, credit in enumerate(state.credit)]
        assert [a or b for a, b in zip(held, chosen, strict=True)] == chosen, "credit is held by what was chosen alone"
        assert all(state.credit[i] == 0 for i in self.lost), "a lost credit stays lost"
        if event.kind == ObservationKind.SUBTOPIC:
            assert event.again == (self.entries[event.node] > 1)
        if event.kind == ObservationKind.RESULT:
            assert event.again == (self.runs[event.node] > 1)


@given(trees(max_subtopics=4), RULE_SETS, COURSES, SEEDS)
def test_a_state_is_what_the_events_add_up_to(tree: Tree, rules: Rules, course, seed: int):
    engine = Engine(tree, rules.override({"max_turns": None}))
    events = walk(engine, seed, course)
    books, before = Books(engine), events[0].state
    for event in events[1:]:
        books.enter(before, event)
        books.check(event)
        before = event.state


@given(trees(shapes=("random",)), st.lists(st.integers(0, 2), min_size=8, max_size=8), st.sampled_from([1, 0]))
def test_a_subtopic_opens_once_all_its_prerequisites_were_visited(tree: Tree, visits: list[int], waits: int):
    engine = engine_of(tree, feedback="reason" if waits else "hint")
    state = engine.start(0).state.replace(visits=visits[: engine.n])
    visited = {subtopic.id for subtopic, number in zip(tree.subtopics, visits, strict=False) if number}
    for i, subtopic in enumerate(tree.subtopics):
        event = engine.advance(state, hit(i))
        assert event.accepted == visited.issuperset(subtopic.requires)
        assert event.accepted == (event.kind == ObservationKind.SUBTOPIC)


@given(trees(), st.integers(1, HINT_LEVELS), st.booleans())
def test_at_the_limit_no_choice_is_open(tree: Tree, hints: int, inside: bool):
    """The hint of the last turn is shown, and leaves neither a level nor a target behind."""
    engine = engine_of(tree, max_turns=hints + inside)
    state = engine.start(0).state
    first = engine.admissible(state)[0]
    for reading in [hit(first)] * inside + [MISS] * hints:
        event = engine.advance(state, reading)
        state = event.state
    assert (event.limit, event.hint_level, event.node >= 0) == (True, hints, True)
    assert (state.phase, state.hint_level, state.target) == (Phase.CONCLUSION, 0, -1)


def test_a_forced_move_earns_nothing_whatever_hints_led_to_it():
    engine = engine_of(make_tree([[]], [1]))
    at_topic = engine.start(0).state.replace(hint_level=HINT_LEVELS, target=0)
    at_study = engine.advance(engine.start(0).state, hit(0)).state.replace(hint_level=HINT_LEVELS, target=0)
    forced = [engine.advance(state, MISS) for state in (at_topic, at_study)]
    assert [(event.forced, event.state.credit) for event in forced] == [(True, (0, -1)), (True, (4, 0))]


@pytest.mark.parametrize("level", range(11))
def test_each_run_shows_a_fake_where_its_draw_lies_below_the_level(level: int):
    engine = engine_of(make_tree([[]], [1]), fake_level=level)
    for seed in range(2**64 - 40, 2**64):
        shown = walk(engine, seed, [(0, 1.0, Decision.NONE)] * 2 + [(0, 0.0, Decision.REDO)] * 3)[2:]
        draws = [splitmix64(seed, engine.fake_keys[0], run) for run in range(1, 5)]
        assert [event.fake for event in shown] == [
            1 + splitmix64(draw) % 2 if 10 * draw < level << 64 else 0 for draw in draws
        ]
