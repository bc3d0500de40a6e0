"""Inquiries whose actions are embedded together: but for the last bits of a similarity, nothing tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.embeddings import tree_vectors
from inquitree_gym.embeddings.protocol import SIMILARITY_TOLERANCE
from inquitree_gym.envs import InquiryVectorEnv
from inquitree_gym.errors import ActionError
from inquitree_gym.trees.worlds import actual_world, in_world
from tests.inquiry.test_inquiry import CONCLUDE, EXPLORE, HOSTILE, JUNK, REDO, numbered, openings
from tests.inquiry.test_vector import row

TREE = load_tree("paper12")
FIRST, SECOND = (TREE.subtopics[i] for i in openings(TREE))
TOLD = in_world(TREE, actual_world(TREE)).conclusions
TRUTH = numbered([item.text for item in TOLD])
MIXED = numbered([TOLD[0].others[0], TOLD[1].text, "Flies hold a steady course at dusk."])
SAYINGS = [
    *(FIRST.text, FIRST.studies[0].text, SECOND.text, SECOND.studies[-1].text, REDO, EXPLORE, CONCLUDE, TRUTH, MIXED),
    *("", JUNK, HOSTILE["emoji"], HOSTILE["lone surrogate"], "We should look at this once more."),
    "Does the sense of heading of a walking fly drift when it sees nothing at all?",
    "Record the ring neurons in darkness, and compare their drift with that under a bright stripe.",
    "Explore a new subtopic: what keeps the bump of activity stable?",
]  # fmt: skip
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def vector(mode: str, count: int, tree: str = "InquiTree-paper12-v0", autoreset: Any = None, **rules: Any) -> VectorEnv:
    """Make it through Gymnasium, batched or in a loop."""
    if mode == "batched":
        how = {} if autoreset is None else {"autoreset_mode": autoreset}
        env = gym.make_vec(tree, count, vectorization_mode="vector_entry_point", **how, **rules)
        assert isinstance(env, InquiryVectorEnv)
        return env
    how = {} if autoreset is None else {"vector_kwargs": {"autoreset_mode": autoreset}}
    return gym.make_vec(tree, count, vectorization_mode="sync", **how, **rules)


def played(env: VectorEnv, script: Iterable[tuple[str, ...]], seed: Any, **options: Any) -> Iterator[tuple]:
    """What reset and every step return, infos taken apart."""
    observations, infos = env.reset(seed=seed, **options)
    yield observations, [row(infos, i) for i in range(env.num_envs)]
    for actions in script:
        observations, rewards, terminated, truncated, infos = env.step(actions)
        flags = rewards.tolist(), terminated.tolist(), truncated.tolist()
        yield observations, *flags, [row(infos, i) for i in range(env.num_envs)]
    env.close()


def assert_agree(one: Any, other: Any) -> None:
    """Equal, similarities within 1e-5."""
    if isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=SIMILARITY_TOLERANCE)
    elif isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_agree(one[key], other[key])
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_agree(left, right)
    else:
        assert one == other


def reading_alone(text: str, **rules: Any) -> dict[str, Any]:
    """What is privileged of the first turn of a single environment."""
    env = InquiryEnv(TREE, privileged=True, **rules)
    env.reset(seed=0)
    return env.step(text)[4]["privileged"]


@pytest.mark.e2e
@settings(max_examples=25)
@given(
    script=st.lists(st.tuples(*[st.sampled_from(SAYINGS)] * 3), min_size=1, max_size=14),
    seed=st.integers(0, 2**31),
    level=st.integers(0, 10),
    turns=st.sampled_from(["3n", "11n", None, 2, 5]),
    mode=st.sampled_from(MODES),
    feedback=st.sampled_from(["hint", "reason"]),
    reruns=st.sampled_from(["redo", "match"]),
)
def test_batched_and_in_a_loop_are_alike(script, seed, level, turns, mode, feedback, reruns, reader):
    rules = {"fake_level": level, "max_turns": turns, "feedback": feedback, "reruns": reruns, "privileged": True}
    found, expected = (
        list(played(vector(how, 3, autoreset=mode, **rules), script, seed)) for how in ("batched", "sync")
    )
    assert_agree(found, expected)


@pytest.mark.e2e
@settings(max_examples=15)
@given(
    script=st.lists(st.tuples(*[st.sampled_from(SAYINGS)] * 3), min_size=5, max_size=14),
    names=st.lists(st.sampled_from(["paper8", "paper12"]), min_size=3, max_size=3),
    seeds=st.lists(st.one_of(st.none(), st.integers(0, 99)), min_size=3, max_size=3),
    options=st.sampled_from([{}, {"max_turns": 1}, {"tree": "paper12", "fake_level": 10}, {"threshold": 0.9}]),
    rules=st.fixed_dictionaries(
        {"max_turns": st.sampled_from([1, 3]), "fake_level": st.sampled_from([0, 6])},
        optional={
            "redo_turn": st.just(True),
            "threshold": st.just(0.3),
            "bare_decisions": st.just(False),
            "feedback": st.just("hint"),
            "replication": st.just("varied"),
        },
    ),
)
def test_reset_by_hand_and_with_trees_of_their_own_they_are_alike_too(script, names, seeds, options, rules, reader):
    rules["privileged"] = True
    batched = InquiryVectorEnv(3, trees=names, autoreset_mode="Disabled", **rules)
    loop = SyncVectorEnv([partial(InquiryEnv, name, **rules) for name in names], autoreset_mode=AutoresetMode.DISABLED)
    found, expected = (list(_by_hand(env, script, seeds, options)) for env in (batched, loop))
    assert_agree(found, expected)


def _by_hand(env: VectorEnv, script: list[tuple[str, ...]], seeds: list, options: dict) -> Iterator[tuple]:
    """What a first reset, every step, and a reset of those that ended return."""
    observations, infos = env.reset(seed=[4, 5, 6])
    yield observations, [row(infos, i) for i in range(3)]
    for actions in script:
        observations, rewards, over, truncated, infos = env.step(actions)
        yield observations, rewards.tolist(), over.tolist(), truncated.tolist(), [row(infos, i) for i in range(3)]
        if over.any():
            observations, infos = env.reset(seed=list(seeds), options={**options, "reset_mask": over.copy()})
            yield observations, [row(infos, i) for i in np.flatnonzero(over)]


@pytest.mark.weights
def test_a_step_embeds_all_its_texts_in_one_call(reader, monkeypatch):
    calls: list[list[str]] = []
    embed = type(reader).embed
    monkeypatch.setattr(type(reader), "embed", lambda self, texts: calls.append(list(texts)) or embed(self, texts))
    env = vector("batched", 4, max_turns=1)
    env.reset(seed=0)
    env.step(("a first new text", "a second new text", FIRST.text, "a first new text"))
    assert calls == [["a first new text", "a second new text"]]
    calls.clear()
    env.step(("what is said to an episode that starts anew is not read",) * 4)
    assert calls == []
    env.close()


@pytest.mark.weights
def test_a_text_as_near_to_the_threshold_as_rounding_is_read_as_one_alone_reads_it(reader):
    said = "Ring neurons of a walking fly turn with its heading, and in darkness they drift from it. " * 4
    texts = [said[7 * k : 14 * k + 20] for k in range(30)]  # of many lengths, so that most are padded
    similarities = {text: reading_alone(text)["similarity"] for text in texts}
    vectors = tree_vectors(TREE, reader)
    subtopics = vectors.matrix(tuple(subtopic.text for subtopic in TREE.subtopics))
    batch = {text: float((subtopics @ row).max()) for text, row in zip(texts, reader.embed(texts), strict=True)}
    below = [text for text in texts if batch[text] < similarities[text]]
    assert below, "no text lost a bit in its batch, so this test could not fail"
    for text in below:
        env = vector("batched", len(texts), threshold=similarities[text], privileged=True)
        env.reset(seed=[0] * len(texts))
        reasons = env.step(tuple(texts))[4]["privileged"]["reason"]
        assert reasons[texts.index(text)] == reading_alone(text, threshold=similarities[text])["reason"]
        assert reasons[texts.index(text)] != "below_threshold"


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        (("one",), "actions must be 2 strings, one for each environment, got"),
        (None, "actions must be 2 strings, one for each environment, got None"),
        ("ab", "actions must be 2 strings, one for each environment, got 'ab'"),
        (np.array(3), r"actions must be 2 strings, one for each environment, got array\(3\)"),
        ({JUNK, "b"}, "actions must be 2 strings, one for each environment, got {"),
        ({JUNK: 1, "b": 2}, "actions must be 2 strings, one for each environment, got {"),
        ((JUNK, 3), "an action must be a string, got int"),
        (np.array([1.0, 2.0]), "an action must be a string, got float"),
    ],
    ids=["one", "none", "text", "number", "set", "dict", "mixed", "array"],
)
def test_actions_of_another_kind_are_refused(actions, told: str, reader):
    env = vector("batched", 2)
    env.reset(seed=1)
    with pytest.raises(ActionError, match=told):
        env.step(actions)
    assert [one.state.turn for one in env.envs] == [0, 0], "no inquiry took a turn"


def test_what_is_said_to_an_inquiry_that_starts_anew_may_be_anything(reader):
    env = vector("batched", 2, max_turns=1)
    env.reset(seed=1)
    for said in (JUNK, JUNK, "1 A"):
        env.step((said, said))
    observations, _, over, *_ = env.step((None, 3))
    assert all(text.startswith("You lead") for text in observations)
    assert not over.any()


def test_what_makes_one_inquiry_can_be_another_class(reader):
    env = InquiryVectorEnv(2, tree="paper8", env_fn=partial(InquiryEnv, fake_level=7))
    env.reset(seed=1)
    assert [one.episode_rules.fake_level for one in env.envs] == [7, 7]
