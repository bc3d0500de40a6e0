"""The two ends of the scale: an agent that knows everything, and one that is carried through by hints alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent, privileged
from inquitree_gym.envs.menu import CONCLUDE, EXPLORE, REDO, numbered
from inquitree_gym.trees import Tree

MAX_RUNS = 32
"""The oracle gives a study up after so many runs, so that fakes at level 10 cannot hold it for ever."""


class OracleAgent(BaselineAgent):
    """Plays perfectly: 3n turns, every conclusion item in its own words.

    It redoes a study that showed a fake while the remaining turns still allow a full traversal. Needs
    ``privileged=True``.
    """

    name = "oracle"
    needs_privileged = True

    def __init__(self, tree: Tree) -> None:
        """Know everything about ``tree``."""
        super().__init__()
        self._subtopics = {subtopic.id: subtopic for subtopic in tree.subtopics}
        self._studies = [subtopic.studies[0].text for subtopic in tree.subtopics]
        self._conclusion = numbered([item.text for item in tree.conclusions])
        self._runs = 0
        self._study_turns = 0

    def reset(self, seed: int) -> None:
        """Begin an episode."""
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
    """Fails every choice until it is forced, n(2H + 3) turns, and concludes nothing. Needs ``privileged=True``."""

    name = "worst-case"
    needs_privileged = True

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "result":
            return EXPLORE if 0 in privileged(info, self.name)["visits"] else CONCLUDE
        return ""
