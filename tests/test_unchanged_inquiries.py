"""Inquiries are played as they were before projections: every observation and every reward of a fixed set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from inquitree_gym import InquiryEnv
from inquitree_gym.baselines import make_agent
from inquitree_gym.trees import builtin_ids

PLAYED = "44e12ccaa25eafefb49a053689ba890fcf9a512ea716a333548c594eea2abd79"
"""SHA-256 of `told`, computed with the release before projections."""
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("oracle", {}),
    ("random-menu", {"fake_level": 5, "max_turns": 40}),
    ("random-redo", {"fake_level": 8, "max_turns": 30, "rules": "paper"}),
    ("retrieval", {"fake_level": 3, "max_turns": 25, "study_turn": True, "replication": "varied"}),
)
DIGITS = 6
"""Digits of a reward that count; the last bits of a similarity depend on the machine."""


def told() -> Iterator[str]:
    """Every observation and reward of one episode of each agent on each shipped tree."""
    for number, tree in enumerate(builtin_ids()):
        for agent_name, rules in CASES:
            env = InquiryEnv(tree, privileged=True, **rules)
            observation, info = env.reset(seed=number)
            agent = make_agent(agent_name, env)
            agent.reset(env.agent_seed)
            over, turns = False, [observation]
            while not over:
                observation, reward, over, _, info = env.step(agent.act(observation, info))
                turns.append(f"{observation} {reward:.{DIGITS}f}")
            yield json.dumps([tree, agent_name, turns])


@pytest.mark.weights
def test_the_observations_and_rewards_of_inquiries_are_those_of_before():
    assert hashlib.sha256("\n".join(told()).encode()).hexdigest() == PLAYED
