"""The discrete view's numbers: what each says, what each state allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.decisions import read_decision
from inquitree_gym.inquiry.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.inquiry.menu import CONCLUDE, EXPLORE, REDO, Menu, MenuSize
from tests.strategies import make_tree, trees

TREE = make_tree([[], [0], []], [2, 1, 1])
MENU = Menu(TREE)


def states(engine: Engine, choices: list[int]) -> Iterator[State]:
    """Walk through an inquiry with ideal readings, one choice a turn."""
    state = engine.start(7).state
    for choice in choices:
        yield state
        if state.phase == Phase.END:
            return
        candidates = engine.candidates(state) or (-1,)
        decision = Decision(1 + choice % 3) if state.phase == Phase.RESULT else Decision.NONE
        state = engine.advance(state, Reading(candidates[choice % len(candidates)], 1.0, decision)).state
    yield state


def test_actions_stand_in_the_order_that_they_are_told_in():
    assert MENU.size == MenuSize(3, 4, axes=3)
    assert MENU.size.actions == 3 + 4 + 3 + 1 + 9
    subtopics, studies = [s.text for s in TREE.subtopics], [s.text for s in TREE.studies]
    assert list(MENU.texts) == [*subtopics, *studies, REDO, EXPLORE, CONCLUDE, "", *"ABCDEFGHI"]
    assert [read_decision(text) for text in MENU.texts[MENU.first_decision : MENU.nothing]] == [
        *(Decision.REDO, Decision.EXPLORE, Decision.CONCLUDE)
    ]
    assert (MENU.nothing, MENU.first_option) == (10, 11)


def test_a_larger_menu_leaves_slots_empty_and_a_smaller_one_is_refused():
    menu = Menu(TREE, MenuSize(5, 6))
    assert menu.texts[3:5] == ("", "")
    assert menu.texts[5 + 4 : 5 + 6] == ("", "")
    assert menu.texts[menu.first_decision] == REDO
    assert menu.size.actions == 24
    for size in (MenuSize(2, 9), MenuSize(9, 3)):
        with pytest.raises(OptionError, match=r"3 subtopics and 4 studies, and the menu has .* size=\(3, 4\) or more"):
            Menu(TREE, size)
    assert MenuSize.fitting([TREE, make_tree([[], []], [3, 3])]) == MenuSize(3, 6, axes=3)


@given(tree=trees(), choices=st.lists(st.integers(0, 11), max_size=40), spare=st.tuples(*[st.integers(0, 3)] * 2),
       redo_turn=st.booleans())  # fmt: skip
def test_a_mask_shows_what_the_state_allows(tree, choices, spare, redo_turn):
    engine = Engine(tree, Rules(threshold=0.5, redo_turn=redo_turn, exam="items"))
    needed = MenuSize.fitting([tree])
    menu = Menu(tree, MenuSize(needed.subtopics + spare[0], needed.studies + spare[1]))
    for state in states(engine, choices):
        mask = menu.mask(engine, state)
        assert mask.dtype == np.bool_
        assert mask.shape == (menu.size.actions,)
        open_now = set(np.flatnonzero(mask).tolist())
        decisions = set(range(menu.first_decision, menu.nothing))
        filled = {i for i, text in enumerate(menu.texts[: menu.nothing]) if text} | {menu.nothing}
        options = range(menu.first_option, menu.first_option + engine.exam.options(min(state.item, engine.n - 1)))
        expected = {
            Phase.TOPIC: set(range(engine.n)),
            Phase.SUBTOPIC: {menu.first_study + k for k in engine.studies_of[state.subtopic]},
            Phase.STUDY: filled,
            Phase.RESULT: decisions,
            Phase.CONCLUSION: {menu.nothing},
            Phase.EXAM: {menu.nothing, *options},
            Phase.END: {menu.nothing},
        }[state.phase]
        assert open_now == expected
        mask[:] = False
        assert set(np.flatnonzero(menu.mask(engine, state)).tolist()) == expected, "a mask is the caller's own"
