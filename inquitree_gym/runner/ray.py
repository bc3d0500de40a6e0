"""Run a study on Ray: the same episodes into the same folder, played on this machine or on several.

The driver, which is the process that runs the study, locks the folder, hands out episodes and collects outcomes.
Workers play them with `play_episodes`, as the local runner does. One more actor holds the budget and the rate limits
that they share. A worker that dies leaves torn logs, which another one resumes.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import inquitree_gym
from inquitree_gym import cluster
from inquitree_gym.cluster import LOCAL, MAX_DEATHS, connected, join_machine
from inquitree_gym.errors import InquiTreeError, OptionError, require
from inquitree_gym.llm import Budget, Completion, Reservation, SpendingCap
from inquitree_gym.runner.run import Outcome, RunContext, interleave_models, play_episodes
from inquitree_gym.runner.services import ERROR_ELSEWHERE, GRACE, INTERRUPTED, RunOptions, asked_models
from inquitree_gym.runs.folder import is_locked, log_file, marker_file, run_status
from inquitree_gym.runs.specs import EpisodeSpec, ModelSettings

BATCH = 25
"""Largest batch of episodes that ask no model."""
_POLL = 0.1
"""Seconds between looks at stop conditions and payments."""
_BatchResult = tuple[list[Outcome], str, Mapping[str, str], InquiTreeError | None]


@dataclass(frozen=True)
class RayExecutor:
    """Executor that plays episodes on a Ray cluster. Pass it to `run_study`.

    All machines of the cluster need the folder of the run, the working directory, trees and reply cache under the same
    paths. API keys are read from the environment of each machine. Caps and rate limits hold for all workers together.
    """

    address: str = LOCAL
    """``local`` starts a cluster on this machine, reachable from nowhere else, and shuts it down afterwards. Any other
    value is the address of a running cluster. An existing connection of this process is used instead, and left open."""

    async def __call__(self, run: RunContext, specs: Sequence[EpisodeSpec]) -> None:
        """See `play_episodes`.

        Raises:
            InquiTreeError: Ray cannot be reached, a machine lacks the folders, or an error concerns the whole run.
            MissingExtraError: Ray is not installed.
        """
        if run.options.rate_limits:
            raise OptionError("Ray workers cannot share rate limits of this process; set the rates in the study")
        if run.options.device != "cpu":  # Ray hides the CUDA devices from workers that reserve none
            raise OptionError(f"Ray workers embed on the CPU; leave out the device '{run.options.device}'")
        if not specs:
            return
        with connected(self.address), marker_file(run.folder) as marker:
            pool = _WorkerPool(run, marker)
            try:
                local = [spec for spec in specs if not run.study.asks_model(spec)]
                size = min(BATCH, max(1, len(local) // (4 * pool.size)))  # small, so that workers end about together
                await pool.play([local[at : at + size] for at in range(0, len(local), size)], pool.size)
                await pool.play(
                    [[spec] for spec in interleave_models(filter(run.study.asks_model, specs))],
                    run.options.max_concurrency,
                )
            finally:
                pool.close()


class _WorkerPool:
    """One worker for each CPU of the cluster, and the queue of episodes for them."""

    def __init__(self, run: RunContext, marker: Path) -> None:
        self._ray: Any = require("ray", "ray")
        self._run = run
        on_node: Any = require("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        here = on_node(self._ray.get_runtime_context().get_node_id(), soft=False)  # any other node may die first
        limits = self._ray.remote(num_cpus=0, scheduling_strategy=here)(_SharedLimits)
        self._limits = limits.remote(asked_models(run.study), run.options.budget)
        self.size = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        threads = -(-run.options.max_concurrency // self.size) + 2  # two more for ``__ray_ready__`` and ``stop``
        actor = self._ray.remote(num_cpus=1, max_concurrency=threads)(RayWorker)
        theirs = RunContext(run.study, run.folder.resolve(), self._shared_options())
        self._start_worker: Callable[[], Any] = lambda: actor.remote(
            theirs, inquitree_gym.__version__, os.getcwd(), marker
        )
        self._workers: list[Any] = []
        """Every worker that was ever started."""
        self._of_cpu: dict[int, Any] = {}
        self._deaths: Counter[EpisodeSpec | int] = Counter()
        """Deaths of workers by episode, and by CPU for those that died before they were ready."""
        self._queue: asyncio.Queue[Sequence[EpisodeSpec]] = asyncio.Queue()
        self._pending = 0

    def _shared_options(self) -> RunOptions:
        """Return the options of a worker, with the budget and the rate limits that all workers share."""
        options = self._run.options
        budget = None if options.budget is None else _RemoteLimits(self._limits, max_cost=options.budget.max_cost)
        limited = [model.label for model in asked_models(self._run.study) if model.rate_limit() is not None]
        rate_limits = {label: _RemoteLimits(self._limits, model=label) for label in limited}
        cache = None if options.cache is None else options.cache.expanduser().resolve()
        return RunOptions(1, budget, cache, rate_limits)

    async def play(self, batches: Sequence[Sequence[EpisodeSpec]], max_concurrency: int) -> None:
        """Play batches of episodes, ``max_concurrency`` of them at the same time."""
        for batch in batches:
            self._queue.put_nowait(batch)
        self._pending = sum(map(len, batches))
        cpus = (number % self.size for number in range(min(max_concurrency, len(batches))))
        slots = [asyncio.create_task(self._play_queue(cpu)) for cpu in cpus]
        try:
            await self._watch(slots)
        except asyncio.CancelledError:
            self._run.stop.stop(INTERRUPTED)
            await self._watch(slots)
            raise
        finally:
            for slot in slots:
                slot.cancel()
        for slot in slots:
            if slot.done():
                slot.result()

    def close(self) -> None:
        """Kill the workers. Unfinished logs are left torn."""
        for actor in (*self._workers, self._limits):
            self._ray.kill(actor)

    async def _watch(self, slots: Sequence[asyncio.Task[None]]) -> None:
        """Wait until every episode is settled, or until the grace period after a stop is over."""
        stop, clock, deadline = self._run.stop, asyncio.get_running_loop(), math.inf
        while self._pending and clock.time() < deadline and (running := [slot for slot in slots if not slot.done()]):
            done, _ = await asyncio.wait(running, timeout=_POLL, return_when=asyncio.FIRST_COMPLETED)
            for slot in done:  # a slot ends with an error only
                error = slot.exception()
                stop.stop(str(error) if isinstance(error, InquiTreeError) else ERROR_ELSEWHERE)
            if stop.reason and deadline == math.inf:
                deadline = clock.time() + GRACE
                for worker in self._workers:
                    worker.stop.remote(stop.reason)
            await self._collect_payments()
        await self._collect_payments()

    async def _collect_payments(self) -> None:
        """Charge the budget of the driver, which the caller may display, for the requests of the workers."""
        if self._run.options.budget is not None:
            for completion in await self._limits.take_payments.remote():
                self._run.options.budget.add(completion)

    async def _play_queue(self, cpu: int) -> None:
        """Hand one batch after another to the worker of a CPU."""
        while True:
            worker = await self._worker(cpu)
            batch = await self._queue.get()
            specs = [spec for spec in batch if not self._run.stop.reason_for(spec.model)]
            self._pending -= len(batch) - len(specs)
            if not specs:
                continue
            try:
                outcomes, reason, models, error = await worker.play.remote(specs)
            except self._ray.exceptions.RayTaskError:  # an unexpected error in a worker that is alive
                raise
            except self._ray.exceptions.RayActorError:
                self._forget(cpu, worker)
                await self._take_back(specs)
                continue
            self._pending -= len(specs)
            for outcome in outcomes:
                self._run.on_outcome(outcome)
            for model, why in models.items():
                self._run.stop.models.setdefault(model, why)
            if error is not None:
                raise error
            if reason:
                self._run.stop.stop(reason)

    async def _worker(self, cpu: int) -> Any:
        """Return the worker of a CPU once it is ready. Start one if there is none."""
        while True:
            if cpu not in self._of_cpu:
                self._of_cpu[cpu] = self._start_worker()
                self._workers.append(self._of_cpu[cpu])
            worker = self._of_cpu[cpu]
            try:
                await self._wait_ready(worker)
            except self._ray.exceptions.RayActorError as error:
                self._forget(cpu, worker)
                self._deaths[cpu] += 1
                if error.actor_init_failed or self._deaths[cpu] >= MAX_DEATHS:
                    last_line = str(error).strip().splitlines()[-1].rpartition("Error: ")[2]
                    raise InquiTreeError(f"Ray cannot start a worker: {last_line}") from error
            else:
                self._deaths.pop(cpu, None)
                return worker

    async def _wait_ready(self, worker: Any) -> None:
        """Wait for a worker, as long as the cluster has a processor for it or may get one. Raise its error."""
        ready = asyncio.wrap_future(worker.__ray_ready__.remote().future())
        try:
            while not (await asyncio.wait([ready], timeout=cluster.NO_CPU))[0]:
                cluster.check_processors()
        except InquiTreeError:
            ready.cancel()
            raise
        await ready

    def _forget(self, cpu: int, worker: Any) -> None:
        if self._of_cpu.get(cpu) is worker:
            del self._of_cpu[cpu]

    async def _take_back(self, specs: Sequence[EpisodeSpec]) -> None:
        """Settle the complete episodes of a dead worker, and put the others back into the queue.

        The processes of a node that died may outlive it for a moment, and write to their logs until then.
        """
        deadline = asyncio.get_running_loop().time() + GRACE
        while any(is_locked(log_file(self._run.folder, spec)) for spec in specs):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(_POLL)
        complete = set(run_status(self._run.folder, specs).complete)
        for spec in specs:
            self._deaths[spec] += 1
            if spec in complete:
                self._run.on_outcome(Outcome(spec, "played"))
            elif self._deaths[spec] == MAX_DEATHS:
                self._run.on_outcome(Outcome(spec, "failed", f"{MAX_DEATHS} workers died while playing it"))
            elif not self._run.stop.reason:
                self._queue.put_nowait([spec])
                continue
            self._pending -= 1


class RayWorker:
    """Actor that plays batches of episodes, each call in a thread and an event loop of its own."""

    def __init__(self, run: RunContext, version: str, directory: str, marker: Path) -> None:
        """Join a run. Raise `OptionError` if this machine lacks the driver's release, its directory or the marker."""
        join_machine(version, directory, marker)
        self._run = run

    def play(self, specs: Sequence[EpisodeSpec]) -> _BatchResult:
        """Play episodes to their ends.

        Returns:
            Outcomes, the reasons why the run and its models were stopped, and an error that concerns the whole run.
        """
        outcomes: list[Outcome] = []
        stop, error = self._run.stop, None
        try:
            asyncio.run(play_episodes(replace(self._run, on_outcome=outcomes.append), specs))
        except InquiTreeError as caught:
            error = caught
        return outcomes, stop.reason, dict(stop.models), error

    def stop(self, reason: str) -> None:
        """Start no further episode and send no further request."""
        self._run.stop.stop(reason)


class _SharedLimits:
    """Actor that holds the budget of a run and the rate limits of its models for all workers."""

    def __init__(self, models: Sequence[ModelSettings], budget: SpendingCap | None) -> None:
        self._budget = budget or Budget()
        self._rate_limits = {model.label: limit for model in models if (limit := model.rate_limit()) is not None}
        self._payments: list[Completion] = []

    def check(self) -> None:
        self._budget.check()

    def add(self, completion: Completion) -> None:
        self._budget.add(completion)
        self._payments.append(completion)

    def take_payments(self) -> list[Completion]:
        """Return the replies that were paid for since the last call."""
        payments, self._payments = self._payments, []
        return payments

    def reserve(self, model: str, prompt: int) -> Reservation:
        return self._rate_limits[model].reserve(prompt)

    def settle(self, model: str, reservation: Reservation, completion: Completion) -> None:
        self._rate_limits[model].settle(reservation, completion)


@dataclass(frozen=True)
class _RemoteLimits:
    """Budget of a worker or rate limit of one of its models, held by a `_SharedLimits` actor."""

    actor: Any
    max_cost: float | None = None
    model: str = ""

    def check(self) -> None:
        _call(self.actor.check)

    def add(self, completion: Completion) -> None:
        _call(self.actor.add, replace(completion, text=""))

    def reserve(self, prompt: int) -> Reservation:
        reservation: Reservation = _call(self.actor.reserve, self.model, prompt)
        return reservation

    def settle(self, reservation: Reservation, completion: Completion) -> None:
        _call(self.actor.settle, self.model, reservation, replace(completion, text=""))


def _call(method: Any, *arguments: Any) -> Any:
    """Return the result of an actor's method, after about a millisecond. Raise its errors."""
    ray = require("ray", "ray")
    try:
        return ray.get(method.remote(*arguments))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
