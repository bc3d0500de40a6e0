"""Run a study into a folder: ``run.json`` and one log per episode. Running it again plays only what is missing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from inquitree_gym.baselines import Agent
from inquitree_gym.baselines.registry import make_player
from inquitree_gym.errors import AgentError, BudgetError, InquiTreeError, StoppedError
from inquitree_gym.log import has_header
from inquitree_gym.rollout import aplay, play
from inquitree_gym.runner.growth import plan_run, take_in, with_kept_templates
from inquitree_gym.runner.services import (
    ERROR_ELSEWHERE,
    GRACE,
    INTERRUPTED,
    PATIENCE,
    RunOptions,
    StopConditions,
    build_chats,
    concerns_environment,
    environment_maker,
    environment_models,
    missing_keys,
    stops_run,
)
from inquitree_gym.runs.folder import load_manifest, locked, log_file, run_status, run_task
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.runs.study import StudyConfig


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one episode."""

    spec: EpisodeSpec
    status: Literal["found", "played", "failed", "left"]
    """``found`` complete, ``played`` to its end now, ``failed`` with an error, or ``left`` unfinished by a stop."""
    error: str = ""


@dataclass(frozen=True)
class RunContext:
    """Study, folder and options of a run, its stop conditions, and the callback for outcomes."""

    study: StudyConfig
    folder: Path
    options: RunOptions = field(default_factory=RunOptions)
    stop: StopConditions = field(default_factory=StopConditions)
    on_outcome: Callable[[Outcome], None] = lambda outcome: None


Executor = Callable[[RunContext, Sequence[EpisodeSpec]], Awaitable[None]]
"""Plays episodes of a run: `play_episodes` or a `RayExecutor`."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run."""

    played: int
    found: int
    """Episodes that were complete before."""
    failures: tuple[Outcome, ...] = ()
    """Episodes that ended with an error."""
    left: int = 0
    """Episodes not played, or not finished, because the run or their model was stopped."""
    ended: str = ""
    """Reason why the run was stopped. Empty if it was not."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Reason by label of each model that was stopped."""
    added: str = ""
    """Episodes that were added to a run that had episodes before, in words. Empty for none."""

    @property
    def is_complete(self) -> bool:
        """Return whether the folder now holds every episode of the study."""
        return not self.failures and not self.left


async def play_episodes(run: RunContext, specs: Sequence[EpisodeSpec]) -> None:
    """Play the episodes of a run that are not complete in its folder. Torn ones are resumed.

    Episodes that ask no model come first, one by one. The others run concurrently, models in turn. After a stop no
    episode starts and no request is sent. Pending requests have `GRACE` seconds after an interruption.

    Raises:
        InquiTreeError: an error that concerns the whole run, once all pending episodes have ended.
    """
    player = _Player(run)
    for label, key in missing_keys(run.study.models, {spec.model for spec in specs}).items():
        if key.certain:
            run.stop.models.setdefault(label, key.message)
    for service in environment_models(run.study):
        if (lacking := service.chat_model().missing_key()) and lacking.certain:
            run.stop.stop(lacking.message)
    try:
        for spec in specs:
            if not run.study.asks_model(spec):
                await player.play(spec)
                await asyncio.sleep(0)  # lets a cancellation through
        await _play_concurrently(player, interleave_models(filter(run.study.asks_model, specs)))
    except asyncio.CancelledError:
        run.stop.stop(INTERRUPTED)
        raise


def interleave_models(specs: Iterable[EpisodeSpec]) -> list[EpisodeSpec]:
    """Return the episodes, models in turn, so that a slow one does not hold up the others."""
    queues: dict[str, list[EpisodeSpec]] = {}
    for spec in specs:
        queues.setdefault(spec.model, []).append(spec)
    return [spec for turn in zip_longest(*queues.values()) for spec in turn if spec is not None]


async def _play_concurrently(player: _Player, specs: Sequence[EpisodeSpec]) -> None:
    if not specs:
        return
    queue = iter(specs)
    concurrency = min(player.run.options.max_concurrency, len(specs))
    workers = [asyncio.create_task(_play_queue(player, queue)) for _ in range(concurrency)]
    try:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        player.run.stop.stop(INTERRUPTED)
        await _finish(workers)  # not in a ``finally``: a second interruption does not wait
        raise
    if not all(worker.done() for worker in workers):
        player.run.stop.stop(ERROR_ELSEWHERE)
        await _finish(workers)
    for worker in workers:
        if not worker.cancelled() and (error := worker.exception()) is not None:
            raise error


async def _play_queue(player: _Player, queue: Iterator[EpisodeSpec]) -> None:
    for spec in queue:
        await player.play(spec)


async def _finish(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for pending requests, and cancel the workers that take longer than `GRACE`."""
    _, late = await asyncio.wait(workers, timeout=GRACE)
    for worker in late:
        worker.cancel()
    if late:
        await asyncio.wait(late)


class _Player:
    """Plays the episodes of a study in this process, which share chats and the parts of their environments."""

    def __init__(self, run: RunContext) -> None:
        self.run = run
        self._chats = build_chats(run.study.models, run.options, run.stop)
        self._make_env = environment_maker(run.study, run.options, run.stop)
        self._models = {model.label: model for model in run.study.models}
        self._configs: dict[str, str] = {}
        self._task = cache(partial(run_task, run.folder, load_manifest(run.folder)))

    async def play(self, spec: EpisodeSpec) -> None:
        """Play an episode unless it must not start any more. Without a model it blocks the event loop."""
        if not self._may_start(spec):
            return
        error = None
        try:
            if self.run.study.asks_model(spec):
                await aplay(**self._arguments(spec))
            else:
                play(**self._arguments(spec))
        except InquiTreeError as caught:
            error = caught
        self._end(spec, error)

    def _may_start(self, spec: EpisodeSpec) -> bool:
        if self.run.options.budget is not None:
            try:
                self.run.options.budget.check()
            except BudgetError as error:
                self.run.stop.stop(str(error))
        return not self.run.stop.reason_for(spec.model)

    def _end(self, spec: EpisodeSpec, error: InquiTreeError | None) -> None:
        """Report the outcome of an episode. Raise ``error`` again if it concerns the whole run."""
        stop, on_outcome = self.run.stop, self.run.on_outcome
        if isinstance(error, BudgetError | StoppedError):
            stop.stop(str(error))
            on_outcome(Outcome(spec, "left", str(error)))
            return
        patience = max(PATIENCE, 2 * self.run.options.max_concurrency)
        if spec.model:
            stop.record(spec.model, None if concerns_environment(error) else error, patience)
        stop.record_environment(error, patience)
        on_outcome(Outcome(spec, "played") if error is None else Outcome(spec, "failed", str(error)))
        if error is not None and stops_run(error):
            stop.stop(str(error))
            raise error

    def _arguments(self, spec: EpisodeSpec) -> dict[str, Any]:
        """Return the arguments of `play`, with an environment and an agent for this episode alone."""
        study, task = self.run.study, self._task(spec.task)
        settings: dict[str, Any] = {}
        if spec.model:
            settings = {"chat": self._chats[spec.model]} | study.agent_settings(spec.agent, self._models[spec.model])
        env = self._make_env(task)
        agent = make_player(spec.agent, env, **settings)
        self._check_config(spec, agent)
        file = log_file(self.run.folder, spec)
        if not has_header(file):
            file.unlink(missing_ok=True)  # torn within its header: nothing was played
        options = study.options(spec, task)
        return {"env": env, "agent": agent, "seed": spec.seed, "file": file, "options": options}

    def _check_config(self, spec: EpisodeSpec, agent: Agent) -> None:
        """Check that no two players have one configuration, which tells their logs apart. Raise `AgentError`."""
        twin = self._configs.setdefault(json.dumps(agent.config, sort_keys=True), spec.player)
        if twin != spec.player:
            raise AgentError(
                f"'{spec.player}' and '{twin}' have the same config, so that their logs cannot be told apart; give one "
                "of them another name or a setting in its config (chat.config, for an agent with a model)"
            )


def run_study(
    study: StudyConfig,
    folder: str | os.PathLike[str],
    options: RunOptions | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
    stop: StopConditions | None = None,
    executor: Executor = play_episodes,
) -> RunSummary:
    """Play every episode of ``study`` that is not complete in ``folder``. Synchronous form of `arun_study`.

    It also works in a notebook, whose event loop is already running.
    """
    stop = stop or StopConditions()

    def run() -> RunSummary:
        return asyncio.run(arun_study(study, folder, options, on_outcome, stop, executor))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1, "inquitree-run") as thread:
        try:
            return thread.submit(run).result()
        except KeyboardInterrupt:
            stop.stop(INTERRUPTED)
            raise


async def arun_study(
    study: StudyConfig,
    folder: str | os.PathLike[str],
    options: RunOptions | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
    stop: StopConditions | None = None,
    executor: Executor = play_episodes,
) -> RunSummary:
    """Play every episode of ``study`` that is not complete in ``folder``. A torn one is resumed.

    A folder with episodes takes in a study with further ones, and keeps those that ``study`` does not ask for. A failed
    episode is counted and does not stop the others. A reached cap stops the run in good order, and so does a
    cancellation, which is raised again.

    Args:
        study: the study.
        folder: folder of the run. Created if missing.
        options: options of the run. None for the defaults.
        on_outcome: called with the outcome of every episode of the study, including those that were complete before.
        stop: lets the caller, or another thread, stop the run.
        executor: plays the episodes.

    Raises:
        LogError: the study contradicts the run in the folder, or the folder is in use by another process or cannot be
            written.
        InquiTreeError: another error that concerns every episode. Run again to resume.
    """
    folder, options, stop = Path(folder), options or RunOptions(), stop or StopConditions()
    environment_maker(study, options, stop)  # checks the settings before anything is written
    build_chats(study.models, options, stop)  # likewise
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)

    with locked(folder):
        plan = plan_run(folder, study, options.as_new_version)
        take_in(folder, plan)
        study = with_kept_templates(plan.study, folder)
        status = run_status(folder, study.specs())
        for spec in status.complete:
            note(Outcome(spec, "found"))
        for spec, error in status.damaged.items():
            note(Outcome(spec, "failed", error))
        await executor(RunContext(study, folder, options, stop, note), status.remaining)
    return replace(_summarise(study, outcomes, stop), added=plan.added)


def _summarise(study: StudyConfig, outcomes: Sequence[Outcome], stop: StopConditions) -> RunSummary:
    failures = tuple(outcome for outcome in outcomes if outcome.status == "failed")
    played, found = (sum(outcome.status == status for outcome in outcomes) for status in ("played", "found"))
    left = sum(1 for _ in study.specs()) - played - found - len(failures)
    return RunSummary(played, found, failures, left, stop.reason, dict(stop.models))
