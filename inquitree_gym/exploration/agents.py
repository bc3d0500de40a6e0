"""Agents for explorations: two floors, a searcher, the gold path, and a chat model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent, privileged
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.errors import OptionError
from inquitree_gym.exploration.citing import work_of
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, Slot
from inquitree_gym.exploration.library import NAME, PAPERS
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.reading import parts_of
from inquitree_gym.exploration.runtime import PACKAGE

_HIT = re.compile(r"^1\. (\S+) · ", re.MULTILINE)
_SLOT = re.compile(r"\[ref\.(\d+)\]")
_OPEN = re.compile(r" · page \d+ of \d+\n\n(.*?)(?: \(\S+\))?$", re.MULTILINE)


class SilentAgent(BaselineAgent):
    """Answers nothing at once: the lower floor."""

    name = "silent"

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return an empty answer."""
        return "ANSWER"


class GuessingAgent(BaselineAgent):
    """Answers at once with records of the right type, drawn by the seed: as many as are asked for."""

    name = "random"

    def __init__(self, env: ExplorationEnv) -> None:
        super().__init__()
        self._env = env

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the answer. The cells of a table are each drawn among those that its column has."""
        task, gold = self._env.task, self._env.task.gold
        library = local_library(task.library).library
        records = list(library.facts[task.query.database].values())
        if isinstance(gold, AnswerGold):
            drawn = self.rng.choice(len(records), size=len(gold.parts), replace=False).tolist()
            pairs = zip(gold.parts, drawn, strict=True)
            return f"ANSWER {'; '.join(task.part_of(records[at], part).written() for part, at in pairs)}"
        if isinstance(gold, CitationGold):
            count = sum(len(slot.works) for slot in gold.slots)
            cited = iter(self.rng.choice(list(library.facts[PAPERS]), count, replace=False).tolist())
            slots = tuple(
                Slot(number=slot.number, works=tuple(work_of(next(cited), library) for _ in slot.works))
                for slot in gold.slots
            )
            return f"ANSWER\n{CitationGold(slots=slots).written()}"
        names = self.rng.choice([str(record[NAME]) for record in records], len(gold.rows), replace=False).tolist()
        columns = [self.rng.choice(column, len(names)).tolist() for column in list(zip(*gold.rows, strict=True))[1:]]
        rows = tuple(zip(names, *columns, strict=True))
        return f"ANSWER\n{gold.model_copy(update={'rows': rows}).written()}"


class FirstHitAgent(BaselineAgent):
    """Searches with the question, opens the first hit, and answers with its name, or cites it in every slot."""

    name = "first-hit"

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next of three actions."""
        if info["turn"] == 0:
            return f"SEARCH {parts_of(observation)[0]}"
        if hit := _HIT.search(observation):
            return f"OPEN {hit[1]}"
        opened = _OPEN.search(observation)
        if opened and (slots := _SLOT.findall(observation)):
            authors, head = [*observation[opened.end() :].splitlines(), "", "", ""][1:3]
            work = f"{authors}. {opened[1]}. {head.partition('. ')[0]}."
            return "\n".join(["ANSWER", *(f"[ref.{number}: {work}]" for number in dict.fromkeys(slots))])
        return f"ANSWER {opened[1] if opened else ''}"


class GoldPathAgent(BaselineAgent):
    """Takes the gold path."""

    name = "oracle"
    needs_privileged = True

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action of the path."""
        path = privileged(info, self.name)["path"]
        if not path:
            raise OptionError("the oracle must have a task with a path, got one without. Play another agent.")
        return str(path[min(info["turn"], len(path) - 1)])


class ExploringLLMAgent(ChatAgent):
    """A chat model that explores, with the whole episode as its conversation."""

    package = PACKAGE
