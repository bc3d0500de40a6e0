"""What a person sees of an episode."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.inquiry.rendering import FAKE_COLOUR, MARGINS, status, visit_order
from inquitree_gym.trees import Tree
from inquitree_gym.trees.drawing import COLOURS, diagram
from tests.inquiry.test_inquiry import EXPLORE, JUNK, openings, script, trajectory

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper12")


def boxes(picture: np.ndarray, tree: Tree) -> np.ndarray:
    """The part of a picture between the status and the legend."""
    return picture[MARGINS[0] : MARGINS[0] + int(diagram(tree).height)]


def area(picture: np.ndarray, mark: str) -> int:
    """How many pixels have the fill of a mark."""
    colour = np.round(np.array(to_rgb(COLOURS[mark])) * 255).astype(np.uint8)
    return int((picture == colour).all(-1).sum())


def test_a_picture_shows_the_path_so_far_and_never_the_hint_target(tree: Tree, reader):
    env = InquiryEnv("paper12", render_mode="rgb_array", fake_level=3)
    first, second = (tree.subtopics[i] for i in openings(tree))
    env.reset(seed=1)
    pictures = [env.render()]
    for action in (JUNK, first.text, first.studies[0].text, EXPLORE, second.text):
        env.step(action)
        pictures.append(env.render())
    trees = [boxes(picture, tree) for picture in pictures]
    visited, current = ([area(each, mark) for each in trees] for mark in ("visited", "current"))
    assert visited[:4] == [0, 0, 0, 0]
    assert current[:2] == [0, 0]
    assert current[2] == current[3] > 1_000
    assert visited[-1] > 1_000
    assert current[-1] > 1_000
    assert {area(picture, "target") for picture in pictures} == {0}
    assert len({picture.shape for picture in pictures}) == 1
    assert (trees[0] == trees[1]).all(), "a hint leaves no trace in the tree"
    assert (pictures[0] != pictures[1]).any(), "the status counts turns and hints"
    assert visited[4] == current[3], "at the topic nothing is under study"
    env.reset(seed=2)
    assert (env.render() == pictures[0]).all()


def played(tree: Tree, **options) -> list[np.ndarray]:
    """Every picture of one scripted episode."""
    env = InquiryEnv("paper12", render_mode="rgb_array", **options)
    env.reset(seed=1)
    pictures = [env.render()]
    for action in script(tree):
        env.step(action)
        pictures.append(env.render())
    return pictures


def test_a_picture_tells_fakes_from_true_results_to_the_privileged_alone(tree: Tree, reader):
    true, fake = (played(tree, fake_level=level) for level in (0, 10))
    assert all((one == other).all() for one, other in zip(true[:-1], fake[:-1], strict=True))
    seen, faked = (played(tree, fake_level=level, privileged=True) for level in (0, 10))
    colour = np.round(np.array(to_rgb(FAKE_COLOUR)) * 255).astype(np.uint8)
    legend, *_, last = [int((picture == colour).all(-1).sum()) for picture in faked]
    assert last > legend > 0
    assert any((one != other).any() for one, other in zip(seen, faked, strict=True))
    assert not any((picture == colour).all(-1).any() for picture in fake)


def test_the_status_counts_turns_and_hints_and_tells_the_score_at_the_end(tree: Tree, reader):
    env = InquiryEnv("paper12", fake_level=3, max_turns=5)
    env.reset(seed=1)
    events = [env.last_transition.event]
    for action in (JUNK, JUNK, tree.subtopics[openings(tree)[0]].text):
        env.step(action)
        events.append(env.last_transition.event)
    assert list(status(tree, events[:3], 5, None)) == [
        "paper12 · turn 2 (limit 5) · topic",
        "0 of 7 subtopics entered · 0 of 20 studies run",
        "hints given: 2, now level 2 of 4",
    ]
    first, second, third = status(tree, events, None, 0.625)
    assert first == "paper12 · turn 3 (no limit) · subtopic · Q/|C| = 0.62"
    assert second == "1 of 7 subtopics entered · 0 of 20 studies run"
    assert third == "hints given: 2"


def test_boxes_are_numbered_in_the_order_of_the_visits(tree: Tree, reader):
    env = InquiryEnv("paper12", render_mode="rgb_array")
    first, second = (tree.subtopics[i] for i in openings(tree))
    env.reset(seed=1)
    for subtopic in (first, second, first, first):
        for action in (subtopic.text, subtopic.studies[0].text, EXPLORE):
            env.step(action)
    assert visit_order(tree, env._events) == {first.id: "1, … 4", second.id: "2"}
    for action in (second.text, "not what I meant"):
        env.step(action)
    assert visit_order(tree, env._events) == {first.id: "1, … 4", second.id: "2"}, "a declined visit is none"
    env.reset(seed=1)
    assert visit_order(tree, env._events) == {}


def test_ansi_gives_a_status_line_and_what_the_agent_reads(tree: Tree, reader):
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


def test_human_prints_every_moment_once(capsys, reader):
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
def test_watching_changes_nothing(mode: str, tree: Tree, reader, capsys):
    watched = InquiryEnv("paper12", render_mode=mode, fake_level=5)
    steps = [watched.reset(seed=2)]
    for action in script(tree):
        watched.render()
        steps.append(watched.step(action))
    assert steps == trajectory(InquiryEnv("paper12", fake_level=5), 2, script(tree))


def test_without_a_mode_render_warns_and_gives_nothing(reader):
    env = InquiryEnv("paper12")
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="without a render_mode; pass one to gym.make"):
        assert env.render() is None
