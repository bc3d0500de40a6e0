"""Simulated players: a choice of studies, answers to the exam after them, and the figures that they reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inquitree_gym.inquiry.courses import (
    CHOICES,
    Chooser,
    Course,
    best_course,
    choose_blind,
    choose_course,
    choose_cover,
    play_courses,
    replay,
    stated_poles,
)
from inquitree_gym.inquiry.observer import (
    TELLABLE,
    Design,
    Floats,
    Ints,
    Model,
    answered_shares,
    axis_beliefs,
    design_of,
    likeliest_poles,
    observe,
)

if TYPE_CHECKING:
    from inquitree_gym.trees.schema import Tree


def answer_exactly(model: Model, course: Course) -> Ints:
    """Return the poles of each axis, shape (E, A), that the exact posterior finds likeliest. -1 for none."""
    return likeliest_poles(model, axis_beliefs(model, replay(model, course)[0]))


def answer_first(model: Model, course: Course) -> Ints:
    """Return the poles of each axis that were shown first. -1 for none."""
    poles = stated_poles(model.design, course)
    first = (poles >= 0).argmax(1)
    return np.take_along_axis(poles, first[:, None], axis=1)[:, 0]


def answer_majority(model: Model, course: Course) -> Ints:
    """Return the poles of each axis that were shown most often, on a tie the one shown first. -1 for none."""
    poles = stated_poles(model.design, course)
    first = answer_first(model, course)
    counts = np.stack([(poles == pole).sum(1) for pole in range(max(model.design.exam.poles))], axis=2) * 2
    counts += np.eye(counts.shape[2], dtype=np.int64)[first]
    return np.where(first >= 0, counts.argmax(2), -1)


Answerer = Callable[[Model, Course], Ints]
"""Function that returns the pole that is stated of each axis after a course, shape (E, A), or -1 for none."""


class Marks(NamedTuple):
    """Marks of E episodes."""

    score: Floats
    """Return of the exam with full credit, in [-1, 1], shape (E,)."""
    right: Floats
    """Share of the items that are answered right, in [0, 1], shape (E,)."""


def mark(design: Design, course: Course, stated: Ints) -> Marks:
    """Mark the answers to the exam. An axis that no showing read earns nothing.

    Args:
        design: the structure of the inquiry.
        course: the courses.
        stated: pole that is stated of each axis, shape (E, A). -1 for none. An item without any is left out. With one
            of two, it states the first pole of the other.
    """
    exam = design.exam
    right = np.maximum(stated, 0) == course.world
    scores = np.where(right, 1, -1 / (np.array(exam.poles) - 1)) * answered_shares(exam, stated)
    read = (stated_poles(design, course) >= 0).any(1)
    answered = np.stack([(stated[:, list(axes)] >= 0).any(1) for axes in exam.items], axis=1)
    hits = np.stack([right[:, list(axes)].all(1) for axes in exam.items], axis=1)
    return Marks((scores * read).mean(1), (answered & hits).mean(1))


class Figure(NamedTuple):
    """Mean over episodes with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def figure(values: Floats) -> Figure:
    """Return the mean of values with its 95 % interval, by the normal approximation."""
    mean = float(values.mean())
    half = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Figure(mean, mean - half, mean + half)


class PlayerFigures(NamedTuple):
    """Figures of one player at one level and limit."""

    score: Figure
    """Return of the exam with full credit."""
    right: Figure
    """Share of items answered right."""
    showings: float
    """Mean number of results seen."""
    repeats: float
    """Share of the showings that repeat a study."""


PLAYERS: dict[str, tuple[Chooser, Answerer]] = {
    **{name: (chooser, answer_exactly) for name, chooser in CHOICES.items()},
    "truster": (choose_cover, answer_first),
    "blind-redo": (choose_blind, answer_majority),
}
"""Simulated players: choice of studies and answers. ``best-set`` joins them, whose course depends on the limit."""


def compare_players(
    design: Design, level: int, limit: int, *, known: bool = True, episodes: int = 1000, seed: int = 0
) -> dict[str, PlayerFigures]:
    """Return the figures of all players and of the best fixed course, by name.

    Args:
        design: the structure of the inquiry.
        level: fake level, 0 to 10.
        limit: turn limit.
        known: True if players that reason know the level. Otherwise they take levels 0 to 6 as equally likely.
        episodes: number of episodes, the same ones for all.
        seed: seed of the episodes.
    """
    model = observe(design, level if known else None)
    fixed = partial(choose_course, course=best_course(design, limit))
    played: dict[Chooser, Course] = {}
    outcomes = {}
    for name, (chooser, answerer) in (PLAYERS | {"best-set": (fixed, answer_exactly)}).items():
        if chooser not in played:
            played[chooser] = play_courses(design, level, limit, chooser, model=model, episodes=episodes, seed=seed)
        course = played[chooser]
        marks = mark(design, course, answerer(model, course))
        ran = course.study >= 0
        repeats = float((course.run > 0).sum() / max(ran.sum(), 1))
        outcomes[name] = PlayerFigures(figure(marks.score), figure(marks.right), float(ran.sum(1).mean()), repeats)
    return outcomes


class Tellable(NamedTuple):
    """Fakes of simulated courses that reasoning can tell."""

    fakes: int
    """Number of fakes."""
    tellable: float | None
    """Share that is fake with probability `TELLABLE` or more when shown, the level unknown. None without fakes."""
    foretold: float | None
    """Share whose changed axis had been read by an earlier true showing. None without fakes."""


def tellable_fakes(design: Design, level: int, limit: int, *, episodes: int = 1000, seed: int = 0) -> Tellable:
    """Return the share of fakes on random courses that could be told when they were shown."""
    model = observe(design, None)
    course = play_courses(design, level, limit, choose_cover, model=model, episodes=episodes, seed=seed)
    doubts = replay(model, course)[1]
    poles = stated_poles(design, course)
    changed = (poles >= 0) & (poles != course.world[:, None])
    truly = (poles >= 0) & ~course.fake[:, :, None]
    before = np.cumsum(truly, axis=1) > 0
    foretold = (changed & before).any(2)
    fakes = int(course.fake.sum())
    shares = [float(each[course.fake].mean()) if fakes else None for each in (doubts >= TELLABLE, foretold)]
    return Tellable(fakes, *shares)


LIMITS, LEVELS = (2, 3, 5), (0, 3)
"""Turns per subtopic and fake levels of the tables for authors."""


def player_tables(tree: Tree) -> dict[str, list[list[str]]]:
    """Return what simulated players reach on a tree, and how many fakes could be told, as rows of cells by title.

    Raises:
        OptionError: results join so many axes that their worlds cannot be enumerated.
    """
    design, count = design_of(tree), len(tree.subtopics)
    cells = [(turns, level) for level in LEVELS for turns in LIMITS]
    reached = [compare_players(design, level, turns * count) for turns, level in cells]
    scores = [["player", *(f"{turns}n, level {level}" for turns, level in cells)]]
    for name in reached[0]:
        means = [each[name].score for each in reached]
        scores.append([name, *(f"{each.mean:.2f} ± {each.high - each.mean:.2f}" for each in means)])
    told = [["turns", "fakes", "tellable", "axis read truly before"]]
    for turns in LIMITS:
        found = tellable_fakes(design, LEVELS[-1], turns * count)
        shares = ["" if each is None else f"{each:.2f}" for each in (found.tellable, found.foretold)]
        told.append([f"{turns}n", f"{found.fakes:,}", *shares])
    return {"Exam of simulated players with full credit": scores, f"Fakes at level {LEVELS[-1]}, random choice": told}
