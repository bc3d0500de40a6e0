"""Agents that choose studies by the exact posterior over worlds, as the simulated players of the same names."""

from __future__ import annotations

import numpy as np

from inquitree_gym.inquiry.agents.readers import NO_LIMIT, CoverAgent, Showing, shown_result, told_limit
from inquitree_gym.inquiry.courses import CHOICES, View
from inquitree_gym.inquiry.exam import sheet_of_beliefs
from inquitree_gym.inquiry.menu import CONCLUDE, EXPLORE, REDO
from inquitree_gym.inquiry.observer import axis_beliefs, design_of, observe, start, update
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree


class GreedyAgent(CoverAgent):
    """Runs the study with the largest expected information per turn, and none twice. Concludes when none has any.

    It chooses as the simulated player of its name, and answers as `CoverAgent`.
    """

    name = "greedy"

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._choose = CHOICES[self.name]
        self._design = design_of(tree)
        self._limit = NO_LIMIT

    def begin(self, opening: str) -> None:
        """Read fake level and turn limit, and choose the first study."""
        super().begin(opening)
        self._limit = told_limit(opening)
        self._model = observe(self._design, self._level)
        runs = np.zeros((1, len(self._owners)), np.int64)
        self._view = View(start(self._model), runs, np.array([-1]), np.array([self._limit + 1]), self.rng)
        self._study = int(self._choose(self._model, self._view)[0])

    def note(self, shown: Showing) -> None:
        """Update the belief."""
        study, outcome = np.array([shown.study]), np.array([shown.outcome])
        self._view.runs[0, shown.study] += 1
        belief = update(self._model, self._view.belief, study, outcome)
        self._view = self._view._replace(belief=belief, last=study)

    def go_on(self, observation: str, turn: int) -> str:
        """Choose the next study, and return the decision that leads to it."""
        if shown_result(self._tree, observation) is None:
            return REDO  # the chosen study was run before, and is run again on request alone
        view = self._view._replace(left=np.array([self._limit - turn]))
        self._study = int(self._choose(self._model, view)[0])
        if self._study < 0:
            return CONCLUDE
        return REDO if self._study == view.last[0] else EXPLORE

    def drawn(self) -> int:
        """Return the study that was chosen."""
        return self._study

    def sheet(self) -> Sheet:
        """Return the answers to the exam."""
        return sheet_of_beliefs(self._design.exam, axis_beliefs(self._model, self._view.belief)[0])


class BayesAgent(GreedyAgent):
    """Runs and repeats what promises the most per turn, and concludes when nothing helps any more.

    It is close to the best that anybody can do who understands every text.
    """

    name = "bayes"
