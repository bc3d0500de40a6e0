"""Loading of the episodes of logs, of inquiries or of projections, and notes on what is left out of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from inquitree_gym.analysis.load import LoadedRun, no_finished_episode
from inquitree_gym.analysis.logs import Logs, find_logs
from inquitree_gym.cli.output import note, plural, progress
from inquitree_gym.runner.specs import EpisodeSpec

R = TypeVar("R", bound=LoadedRun)


def load_each(
    paths: Sequence[Path], score: Callable[[Logs, Callable[[EpisodeSpec], None]], R], of: str = ""
) -> list[R]:
    """Read and score the logs under each path with a progress bar.

    Args:
        paths: folders of logs, or logs; each is read once.
        score: scores logs, and calls back after each episode.
        of: kind of the episodes, for the error; see `no_finished_episode`.

    Raises:
        LogError: there is no log, or no finished episode.
    """
    found = list(map(find_logs, dict.fromkeys(path.resolve() for path in paths)))
    with progress("scoring", sum(len(logs.entries) for logs in found)) as advance:
        runs = [score(logs, lambda spec: advance(spec.tree)) for logs in found]
    if not any(run.episodes for run in runs):
        raise no_finished_episode(runs, of)
    return runs


def note_doubles(runs: list[R], doubles: int) -> list[R]:
    """Report the number of copies of episodes that were left out of ``runs``."""
    if doubles:
        note(f"{plural(doubles, 'episode')} given more than once, with equal fingerprints; each counts once")
    return runs


def note_unnamed(models: Mapping[str, int]) -> None:
    """Name the models without a known training cutoff, with the number of their episodes."""
    for model, episodes in models.items():
        note(
            f"no training cutoff is known for '{model}', so its {episodes} episodes are left out of before and after; "
            "add it in a file with --models"
        )
