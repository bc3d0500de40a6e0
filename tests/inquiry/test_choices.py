"""What the environment says and logs when it understands more than a choice: decisions, ties, reasons, nothing left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.inquiry.engine import Engine, Rules
from inquitree_gym.inquiry.engine.transition import draw_one
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.trajectory import read_trajectory, world_of
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import in_world
from tests.strategies import make_tree, with_rewordings

TREE = make_tree([[], [0], []], [2, 1, 1])
FIRST, SECOND, THIRD = TREE.subtopics
JUNK = "zzz"


class Marks:
    """An embedder that knows digits and the letters of studies; two texts in one are as near to either."""

    name, dim, threshold, digest = "marks", 13, 0.6, "9c" * 32

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        marks = [*map(str, range(10)), "a:", "b:"]
        rows = np.array([[text.count(mark) for mark in marks] + [0.1] for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def env_of(tree: Tree = TREE, **rules) -> InquiryEnv:
    return InquiryEnv(tree, embedder=Marks(), **{"max_turns": None} | rules)


def told(env: InquiryEnv, *actions: str, seed: int = 0) -> tuple[str, dict]:
    """Return the last observation and info."""
    observation, info = env.reset(seed=seed)
    for action in actions:
        observation, _, _, _, info = env.step(action)
    return observation, info


def visit(subtopic) -> tuple[str, str, str]:
    return subtopic.text, subtopic.studies[0].text, "explore new subtopic"


@pytest.mark.parametrize("said", ["draw conclusion", "I'm ready to conclude.", "draw_conclusion"])
@pytest.mark.parametrize("before", [(), (JUNK,), (FIRST.text,)], ids=["start", "after a hint", "at a subtopic"])
def test_a_bare_decision_to_conclude_leads_to_the_conclusion(said: str, before: tuple[str, ...]):
    observation, info = told(env_of(), *before, said)
    assert (info["state"], info["turn"], info["accepted"]) == ("conclusion", len(before) + 1, True)
    assert observation.startswith("Write your conclusion now")


@pytest.mark.parametrize(
    "said", ["explore new subtopic", "This is not what I meant.", "Let's move on to another question.", "wrong one"]
)
def test_a_subtopic_that_was_not_meant_is_put_aside(said: str):
    env = env_of()
    observation, info = told(env, FIRST.text, JUNK, said)
    assert observation.startswith("That subtopic is put aside")
    assert TREE.topic in observation
    assert info == {"state": "topic", "turn": 3, "accepted": True, "hint_level": 0, "forced": False}
    assert (env.state.visited, env.state.visits) == (0, (0, 0, 0))


def test_decisions_are_told_of_where_they_count():
    with_them, without = (env_of(bare_decisions=bare).reset(seed=0)[0] for bare in (True, False))
    assert ("put it aside" in with_them, "put it aside" in without) == (True, False)
    assert told(env_of(bare_decisions=False), "draw conclusion")[1]["hint_level"] == 1
    env = env_of(decisions="tokens")
    opening, _ = env.reset(seed=0)
    assert all(token in opening for token in ("redo_study", "explore_new_subtopic", "draw_conclusion"))
    again, info = told(env, FIRST.text, FIRST.studies[0].text, "redo the study")
    assert 'Say "redo_study", "explore_new_subtopic" or "draw_conclusion"' in again
    assert info["state"] == "result"
    assert told(env, FIRST.text, "not what I meant")[1]["state"] == "subtopic"
    assert told(env, FIRST.text, "explore_new_subtopic")[1]["state"] == "topic"


@pytest.mark.parametrize("bare", [True, False])
def test_with_nothing_left_to_visit_the_topic_and_the_result_say_so(bare: bool):
    env, said = env_of(bare_decisions=bare), "You have visited every subtopic of this project"
    *first, last = [action for subtopic in TREE.subtopics for action in visit(subtopic)]
    observation, _ = env.reset(seed=0)
    shown = []
    for action in (*first, last):
        shown.append(observation)
        observation = env.step(action)[0]
    assert not any(said in each for each in shown[:-1])
    assert said in shown[-1], "the result"
    assert said in observation, "the topic"
    assert ("draw conclusion" in observation) == bare
    if bare:
        env.step(FIRST.text)
        assert said in env.step("explore new subtopic")[0], "the topic after a subtopic was declined"


def test_a_proposal_has_to_wait_or_is_declined_and_with_hints_alone_neither_is_told():
    env, waits = env_of(), "it has to wait: something else has to be investigated first"
    waiting, info = told(env, SECOND.text)
    assert waits in waiting
    assert not any(hint in waiting for hint in (*FIRST.hints, *SECOND.hints))
    assert info == {"state": "topic", "turn": 1, "accepted": False, "hint_level": 0, "forced": False}
    assert told(env, JUNK, SECOND.text)[1]["hint_level"] == 1, "the hints go on where they were"
    assert FIRST.hints[1] in told(env, JUNK, SECOND.text, JUNK)[0]
    refused = told(env, JUNK)[0]
    assert refused.startswith("This proposal matches no open question closely enough.")
    assert "It helps to ask one question, and to say what varies and what you expect." in refused, "a remedy"
    assert FIRST.hints[0] in told(env, JUNK)[0]
    refused = told(env, FIRST.text, JUNK)[0]
    assert refused.startswith("This design matches no study of the subtopic closely enough. It helps to describe one")
    hints = {told(env_of(feedback="hint"), action)[0] for action in (SECOND.text, JUNK)}
    assert len(hints) == 1, "nothing is told"
    assert "matches no open question closely enough" in hints.pop(), "true of both"


def test_what_was_visited_or_run_before_is_told():
    env, study = env_of(with_rewordings(TREE, 1)), FIRST.studies[0]
    first = told(env, FIRST.text, study.text)[0]
    assert "again" not in told(env, FIRST.text)[0] + first
    recalled, info = told(env, *visit(FIRST), FIRST.text, study.text)
    assert recalled.startswith("This study was run before, and it is not run again unless you ask for it:")
    assert not any(text in recalled for text in study.shown_texts)
    assert info["state"] == "result"
    assert told(env, *visit(FIRST), FIRST.text)[0].startswith("The project turns to this subtopic again:")
    redone = told(env, *visit(FIRST), FIRST.text, study.text, "redo the study")[0]
    assert redone.startswith(f"Study, run again: {study.text}")
    printed = env_of(reruns="match")
    assert "again" not in told(printed, *visit(FIRST), FIRST.text)[0]
    assert told(printed, *visit(FIRST), FIRST.text, study.text)[0] == told(printed, FIRST.text, study.text)[0]


COURSE = (
    JUNK, FIRST.text, "not what I meant", THIRD.text, THIRD.studies[0].text,
    "explore new subtopic", FIRST.text, FIRST.studies[0].text, "I'd run it again", "next subtopic", SECOND.text,
    "draw conclusion", "1. Nothing.", "1 A",
)  # fmt: skip
RULES = {"feedback": "reason", "fake_level": 6}


def logged(tmp_path: Path, name: str = "log", **rules) -> Episode:
    return play(env_of(**(RULES | rules)), ReplayAgent(COURSE), seed=5, file=tmp_path / f"{name}.jsonl")


def test_what_happened_is_logged_scored_and_replayed(tmp_path: Path):
    episode = logged(tmp_path)
    kinds = [turn.event.kind for turn in episode.turns]
    assert (kinds[2], kinds[3], kinds[-3:]) == ("declined", "subtopic", ["conclusion", "exam", "end"])
    assert (episode.turns[2].event.node, episode.turns[2].event.decision) == (FIRST.id, "explore")
    path = read_trajectory(episode, TREE)
    assert path.coverage == 1
    assert path.unaided_coverage == 2 / 3, "the first was hinted at"
    assert logged(tmp_path, "again").fingerprint == episode.fingerprint


def test_a_study_run_again_may_show_its_result_in_other_words_which_the_log_tells(tmp_path: Path):
    tree, file = with_rewordings(TREE, 1), tmp_path / "log.jsonl"
    first, study = tree.subtopics[0], tree.subtopics[0].studies[0]
    course = [first.text, study.text, "redo the study", "redo the study", "draw conclusion", "1. No.", "1 A"]
    engine = Engine(tree, Rules(threshold=0.5))
    drawn = (
        [draw_one(seed, engine.fake_keys[0], run, engine.wordings_of[0]) for run in (1, 2, 3)] for seed in range(99)
    )
    seed, wordings = next((seed, found) for seed, found in enumerate(drawn) if found == [1, 0, 1])
    episode = play(env_of(tree, replication="varied"), ReplayAgent(course), seed=seed, file=file)
    shown = [turn.observation for turn in episode.turns[2:5]]
    told_true = in_world(tree, world_of(tree, episode)).studies[0].outcomes[0]
    assert all(told_true[wording] in text for wording, text in zip(wordings, shown, strict=True))
    plain = play(env_of(tree, replication="exact"), ReplayAgent(course), seed=seed)
    assert all(told_true[0] in turn.observation for turn in plain.turns[2:5])
    assert [turn.event.wording for turn in episode.turns[1:4]] == wordings
    assert read_episode(file) == episode
    assert file.read_text().count('"wording"') == 2, "the result as it stands leaves no trace"
    rules = Rules().override(episode.header.rules)
    assert play(env_of(tree, **rules.as_dict()), ReplayAgent(course), seed=seed).fingerprint == episode.fingerprint
