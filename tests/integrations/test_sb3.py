"""Stable-Baselines3 over the batch environments of both kinds, and its models as agents."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from inquitree_gym import InquiryEnv, make_agent, play, read_episode
from inquitree_gym.baselines import PolicyAgent
from inquitree_gym.errors import AgentError, OptionError
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.inquiry.menu import Menu
from inquitree_gym.integrations.sb3 import BatchVecEnv, sb3_policy
from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.tasks import make_tasks
from inquitree_gym.results.load import load_run
from inquitree_gym.results.summary import summarise
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import load_tree
from tests.inquiry.test_batch import LETTERS
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

ID = "InquiTree-paper8-menu-v0"
PROJECTIONS = "ProjectionBench-synthetic-menu-v0"


def batch(count: int, name: str = ID, **keywords) -> BatchVecEnv:
    return BatchVecEnv(
        gym.make_vec(name, count, vectorization_mode="vector_entry_point", autoreset_mode="SameStep", **keywords)
    )


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        (ID, {"as_dict": True, "text_dim": 16, "size": (6, 24)}),
        ("InquiTree-menu-v0", {"tree": ["paper2", "paper8"], "size": (10, 24)}),
        ("InquiTree-synthetic-menu-v0", {"difficulty": {"subtopics": (1, 2)}, "embedder": LETTERS}),
        (PROJECTIONS, {}),
    ],
)
def test_the_checker_of_stable_baselines3_passes(name: str, keywords: dict, reader):
    check_env(gym.make(name, **keywords))


@pytest.mark.parametrize("as_dict", [False, True], ids=["flat", "dict"])
def test_maskable_ppo_finds_the_masks_of_single_environments(as_dict: bool, reader):
    keywords = {"as_dict": as_dict, "on_masked": "raise", "max_turns": 6}  # so a mask not asked for would be an error
    made = make_vec_env(ID, 2, env_kwargs=keywords, wrapper_class=lambda env: gym.wrappers.TimeLimit(env, 5))
    assert is_masking_supported(made)
    policy = "MultiInputPolicy" if as_dict else "MlpPolicy"
    MaskablePPO(policy, made, n_steps=8, batch_size=16, n_epochs=1, seed=1, device="cpu").learn(16)


@pytest.mark.parametrize("as_dict", [False, True], ids=["flat", "dict"])
def test_a_batch_steps_as_the_loop_of_stable_baselines3_does(as_dict: bool, reader):
    rules = {"max_turns": 6, "fake_level": 4, "as_dict": as_dict}
    ours, theirs = batch(3, **rules), DummyVecEnv([lambda: gym.make(ID, **rules)] * 3)
    for env in (ours, theirs):
        env.seed(11)
    rng = np.random.default_rng(0)
    assert_alike(ours.reset(), theirs.reset())
    ended = 0
    for _ in range(40):
        actions = rng.integers(ours.action_space.n, size=3)
        (rows, rewards, over, told), (expected, earned, done, infos) = ours.step(actions), theirs.step(actions)
        assert_alike(rows, expected)
        assert rewards.tolist() == pytest.approx(earned.tolist())
        assert over.tolist() == done.tolist()
        np.testing.assert_array_equal(get_action_masks(ours), get_action_masks(theirs))
        for i in np.flatnonzero(over):
            ended += 1
            assert_alike(told[i]["terminal_observation"], infos[i]["terminal_observation"])
            assert told[i]["TimeLimit.truncated"] == infos[i]["TimeLimit.truncated"]
    assert ended > 3


def assert_alike(one, other) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_allclose(one[name], other[name], atol=1e-6)
    else:
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_options_and_attributes_reach_the_batch(reader):
    env = batch(2)
    env.set_options({"max_turns": 1})
    env.seed(3)
    env.reset()
    assert env.reset_infos[1]["state"] == "topic"
    nothing = np.array([env.action_space.n - 1] * 2)
    ends = [env.step(nothing)[2].tolist() for _ in range(2 + len(load_tree("paper8").conclusions))]
    assert ends == [[False, False]] * (len(ends) - 1) + [[True, True]]  # the exam comes after the conclusion
    assert is_masking_supported(env)
    assert env.get_attr("num_envs", indices=[1]) == [2]
    assert env.env_method("texts", indices=0)[0].startswith("You lead")
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [False, False]
    with pytest.raises(OptionError, match="'closed' cannot be set for single episodes of a batch"):
        env.set_attr("closed", True)
    env.set_options([{"max_turns": 1}, {"max_turns": 2}])
    with pytest.raises(OptionError, match="reset with the same options; pass one dict to set_options"):
        env.reset()
    env.close()


def test_a_batch_pays_the_exam_and_nothing_before(reader):
    tree, env = load_tree("paper2"), batch(2, "InquiTree-paper2-menu-v0", world="complement")
    menu, exam = Menu(tree), exam_of(tree)
    oracle = play_task(make_tasks("paper2", seeds=1, world="complement")[0])
    moves = [menu.texts.index(action) for action in oracle.actions[:-2]]
    right = sheet_of_world(exam, [1 - axis.actual for axis in tree.axes]).choices
    wrong = sheet_of_world(exam, [axis.actual for axis in tree.axes]).choices
    env.reset()
    before = [env.step(np.array([move] * 2)) for move in (*moves, menu.nothing)]
    assert not any(step[1].any() or step[2].any() for step in before), "0 for who stops at the conclusion"
    for pair in zip(right, wrong, strict=True):
        _, rewards, over, _ = env.step(np.array(pair) + menu.first_option)
    assert (rewards.tolist(), over.all()) == ([1.0, -1.0], True)


def test_an_environment_that_does_not_fit_is_refused(reader):
    with pytest.raises(OptionError, match="until after the next one; leave copy at True"):
        batch(2, copy=False)
    with pytest.raises(OptionError, match=r"must wrap what gymnasium\.make_vec makes, got \w+"):
        BatchVecEnv(gym.make(ID))
    with pytest.raises(OptionError, match='made with autoreset_mode="SameStep"'):
        BatchVecEnv(gym.make_vec(ID, 2, vectorization_mode="vector_entry_point"))


@pytest.mark.parametrize(("algorithm", "as_dict"), [(PPO, False), (MaskablePPO, True)], ids=["PPO", "masked"])
def test_a_trained_model_plays_and_so_does_its_copy(algorithm, as_dict: bool, tmp_path, reader):
    made = VecMonitor(batch(4, max_turns=8, as_dict=as_dict))
    policy = "MultiInputPolicy" if as_dict else "MlpPolicy"
    model = algorithm(policy, made, n_steps=8, batch_size=16, seed=1, device="cpu")
    model.learn(32)
    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip")
    env = InquiryEnv("paper8", max_turns=8, fake_level=5)
    env.reset(seed=0)
    for deterministic in (True, False):
        episodes = [
            play(env, PolicyAgent(env.vectors, sb3_policy(one, deterministic=deterministic)), seed=2)
            for one in (model, loaded)
        ]
        assert episodes[0].actions == episodes[1].actions
        assert episodes[0].status == "concluded"
    if algorithm is MaskablePPO:
        menu = {subtopic.text for subtopic in env.tree.subtopics}
        assert episodes[0].turns[0].action in menu, "the mask shows subtopics at the topic"


def test_the_parts_of_an_observation_reach_the_model_where_they_belong(reader, monkeypatch):
    env = batch(3, as_dict=True, text_dim=16, size=(6, 24))
    model = PPO("MultiInputPolicy", env, n_steps=4, batch_size=4, seed=1, device="cpu")
    seen, look = [], model.policy.obs_to_tensor
    monkeypatch.setattr(model.policy, "obs_to_tensor", lambda parts: seen.append(parts) or look(parts))
    act, expected = sb3_policy(model), env.reset()
    flat = np.concatenate(list(expected.values()), axis=1)
    act(flat[1], np.ones(env.action_space.n, bool), np.random.default_rng(0))
    assert_alike(seen[0], {name: part[1:2] for name, part in expected.items()})


def test_a_model_of_other_observations_or_without_a_distribution_is_refused(reader):
    model = PPO("MlpPolicy", batch(2, observation="index", tree=make_tree([[]], [1])), n_steps=4, batch_size=4)
    with pytest.raises(OptionError, match=r"the model was trained on MultiDiscrete.* and not on features"):
        sb3_policy(model)
    model = DQN("MlpPolicy", gym.make(ID), buffer_size=10, device="cpu")
    with pytest.raises(OptionError, match="DQN has no distribution over actions; take PPO, A2C or MaskablePPO"):
        sb3_policy(model)


@pytest.mark.parametrize(
    ("algorithm", "keywords"),
    [
        (PPO, {}),
        (A2C, {"text_dim": 16, "size": (6, 24)}),
        (MaskablePPO, {"as_dict": True}),
        (MaskablePPO, {"text_dim": 24, "size": (9, 22)}),
    ],
    ids=["PPO", "A2C", "dict", "masked"],
)
def test_a_saved_model_is_an_agent_by_the_name_of_its_file(algorithm, keywords, tmp_path, monkeypatch, reader):
    monkeypatch.chdir(tmp_path)
    policy = "MultiInputPolicy" if "as_dict" in keywords else "MlpPolicy"
    steps = {"n_steps": 8} | ({} if algorithm is A2C else {"batch_size": 16})
    model = algorithm(policy, batch(2, max_turns=8, **keywords), seed=1, device="cpu", **steps)
    model.save("model.zip")
    rules = {"max_turns": 8, "fake_level": 5, "feedback": "hint"}
    env = InquiryEnv("paper8", **rules)
    env.reset(seed=0)
    layout = {"size": keywords.get("size"), "text_dim": keywords.get("text_dim", 384)}
    agent = PolicyAgent(env.vectors, sb3_policy(model), rules=env.rules, **layout)
    expected = play(env, agent, seed=2)
    study = make_study(
        agents=("policy:model.zip", "oracle"), trees=("8",), fake_level=(5,), seeds=3, max_turns=8,
        rules={"feedback": "hint"},
    )  # fmt: skip
    assert run_study(study, "run").is_complete
    episode = read_episode(next(Path("run/episodes").glob("paper8_policy-model-*_f5_s2.jsonl")))
    assert episode.actions == expected.actions
    told = episode.header.agent
    assert (told["name"], told["file"], told["size"], told["text_dim"]) == (
        "policy:model", "model.zip", agent.config["size"], layout["text_dim"],
    )  # fmt: skip
    Path("model.zip").unlink()
    assert [row.agent for row in summarise(load_run("run").scores)] == ["policy:model", "oracle"]


def test_a_file_that_holds_no_policy_of_the_discrete_view_is_refused(tmp_path, reader):
    env = InquiryEnv("paper8")
    for name, told in (("none.zip", "cannot read .*No such file"), ("text.zip", "is no saved model .*MaskablePPO")):
        (tmp_path / "text.zip").write_text("no archive")
        with pytest.raises(AgentError, match=f"the agent 'policy:.*{name}'.*{told}"):
            make_agent(f"policy:{tmp_path / name}", env)
    PPO("MlpPolicy", gym.make("CartPole-v1"), n_steps=8, batch_size=8, device="cpu").save(tmp_path / "pole.zip")
    with pytest.raises(AgentError, match="was trained on Box and Discrete of another kind"):
        make_agent(f"policy:{tmp_path / 'pole.zip'}", env)
    DQN("MlpPolicy", gym.make(ID), buffer_size=10, device="cpu").save(tmp_path / "dqn.zip")
    with pytest.raises(AgentError, match="is no saved model of Stable-Baselines3"):
        make_agent(f"policy:{tmp_path / 'dqn.zip'}", env)
    made = batch(2, tree=make_tree([[]], [1]), text_dim=16)
    PPO("MlpPolicy", made, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "small.zip")
    with pytest.raises(OptionError, match=r"paper8 has 5 subtopics and 21 studies, and the menu has 1 and 1 slots"):
        make_agent(f"policy:{tmp_path / 'small.zip'}", env)
    with pytest.raises(AgentError, match="trained with an embedder of other dimensions than 136"):
        make_agent(f"policy:{tmp_path / 'small.zip'}", InquiryEnv("paper8", embedder=LETTERS, threshold=0.5))
    with pytest.raises(OptionError, match="takes no settings"):
        make_agent("policy:x.zip", env, seed=1)


# Projections


@pytest.mark.parametrize("as_arrays", [False, True], ids=["single", "arrays"])
def test_masks_close_all_but_one_option_of_empty_slots(as_arrays):
    keywords = {"claims": (1, 4)}
    env = batch(3, PROJECTIONS, **keywords) if as_arrays else make_vec_env(PROJECTIONS, 3, env_kwargs=keywords)
    env.seed(5)
    claims = env.reset()[:, 3:7].sum(axis=1)
    assert len(set(claims)) > 1
    np.testing.assert_array_equal(get_action_masks(env).sum(axis=1), 4 + 2 * claims)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, seed=1, device="cpu").learn(24)
    action, _ = model.predict(env.reset(), action_masks=np.array([[True, False, False] * 4] * 3))
    assert not action.any()


def test_models_train_on_many_projections_and_play_one():
    env = batch(4, PROJECTIONS, claims=2)
    env.seed(1)
    model = A2C("MlpPolicy", env, n_steps=4, seed=1, device="cpu").learn(32)
    single = gym.make(PROJECTIONS, claims=2, split="test")
    rows, _ = single.reset(seed=0)
    over, info = False, {}
    while not over:
        rows, _, over, _, info = single.step(model.predict(rows)[0])
    assert info["turn"] == 3


def test_a_batch_tells_the_last_observation_of_an_episode():
    env = batch(2, PROJECTIONS, claims=3)
    env.seed(4)
    rows = env.reset()
    first = rows[:, :3]
    for _ in range(3):
        env.step_async(np.zeros((2, 3), np.int64))
        rows, rewards, over, infos = env.step_wait()
    assert over.all()
    assert rewards.dtype == np.float32
    for info in infos:
        assert not info["terminal_observation"][:3].any()
        assert info["TimeLimit.truncated"] is False
    np.testing.assert_array_equal(rows[:, :3], first)
