"""What a person sees of an episode."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.trees import Tree
from inquitree_gym.trees.drawing import COLOURS
from tests.envs.test_inquiry import EXPLORE, JUNK, openings, script, trajectory


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper12")


def area(picture: np.ndarray, mark: str) -> int:
    """How many pixels have the fill of a mark."""
    colour = np.round(np.array(to_rgb(COLOURS[mark])) * 255).astype(np.uint8)
    return int((picture == colour).all(-1).sum())


def test_a_picture_is_an_array_of_bytes_that_belongs_to_the_caller(minilm):
    env = gym.make("InquiTree-paper12-v0", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert min(picture.shape[:2]) > 100
    kept = picture.copy()
    picture[:] = 0
    assert (env.render() == kept).all()


def test_a_picture_shows_the_path_so_far_and_never_the_hint_target(tree: Tree, minilm):
    env = InquiryEnv("paper12", render_mode="rgb_array", fake_level=3)
    first, second = (tree.subtopics[i] for i in openings(tree))
    env.reset(seed=1)
    pictures = [env.render()]
    for action in (JUNK, first.text, first.studies[0].text, EXPLORE, second.text):
        env.step(action)
        pictures.append(env.render())
    visited, current = ([area(picture, mark) for picture in pictures] for mark in ("visited", "current"))
    assert visited[:4] == [0, 0, 0, 0]
    assert current[:2] == [0, 0]
    assert current[2] == current[3] > 1_000
    assert visited[-1] > 1_000
    assert current[-1] > 1_000
    assert {area(picture, "target") for picture in pictures} == {0}
    assert len({picture.shape for picture in pictures}) == 1
    assert (pictures[0] == pictures[1]).all(), "a hint leaves no trace in the picture"
    assert (pictures[2] == pictures[3]).all()
    env.reset(seed=2)
    assert (env.render() == pictures[0]).all()


def test_pictures_grow_with_the_tree():
    sizes = []
    for name in ("paper2", "paper12"):
        env = InquiryEnv(name, render_mode="rgb_array")
        env.reset(seed=1)
        sizes.append(env.render().size)
    assert sizes[0] < sizes[1]


def test_ansi_gives_a_status_line_and_what_the_agent_reads(tree: Tree, minilm):
    env = gym.make("InquiTree-paper12-v0", render_mode="ansi", fake_level=10)
    first, _ = openings(tree)
    actions = [JUNK, tree.subtopics[first].text, tree.subtopics[first].studies[0].text]
    observation, _ = env.reset(seed=1)
    shown = [env.render()]
    for action in actions:
        observation, *_ = env.step(action)
        shown.append(env.render())
        assert shown[-1].rstrip().endswith(observation)
    assert [text.splitlines()[0] for text in shown] == [
        "paper12 · turn 0 · topic · 0 of 7 subtopics",
        "paper12 · turn 1 · topic · 0 of 7 subtopics",
        "paper12 · turn 2 · subtopic · 1 of 7 subtopics",
        "paper12 · turn 3 · result · 1 of 7 subtopics",
    ]
    assert not any(word in shown[-1].lower() for word in ("fake", "similarity", "below_threshold"))


def test_human_prints_every_moment_once(capsys, minilm):
    env = gym.make("InquiTree-paper12-v0", render_mode="human")
    env.reset(seed=1)
    assert "paper12 · turn 0 · topic" in capsys.readouterr().out
    env.step(JUNK)
    printed = capsys.readouterr().out
    assert printed.count("paper12 · turn 1") == 1
    assert "Hint 1 of 4" in printed
    assert env.render() is None
    assert "turn 1" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["ansi", "human", "rgb_array"])
def test_watching_changes_nothing(mode: str, tree: Tree, minilm, capsys):
    watched = InquiryEnv("paper12", render_mode=mode, fake_level=5)
    steps = [watched.reset(seed=2)]
    for action in script(tree):
        watched.render()
        steps.append(watched.step(action))
    assert steps == trajectory(InquiryEnv("paper12", fake_level=5), 2, script(tree))


def test_without_a_mode_render_warns_and_gives_nothing(minilm):
    env = InquiryEnv("paper12")
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="without a render_mode; pass one to gym.make"):
        assert env.render() is None
