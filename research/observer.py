"""Figures of the ideal observer on the shipped trees: what it can tell of fakes by level, and its time per turn.

    python -m research.observer

Simulated players choose studies at random or by the exact posterior. The observer knows the level.
"""

from __future__ import annotations

import time
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np
import typer

from inquitree_gym.inquiry.courses import CHOICES, play_courses, replay
from inquitree_gym.inquiry.exam import Exam
from inquitree_gym.inquiry.gains import called_fake
from inquitree_gym.inquiry.observer import (
    TELLABLE,
    Design,
    beliefs_along,
    design_of,
    fake_chances,
    information,
    observe,
    stack,
)
from inquitree_gym.inquiry.vigilance import Belief, Calibration, Counts
from inquitree_gym.trees import builtin_ids, load_tree

LEVELS, PLAYERS = (1, 3, 6), ("cover", "bayes")
_CHAIN = (*((axis, axis + 1) for axis in range(6)), *((axis,) for axis in range(7)))
JOINED = Design(Exam((2,) * 7, tuple((axis,) for axis in range(7))), (0,), (0,) * len(_CHAIN), _CHAIN)
"""Seven axes that results join, so that their 128 worlds are enumerated at once."""


class Told(NamedTuple):
    """Figures of one tree. None without both kinds of results."""

    tellable: float | None
    auc: float | None
    d_prime: float | None


def told(design: Design, level: int, limit: int, player: str, episodes: int) -> Told:
    """Return the share of tellable fakes, and AUC and d′ of P(fake) against the truth, over simulated episodes."""
    model = observe(design, level)
    course = play_courses(design, level, limit, CHOICES[player], model=model, episodes=episodes, seed=0)
    read = (course.study >= 0) & np.array([bool(axes) for axes in design.reads])[course.study]
    doubts, fake = replay(model, course)[1][read], course.fake[read]
    counts = Counts()
    for truth, doubt in zip(fake, doubts, strict=True):
        counts += Counts.of(bool(truth), called_fake(float(doubt)))
    auc = Calibration.of([Belief(bool(truth), float(doubt)) for truth, doubt in zip(fake, doubts, strict=True)]).auc
    return Told(float((doubts[fake] >= TELLABLE).mean()) if fake.any() else None, auc, counts.d_prime)


def time_per_turn(design: Design, limit: int = 100, repeats: int = 20) -> float:
    """Return the least milliseconds per result of everything that scoring computes from the posterior."""
    model = observe(design, 3)
    course = play_courses(design, 3, limit, CHOICES["bayes"], model=model, episodes=1, seed=0)
    showings = [(int(a), int(b)) for a, b in zip(course.study[0], course.shown[0], strict=True) if a >= 0]
    best = np.inf
    for _ in range(repeats):
        began = time.process_time()
        along = list(beliefs_along(model, showings))
        fake_chances(model, stack(along[1:]), *np.array(showings).T)
        information(model, stack(along[:-1]))
        best = min(best, time.process_time() - began)
    return float(best * 1000 / len(showings))


def main(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per tree.")] = 50,
    turns: Annotated[int, typer.Option(min=1, help="Turns per subtopic.")] = 5,
) -> None:
    """Print means over the trees by player and level, and the time per result where 128 worlds are joined."""
    trees = [load_tree(name) for name in builtin_ids()]
    typer.echo("| choices | level | tellable | AUC | d′ |\n| --- | --: | --: | --: | --: |")
    for player in PLAYERS:
        for level in LEVELS:
            found = [told(design_of(tree), level, turns * len(tree.subtopics), player, episodes) for tree in trees]
            means = [fmean(each for each in column if each is not None) for column in zip(*found, strict=True)]
            typer.echo(f"| {player} | {level} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    typer.echo(
        f"\n{time_per_turn(JOINED):.2f} ms per result with {len(observe(JOINED, 3).blocks[0].worlds)} joined worlds"
    )


if __name__ == "__main__":
    typer.run(main)
