"""Reference agents with privileged knowledge: the oracle, the worst case, and perfect detection of fakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import Agent, BaselineAgent, asks_models, privileged
from inquitree_gym.envs.menu import CONCLUDE, EXPLORE, REDO, numbered
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

MAX_RUNS = 32
"""Runs of a study before `OracleAgent` and `RedoUntilTrue` accept a fake, so that level 10 ends."""
REDO_SUFFIX = "-redo"
"""Suffix of `RedoUntilTrue` for the wrapped agent's name."""


class OracleAgent(BaselineAgent):
    """Plays perfectly: 3n turns, and a conclusion with the text of every item.

    It redoes a study that showed a fake while the remaining turns still allow a full traversal. Needs
    ``privileged=True``.
    """

    name = "oracle"
    needs_privileged = True

    def __init__(self, tree: Tree) -> None:
        """Learn subtopics, studies and conclusion items of ``tree``."""
        super().__init__()
        self._subtopics = {subtopic.id: subtopic for subtopic in tree.subtopics}
        self._studies = [subtopic.studies[0].text for subtopic in tree.subtopics]
        self._conclusion = numbered([item.text for item in tree.conclusions])
        self._runs = 0
        self._study_turns = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._study_turns = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        known = privileged(info, self.name)
        match info["state"]:
            case "topic":
                return self._next(known["visits"])
            case "subtopic":
                self._runs = 0
                subtopic: int = known["node"]
                return self._studies[subtopic]
            case "study":
                self._study_turns = 1
            case "result":
                return self._decide(known, info["turn"])
            case "conclusion":
                return self._conclusion
        return ""

    def _next(self, visits: list[int]) -> str:
        entered = {name for name, count in zip(self._subtopics, visits, strict=True) if count}
        return next(
            subtopic.text
            for name, subtopic in self._subtopics.items()
            if name not in entered and entered.issuperset(subtopic.prerequisites)
        )

    def _decide(self, known: Mapping[str, Any], turn: int) -> str:
        left = known["visits"].count(0)
        self._runs += 1
        needed = 1 + (3 + self._study_turns) * left
        redone = turn + 1 + self._study_turns
        affordable = known["turn_limit"] is None or redone + needed <= known["turn_limit"]
        if known["fake"] and affordable and self._runs < MAX_RUNS:
            return REDO
        # Naming the subtopic saves a turn where explore="direct", and changes nothing elsewhere.
        return f"{EXPLORE}: {self._next(known['visits'])}" if left else CONCLUDE


class WorstCaseAgent(BaselineAgent):
    """Fails every choice until the forced move, n(2H + 3) turns, and concludes nothing. Needs ``privileged=True``."""

    name = "worst-case"
    needs_privileged = True

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "result":
            return EXPLORE if 0 in privileged(info, self.name)["visits"] else CONCLUDE
        return ""


class RedoUntilTrue(BaselineAgent):
    """Redoes each study until its result is true, and otherwise plays like the wrapped agent.

    The wrapped agent sees no fake except the last of `MAX_RUNS` in a row, and does not act while a study is redone:
    with enough turns it plays as it would at fake level 0 under the same seed. The gain over the wrapped agent is the
    value of perfect detection; the price is turns, so a limit may strike earlier. Needs ``privileged=True``.
    """

    needs_privileged = True

    def __init__(self, agent: Agent) -> None:
        """Wrap ``agent``.

        Raises:
            OptionError: the agent asks a chat model.
        """
        if asks_models(agent):
            raise OptionError("RedoUntilTrue cannot wrap an agent that asks a model; play it at fake level 0 instead")
        super().__init__()
        self.name = f"{agent.config['name']}{REDO_SUFFIX}"
        self._agent = agent
        self._runs = 0

    def reset(self, seed: int) -> None:
        """Start an episode, for the wrapped agent too."""
        super().reset(seed)
        self._agent.reset(seed)
        self._runs = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        known = privileged(info, self.name)
        match info["state"]:
            case "study" if self._runs:
                return ""  # the turn of a redone study, of which the wrapped agent does not know
            case "result":
                self._runs += 1
                if known["fake"] and self._runs < MAX_RUNS:
                    return REDO
        self._runs = 0
        return self._agent.act(observation, info)
