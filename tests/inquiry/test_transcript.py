"""The episode as chat messages."""

from __future__ import annotations

from typing import Any

import pytest

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.errors import OptionError
from inquitree_gym.wrappers import Transcript
from tests.inquiry.test_inquiry import script, trajectory

ACTIONS = script(load_tree("paper12"))
SYSTEM = {"role": "system", "content": "Answer briefly. {{ not a template }}"}


def expected(steps: list[tuple]) -> list[dict[str, str]]:
    messages = [{"role": "user", "content": steps[0][0]}]
    for action, step in zip(ACTIONS, steps[1:], strict=False):
        messages += [{"role": "assistant", "content": action}, {"role": "user", "content": step[0]}]
    return messages


def test_observations_come_from_the_user_and_actions_from_the_assistant(reader):
    env = Transcript(InquiryEnv("paper12", fake_level=5))
    steps = trajectory(env, 1, ACTIONS)
    assert env.messages == expected(steps)
    assert len(env.messages) == 2 * len(ACTIONS) + 1
    assert steps == trajectory(InquiryEnv("paper12", fake_level=5), 1, ACTIONS)


@pytest.mark.parametrize("keep", [0, 1, 3, 100])
@pytest.mark.parametrize("system", [None, SYSTEM["content"]])
def test_only_the_last_exchanges_are_kept_after_the_opening(keep: int, system: str | None, reader):
    env = Transcript(InquiryEnv("paper12"), keep=keep, system=system)
    steps: list[tuple] = [env.reset(seed=1)]
    for action in ACTIONS:
        steps.append(env.step(action))
        opening, *exchanges = expected(steps)
        head = [opening] if system is None else [SYSTEM, opening]
        assert env.messages == head + exchanges[max(0, len(exchanges) - 2 * keep) :]


def test_a_refused_action_or_reset_leaves_the_transcript_as_it_was(reader):
    env = Transcript(InquiryEnv("paper12"))
    trajectory(env, 1, ACTIONS[:3])
    kept = env.messages
    with pytest.raises(TypeError):
        env.step(None)
    with pytest.raises(OptionError):
        env.reset(options={"nothing": 1})
    assert env.messages == kept


def test_messages_belong_to_the_caller(reader):
    env = Transcript(InquiryEnv("paper12"))
    steps = trajectory(env, 1, ACTIONS[:2])
    taken = env.messages
    for message in taken:
        message["content"] = "changed"
    taken.clear()
    assert env.messages == expected(steps)


@pytest.mark.parametrize("keep", [-1, 1.5, "2", True])
def test_a_keep_that_is_no_whole_number_is_refused(keep: Any):
    with pytest.raises(OptionError, match=f"keep must be an integer from 0 or None, got {keep!r}"):
        Transcript(InquiryEnv("paper12"), keep=keep)
