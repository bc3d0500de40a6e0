"""Play episodes of a study into its folder: what every process does that has a part in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from inquitree_gym.baselines import Agent, make_agent
from inquitree_gym.embeddings import load_embedder, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.errors import BudgetError, InquiTreeError, StoppedError
from inquitree_gym.log import has_header
from inquitree_gym.prompts import Prompts
from inquitree_gym.rollout import aplay, play
from inquitree_gym.runner.chats import Terms, lacking, study_chats
from inquitree_gym.runner.folder import log_file
from inquitree_gym.runner.stop_conditions import Stops, ends_run
from inquitree_gym.runner.study import Cell, Study
from inquitree_gym.trees import Tree, load_tree

GRACE = 10.0
"""Seconds that requests under way have to be answered in once a run is to end."""
PATIENCE = 10
"""Episodes of a model that fail in a row before the rest of it is left, or twice as many as are played at once."""
INTERRUPTED = "it was interrupted"


class Outcome(NamedTuple):
    """What came of one episode."""

    cell: Cell
    status: Literal["found", "played", "failed", "left"]
    """It was whole already; it is whole now; something stopped it; it was left as it is, because the run ends."""
    error: str = ""
    """What stopped it."""


Tell = Callable[[Outcome], None]


async def play_cells(study: Study, folder: Path, cells: Sequence[Cell], terms: Terms, stops: Stops, tell: Tell) -> None:
    """Play episodes of ``study`` into ``folder``; torn ones are resumed.

    Those whose agent asks a model are played ``terms.max_concurrency`` at the same time, models in turn; before them
    the others one by one, since they wait for nobody. After a stop no episode is begun and no request made; requests
    under way have `GRACE` seconds.

    Args:
        study: of which the cells are.
        folder: of the run.
        cells: episodes that the folder does not hold whole.
        terms: how they are played.
        stops: what is to end. A fault that concerns a model or the run is noted there.
        tell: told what came of every episode that was begun.

    Raises:
        InquiTreeError: a fault that concerns the whole run, once everything under way has ended.
    """
    table = _Table(study, folder, terms, stops, tell)
    for label, lack in lacking(study, cells).items():
        if lack.certain:
            stops.models.setdefault(label, lack.said)  # so that no log of it is begun
    try:
        for cell in cells:
            if not cell.model and table.may_begin(cell):
                table.settle(cell, table.play_now(cell))
                await asyncio.sleep(0)  # where an interruption strikes
        await _play_at_once(table, interleaved(cells))
    except asyncio.CancelledError:
        stops.end(INTERRUPTED)
        raise


def interleaved(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells whose agent asks a model, models in turn, so that a slow one keeps no other waiting."""
    queues: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.model:
            queues.setdefault(cell.model, []).append(cell)
    return [cell for turn in zip_longest(*queues.values()) for cell in turn if cell is not None]


async def _play_at_once(table: _Table, cells: Sequence[Cell]) -> None:
    waiting = iter(cells)
    together = min(table.terms.max_concurrency, len(cells))
    workers = [asyncio.create_task(_work(table, waiting)) for _ in range(together)]
    if not workers:
        return
    try:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        table.stops.end(INTERRUPTED)
        await _end(workers)  # in no ``finally``: who interrupts once more leaves at once
        raise
    if not all(worker.done() for worker in workers):
        table.stops.end("something went wrong in another episode")
        await _end(workers)
    for worker in workers:
        if not worker.cancelled() and (error := worker.exception()) is not None:
            raise error


async def _work(table: _Table, waiting: Iterator[Cell]) -> None:
    for cell in waiting:
        if table.may_begin(cell):
            table.settle(cell, await table.play(cell))


async def _end(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for those under way, which make no further request; cancel them when that takes too long."""
    _, late = await asyncio.wait(workers, timeout=GRACE)
    for worker in late:
        worker.cancel()
    if late:
        await asyncio.wait(late)


class _Table:
    """Where the episodes of a study are played in a process, with what they share."""

    def __init__(self, study: Study, folder: Path, terms: Terms, stops: Stops, tell: Tell) -> None:
        self.terms = terms
        self.stops = stops
        self._study = study
        self._folder = folder
        self._tell = tell
        self._chats = study_chats(study, terms, stops)
        self._contexts = {model.label: model.context for model in study.models}
        self._rules: dict[str, Any] = {} if study.threshold is None else {"threshold": study.threshold}
        self._embedder = load_embedder(study.embedder)
        self._runtimes = RuntimeCache(self._embedder, Prompts(None))
        self._trees: dict[str, Tree] = {}

    def may_begin(self, cell: Cell) -> bool:
        """Tell whether nothing speaks against an episode by now."""
        if self.terms.budget is not None:
            try:
                self.terms.budget.check()
            except BudgetError as error:
                self.stops.end(str(error))
        return not self.stops.reason(cell)

    def play_now(self, cell: Cell) -> InquiTreeError | None:
        """Play an episode; return what stopped it."""
        try:
            play(*self._seat(cell), **self._place(cell))
        except InquiTreeError as error:
            return error
        return None

    async def play(self, cell: Cell) -> InquiTreeError | None:
        """Play an episode among others; return what stopped it."""
        try:
            await aplay(*self._seat(cell), **self._place(cell))
        except InquiTreeError as error:
            return error
        return None

    def settle(self, cell: Cell, error: InquiTreeError | None) -> None:
        """Tell what came of an episode, and note what that ends.

        Raises:
            InquiTreeError: ``error``, where it concerns the whole run.
        """
        if isinstance(error, BudgetError | StoppedError):
            self.stops.end(str(error))
            self._tell(Outcome(cell, "left", str(error)))
            return
        if cell.model:
            self.stops.note(cell.model, error, max(PATIENCE, 2 * self.terms.max_concurrency))
        self._tell(Outcome(cell, "played") if error is None else Outcome(cell, "failed", str(error)))
        if error is not None and ends_run(error):
            self.stops.end(str(error))
            raise error

    def _seat(self, cell: Cell) -> tuple[InquiryEnv, Agent, int]:
        """Return the environment, the agent and the seed of an episode; nobody else has the first two."""
        tree = self._tree(cell.tree)
        asked = {"chat": self._chats[cell.model], "context": self._contexts[cell.model]} if cell.model else {}
        agent = make_agent(cell.agent, tree_vectors(tree, self._embedder), **asked)
        env = InquiryEnv(tree, embedder=self._embedder, privileged=agent.needs_privileged, **self._rules)
        env.runtimes = self._runtimes
        return env, agent, cell.seed

    def _place(self, cell: Cell) -> dict[str, Any]:
        """Return the file and the options of an episode."""
        file = log_file(self._folder, cell)
        if not has_header(file):
            file.unlink(missing_ok=True)  # torn within its header, so nothing was played
        return {"file": file, "options": self._study.options(cell, self._tree(cell.tree))}

    def _tree(self, name: str) -> Tree:
        if name not in self._trees:
            self._trees[name] = load_tree(name)
        return self._trees[name]
