"""Agents that play without a model: random ones, the oracle, and the worst case."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inquitree_gym.baselines.agent import Agent, BaselineAgent, asks_models, privileged
from inquitree_gym.baselines.answers import random_answers
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.agents.answers import longest_match, sheet_answers
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.engine.rules import Evidence
from inquitree_gym.inquiry.exam import exam_of, marks_of, sheet_of_world
from inquitree_gym.inquiry.judges.quality import required
from inquitree_gym.inquiry.menu import CONCLUDE, DECISIONS, EXPLORE, REDO, numbered
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree


class TraversalAgent(BaselineAgent, ABC):
    """Base class of agents that enter every subtopic once, run one study in each, and conclude."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.subtopics = [subtopic.text for subtopic in tree.subtopics]
        self.studies = [[study.text for study in subtopic.studies] for subtopic in tree.subtopics]
        self._entered: set[int] = set()
        self._current = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._entered = set()

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        match info["state"]:
            case "topic":
                remaining = [text for i, text in enumerate(self.subtopics) if i not in self._entered]
                return self.choose(observation, remaining or self.subtopics)
            case "subtopic":
                if (shown := longest_match(self.subtopics, observation)) >= 0:
                    self._entered.add(shown)
                    self._current = shown
                return self.choose(observation, self.studies[self._current])
            case "result":
                self.read_result(observation)
                return EXPLORE if len(self._entered) < len(self.subtopics) else CONCLUDE
            case "conclusion":
                self.read_result(observation)
                return self.conclude()
            case "exam":
                return self.answer(observation)
        return ""

    @abstractmethod
    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return one of the menu ``texts``."""

    @abstractmethod
    def conclude(self) -> str:
        """Return the conclusion."""

    @abstractmethod
    def answer(self, observation: str) -> str:
        """Return the answers to the exam."""

    def read_result(self, observation: str) -> None:
        """Take note of a result, if the observation shows one. By default nothing."""


def menu_texts(tree: Tree) -> list[str]:
    """Return the canonical texts of all subtopics, then of all studies."""
    return [node.text for node in (*tree.subtopics, *tree.studies)]


def random_conclusion(tree: Tree, rng: np.random.Generator) -> str:
    """Return a numbered list of k random menu texts, k the number of conclusion items."""
    texts = menu_texts(tree)
    return numbered([texts[i] for i in rng.integers(len(texts), size=len(tree.conclusions))])


MAX_WORDS_LENGTH = 400
"""Characters of an action of `RandomWordsAgent`, at most."""


class RandomAgent(TraversalAgent):
    """The paper's random agent (appendix B.2).

    Chooses uniformly among the subtopics not yet entered, then among the studies of the subtopic. Explores until all
    are entered. Concludes with random menu texts, and hands in a random sheet.
    """

    name = "random"

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._tree = tree

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return a random one of ``texts``."""
        return texts[int(self.rng.integers(len(texts)))]

    def conclude(self) -> str:
        """Return random menu texts."""
        return random_conclusion(self._tree, self.rng)

    def answer(self, observation: str) -> str:
        """Return random letters."""
        return random_answers(observation, self.rng)


class RandomMenuAgent(BaselineAgent):
    """The floor: every action is uniform over the whole menu, subtopics, studies and the three decisions alike.

    At the topic and at a subtopic, where no decision is asked for, it is uniform over the subtopics and studies. Its
    answers to the exam are random letters.
    """

    name = "random-menu"

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._menu = (*menu_texts(tree), *DECISIONS)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "conclusion":
            return random_conclusion(self._tree, self.rng)
        if info["state"] == "exam":
            return random_answers(observation, self.rng)
        while True:
            action = self._menu[self.rng.integers(len(self._menu))]
            if action not in DECISIONS or info["state"] not in ("topic", "subtopic"):
                return action


class RandomWordsAgent(BaselineAgent):
    """Says random words of everyday science, without knowing the tree, and random letters in the exam."""

    name = "random-words"

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["state"] == "exam":
            return random_answers(observation, self.rng)
        return FreeText(MAX_WORDS_LENGTH, seed=self.rng).sample()


MAX_RUNS = 32
"""Runs of a study before `OracleAgent` and `RedoUntilTrue` accept a fake, so that level 10 ends."""
REDO_SUFFIX = "-redo"
"""Suffix of `RedoUntilTrue` for the wrapped agent's name."""


class OracleAgent(BaselineAgent):
    """Plays perfectly: enters every subtopic, reads every axis of the exam with few studies, and answers all right.

    A study takes three turns, so a traversal takes 3n, and more where its studies cannot read all axes. Subtopics come
    first, further studies and redone fakes as long as the turns allow. Needs ``privileged=True``.
    """

    name = "oracle"
    needs_privileged = True

    def __init__(self, tree: Tree, rules: Rules | None = None) -> None:
        """Learn ``tree``. None for ``rules`` is the default. Without an exam the studies are those of the evidence."""
        super().__init__()
        rules = rules or Rules()
        self._tree = tree
        self._exam = exam_of(tree)
        self._plan = planned_studies(
            tree, exam_groups(tree) if rules.exam != "none" else groups_of(tree, rules.evidence)
        )
        self._owners = owners_of(tree)
        self._done: set[int] = set()
        self._entered = self._runs = 0
        self._redo_turn = rules.redo_turn

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._done = set()

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        known = privileged(info, self.name)
        match info["state"]:
            case "topic":
                return self._next(known["visits"])
            case "subtopic":
                self._runs = 0
                if known["kind"] == "subtopic":  # after a hint, the node is a study
                    self._entered = known["node"]
                return self._study(self._entered)
            case "result":
                return self._decide(known, info["turn"])
            case "conclusion":
                chosen = zip(self._tree.conclusions, self._sheet(known).choices, strict=True)
                return numbered([item.options[choice or 0] for item, choice in chosen])
            case "exam":
                return sheet_answers(self._tree, observation, self._sheet(known))
        return ""

    def _sheet(self, known: Mapping[str, Any]) -> Sheet:
        return sheet_of_world(self._exam, known["world"])

    def _left(self) -> list[int]:
        return [study for study in self._plan if study not in self._done]

    def _next(self, visits: list[int]) -> str:
        """Return the text of the next subtopic, one that is new if there is any."""
        subtopics = self._tree.subtopics
        entered = {subtopic.id for subtopic, count in zip(subtopics, visits, strict=True) if count}
        steps = [subtopics[self._owners[study]] for study in sorted(self._left())] or list(subtopics)
        ready = [subtopic for subtopic in steps if entered.issuperset(subtopic.requires)]
        return min(ready, key=lambda subtopic: subtopic.id in entered).text

    def _study(self, subtopic: int) -> str:
        planned = [self._tree.studies[study] for study in self._left() if self._owners[study] == subtopic]
        return (planned or self._tree.subtopics[subtopic].studies)[0].text

    def _decide(self, known: Mapping[str, Any], turn: int) -> str:
        self._runs += 1
        self._done.add(known["node"])
        redone = turn + 1 + self._redo_turn
        limit = math.inf if known["turn_limit"] is None else known["turn_limit"]
        if known["fake"] and self._runs < MAX_RUNS and redone + 1 + 3 * len(self._left()) <= limit:
            return REDO
        unseen = known["visits"].count(0)
        return EXPLORE if unseen or (self._left() and turn + 3 <= limit) else CONCLUDE


def owners_of(tree: Tree) -> list[int]:
    """Return the index of the subtopic of each study."""
    return [i for i, subtopic in enumerate(tree.subtopics) for _ in subtopic.studies]


def exam_groups(tree: Tree) -> list[set[int]]:
    """Return the studies that read each axis of the exam."""
    marks = marks_of(tree)
    axes = range(len(exam_of(tree).poles))
    return [{study for study, own in enumerate(marks) if axis in (mark.axis for mark in own)} for axis in axes]


def groups_of(tree: Tree, evidence: Evidence) -> list[set[int]]:
    """Return the studies that meet each group of the evidence of each conclusion item."""
    index = {study.id: i for i, study in enumerate(tree.studies)}
    return [{index[name] for name in group} for item in tree.conclusions for group in required(item, evidence)]


def planned_studies(tree: Tree, groups: Sequence[set[int]]) -> list[int]:
    """Return indices of studies that meet every group, first one in each subtopic, then as few as possible.

    The next study is always one that meets the most groups that are left, a group of few studies counting more.
    """
    owners = owners_of(tree)
    met: dict[int, set[int]] = {study: set() for study in range(len(owners))}
    for group, studies in enumerate(groups):
        for study in studies:
            met[study].add(group)
    chosen: list[int] = []
    unseen, unmet = set(owners), {group for group, studies in enumerate(groups) if studies}
    while unseen or unmet:
        open_studies = [study for study, owner in enumerate(owners) if not unseen or owner in unseen]
        chosen.append(max(open_studies, key=lambda study: sum(1 / len(groups[group]) for group in met[study] & unmet)))
        unseen.discard(owners[chosen[-1]])
        unmet -= met[chosen[-1]]
    return chosen


class WorstCaseAgent(BaselineAgent):
    """Fails every choice until the forced move, n(2H + 3) turns, then concludes and answers nothing.

    Needs ``privileged=True``.
    """

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
    value of perfect detection. The price is turns, so a limit may strike earlier. Needs ``privileged=True``.
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
