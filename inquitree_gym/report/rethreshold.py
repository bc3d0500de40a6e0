"""What reading again comes to: which turns change, how many episodes depart, how coverage could move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.analysis.aggregate import in_cell
from inquitree_gym.analysis.rethreshold import GRID, RematchedEpisode, RematchedTurn, TurnOutcome
from inquitree_gym.report.figures import Chart, threshold_chart
from inquitree_gym.scoring import Estimate, clustered_mean


class Changed(NamedTuple):
    """One turn of which something else comes now."""

    log: str
    """Name of the episode's log."""
    turn: int
    before: str
    now: str
    similarity: float
    departs: bool
    """Whether the inquiry goes another way; a forced move that is now accepted, say, leads to the same place."""
    exact: bool
    """Whether the turn would have been met: no turn before it departs."""


class Line(NamedTuple):
    """What reading again comes to for one agent."""

    agent: str
    episodes: int
    departing: int
    """Episodes that go another way at some turn."""
    read: int
    """Turns at which something is matched."""
    changes: dict[str, int]
    """Turns that change, by kind of change, those after a departure among them."""
    followed: Estimate
    """Share of an episode's turns up to and with its first departure: what is known exactly."""
    logged: Estimate
    """Coverage as logged."""
    low: Estimate
    high: Estimate
    """Bounds of what it could be; both are the logged one for an episode that does not depart."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {name: value._asdict() for name, value in self._asdict().items() if isinstance(value, Estimate)}
        return {**self._asdict(), **plain}


class Point(NamedTuple):
    """All episodes under one threshold."""

    threshold: float
    changed: float
    """Share of the matched turns that change."""
    departing: float
    """Share of the episodes that go another way."""
    low: float | None
    high: float | None
    """Bounds of coverage, means over trees."""


def changed(found: Sequence[RematchedEpisode], threshold: float) -> Iterator[Changed]:
    """Yield every turn of which something else comes under ``threshold``."""
    for episode in found:
        departed = False
        for turn in episode.turns:
            fork = turn.at(threshold)
            if is_changed(turn, fork):
                yield Changed(
                    episode.spec.file_name, turn.turn, turn.logged, fork.outcome, turn.similarity, not fork.same,
                    not departed,
                )  # fmt: skip
            departed = departed or not fork.same


def lines(found: Sequence[RematchedEpisode], threshold: float) -> list[Line]:
    """Sum up by agent."""
    agents: dict[str, list[RematchedEpisode]] = {}
    for episode in found:
        agents.setdefault(episode.spec.player, []).append(episode)
    return [_line(agent, episodes, threshold) for agent, episodes in agents.items()]


def curve(found: Sequence[RematchedEpisode]) -> list[Point]:
    """Return all episodes together under every threshold of the grid."""
    sweeps = [_sweep(episode) for episode in found]
    turns = max(1, sum(len(episode.turns) for episode in found))
    changes = np.sum([sweep.changed for sweep in sweeps], axis=0) / turns
    departing = np.mean([sweep.departs for sweep in sweeps], axis=0)
    trees = [episode.tree for episode in found]
    return [
        Point(
            threshold=float(threshold),
            changed=float(changes[i]),
            departing=float(departing[i]),
            low=clustered_mean((tree, float(sweep.low[i])) for tree, sweep in zip(trees, sweeps, strict=True)).mean,
            high=clustered_mean((tree, float(sweep.high[i])) for tree, sweep in zip(trees, sweeps, strict=True)).mean,
        )
        for i, threshold in enumerate(GRID)
    ]


def reread_table(table: Sequence[Line]) -> Iterator[list[str]]:
    """Yield the cells of a text table: a heading line, then one line per agent."""
    yield ["agent", "episodes", "departing", "changed", "followed", "coverage", "at least", "at most"]
    for line in table:
        estimates = (line.followed, line.logged, line.low, line.high)
        cells = [in_cell(estimate) for estimate in estimates]
        counts = (line.episodes, line.departing, sum(line.changes.values()))
        yield [line.agent, *map(str, counts), *cells]


def changes_table(table: Sequence[Line]) -> Iterator[list[str]]:
    """Yield the cells of a text table: a heading line, then one line per agent and kind of change."""
    yield ["agent", "change", "turns", "of those read"]
    for line in table:
        for kind, turns in line.changes.items():
            yield [line.agent, kind, str(turns), f"{turns / line.read:.1%}"]


def picture(found: Sequence[RematchedEpisode], logged: float, threshold: float) -> Chart:
    """Return the picture over thresholds, with the one of the log and the one in question marked."""
    points = curve(found)
    coverage = clustered_mean((episode.tree, episode.coverage) for episode in found).mean
    series = {
        "turns read otherwise": [point.changed for point in points],
        "episodes going another way": [point.departing for point in points],
    }
    bounds = [(point.low or 0.0, point.high or 0.0) for point in points]
    return threshold_chart([point.threshold for point in points], series, bounds, coverage or 0.0, (logged, threshold))


def _line(agent: str, episodes: Sequence[RematchedEpisode], threshold: float) -> Line:
    bounds = [(episode.tree, episode.bounds(threshold)) for episode in episodes]
    return Line(
        agent=agent,
        episodes=len(episodes),
        departing=sum(episode.departs(threshold) is not None for episode in episodes),
        read=sum(len(episode.turns) for episode in episodes),
        changes=dict(Counter(_kind(each) for each in changed(episodes, threshold)).most_common()),
        followed=clustered_mean((episode.tree, _followed(episode, threshold)) for episode in episodes),
        logged=clustered_mean((episode.tree, episode.coverage) for episode in episodes),
        low=clustered_mean((tree, each.low) for tree, each in bounds),
        high=clustered_mean((tree, each.high) for tree, each in bounds),
    )


def _kind(change: Changed) -> str:
    before, now = change.before.split()[0], change.now.split()[0]
    return f"{before} → {now}" if before != now else f"{before} → {now} elsewhere"


def _followed(episode: RematchedEpisode, threshold: float) -> float | None:
    if not episode.length:
        return None
    turn = episode.departs(threshold)
    return 1.0 if turn is None else turn.turn / episode.length


class _Sweep(NamedTuple):
    """One episode under every threshold of the grid; arrays of its length."""

    changed: NDArray[np.int64]
    """Turns that change."""
    departs: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def _sweep(episode: RematchedEpisode) -> _Sweep:
    if not episode.turns:
        logged = np.full(len(GRID), episode.coverage)
        return _Sweep(np.zeros(len(GRID), np.int64), np.zeros(len(GRID), np.bool_), logged, logged)
    taken = np.array([turn.similarity for turn in episode.turns])[:, None] >= GRID

    def either(value: Callable[[RematchedTurn, TurnOutcome], float]) -> NDArray[Any]:
        """Return a value of each turn (row) under each threshold (column)."""
        ways = np.array([[value(turn, turn.taken), value(turn, turn.refused)] for turn in episode.turns])
        return np.where(taken, ways[:, :1], ways[:, 1:])

    leaves = either(lambda _, fork: not fork.same).astype(np.bool_)
    first, columns = leaves.argmax(axis=0), np.arange(len(GRID))
    departs = np.asarray(leaves.any(axis=0))
    low = either(lambda _, fork: fork.bounds.low)[first, columns]
    high = either(lambda _, fork: fork.bounds.high)[first, columns]
    return _Sweep(
        changed=either(is_changed).sum(axis=0),
        departs=departs,
        low=np.where(departs, low, episode.coverage),
        high=np.where(departs, high, episode.coverage),
    )


def is_changed(turn: RematchedTurn, fork: TurnOutcome) -> bool:
    """Tell whether something else comes of a turn, be it only that a forced move is accepted now."""
    return fork.outcome != turn.logged or not fork.same
