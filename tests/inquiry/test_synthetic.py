"""A tree of its own for every episode, from its seed; none of them left on disk or in memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from inquitree_gym.envs import SyntheticEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.exam import sheet_of_world
from inquitree_gym.seeds import splitmix64
from inquitree_gym.sheets import write_sheet
from inquitree_gym.trees import load_tree, synthetic_tree, tree_seed
from inquitree_gym.trees.worlds import in_world

ID = "InquiTree-synthetic-v0"
SMALL = {"subtopics": 2, "studies": 1}


class Letters:
    """An embedder of one's own, cheap enough for many trees: counts of letters."""

    name, dim, threshold, digest = "letters", 26, 0.8, "1" * 64

    def embed(self, texts):
        counts = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32) + 1e-3
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def made(**keywords: Any) -> SyntheticEnv:
    env = gym.make(ID, **{"embedder": Letters(), "difficulty": SMALL, **keywords}).unwrapped
    assert isinstance(env, SyntheticEnv)
    return env


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_tree_of_an_episode_follows_from_its_seed_and_the_split(split: str):
    env = made(split=split)
    env.reset(seed=40)
    assert env.tree == synthetic_tree(tree_seed(40, split), SMALL)
    seen = [env.tree.digest]
    for number in (1, 2):
        env.reset()
        assert env.tree == synthetic_tree(tree_seed(splitmix64(40, number), split), SMALL)
        seen.append(env.tree.digest)
    assert len({*seen, synthetic_tree(tree_seed(40, "test" if split == "train" else "train"), SMALL).digest}) == 4


def test_rules_and_options_are_those_of_any_inquiry():
    env = made(max_turns=4, fake_level=10, privileged=True)
    env.reset(seed=1)
    assert env.turn_limit == 4
    study = env.tree.subtopics[0].studies[0]
    for text in (env.tree.subtopics[0].text, study.text):
        observation, *_, info = env.step(text)
        assert info["accepted"]
    held = in_world(env.tree, env.runtime.engine.world(env.state)).studies[0].outcomes
    assert any(text in observation for fake in held[1:] for text in fake)
    assert not any(text in observation for text in held[0])
    env.reset(seed=1, options={"tree": "paper8", "max_turns": 9})
    assert (env.tree, env.turn_limit) == (load_tree("paper8"), 9)
    env.reset(seed=1)
    assert env.tree == synthetic_tree(tree_seed(1, "train"), SMALL)


def test_a_whole_episode_with_the_default_embedder_earns_what_it_should(reader):
    env = gym.make(ID, difficulty=SMALL, split="test", embedder=reader)
    env.reset(seed=3)
    tree = env.unwrapped.tree
    for number, subtopic in enumerate(tree.subtopics):
        for action in (subtopic.text, subtopic.studies[0].text):
            assert env.step(action)[4]["accepted"]
        env.step("draw conclusion" if number == len(tree.subtopics) - 1 else "explore new subtopic")
    env.step("")
    engine, state = env.unwrapped.runtime.engine, env.unwrapped.state
    _, reward, terminated, _, info = env.step(
        write_sheet(sheet_of_world(engine.exam, state.world), engine.layout(state))
    )
    assert (reward, terminated, info["state"]) == (1.0, True, "end")


def test_gymnasium_finds_nothing_to_complain_about(reader):
    check_env(gym.make(ID, difficulty=SMALL, embedder=reader).unwrapped, skip_render_check=True)


def test_no_file_is_written_and_nothing_of_an_old_tree_is_kept(tmp_path, monkeypatch):
    folder = tmp_path / "vectors"
    monkeypatch.setenv("INQUITREE_CACHE", str(folder))
    env = made()
    gone = []
    for seed in range(4):
        env.reset(seed=seed)
        env.step(env.tree.subtopics[0].text)
        gone.append(weakref.ref(env.vectors))
    gc.collect()
    assert [vectors() is None for vectors in gone] == [True, True, True, False]
    assert not folder.exists()


@pytest.mark.parametrize("name", [ID, "InquiTree-synthetic-menu-v0"])
def test_reset_and_ordinary_turns_embed_nothing_of_the_exam(name: str, reader, monkeypatch):
    embedded: list[str] = []
    embed = type(reader).embed

    def listening(self, texts):
        embedded.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(type(reader), "embed", listening)
    env = gym.make(name, difficulty=SMALL, embedder=reader, max_turns=3)
    _, info = env.reset(seed=4)
    tree = env.unwrapped.tree
    judged = {text for item in tree.conclusions for text in item.options}
    if name == ID:
        assert embedded == [], "nothing is matched yet"
    while info["state"] != "conclusion":
        assert not judged & set(embedded)
        *_, info = env.step(0 if "menu" in name else tree.subtopics[0].text)
    env.unwrapped.step("")
    assert not judged & set(embedded)


def test_a_vector_plays_what_single_environments_play():
    vector = gym.make_vec(
        ID, num_envs=3, vectorization_mode="vector_entry_point", embedder=Letters(), difficulty=SMALL, split="test"
    )
    observations, _ = vector.reset(seed=5)
    singles = [made(split="test") for _ in range(3)]
    assert list(observations) == [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    for action in ("does smoke matter?", "what is the weather like", "draw conclusion", "1. nothing at all is known"):
        observations, rewards, ends, _, _ = vector.step([action] * 3)
        for i, env in enumerate(singles):
            observation, reward, terminated, _, _ = env.step(action)
            assert (observations[i], rewards[i], ends[i]) == (observation, reward, terminated)
    assert {env.tree.id for env in vector.envs} == {env.tree.id for env in singles}
    vector.close()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"split": "valid"}, "split must be one of"),
        ({"difficulty": {"topolgy": "chain"}}, "did you mean 'topology'"),
        ({"difficulty": {"subtopics": -1}}, "subtopics must be an integer"),
        ({"tree": "paper8"}, "makes its own trees"),
        ({"fake_levle": 3}, "unknown option 'fake_levle'"),
    ],
)
def test_bad_keywords_are_refused_by_name(keywords, message):
    with pytest.raises(OptionError, match=message):
        made(**keywords)


def test_the_discrete_view_has_slots_for_the_largest_tree_and_plays_each():
    difficulty = {"subtopics": (2, 4), "studies": 1}
    env = gym.make("InquiTree-synthetic-menu-v0", difficulty=difficulty, split="test", embedder=Letters(), text_dim=8)
    largest = synthetic_tree(0, {"subtopics": 4, "studies": 1})
    assert env.action_space.n == 4 + len(largest.studies) + 13
    sizes = set()
    for seed in range(8):
        features, _ = env.reset(seed=seed)
        tree = env.unwrapped.tree
        assert tree == synthetic_tree(tree_seed(seed, "test"), difficulty)
        assert features.shape == (7 + 1 + 4 + 36 + 8,)
        assert env.get_wrapper_attr("action_masks")().sum() == len(tree.subtopics)
        sizes.add(len(tree.subtopics))
    assert sizes == {2, 3, 4}
    papers = gym.make("InquiTree-synthetic-menu-v0", difficulty=difficulty, size=(10, 24), embedder=Letters())
    assert papers.action_space.n == 10 + 24 + 13
