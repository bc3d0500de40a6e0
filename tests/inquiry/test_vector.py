"""One inquiry alone, in a loop and in other processes: the same observations, rewards, flags and infos."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.errors import ActionError
from inquitree_gym.text_limits import MAX_ACTION_LENGTH
from tests.inquiry.test_inquiry import CONCLUDE, EXPLORE, HOSTILE, JUNK, REDO, numbered, openings

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
SEED = 40
RULES = {"fake_level": 5, "max_turns": 7}
UNICODE = "⚑ עברית 中文 🧠\0{{ topic }}\0🧠"


@pytest.fixture(scope="module")
def prompts(tmp_path_factory) -> Path:
    """Templates beyond the Basic Multilingual Plane, with a NUL within: what fixed-width arrays spoil."""
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "start.md").write_text(UNICODE, encoding="utf-8")
    (folder / "end.md").write_text("🏁", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def script() -> list[tuple[str, str, str]]:
    """Per step one action for each of three environments, over more than three episodes each."""
    tree = load_tree("paper12")
    first, second = (tree.subtopics[i] for i in openings(tree))
    claims = numbered([item.options[0] for item in tree.conclusions])
    diligent = [first.text, first.studies[0].text, REDO, REDO, EXPLORE, second.text, second.studies[0].text, claims]
    hasty = [second.text, second.studies[-1].text, CONCLUDE, claims, "this action is not read after the end"]
    lost = [text for text in HOSTILE.values() if len(text) < MAX_ACTION_LENGTH]
    return [
        (diligent[step % 9 % 8], hasty[step % 5], lost[step % len(lost)] if step % 3 else JUNK) for step in range(36)
    ]


def single(make: Any, actions: list[str], seed: int, same_step: bool = False) -> Iterator[tuple]:
    """One environment, reset by hand as the vector environments do it."""
    env = make()
    observation, info = env.reset(seed=seed)
    yield observation, None, None, None, info
    over = False
    for action in actions:
        if over and not same_step:
            observation, info = env.reset()
            over = False
            yield observation, 0.0, False, False, info
            continue
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        if over and same_step:
            last = {"final_obs": observation, "final_info": info}
            observation, info = env.reset()
            info = {**info, **last}
        yield observation, reward, terminated, truncated, info


def row(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """The info of one environment out of a vector's."""
    found = {}
    for key, values in infos.items():
        if not key.startswith("_") and infos[f"_{key}"][i]:
            if isinstance(values, dict):
                found[key] = row(values, i)
            else:
                value = values[i]
                value = value.item() if isinstance(value, np.generic) else value
                # An array of floats holds an absent margin as NaN.
                found[key] = None if value != value else value
    return found


def rows(env: VectorEnv, script: list[tuple[str, ...]], seed: int) -> list[list[tuple]]:
    """Per environment what `single` yields."""
    observations, infos = env.reset(seed=seed)
    found = [[(observations[i], None, None, None, row(infos, i))] for i in range(env.num_envs)]
    for actions in script:
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for i, steps in enumerate(found):
            flags = float(rewards[i]), bool(terminated[i]), bool(truncated[i])
            steps.append((observations[i], *flags, row(infos, i)))
    return found


WAYS = [("sync", {}), ("sync", {"copy": False}), ("async", {}), ("async", {"shared_memory": False, "copy": False})]


@pytest.mark.parametrize("same_step", [False, True], ids=["next step", "same step"])
@pytest.mark.parametrize(("mode", "settings"), WAYS, ids=str)
def test_every_way_gives_the_same_trajectories(mode: str, settings: dict, same_step: bool, prompts, script, reader):
    kwargs = {"prompts": prompts, "privileged": True, **RULES}
    expected = [
        list(single(partial(InquiryEnv, "paper12", **kwargs), [step[i] for step in script], SEED + i, same_step))
        for i in range(3)
    ]
    how = {"autoreset_mode": AutoresetMode.SAME_STEP} if same_step else {}
    env = gym.make_vec(
        "InquiTree-paper12-v0", num_envs=3, vectorization_mode=mode, vector_kwargs={**settings, **how}, **kwargs
    )
    found = rows(env, script, SEED)
    env.close()
    assert found == expected
    for steps in expected:
        assert sum(bool(step[2]) for step in steps) >= 3, "several episodes each"
    assert {step[-1]["privileged"]["fake"] > 0 for step in expected[0]} == {True, False}
    assert expected[0][0][0].startswith(UNICODE.partition("{")[0])


@pytest.mark.weights
def test_a_fresh_interpreter_gives_the_same_trajectory():
    # A spawned process knows nothing of the hashed words of the fast tests.
    tree = load_tree("paper12")
    first, _ = openings(tree)
    actions = [tree.subtopics[first].text, tree.subtopics[first].studies[0].text, REDO, CONCLUDE]
    expected = list(single(partial(InquiryEnv, "paper12", **RULES), actions, 3))
    settings = {"context": "spawn", "daemon": False}
    env = gym.make_vec(
        "inquitree_gym:InquiTree-paper12-v0", num_envs=1, vectorization_mode="async", vector_kwargs=settings, **RULES
    )
    assert rows(env, [(action,) for action in actions], 3) == [expected]
    env.close()


@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium tells of the failed worker as a warning, too
def test_an_action_that_is_no_text_is_told_from_another_process(reader):
    env = gym.make_vec("InquiTree-paper12-v0", 2, "async")
    env.reset(seed=1)
    with pytest.raises(ActionError, match="an action must be a string, got int"):
        env.step((JUNK, 3))
    env.close(terminate=True)
