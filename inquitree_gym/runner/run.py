"""Run a study into a folder: ``run.json`` and one log per episode. Running it again does only what is missing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from inquitree_gym.runner.chats import Terms, study_chats
from inquitree_gym.runner.folder import claimed
from inquitree_gym.runner.planning import survey
from inquitree_gym.runner.playing import INTERRUPTED, Outcome, Tell, play_cells
from inquitree_gym.runner.stop_conditions import Stops
from inquitree_gym.runner.study import Cell, Study

Play = Callable[[Study, Path, Sequence[Cell], Terms, Stops, Tell], Awaitable[None]]
"""What plays episodes: `play_cells`, or something that hands them to other processes."""


class RunSummary(NamedTuple):
    """What a run did."""

    played: int
    found: int
    """Episodes that were there already."""
    failures: tuple[Outcome, ...] = ()
    """Episodes that something stopped which is not the agent's doing."""
    left: int = 0
    """Episodes that were not played or not ended, because the run or their model ended before."""
    ended: str = ""
    """Why the run ended before its end; empty where it did not."""
    models: Mapping[str, str] = {}
    """By label of a model that nothing more was asked of, why."""

    @property
    def is_whole(self) -> bool:
        """Whether the folder holds every episode of the study now."""
        return not self.failures and not self.left


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    terms: Terms | None = None,
    tell: Tell | None = None,
    stops: Stops | None = None,
    play: Play = play_cells,
) -> RunSummary:
    """Play every episode of ``study`` that ``folder`` does not hold yet; a torn one is resumed.

    See `arun_study`, which this runs on an event loop of its own.
    """
    ending = stops or Stops()

    def run() -> RunSummary:
        return asyncio.run(arun_study(study, folder, terms, tell, ending, play))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1, "inquitree-run") as aside:  # in a notebook, whose loop is running already
        try:
            return aside.submit(run).result()
        except KeyboardInterrupt:
            ending.end(INTERRUPTED)
            raise


async def arun_study(
    study: Study,
    folder: str | os.PathLike[str],
    terms: Terms | None = None,
    tell: Tell | None = None,
    stops: Stops | None = None,
    play: Play = play_cells,
) -> RunSummary:
    """Play every episode of ``study`` that ``folder`` does not hold yet; a torn one is resumed.

    An episode that fails is counted and does not stop the others. A reached cap ends the run in order, and so does a
    cancellation, which is raised again.

    Args:
        study: what to play.
        folder: of the run; made where it is missing.
        terms: how to play it; None for the defaults.
        tell: told what came of every episode, those among them that were there already.
        stops: where the caller, or another thread, can end the run; None for an own one.
        play: what plays the episodes.

    Raises:
        LogError: the folder holds another study, is in use by another process, or cannot be written.
        InquiTreeError: another fault that concerns every episode; run again to go on from there.
    """
    folder, terms, stops = Path(folder), terms or Terms(), stops or Stops()
    study_chats(study, terms, stops)  # before anything is written: can all of them be asked?
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if tell is not None:
            tell(outcome)

    with claimed(folder, study):
        looked = survey(study, folder)
        for cell in looked.whole:
            note(Outcome(cell, "found"))
        for cell, error in looked.damaged.items():
            note(Outcome(cell, "failed", error))
        await play(study, folder, looked.to_do, terms, stops, note)
    return _summary(study, outcomes, stops)


def _summary(study: Study, outcomes: Sequence[Outcome], stops: Stops) -> RunSummary:
    failures = tuple(outcome for outcome in outcomes if outcome.status == "failed")
    played, found = (sum(outcome.status == status for outcome in outcomes) for status in ("played", "found"))
    left = sum(1 for _ in study.cells()) - played - found - len(failures)
    return RunSummary(played, found, failures, left, stops.whole, dict(stops.models))
