"""Exam of an inquiry: for each conclusion item, one statement per combination of poles, of which one holds.

No texts are handled here. Options are numbered in file order: the combinations of the poles of an item's axes, the last
axis running fastest. A layout letters them in another order, which the key of the episode decides. Scores are exact
fractions, so that scalar code and arrays agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.seeds import draw_orders, hash_text
from inquitree_gym.sheets import Layout, Sheet

if TYPE_CHECKING:
    from inquitree_gym.trees import Tree

_CERTAIN = 1e-9
"""Expected scores up to here count as 0."""


@dataclass(frozen=True)
class Exam:
    """Axes and conclusion items in numbers."""

    poles: tuple[int, ...]
    """Number of poles of each axis, at least 2."""
    items: tuple[tuple[int, ...], ...]
    """Axes that each conclusion item reads, in the order of its keys."""

    def options(self, item: int) -> int:
        """Return the number of options of an item."""
        return math.prod(self.poles[axis] for axis in self.items[item])

    def stated(self, item: int, option: int) -> tuple[int, ...]:
        """Return the pole of each axis of an item that an option states."""
        poles = []
        for axis in reversed(self.items[item]):
            option, pole = divmod(option, self.poles[axis])
            poles.append(pole)
        return tuple(reversed(poles))

    def option(self, item: int, poles: Sequence[int]) -> int:
        """Return the option of an item that states these poles of its axes."""
        option = 0
        for axis, pole in zip(self.items[item], poles, strict=True):
            option = option * self.poles[axis] + pole
        return option

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """Number of items that read each axis."""
        return tuple(sum(axis in item for item in self.items) for axis in range(len(self.poles)))

    @cached_property
    def scale(self) -> int:
        """Points of an axis score of 1. See `axis_points`."""
        return math.lcm(*(max(n, 1) * (k - 1) for n, k in zip(self.readers, self.poles, strict=True)))


class AxisMark(NamedTuple):
    """An axis of an exam that a study reads."""

    axis: int
    divisor: int
    """The pole that an outcome states is ``outcome // divisor % modulus``."""
    modulus: int


@lru_cache(maxsize=64)
def exam_of(tree: Tree) -> Exam:
    """Return the exam of a tree."""
    return Exam(tuple(len(axis.poles) for axis in tree.axes), tree.asks)


@lru_cache(maxsize=64)
def marks_of(tree: Tree) -> tuple[tuple[AxisMark, ...], ...]:
    """Return the axes of the exam that each study reads."""
    found = []
    for axes in tree.reads:
        divisor, marks = 1, []
        for axis in reversed(axes):
            marks.append(AxisMark(axis, divisor, len(tree.axes[axis].poles)))
            divisor *= marks[-1].modulus
        found.append(tuple(marks))
    return tuple(found)


@lru_cache(maxsize=16)
def draw_layout(exam: Exam, seed: int, tree: str, worlds: str) -> Layout:
    """Draw the order of the options of each item.

    Args:
        exam: the exam.
        seed: seed of the episode.
        tree: id of the tree.
        worlds: set of worlds that the episode draws from, such as ``"train"``. It is part of the key, so that the order
            says nothing about the world that another set draws with this seed.
    """
    options = [exam.options(item) for item in range(len(exam.items))]
    return draw_orders(options, seed, hash_text(f"{tree}\n{worlds}\nlayout"))


def axis_points(exam: Exam, sheet: Sheet, world: Sequence[int]) -> tuple[int, ...]:
    """Return the score of each axis in units of ``1 / exam.scale``, from ``-scale`` to ``scale``.

    An axis has the mean over its items of 1 for the right pole, -1 / (poles - 1) for a wrong one and 0 for none.
    An axis that no item reads has 0.
    """
    points = [0] * len(exam.poles)
    for item, choice in enumerate(sheet.choices):
        if choice is None:
            continue
        for axis, pole in zip(exam.items[item], exam.stated(item, choice), strict=True):
            one = exam.scale // exam.readers[axis]
            points[axis] += one if pole == world[axis] else -one // (exam.poles[axis] - 1)
    return tuple(points)


def exam_return(exam: Exam, sheet: Sheet, world: Sequence[int], credit: Sequence[float]) -> float:
    """Return the mean over all axes of credit times score, in [-1, 1].

    Args:
        exam: the exam.
        sheet: the answers.
        world: pole of each axis that holds.
        credit: largest credit, in [0, 1], among the showings that read each axis. 0 for an axis that none read.
    """
    return credited(exam, axis_points(exam, sheet, world), credit)


def credited(exam: Exam, points: Sequence[int], credit: Sequence[float]) -> float:
    """Return the mean over all axes of credit times score, given `axis_points`. See `exam_return`."""
    total = sum(Fraction(each) * point for each, point in zip(credit, points, strict=True) if each and point)
    return float(total / (exam.scale * len(points)))


def brier_by_axis(exam: Exam, sheet: Sheet, world: Sequence[int]) -> tuple[float | None, ...]:
    """Return the mean squared difference between probability and outcome for each axis, in [0, 1].

    The outcome is 1 if the chosen option holds as a whole. The mean is over the items with a probability that read the
    axis, and None without any.
    """
    errors: list[list[float]] = [[] for _ in exam.poles]
    for item, (choice, probability) in enumerate(zip(sheet.choices, sheet.probabilities, strict=False)):
        if choice is None or probability is None:
            continue
        holds = exam.stated(item, choice) == tuple(world[axis] for axis in exam.items[item])
        for axis in exam.items[item]:
            errors[axis].append((probability - holds) ** 2)
    return tuple(math.fsum(each) / len(each) if each else None for each in errors)


def random_sheet(exam: Exam, rng: np.random.Generator) -> Sheet:
    """Draw an option of every item. The expected return is 0."""
    return Sheet(tuple(int(rng.integers(exam.options(item))) for item in range(len(exam.items))))


def sheet_of_world(exam: Exam, world: Sequence[int]) -> Sheet:
    """Return the sheet that is right in a world. Its return is the mean credit."""
    return Sheet(tuple(exam.option(item, [world[axis] for axis in axes]) for item, axes in enumerate(exam.items)))


def sheet_of_beliefs(exam: Exam, beliefs: Sequence[Sequence[float]]) -> Sheet:
    """Return the sheet with the largest expected score of each axis.

    Scores add up over axes, so the best option states the likeliest pole of each of its axes, the first of equally
    likely ones. That never costs anything in expectation. An item is left out where it gains nothing: the poles of all
    its axes are equally likely.

    Args:
        exam: the exam.
        beliefs: probability of each pole of each axis.
    """
    best = [max(range(exam.poles[axis]), key=belief.__getitem__) for axis, belief in enumerate(beliefs)]
    gains = [belief[pole] * poles > 1 + _CERTAIN for belief, pole, poles in zip(beliefs, best, exam.poles, strict=True)]
    return Sheet(
        tuple(
            exam.option(item, [best[axis] for axis in axes]) if any(gains[axis] for axis in axes) else None
            for item, axes in enumerate(exam.items)
        )
    )
