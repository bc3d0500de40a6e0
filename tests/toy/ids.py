"""Registered ids of the toy kind."""

from __future__ import annotations

import gymnasium as gym


def register() -> None:
    """Register one environment for any list."""
    gym.register("Toy-v0", entry_point="tests.toy.env:ToyEnv", kwargs={"task": "bread"})
