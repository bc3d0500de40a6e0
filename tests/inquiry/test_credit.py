"""Earned credit: by the hints before the first choice, lost by forced moves and by words that were shown before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.inquiry.engine import Decision, ObservationKind, Reading, Rules
from inquitree_gym.inquiry.engine.machine import Engine
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.menu import Menu
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.log import read_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree
from tests.inquiry.engine.test_machine import ACTIONS, EXPLORE, MISS, RULE_SETS, engine_of, follow, hit, reading
from tests.strategies import make_tree, trees

QUARTERS = {0: 4, 1: 4, 2: 1, 3: 0, 4: 0}


@given(trees(), RULE_SETS, ACTIONS, st.lists(st.booleans(), min_size=80, max_size=80), st.integers(0, 2**64 - 1))
def test_a_showing_has_the_lower_credit_of_its_nodes_fixed_at_their_first_choice(
    tree: Tree, rules: Rules, actions, repeats: list[bool], seed: int
):
    """Credit is what the events alone add up to: hints and first choices, without the full ones taken back."""
    engine = Engine(tree, rules)
    event = engine.start(seed)
    hints, credit = {}, {}
    for action, repeated in zip(actions, repeats, strict=False):
        before = event.state
        if before.phase >= 4:
            break
        event = engine.advance(before, reading(engine, before, action)._replace(repeats=repeated))
        lost = event.forced or repeated
        if event.kind == ObservationKind.SUBTOPIC_HINT:
            hints["subtopic", event.node] = max(hints.get(("subtopic", event.node), 0), event.hint_level)
        if event.kind == ObservationKind.STUDY_HINT:
            hints["study", event.node] = max(hints.get(("study", event.node), 0), event.hint_level)
        if event.kind == ObservationKind.SUBTOPIC:
            key = ("subtopic", event.node)
            credit.setdefault(key, 0 if lost else QUARTERS[hints.get(key, 0)])
        taken_back = event.kind == ObservationKind.DECLINED and not event.state.visits[event.node]
        if taken_back and credit["subtopic", event.node]:  # what is lost stays lost
            del credit["subtopic", event.node]
        if event.kind == ObservationKind.RESULT:
            key = ("study", event.node)
            credit.setdefault(key, 0 if lost else QUARTERS[hints.get(key, 0)])
        if event.kind == ObservationKind.RESULT:
            assert event.credit == min(credit["study", event.node], credit["subtopic", engine.subtopic_of[event.node]])
        else:
            assert event.credit == -1


@pytest.mark.parametrize(("hints", "credit"), [(0, 4), (1, 4), (2, 1), (3, 0), (4, 0)])
def test_hints_of_any_decision_count_and_neither_declining_nor_waiting_hides_them(hints: int, credit: int):
    engine = engine_of(make_tree([[], [], [0]], [1, 1, 1]))
    course = [*[MISS] * hints, hit(1), EXPLORE, hit(2), hit(0), hit(0)]
    assert follow(engine, *course).credit == credit, "they led to the first subtopic, though another one was entered"
    later = [*course, EXPLORE, *[MISS] * 3, hit(0), hit(0), Reading(decision=Decision.REDO)]
    assert follow(engine, *later).credit == credit, "what comes after the first choice changes nothing"


def test_forced_moves_and_repeated_texts_earn_nothing():
    engine = engine_of(make_tree([[]], [2]))
    assert follow(engine, *[MISS] * 5, hit(0)).credit == 0
    assert follow(engine, hit(0), *[MISS] * 5).credit == 0
    assert follow(engine, hit(0)._replace(repeats=True), hit(0)).credit == 0
    assert follow(engine, hit(0), hit(0)._replace(repeats=True)).credit == 0
    assert follow(engine, hit(0)._replace(repeats=True), EXPLORE, hit(0), hit(0)).credit == 0, (
        "a lost credit stays lost"
    )
    assert follow(engine, hit(0), EXPLORE, hit(0), hit(0)).credit == 4, "an entry taken back"
    redone = [hit(0), hit(0)._replace(repeats=True), Reading(decision=Decision.REDO)]
    assert follow(engine, *redone).credit == 0


class Words:
    """An embedder of one's own: bags of words."""

    name, dim, threshold, digest = "words", 512, 0.5, "7a" * 32

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.full((len(texts), self.dim), 1e-4, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace("?", " ").replace(".", " ").split():
                row[sum(ord(letter) * 31**i for i, letter in enumerate(word)) % self.dim] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def worded() -> Tree:
    """A tree whose question, protocols and hints share words, as those of papers do."""
    tree = make_tree([[], []], [1, 1])
    first, second = tree.subtopics
    study = first.studies[0].model_copy(
        update={
            "text": "measure how strongly salt slows yeast in warm dough today",
            "hints": ("think", "weigh something", "measure yeast in salt", "measure how salt slows yeast in dough"),
        }
    )
    first = first.model_copy(
        update={
            "text": "how strongly salt slows yeast in warm dough",
            "hints": ("salt", "think of dough", "yeast and salt in warm dough", "how salt slows yeast in warm dough"),
            "studies": (study,),
        }
    )
    second = second.model_copy(update={"text": "which flour rises best overnight"})
    return tree.model_copy(update={"subtopics": (first, second)})


TREE = worded()
FIRST = TREE.subtopics[0]
STUDY = FIRST.studies[0]


def marks(*actions: str, lasting: bool = True, **rules) -> tuple[bool, float | None]:
    """Return whether the last action repeats, and the credit of the result that it leads to."""
    env = InquiryEnv(TREE, embedder=Words(), privileged=True, max_turns=None, **rules)
    env.runtimes = env.runtimes.within("private" if lasting else "episode")
    env.reset(seed=0)
    for action in actions:
        *_, info = env.step(action)
    return env.last.reading.repeats, info["privileged"]["credit"]


@pytest.mark.parametrize("lasting", [True, False], ids=["vectors on disk", "played once"])
def test_what_repeats_a_text_shown_before_earns_nothing(lasting: bool, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    own, other = (
        "salt slows yeast strongly in warm dough how today",
        "I would measure salt and yeast in warm dough today",
    )
    echo, parrot = FIRST.hints[2], FIRST.text
    assert marks("x", "x", "x", echo, lasting=lasting)[0], "the last hint again"
    assert not marks(echo, lasting=lasting)[0], "the same words before they were shown"
    assert marks(FIRST.text, parrot, lasting=lasting) == (True, 0.0), "the question as its own design"
    assert marks(FIRST.text, STUDY.text, lasting=lasting) == (False, 1.0)
    assert marks(FIRST.text, other, lasting=lasting) == (False, 1.0)
    assert marks(own, lasting=lasting)[0] is False, "near to the question, which was not shown"
    assert not marks("x", "x", "x", "x", FIRST.text, lasting=lasting)[0], "a node's own text, whatever a hint quoted"


def test_a_quoted_hint_earns_nothing_after_an_entry_was_taken_back_either():
    launderer = [*["x"] * 5, "explore new subtopic", FIRST.text, STUDY.text]
    assert marks(*launderer) == (False, 0.0)


def test_menus_never_repeat():
    menu = Menu(TREE)
    env = InquiryEnv(TREE, embedder=Words(), privileged=True, max_turns=60)
    rng = np.random.default_rng(0)
    for seed in range(20):
        env.reset(seed=seed)
        while env.state.phase < 4:
            allowed = np.flatnonzero(menu.mask(env.runtime.engine, env.state))
            env.step(menu.texts[rng.choice(allowed)])
            assert not env.last.reading.repeats


def test_the_log_and_the_score_have_the_credit(tmp_path: Path):
    course = ["x", "x", FIRST.text, STUDY.text, "redo the study", "explore new subtopic", TREE.subtopics[1].text]
    course += [TREE.subtopics[1].text, TREE.subtopics[1].studies[0].text, "draw conclusion", "1. Salt.", "1 A"]
    env = InquiryEnv(TREE, embedder=Words(), max_turns=None)
    episode = play(env, ReplayAgent(course), seed=0, file=tmp_path / "log.jsonl")
    shown = [turn.event.credit for turn in episode.turns if turn.event.kind == "result"]
    assert shown[:2] == [0.25, 0.25]
    assert all(turn.event.credit is None for turn in episode.turns if turn.event.kind != "result")
    assert read_episode(tmp_path / "log.jsonl") == episode
    assert read_trajectory(episode, TREE).credit == sum(shown) / len(shown)
