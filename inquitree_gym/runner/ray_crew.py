"""The workers of a run on Ray, as the process sees them that runs the study: hired, given episodes, replaced, ended."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import inquitree_gym
from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.runner.chats import Terms, own_pace
from inquitree_gym.runner.planning import look
from inquitree_gym.runner.playing import GRACE, INTERRUPTED, Outcome, Tell
from inquitree_gym.runner.ray_worker import Report, SharedPace, SharedPurse, Treasury, Worker
from inquitree_gym.runner.stop_conditions import Stops
from inquitree_gym.runner.study import Cell, Study

MOST_DEATHS = 3
"""Workers that may die over one episode, or in one place before they are ready, before it is given up."""
_LOOK = 0.1
"""Seconds between looks at what is to end and what was paid."""


class Crew:
    """One worker for each processor of the cluster, and what they are given."""

    def __init__(self, study: Study, folder: Path, terms: Terms, stops: Stops, tell: Tell, stamp: Path) -> None:
        """Make the treasury; workers are hired when there is something to play. See `play_cells`.

        Args:
            study: of which the episodes are.
            folder: of the run.
            terms: how they are played.
            stops: what is to end.
            tell: told what came of every episode.
            stamp: a file in the folder, which workers have to find there.
        """
        self._ray: Any = require("ray", "ray")
        self._study = study
        self._folder = folder
        self._stops = stops
        self._tell = tell
        self._stamp = stamp
        self._budget = terms.budget
        self._treasury = self._ray.remote(num_cpus=0)(Treasury).remote(study, terms.budget)
        self._terms = self._shared(terms)
        self.size = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        # Besides those who play, one call to look round and one to stop.
        self._hands = -(-terms.max_concurrency // self.size) + 2
        self._places = [_Place(self) for _ in range(self.size)]
        self._workers: list[Any] = []
        self._deaths: Counter[Cell] = Counter()
        self._queue: asyncio.Queue[Sequence[Cell]] = asyncio.Queue()
        self._left = 0

    async def play(self, batches: Sequence[Sequence[Cell]], max_concurrency: int) -> None:
        """Play batches of episodes, so many at the same time, spread over the workers."""
        for batch in batches:
            self._queue.put_nowait(batch)
        self._left = sum(map(len, batches))
        slots = [
            asyncio.create_task(self._slot(self._places[number % self.size]))
            for number in range(min(max_concurrency, len(batches)))
        ]
        try:
            await self._watch(slots)
        except asyncio.CancelledError:
            self._stops.end(INTERRUPTED)
            await self._watch(slots)
            raise
        finally:
            for slot in slots:
                slot.cancel()
        for slot in slots:
            if slot.done():
                slot.result()

    async def hire(self) -> Any:
        """Return a new worker that can have a part in the run."""
        died: Exception | None = None
        for _ in range(MOST_DEATHS):
            hiring = self._ray.remote(num_cpus=1, max_concurrency=self._hands)(Worker)
            worker = hiring.remote(self._study, self._folder, self._terms)
            self._workers.append(worker)
            try:
                fault = await worker.fault.remote(inquitree_gym.__version__, os.getcwd(), self._stamp)
            except self._ray.exceptions.RayError as error:
                died = error
                continue
            if fault:
                raise OptionError(fault)
            return worker
        raise InquiTreeError(
            f"Ray started {MOST_DEATHS} workers and all died: {_last_line(died)}; every machine needs the same release "
            "of inquitree-gym, with the same extras"
        )

    def dismiss(self) -> None:
        """End the workers; whatever one of them still does ends within its step, and its log is torn."""
        for place in self._places:
            place.close()
        for actor in (*self._workers, self._treasury):
            self._ray.kill(actor)

    def _shared(self, terms: Terms) -> Terms:
        """Return the terms as a worker has them: budget and paces are those of all."""
        purse = None if terms.budget is None else SharedPurse(self._treasury, terms.budget.max_cost)
        paces = {m.label: SharedPace(self._treasury, m.label) for m in self._study.models if own_pace(m) is not None}
        cache = None if terms.cache is None else terms.cache.expanduser().resolve()
        return terms._replace(max_concurrency=1, budget=purse, cache=cache, paces=paces)

    async def _watch(self, slots: Sequence[asyncio.Task[None]]) -> None:
        """Wait until every episode has come to something, or until a stop has lasted long enough."""
        clock = asyncio.get_running_loop()
        until = None
        while self._left and (until is None or clock.time() < until):
            if self._stops.whole and until is None:
                until = clock.time() + GRACE
                self._end()
            running = [slot for slot in slots if not slot.done()]
            if not running:
                break
            done, _ = await asyncio.wait(running, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
            for slot in done:  # only an error ends one
                error = slot.exception()
                known = isinstance(error, InquiTreeError)
                self._stops.end(str(error) if known else "something went wrong in another episode")
            await self._settle_accounts()
        await self._settle_accounts()

    def _end(self) -> None:
        """Begin nothing more, and tell the workers."""
        while not self._queue.empty():
            self._left -= len(self._queue.get_nowait())
        for worker in self._workers:
            worker.stop.remote(self._stops.whole)

    async def _settle_accounts(self) -> None:
        """Pay here what was paid there, so that whoever looks at the budget sees it."""
        if self._budget is not None:
            for completion in await self._treasury.paid.remote():
                self._budget.pay(completion)

    async def _slot(self, place: _Place) -> None:
        """Give one batch after another to the worker of a place."""
        while True:
            worker = await place.worker()
            batch = await self._queue.get()
            cells = [cell for cell in batch if not self._stops.reason(cell)]
            self._left -= len(batch) - len(cells)
            if not cells:
                continue
            try:
                report = await worker.play.remote(cells)
            except self._ray.exceptions.RayTaskError:  # the worker lives, and something else went wrong
                raise
            except self._ray.exceptions.RayActorError:
                place.lose(worker)
                self._take_back(cells)
            else:
                self._left -= len(cells)
                self._note(report)

    def _note(self, report: Report) -> None:
        for outcome in report.outcomes:
            self._tell(outcome)
        for model, reason in report.models.items():
            self._stops.models.setdefault(model, reason)
        if report.fault is not None:
            raise report.fault
        if report.ended:
            self._stops.end(report.ended)

    def _take_back(self, cells: Sequence[Cell]) -> None:
        """See to the episodes of a worker that has died: those that are not whole go to another one."""
        found = look(cells, self._folder)
        outcomes = [Outcome(cell, "played") for cell in found.whole]
        outcomes += [Outcome(cell, "failed", error) for cell, error in found.damaged.items()]
        for cell in found.to_do:
            self._deaths[cell] += 1
            if self._deaths[cell] == MOST_DEATHS:
                outcomes.append(Outcome(cell, "failed", f"{MOST_DEATHS} workers died that played it"))
            elif self._stops.whole:
                self._left -= 1
            else:
                self._queue.put_nowait([cell])
        self._left -= len(outcomes)
        for outcome in outcomes:
            self._tell(outcome)


class _Place:
    """Where a worker is, or the next one when it has died."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._hired: asyncio.Task[Any] | None = None

    async def worker(self) -> Any:
        """Return the worker once it is ready."""
        if self._hired is None:
            self._hired = asyncio.create_task(self._crew.hire())
        return await asyncio.shield(self._hired)

    def lose(self, worker: Any) -> None:
        """Have no worker, unless another one has come in its place."""
        if self._hired is not None and self._hired.done() and self._hired.result() is worker:
            self._hired = None

    def close(self) -> None:
        """Wait for none any more."""
        if self._hired is not None:
            self._hired.cancel()


def _last_line(error: Exception | None) -> str:
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
