"""What of a run on Ray happens in other processes: workers play, and the treasury holds budget and paces for them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import inquitree_gym
from inquitree_gym.errors import BudgetError, InquiTreeError, require
from inquitree_gym.llm import Completion
from inquitree_gym.llm.budget import Purse
from inquitree_gym.llm.rate_limit import Slot
from inquitree_gym.runner.chats import Terms, own_pace
from inquitree_gym.runner.playing import Outcome, play_cells
from inquitree_gym.runner.stop_conditions import Stops
from inquitree_gym.runner.study import Cell, Study


class Report(NamedTuple):
    """What came of the episodes that a worker was given."""

    outcomes: list[Outcome]
    ended: str
    """Why the run is to end; empty where it is not."""
    models: Mapping[str, str]
    """By label of a model that nothing more is to be asked of, why."""
    fault: InquiTreeError | None
    """A fault that concerns the whole run."""


class Worker:
    """An actor. It plays what it is given, by several calls at the same time, each on a thread and loop of its own."""

    def __init__(self, study: Study, folder: Path, terms: Terms) -> None:
        """Play episodes of ``study`` into ``folder``."""
        self._study = study
        self._folder = folder
        self._terms = terms
        self._stops = Stops()

    def fault(self, version: str, directory: str, stamp: Path) -> str:
        """Return why this process can have no part in the run; an empty string where it can.

        Args:
            version: of the package, where the run was started.
            directory: from which the run was started; relative paths of trees begin there.
            stamp: a file in the run's folder.
        """
        host = socket.gethostname()
        if inquitree_gym.__version__ != version:
            return (
                f"{host} has inquitree-gym {inquitree_gym.__version__}, and the run was started with {version}; "
                "install the same release on every machine"
            )
        if not stamp.exists() or not os.path.isdir(directory):
            return (
                f"{host} does not have the folders '{self._folder}' and '{directory}' as the machine where the run was "
                "started has them; put them on a file system that all machines share, under the same paths"
            )
        os.chdir(directory)
        return ""

    def play(self, cells: Sequence[Cell]) -> Report:
        """Play episodes, and return once each has come to something."""
        outcomes: list[Outcome] = []
        fault = None
        try:
            asyncio.run(play_cells(self._study, self._folder, cells, self._terms, self._stops, outcomes.append))
        except InquiTreeError as error:
            fault = error
        return Report(outcomes, self._stops.whole, dict(self._stops.models), fault)

    def stop(self, reason: str) -> None:
        """Begin no episode and make no request any more."""
        self._stops.end(reason)


class Treasury:
    """An actor that all workers of a run ask: one budget, and one pace per model that has one."""

    def __init__(self, study: Study, budget: Purse | None) -> None:
        """Hold ``budget``, and the paces of the models of ``study``."""
        self._budget = budget
        self._paces = {model.label: pace for model in study.models if (pace := own_pace(model)) is not None}
        self._paid: list[Completion] = []

    def refusal(self) -> str:
        """Return why nothing may be asked any more; an empty string while it may."""
        try:
            if self._budget is not None:
                self._budget.check()
        except BudgetError as error:
            return str(error)
        return ""

    def pay(self, completion: Completion) -> None:
        """Pay for a reply."""
        if self._budget is not None:
            self._budget.pay(completion)
            self._paid.append(completion)

    def paid(self) -> list[Completion]:
        """Return the replies that were paid for since this was asked last."""
        paid, self._paid = self._paid, []
        return paid

    def reserve(self, model: str, prompt: int) -> Slot:
        """See `Pace.reserve`."""
        return self._paces[model].reserve(prompt)

    def settle(self, model: str, slot: Slot, completion: Completion) -> None:
        """See `Pace.settle`."""
        self._paces[model].settle(slot, completion)


@dataclass(frozen=True)
class SharedPurse:
    """The budget of a run as a worker has it: a `Purse` that asks the treasury."""

    treasury: Any
    max_cost: float | None

    def check(self) -> None:
        """See `Budget.check`."""
        if refusal := _answer(self.treasury.refusal.remote()):
            raise BudgetError(refusal)

    def pay(self, completion: Completion) -> None:
        """See `Budget.pay`."""
        _answer(self.treasury.pay.remote(completion._replace(text="")))


@dataclass(frozen=True)
class SharedPace:
    """The pace of a model as a worker has it: a `Pacer` that asks the treasury."""

    treasury: Any
    model: str

    def reserve(self, prompt: int) -> Slot:
        """See `Pace.reserve`."""
        slot: Slot = _answer(self.treasury.reserve.remote(self.model, prompt))
        return slot

    def settle(self, slot: Slot, completion: Completion) -> None:
        """See `Pace.settle`."""
        _answer(self.treasury.settle.remote(self.model, slot, completion._replace(text="")))


def _answer(asked: Any) -> Any:
    """Wait for what the treasury answers: about a millisecond, on a loop that nobody else waits on."""
    return require("ray", "ray").get(asked)
