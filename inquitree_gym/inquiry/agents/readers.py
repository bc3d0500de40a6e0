"""Agents that know every result by its text, and answer the exam by what they were shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.inquiry.agents.answers import longest_match, sheet_answers
from inquitree_gym.inquiry.agents.scripted import TraversalAgent, owners_of
from inquitree_gym.inquiry.exam import exam_of, marks_of, sheet_of_beliefs
from inquitree_gym.inquiry.menu import CONCLUDE, EXPLORE
from inquitree_gym.inquiry.observer import axis_beliefs, believe, design_of, observe
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree

_TURNS = re.compile(r"\bYou have ([0-9]+) turns? before you must conclude")
_RATE = re.compile(r"\bAbout ([0-9]+) of 10 results are wrong|\bNo result is wrong")
NO_LIMIT = 10**9
"""Turn limit of an inquiry without one."""


class Showing(NamedTuple):
    """A result that an observation shows."""

    study: int
    outcome: int
    """Place among the outcomes of the study."""


def shown_result(tree: Tree, observation: str) -> Showing | None:
    """Return the result in the text of an observation, which also holds its study. None if it shows none."""
    study = longest_match([study.text for study in tree.studies], observation)
    if study < 0:
        return None
    outcomes = tree.studies[study]
    shown = longest_match(outcomes.shown_texts, observation)
    return None if shown < 0 else Showing(study, shown % len(outcomes.outcomes))


def majority_sheet(tree: Tree, showings: Sequence[Showing]) -> Sheet:
    """Return the sheet that states the pole of each axis that was shown most often. An even axis has none."""
    exam, marks = exam_of(tree), marks_of(tree)
    counts = [[0] * poles for poles in exam.poles]
    for study, outcome in showings:
        for axis, divisor, modulus in marks[study]:
            counts[axis][outcome // divisor % modulus] += 1
    shares = [[(count + 1) / (sum(each) + len(each)) for count in each] for each in counts]
    return sheet_of_beliefs(exam, shares)


def exact_sheet(tree: Tree, showings: Sequence[Showing], level: int | None) -> Sheet:
    """Return the sheet with the largest expected score. The fake level is None if it is not known.

    Raises:
        OptionError: see `observer.observe` and `observer.update`.
    """
    model = observe(design_of(tree), level)
    return sheet_of_beliefs(model.design.exam, axis_beliefs(model, believe(model, showings))[0])


class CopyistAgent(TraversalAgent):
    """Says "x" at every choice, so that hints and forced moves carry it, and answers by the majority of the results."""

    name = "copyist"

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._tree = tree
        self._showings: list[Showing] = []

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._showings = []

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return no proposal."""
        return "x"

    def conclude(self) -> str:
        """Return no conclusion."""
        return ""

    def read_result(self, observation: str) -> None:
        """Keep the result."""
        if (shown := shown_result(self._tree, observation)) is not None:
            self._showings.append(shown)

    def answer(self, observation: str) -> str:
        """Return the poles that were shown most often."""
        return sheet_answers(self._tree, observation, majority_sheet(self._tree, self._showings))


class EchoAgent(CopyistAgent):
    """Repeats the hint that it is shown, and otherwise plays as `CopyistAgent`.

    A hint can lead back to an open subtopic again and again. Where the opening tells no turn limit, each hint is
    therefore repeated once.
    """

    name = "echo"

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        ladders = [*(subtopic.hints for subtopic in tree.subtopics), *(study.hints for study in tree.studies)]
        self._hints = [hint for ladder in ladders for hint in ladder]
        self._said: set[int] = set()
        self._once = False

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["turn"] == 0:
            self._said, self._once = set(), told_limit(observation) == NO_LIMIT
        return super().act(observation, info)

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return the hint in the observation."""
        hint = longest_match(self._hints, observation)
        if hint < 0 or (self._once and hint in self._said):
            return super().choose(observation, texts)
        self._said.add(hint)
        return self._hints[hint]


class CoverAgent(BaselineAgent):
    """Runs random studies that were not run, each in a random open subtopic, and answers as well as it can.

    Its answers come from the exact posterior under the fake level that the opening tells.
    """

    name = "cover"

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self._owners = owners_of(tree)
        self._showings: list[Showing] = []
        self._level: int | None = None
        self._study = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._showings = []

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["turn"] == 0:
            self.begin(observation)
        if info["state"] in ("result", "conclusion") and (shown := shown_result(self._tree, observation)) is not None:
            self._showings.append(shown)
            self.note(shown)
        match info["state"]:
            case "topic":
                if info["accepted"] or info["turn"] == 0:
                    self._study = self.drawn()
                return CONCLUDE if self._study < 0 else self._tree.subtopics[self._owners[self._study]].text
            case "subtopic":
                return self._tree.studies[self._study].text
            case "result":
                return self.go_on(observation, info["turn"])
            case "exam":
                return sheet_answers(self._tree, observation, self.sheet())
        return ""

    def begin(self, opening: str) -> None:
        """Read the first observation."""
        self._level = told_level(opening)

    def note(self, shown: Showing) -> None:
        """Take note of a result. By default nothing more than keeping it."""

    def go_on(self, observation: str, turn: int) -> str:
        """Return the decision at a result."""
        return EXPLORE if self._open() else CONCLUDE

    def _open(self) -> dict[int, list[int]]:
        """Return the studies that were not run, by their subtopic, of subtopics that can be entered."""
        subtopics = self._tree.subtopics
        ran = {showing.study for showing in self._showings}
        entered = {subtopics[self._owners[study]].id for study in ran}
        found: dict[int, list[int]] = {}
        for study, owner in enumerate(self._owners):
            if study not in ran and entered.issuperset(subtopics[owner].requires):
                found.setdefault(owner, []).append(study)
        return found

    def drawn(self) -> int:
        """Return the next study, -1 for none: a random one of a random subtopic among those that are open."""
        found = list(self._open().values())
        studies = found[self.rng.integers(len(found))]
        return studies[self.rng.integers(len(studies))]

    def sheet(self) -> Sheet:
        """Return the answers to the exam."""
        return exact_sheet(self._tree, self._showings, self._level)


def told_limit(opening: str) -> int:
    """Return the turn limit that the first observation tells, `NO_LIMIT` if it tells none."""
    found = _TURNS.search(opening)
    return NO_LIMIT if found is None else int(found[1])


def told_level(opening: str) -> int | None:
    """Return the fake level that the first observation tells. None if it tells none."""
    found = _RATE.search(opening)
    return None if found is None else int(found[1] or 0)
