"""Inquiries in worlds: what two worlds share, what a showing shows, and what a sheet is worth in each view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
from inquitree_gym.inquiry.engine import Decision, Engine, Event, ObservationKind, Phase, Reading, Rules, State
from inquitree_gym.inquiry.exam import random_sheet, sheet_of_world
from inquitree_gym.inquiry.menu import Menu
from inquitree_gym.sheets import Sheet, write_sheet
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import World, actual_world, in_world, worlds
from tests.inquiry.engine.test_machine import EXPLORE, MISS, hit
from tests.inquiry.test_inquiry import CONCLUDE, JUNK, REDO
from tests.worlds import clean_document, read, world_trees

REDONE = Reading(decision=Decision.REDO)
TREES = {"paper2": load_tree("paper2"), "paper28": load_tree("paper28"), "three poles": read(clean_document())}
every_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def moved(state: State, world: World) -> State:
    """An episode that has begun, in another world."""
    return state.replace(world=world)


def seen(tree: Tree, world: World) -> Iterator[tuple[Any, ...]]:
    """Every turn of one course through all studies in a world: what is told without the finding, and the finding."""
    env = InquiryEnv(tree, fake_level=5, max_turns=None, privileged=True)
    env.reset(seed=4)
    env.last_transition = env.last._replace(event=Event(moved(env.state, world)))
    answers = "\n".join(f"{number} A" for number in range(1, len(tree.conclusions) + 1))
    studied = [(s.text, study.text, REDO, "hm", "explore") for s in tree.subtopics for study in s.studies]
    for action in (JUNK, *(text for texts in studied for text in texts), CONCLUDE, "1. So it is.", "none", answers):
        text, _, *flags, info = env.step(action)
        event, finding = env.last.event, ""
        if event.kind == ObservationKind.RESULT:
            finding = tree.studies[event.node].outcomes[event.outcome][event.wording]
            assert finding in text
        assert tuple(info["privileged"].pop("world")) == world
        yield text.replace(finding, "") if finding else text, flags, info, finding
    assert flags[0], "the course goes through the exam"


@every_tree
def test_two_worlds_of_one_seed_share_every_byte_but_their_findings(tree: Tree, reader):
    actual, other = actual_world(tree), next(worlds(tree, "complement"))
    one, two = (list(seen(tree, world)) for world in (actual, other))
    assert [turn[:3] for turn in one] == [turn[:3] for turn in two]
    for (_, _, info, found), (*_, found_too) in zip(one, two, strict=True):
        if found:
            controls = not tree.reads[info["privileged"]["node"]]
            assert (found == found_too) == controls, "what reads no axis is found in every world"
    assert {turn[2]["privileged"]["fake"] > 0 for turn in one} == {True, False}


@given(world_trees(), st.data())
def test_a_showing_shows_the_outcome_of_its_number_and_controls_are_never_faked(tree: Tree, data: st.DataObject):
    world = data.draw(st.sampled_from(list(worlds(tree))))
    engine = Engine(tree, Rules(threshold=0.5, fake_level=data.draw(st.sampled_from([5, 10])), max_turns=None))
    state = moved(engine.start(data.draw(st.integers(0, 99))).state, world)
    told = in_world(tree, world).studies
    for study, subtopic in enumerate(engine.subtopic_of):
        for reading in (hit(subtopic), hit(study), REDONE, REDONE, REDONE, EXPLORE):
            event = engine.advance(state, reading)
            state = event.state
            if event.kind == ObservationKind.RESULT:
                assert tree.studies[study].outcomes[event.outcome] == told[study].outcomes[event.fake]
                assert not event.fake or tree.reads[study]
                assert event.fake or engine.rules.fake_level < 10 or not tree.reads[study]


def at_exam(engine: Engine, world: World, repeats: bool = False) -> State:
    """The exam in a world, once every study has been chosen in words of one's own, or in words that were shown."""
    course = [
        (hit(owner), hit(study)._replace(repeats=repeats), EXPLORE) for study, owner in enumerate(engine.subtopic_of)
    ]
    state = moved(engine.start(0).state, world)
    for reading in (*(each for turns in course for each in turns), Reading(decision=Decision.CONCLUDE), MISS):
        state = engine.advance(state, reading).state
    assert state.phase == Phase.EXAM
    return state


@every_tree
@pytest.mark.parametrize("which", ["any", "train", "test"])
def test_over_the_worlds_of_a_set_a_fixed_sheet_earns_exactly_nothing_and_the_right_one_1(tree: Tree, which: str):
    engine = Engine(tree, Rules(threshold=0.5, max_turns=None, world=which, fake_level=3))
    rng = np.random.default_rng(2)
    sheets = [random_sheet(engine.exam, rng) for _ in range(4)]
    sheets += [Sheet(tuple(choice if rng.random() < 0.5 else None for choice in sheet.choices)) for sheet in sheets]
    ends = [at_exam(engine, world) for world in worlds(tree, which)]
    assert all(sum(engine.answer(end, sheet).state.points for end in ends) == 0 for sheet in sheets)
    for end in ends:
        right = engine.answer(end, sheet_of_world(engine.exam, engine.world(end))).state
        assert (right.phase, engine.exam_return(right)) == (Phase.END, 1.0)


@every_tree
def test_nothing_earned_is_nothing_returned_whatever_is_answered(tree: Tree):
    engine = Engine(tree, Rules(threshold=0.5, max_turns=None))
    for world in list(worlds(tree))[::7]:
        end = at_exam(engine, world, repeats=True)
        assert engine.exam_return(engine.answer(end, sheet_of_world(engine.exam, world)).state) == 0


def test_the_preset_of_the_paper_has_no_exam_and_without_a_judge_no_reward(reader):
    tree = TREES["paper2"]
    env = InquiryEnv(tree, rules="paper", privileged=True)
    first = next(subtopic for subtopic in tree.subtopics if not subtopic.requires)
    env.reset(seed=1)
    for action in (first.text, first.studies[0].text, "draw_conclusion"):
        *_, info = env.step(action)
    assert tuple(info["privileged"]["world"]) == actual_world(tree)
    truth = "\n".join(item.text for item in in_world(tree, actual_world(tree)).conclusions)
    _, reward, over, _, info = env.step(truth)
    assert (reward, over, info["state"]) == (0.0, True, "end")


@every_tree
@pytest.mark.parametrize("which", ["any", "complement", "test"])
def test_arrays_return_what_the_text_view_returns_for_the_same_sheet(tree: Tree, which: str, reader):
    keywords = {"tree": tree, "world": which, "fake_level": 3}
    batch, env, menu = InquiryBatchEnv(1, **keywords), InquiryEnv(**keywords), Menu(tree)
    rng, returns = np.random.default_rng(0), set()
    for seed in range(12):
        _, infos = batch.reset(seed=seed)
        env.reset(seed=seed)
        choices, over = [], [False]
        while not over[0]:
            in_exam = infos["state"][0] == "exam"
            action = int(rng.choice(np.flatnonzero(batch.action_masks()[0])))
            _, rewards, over, _, infos = batch.step([action])
            if in_exam:
                choices.append(None if action == menu.nothing else action - menu.first_option)
            else:
                env.step(menu.texts[action])
        answers = write_sheet(Sheet(tuple(choices)), env.runtime.engine.layout(env.state))
        assert env.step(answers)[1:3] == (rewards[0], True)
        returns.add(rewards[0])
    assert len(returns) > 3
