"""Summaries of rematched logs: turns that change, episodes that depart, bounds of coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.results.figures import DASHES, INK, SERIES, Chart, draw_legend
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.results.summary import grouped, in_cell
from research.rereading.rematch import GRID, RematchedEpisode, RematchedTurn, TurnOutcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class ChangedTurn:
    """One turn with another outcome than the logged one."""

    log: str
    """File name of the episode's log."""
    turn: int
    before: str
    now: str
    similarity: float
    departs: bool
    """True if the inquiry goes another way. False for, say, a forced move that is now accepted."""
    exact: bool
    """True if no turn before it departs, so that the agent would have reached it."""


@dataclass(frozen=True, slots=True)
class RematchSummary:
    """Effect of matching the logs of one agent again."""

    agent: str
    episodes: int
    departing: int
    """Episodes that go another way at some turn."""
    read: int
    """Turns at which an action is matched."""
    changes: dict[str, int]
    """Changed turns by kind of change, including those after a departure."""
    followed: Estimate
    """Share of an episode's turns up to its first departure, which are known exactly."""
    logged: Estimate
    """Coverage as logged."""
    low: Estimate
    """Lower bound of coverage. The logged one for an episode that does not depart."""
    high: Estimate
    """Upper bound of coverage."""


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """All episodes under one threshold."""

    threshold: float
    changed: float
    """Share of the matched turns that change."""
    departing: float
    """Share of the episodes that depart."""
    low: float | None
    """Lower bound of coverage, a mean over trees."""
    high: float | None
    """Upper bound of coverage, a mean over trees."""


def changed_turns(found: Sequence[RematchedEpisode], threshold: float) -> Iterator[ChangedTurn]:
    """Yield the turns with another outcome under ``threshold``."""
    for episode in found:
        exact = True
        for turn in episode.turns:
            fork = turn.at(threshold)
            if _is_changed(turn, fork):
                yield ChangedTurn(
                    episode.log, turn.turn, turn.logged, fork.outcome, turn.similarity,
                    departs=not fork.same, exact=exact,
                )  # fmt: skip
            exact = exact and fork.same


def rematch_summaries(found: Sequence[RematchedEpisode], threshold: float) -> list[RematchSummary]:
    """Return one summary per agent."""
    groups = grouped(found, lambda episode: episode.spec.player)
    return [_summary(agent, episodes, threshold) for agent, episodes in groups.items()]


def threshold_curve(found: Sequence[RematchedEpisode]) -> list[ThresholdPoint]:
    """Return all episodes together under every threshold of the grid."""
    sweeps = np.array([_over_grid(episode) for episode in found])
    turns = max(1, sum(len(episode.turns) for episode in found))
    changed, departing = sweeps[:, 0].sum(axis=0) / turns, sweeps[:, 1].mean(axis=0)
    trees = [episode.tree for episode in found]
    low, high = (
        [clustered_mean(zip(trees, values.tolist(), strict=True)).mean for values in sweeps[:, row].T] for row in (2, 3)
    )
    columns = (GRID.tolist(), changed.tolist(), departing.tolist(), low, high)
    return [ThresholdPoint(*values) for values in zip(*columns, strict=True)]


def rematch_table(summaries: Sequence[RematchSummary]) -> Iterator[list[str]]:
    """Yield the rows of a text table of the agents, headings first."""
    yield ["agent", "episodes", "departing", "changed", "followed", "coverage", "at least", "at most"]
    for each in summaries:
        counts = (each.episodes, each.departing, sum(each.changes.values()))
        yield [each.agent, *map(str, counts), *map(in_cell, (each.followed, each.logged, each.low, each.high))]


def changes_table(summaries: Sequence[RematchSummary]) -> Iterator[list[str]]:
    """Yield the rows of a text table of the kinds of change by agent, headings first."""
    yield ["agent", "change", "turns", "of those read"]
    for each in summaries:
        for kind, turns in each.changes.items():
            yield [each.agent, kind, str(turns), f"{turns / each.read:.1%}"]


def rematch_chart(found: Sequence[RematchedEpisode], threshold: float) -> Chart:
    """Return shares and bounds of coverage over thresholds, with those of the logs and the new one marked."""
    points = threshold_curve(found)
    coverage = clustered_mean((episode.tree, episode.coverage) for episode in found).mean

    def draw(axes: Axes) -> None:
        x = [point.threshold for point in points]
        low, high = ([getattr(point, end) or 0.0 for point in points] for end in ("low", "high"))
        axes.fill_between(x, low, high, color=SERIES[0], alpha=0.2, linewidth=0, label="coverage, bounds")
        axes.axhline(coverage or 0.0, color=SERIES[0], linewidth=1.2, label="coverage as logged")
        labels = {"changed": "turns read otherwise", "departing": "episodes going another way"}
        for series, (share, label) in enumerate(labels.items(), 1):
            shares = [getattr(point, share) for point in points]
            axes.plot(x, shares, color=SERIES[series], linestyle=DASHES[series], label=label)
        for logged in sorted({episode.threshold for episode in found}):
            axes.axvline(logged, color=INK, linewidth=1, linestyle=":", label=f"τ of the log, {logged:g}")
        axes.axvline(threshold, color=INK, linewidth=1.4, label=f"τ in question, {threshold:g}")
        axes.set(xlabel="threshold τ", ylabel="share, coverage", ylim=(-0.03, 1.03))
        draw_legend(axes)

    return Chart("reread", "Effect of the threshold, and the bounds of coverage", draw, 4.2)


def _summary(agent: str, episodes: Sequence[RematchedEpisode], threshold: float) -> RematchSummary:
    bounds = [(episode.tree, episode.bounds(threshold)) for episode in episodes]
    return RematchSummary(
        agent=agent,
        episodes=len(episodes),
        departing=sum(episode.departs(threshold) is not None for episode in episodes),
        read=sum(len(episode.turns) for episode in episodes),
        changes=dict(Counter(map(_kind, changed_turns(episodes, threshold))).most_common()),
        followed=clustered_mean((episode.tree, _followed(episode, threshold)) for episode in episodes),
        logged=clustered_mean((episode.tree, episode.coverage) for episode in episodes),
        low=clustered_mean((tree, each.low) for tree, each in bounds),
        high=clustered_mean((tree, each.high) for tree, each in bounds),
    )


def _kind(change: ChangedTurn) -> str:
    before, now = change.before.split()[0], change.now.split()[0]
    return f"{before} → {now}" if before != now else f"{before} → {now} elsewhere"


def _followed(episode: RematchedEpisode, threshold: float) -> float | None:
    if not episode.length:
        return None
    turn = episode.departs(threshold)
    return 1.0 if turn is None else turn.turn / episode.length


def _over_grid(episode: RematchedEpisode) -> NDArray[np.float64]:
    """Return changed turns, departure (0 or 1) and both bounds of coverage, as rows over the thresholds of the grid."""
    logged = np.full(len(GRID), episode.coverage)
    if not episode.turns:
        return np.stack([np.zeros_like(logged), np.zeros_like(logged), logged, logged])
    accepted = np.array([turn.similarity for turn in episode.turns])[:, None] >= GRID

    def by_turn(value: Callable[[RematchedTurn, TurnOutcome], float]) -> NDArray[np.float64]:
        """Return a value of each turn (row) under each threshold (column)."""
        forks = np.array([[value(turn, turn.taken), value(turn, turn.refused)] for turn in episode.turns], float)
        return np.where(accepted, forks[:, :1], forks[:, 1:])

    leaves = by_turn(lambda _, fork: not fork.same)
    departs, first = leaves.max(axis=0), (leaves.argmax(axis=0), np.arange(len(GRID)))
    low = np.where(departs, by_turn(lambda _, fork: fork.bounds.low)[first], logged)
    high = np.where(departs, by_turn(lambda _, fork: fork.bounds.high)[first], logged)
    return np.stack([by_turn(_is_changed).sum(axis=0), departs, low, high])


def _is_changed(turn: RematchedTurn, fork: TurnOutcome) -> bool:
    # A forced move that is accepted now leads to the same place, but is a change.
    return fork.outcome != turn.logged or not fork.same
