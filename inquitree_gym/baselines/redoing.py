"""What redoing alone is worth: any baseline, made to redo every fake and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import Agent, BaselineAgent, asks, privileged
from inquitree_gym.baselines.oracle import MAX_RUNS
from inquitree_gym.envs.menu import REDO
from inquitree_gym.errors import OptionError

SUFFIX = "-redo"
"""Stands behind the name of the agent that is made to redo."""


class RedoUntilTrue(BaselineAgent):
    """Redoes each study until its result is true, and plays everything else as another agent does.

    That agent sees no fake, but for the last of `MAX_RUNS` in a row, and is not asked while a study is redone: with
    turns enough it plays as it would at fake level 0 under the same seed. So what it gains is what telling fakes apart
    perfectly is worth; it pays for it in turns, and a limit may strike earlier. Needs ``privileged=True``.
    """

    needs_privileged = True

    def __init__(self, agent: Agent) -> None:
        """Make ``agent`` redo.

        Raises:
            OptionError: the agent asks a chat model; one that sees no fake is that agent at fake level 0.
        """
        if asks(agent):
            raise OptionError("an agent that asks a model cannot be made to redo; play it at fake level 0 instead")
        super().__init__()
        self.name = f"{agent.config['name']}{SUFFIX}"
        self._agent = agent
        self._runs = 0

    def reset(self, seed: int) -> None:
        """Begin an episode, for the other agent too."""
        super().reset(seed)
        self._agent.reset(seed)
        self._runs = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        known = privileged(info, self.name)
        match info["state"]:
            case "study" if self._runs:
                return ""  # the turn of a study that is being redone; the other agent does not know of it
            case "result":
                self._runs += 1
                if known["fake"] and self._runs < MAX_RUNS:
                    return REDO
        self._runs = 0
        return self._agent.act(observation, info)
