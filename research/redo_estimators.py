"""Bias and coverage of estimators of redo probabilities, on simulated agents whose probabilities are known.

    python -m research.redo_estimators --samples 2000

An agent runs one study of each subtopic of the shipped trees and redoes every result, true or fake, with one
probability. A study takes 3 turns and a redo 1. A result on the last turn leaves no choice. Each sample is a set of
trees with some episodes each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from inquitree_gym.inquiry.courses import REPEAT, VISIT
from inquitree_gym.inquiry.vigilance import FALSE_ALARMS, HITS, REDO, REDO_FAKES, REDO_TRUES, Counts, redo_probabilities
from inquitree_gym.inquiry.vigilance import sensitivity as by_tree
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.results.summary import grouped
from inquitree_gym.trees import builtin_ids, load_tree

TREES, LEVELS, CHANCES, LIMITS = (5, 18), (3, 6), (0.2, 0.5, 0.8), (3, 11)
RATES = ("redo_rate", HITS, FALSE_ALARMS)
NEW = {"redo_rate": REDO, HITS: REDO_FAKES, FALSE_ALARMS: REDO_TRUES}
PLACES = {"redo_rate": np.array([0, 2]), HITS: np.array([0]), FALSE_ALARMS: np.array([2])}
"""Places of the trials of each rate in `Counts`. The redone ones follow each."""


class Row(NamedTuple):
    """One estimator of one probability in one setting."""

    trees: int
    limit: int
    """Turns per subtopic."""
    level: int
    chance: float
    """Known probability of a redo."""
    rate: str
    estimator: str
    bias: float
    covered: float
    """Share of the 95 % intervals that hold the probability."""


def simulate(
    rng: np.random.Generator, subtopics: int, limit: int, chance: float, level: int, episodes: int
) -> NDArray[np.int64]:
    """Return counts of episodes, shape (episodes, 2, 4): of all and of first showings, in the order of `Counts`."""
    found = np.zeros((episodes, 2, 4), np.int64)
    turn, left, first = np.full(episodes, VISIT - 1), np.full(episodes, subtopics), np.ones(episodes, bool)
    answers = turn < limit
    while answers.any():
        fake, redone = rng.random(episodes) < level / 10, rng.random(episodes) < chance
        for kind, counted in enumerate((answers, answers & first)):
            for place, trials in ((0, counted & fake), (2, counted & ~fake)):
                found[:, kind, place] += trials
                found[:, kind, place + 1] += trials & redone
        left -= ~redone
        turn, first = turn + np.where(redone, REPEAT, VISIT), ~redone
        answers &= (left > 0) & (turn < limit)
    return found


def estimates(found: NDArray[np.int64]) -> dict[tuple[str, str], Estimate]:
    """Return the estimates by rate and estimator, from counts of shape (trees, episodes, 2, 4)."""
    every, first = ({str(i): Counts(*map(int, row)) for i, row in enumerate(found.sum(1)[:, kind])} for kind in (0, 1))
    pooled, firsts, ratios = by_tree(every), by_tree(first), redo_probabilities(every)
    pooled["redo_rate"] = clustered_mean((tree, each.redo_rate) for tree, each in every.items())
    firsts["redo_rate"] = clustered_mean((tree, each.redo_rate) for tree, each in first.items())
    return {
        (rate, name): each
        for rate in RATES
        for name, each in {
            "mean over episodes": clustered_mean(_shares(found[:, :, 0], rate)),
            "pooled by tree": pooled[rate],
            "first, pooled by tree": firsts[rate],
            "pooled over trees": ratios[NEW[rate]],
        }.items()
    }


def _shares(counts: NDArray[np.int64], rate: str) -> Iterator[tuple[str, float]]:
    """Yield the share of redone results of each episode that has one, with its tree."""
    trials, redone = (counts[..., PLACES[rate] + shift].sum(-1) for shift in (0, 1))
    for tree, episode in np.argwhere(trials):
        yield str(tree), redone[tree, episode] / trials[tree, episode]


def study(
    samples: int, seeds: int, *, seed: int = 0, trees: Sequence[int] = TREES, levels: Sequence[int] = LEVELS,
    chances: Sequence[float] = CHANCES, limits: Sequence[int] = LIMITS,
) -> Iterator[Row]:  # fmt: skip
    """Yield bias and coverage of every estimator in every setting.

    Args:
        samples: samples of each setting.
        seeds: episodes per tree.
        seed: seed of the simulation.
        trees: numbers of trees, the first ones of the shipped trees.
        levels: fake levels.
        chances: probabilities of a redo.
        limits: turns per subtopic.
    """
    sizes = [len(load_tree(name).subtopics) for name in builtin_ids()]
    rng = np.random.default_rng(seed)
    for count in trees:
        for limit in limits:
            for level in levels:
                for chance in chances:
                    parts = [simulate(rng, n, limit * n, chance, level, samples * seeds) for n in sizes[:count]]
                    found = np.stack([part.reshape(samples, seeds, 2, 4) for part in parts], axis=1)
                    drawn = [estimates(each) for each in found]
                    for rate, name in drawn[0]:
                        bias, covered = judged([each[rate, name] for each in drawn], chance)
                        yield Row(count, limit, level, chance, rate, name, bias, covered)


def judged(found: Sequence[Estimate], truth: float) -> tuple[float, float]:
    """Return the bias of estimates, and the share of their intervals that hold the truth."""
    known = [each for each in found if each.mean is not None and each.low is not None and each.high is not None]
    bias = float(np.mean([each.mean for each in known])) - truth
    return bias, float(np.mean([each.low <= truth <= each.high for each in known]))


def main(
    samples: Annotated[int, typer.Option(min=1, help="Samples of each setting.")] = 400,
    seeds: Annotated[int, typer.Option(min=1, help="Episodes per tree.")] = 5,
) -> None:
    """Print the largest bias and the range of the coverage of each estimator over levels and probabilities."""
    rows = list(study(samples, seeds))
    typer.echo("| estimator | trees | turns | share | largest bias | coverage, least | mean | most |")
    typer.echo("| --- | --: | --- | --- | --: | --: | --: | --: |")
    groups = grouped(rows, lambda row: (row.estimator, row.trees, row.limit, row.rate))
    for (name, count, limit, rate), mine in groups.items():
        worst, covered = max((row.bias for row in mine), key=abs), [row.covered for row in mine]
        shares = " | ".join(f"{each:.1%}" for each in (min(covered), fmean(covered), max(covered)))
        typer.echo(f"| {name} | {count} | {limit}n | {rate} | {worst:+.4f} | {shares} |")


if __name__ == "__main__":
    typer.run(main)
