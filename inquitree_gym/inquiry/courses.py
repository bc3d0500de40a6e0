"""Simulated courses of inquiry: choices of studies under a turn limit, their showings, and the exam after them.

Proposals are always understood here. A study takes three turns: its subtopic, its protocol and going on. A repetition
right after its study takes one, and a later one four: its subtopic, its protocol, the decision to redo and going on. A
result that is shown on the last turn counts, so the first study needs two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.inquiry.observer import (
    Bools,
    Design,
    Floats,
    Ints,
    Model,
    Posterior,
    axis_beliefs,
    expected_scores,
    fake_chances,
    information,
    observe,
    promise,
    start,
    update,
)
from inquitree_gym.seeds import hash_words, splitmix64

VISIT, REPEAT, RETURN = 3, 1, 4
"""Turns of a study, of a repetition right after it, and of a later one."""
BEAM = 4096
"""Number of partial courses that the search for the best one keeps."""
_NOTHING = 1e-9
"""Value up to which a showing counts as worth nothing."""
_WORLD, _CHOICES = 1, 2


class Course(NamedTuple):
    """Showings of E episodes of at most T showings each. Columns have -1, and no fake, after the last one."""

    world: Ints
    """Pole of each axis that holds, shape (E, A)."""
    study: Ints
    """Study of each showing, shape (E, T)."""
    run: Ints
    """Number of earlier showings of the study, shape (E, T)."""
    shown: Ints
    """Outcome shown, shape (E, T)."""
    fake: Bools
    """True for each fake, shape (E, T)."""


class View(NamedTuple):
    """State of E episodes that a chooser sees."""

    belief: Posterior
    runs: Ints
    """Number of showings of each study, shape (E, S)."""
    last: Ints
    """Study shown last, shape (E,). -1 before the first."""
    left: Ints
    """Turns left, shape (E,), one more than up to the limit: nobody has to go on after the last result."""
    rng: np.random.Generator


Chooser = Callable[[Model, View], Ints]
"""Function that returns the next study of each episode, shape (E,), or -1 to conclude."""


def visited(design: Design, runs: Ints) -> Bools:
    """Return which subtopics were visited, shape (E, subtopics), given the runs of each study."""
    homes = np.eye(len(design.prerequisites), dtype=bool)[list(design.homes)]
    return (runs > 0) @ homes


def missing(design: Design, seen: Bools) -> Ints:
    """Return how many subtopics must be visited before each one, directly or not, shape (E, subtopics)."""
    return (~seen).astype(np.int64) @ _ancestors(design).T


@lru_cache(maxsize=64)
def _ancestors(design: Design) -> Ints:
    """Return the matrix whose row i has 1 for each subtopic that subtopic i needs, directly or not."""
    n = len(design.prerequisites)
    needs = np.array([[bits >> j & 1 for j in range(n)] for bits in design.prerequisites])
    for _ in range(n):
        needs = needs | (needs @ needs > 0)
    return np.asarray(needs, np.int64)


def choose_cover(model: Model, view: View) -> Ints:
    """Choose a random open subtopic, and in it a random study that was not run."""
    design = model.design
    homes = np.array(design.homes)
    fresh = (view.runs == 0) & (missing(design, visited(design, view.runs)) == 0)[:, homes]
    fresh &= view.left[:, None] >= VISIT
    held = np.stack([fresh[:, homes == home].any(1) for home in range(len(design.prerequisites))], axis=1)
    subtopic = _draw(held, view.rng)
    return _draw(fresh & (homes == subtopic[:, None]), view.rng)


def choose_blind(model: Model, view: View, repeats: int = 2) -> Ints:
    """Repeat every study this many times, then choose as `choose_cover`."""
    rows = np.arange(len(view.last))
    again = (view.last >= 0) & (view.runs[rows, view.last] <= repeats) & (view.left >= REPEAT)
    return np.where(again, view.last, choose_cover(model, view))


def choose_course(model: Model, view: View, course: tuple[int, ...] = ()) -> Ints:
    """Run the studies of a fixed course in turn."""
    step = int(view.runs[0].sum())
    fits = step < len(course) and view.left >= VISIT
    return np.where(fits, course[step] if step < len(course) else -1, -1) + np.zeros_like(view.last)


def choose_greedy(
    model: Model, view: View, *, value: Callable[[Model, Posterior], Floats] = information, repeats: bool = True
) -> Ints:
    """Choose the study with the largest expected value per turn, looking ahead to locked subtopics.

    A locked subtopic counts with its best study over the turns of the whole way there, less than which its first step
    is never worth. Nothing is chosen once no study that fits has any.

    Args:
        model: the assumptions of the chooser.
        view: the state.
        value: value of the next showing of each study: `information` or `promise`.
        repeats: allow studies that were run before, the last one for a single turn.
    """
    design, rows = model.design, np.arange(len(view.last))
    homes, n = np.array(design.homes), len(design.prerequisites)
    seen = visited(design, view.runs)
    gaps = missing(design, seen)
    gain = value(model, view.belief)
    turns = np.where(view.runs > 0, RETURN, VISIT)
    single = np.where((view.last >= 0) & (view.left >= REPEAT) & repeats, gain[rows, view.last], 0) / REPEAT
    if not repeats:
        gain = np.where(view.runs > 0, 0, gain)
    rate = np.where(turns <= view.left[:, None], gain / turns, 0)
    inside = [np.flatnonzero(homes == home) for home in range(n)]
    best = np.stack([rate[:, studies].max(1) for studies in inside], axis=1)
    worth = _worth(design, best, gaps, seen, view.left)
    subtopic = worth.argmax(1)
    study = np.where(homes == subtopic[:, None], rate, -1).argmax(1)
    study = np.where(single >= worth.max(1), view.last, study)
    return np.where(np.maximum(single, worth.max(1)) > _NOTHING, study, -1)


_promising: Chooser = partial(choose_greedy, value=promise)


def choose_planned(model: Model, view: View) -> Ints:
    """Choose by promise per turn, after a plan where that reads too few axes. See `plan`."""
    chosen = _promising(model, view)
    limits = view.left + VISIT * view.runs.sum(1) - 1  # of episodes without a repetition, which alone can be in a plan
    for limit in np.unique(limits[view.runs.max(1) <= 1]):
        course = plan(model, int(limit))
        for step, study in enumerate(course):
            before = np.bincount(course[:step], minlength=view.runs.shape[1])
            chosen = np.where((limits == limit) & (view.runs == before).all(1), study, chosen)
    return chosen


@lru_cache(maxsize=1024)
def plan(model: Model, limit: int, episodes: int = 400) -> tuple[int, ...]:
    """Return the studies with which to begin under a turn limit. None where choice by promise does as well.

    Choice by promise looks no further than the next subtopics. Under a short limit it can spend turns on an axis that
    a later study reads beside another one. Then `best_course` reads more axes. It is the plan if simulated episodes
    that begin with it are worth more.
    """
    design = model.design
    if model.level is None or limit >= VISIT * len(design.reads):
        return ()
    alone = play_courses(design, 0, limit, _promising, model=observe(design, 0), episodes=1, seed=0).study[0]
    if len(_axes(design, alone[alone >= 0])) == len(design.exam.poles):
        return ()
    course = best_course(design, limit)
    if len(_axes(design, course)) <= len(_axes(design, alone[alone >= 0])):
        return ()

    def begin(model: Model, view: View) -> Ints:
        step = int(view.runs[0].sum())
        return choose_course(model, view, course) if step < len(course) else _promising(model, view)

    worth = [_mean_worth(model, limit, chooser, episodes) for chooser in (begin, _promising)]
    return course if worth[0] > worth[1] else ()


def _axes(design: Design, studies: Iterable[int]) -> set[int]:
    return {axis for study in studies for axis in design.reads[study]}


CHOICES: dict[str, Chooser] = {
    "bayes": choose_planned,
    "greedy": partial(choose_greedy, repeats=False),
    "cover": choose_cover,
}
"""Choices of those who answer by the exact posterior, by name."""


def _worth(design: Design, best: Floats, gaps: Ints, seen: Bools, left: Ints) -> Floats:
    """Return the information per turn of entering each subtopic, shape (E, subtopics). 0 if it does not fit.

    ``best`` has the largest information per turn of a study of each subtopic by itself, 0 if none fits.
    """
    turns = VISIT * (1 + gaps)
    fits = turns <= left[:, None]
    onward = (gaps > 0) & fits
    ways = _ancestors(design).T[None] * (~seen)[:, :, None] * onward[:, None, :]  # (E, step, goal)
    ahead = np.where(ways > 0, VISIT * (best[:, :, None] + best[:, None, :]) / turns[:, None, :], 0).max(2)
    return np.where((gaps == 0) & fits, np.maximum(best, ahead), 0)


def _draw(mask: Bools, rng: np.random.Generator) -> Ints:
    """Draw a true column of each row, or -1 where there is none."""
    drawn = np.where(mask, 1 - rng.random(mask.shape), 0)
    return np.where(mask.any(1), drawn.argmax(1), -1)


def best_course(design: Design, limit: int) -> tuple[int, ...]:
    """Return the shortest sequence of studies that reads the most axes within a turn limit.

    The search is exact as long as it holds no more than `BEAM` partial courses. Beyond that, it keeps those that read
    the most.
    """
    masks = [sum(1 << axis for axis in axes) for axes in design.reads]
    needed = 0
    for bits in design.prerequisites:
        needed |= bits
    courses: dict[tuple[int, int], tuple[int, ...]] = {(0, 0): ()}
    best: tuple[int, ...] = ()
    most = 0
    for _ in range((limit + 1) // VISIT):
        longer: dict[tuple[int, int], tuple[int, ...]] = {}
        for (seen, read), course in courses.items():
            for study, home in enumerate(design.homes):
                if not design.prerequisites[home] & ~seen:
                    state = (seen | 1 << home & needed, read | masks[study])
                    longer.setdefault(state, (*course, study))
        kept = sorted(longer, key=lambda state: -state[1].bit_count())[:BEAM]
        courses = {state: longer[state] for state in kept}
        if kept and kept[0][1].bit_count() > most:
            most, best = kept[0][1].bit_count(), courses[kept[0]]
    return best


def play_courses(
    design: Design, level: int, limit: int, chooser: Chooser, *, model: Model, episodes: int, seed: int
) -> Course:
    """Play episodes in drawn worlds until the chooser concludes or nothing fits the limit.

    Worlds and showings depend on the seed, the episode, the study and its run alone, so that levels are nested and
    choosers can be compared episode by episode.

    Args:
        design: the structure of the inquiry.
        level: fake level, 0 to 10.
        limit: turn limit.
        chooser: policy.
        model: assumptions of the chooser.
        episodes: number of episodes.
        seed: seed of worlds, showings and random choices.
    """
    keys = hash_words(np.full(episodes, splitmix64(seed), np.uint64), np.arange(episodes))
    drawn = hash_words(hash_words(keys, np.array(_WORLD))[:, None], np.arange(len(design.exam.poles))[None])
    world = np.floor(_unit(drawn) * design.exam.poles).astype(np.int64)
    outcomes, rows, none = world @ design.strides, np.arange(episodes), np.full(episodes, -1)
    runs = np.zeros((episodes, len(design.reads)), np.int64)
    rng = np.random.default_rng([seed, _CHOICES])
    view = View(start(model, episodes), runs, none, np.full(episodes, limit + 1), rng)
    steps: list[tuple[Ints, Ints, Ints, Bools]] = []
    while (study := chooser(model, view)).max() >= 0 or not steps:
        ran, run, true = study >= 0, view.runs[rows, study], outcomes[rows, study]
        shown = draw_shown(design, level, keys, study, run, true)
        steps.append((study, np.where(ran, run, -1), np.where(ran, shown, -1), ran & (shown != true)))
        view = _after(model, view, study, shown)
    return Course(world, *(np.stack(column, axis=1) for column in zip(*steps, strict=True)))


def _after(model: Model, view: View, study: Ints, shown: Ints) -> View:
    """Return the view after one more showing of each episode that goes on."""
    ran, rows = study >= 0, np.arange(len(study))
    runs = view.runs.copy()
    again = np.where(study == view.last, REPEAT, RETURN)
    turns = np.where(runs[rows, study] > 0, again, VISIT)
    runs[rows[ran], study[ran]] += 1
    return view._replace(
        belief=update(model, view.belief, study, shown),
        runs=runs,
        last=np.where(ran, study, view.last),
        left=np.where(ran, view.left - turns, 0),
    )


def draw_shown(design: Design, level: int, keys: NDArray[np.uint64], study: Ints, run: Ints, true: Ints) -> Ints:
    """Draw the outcome that each study shows.

    Args:
        design: the structure of the inquiry.
        level: fake level, 0 to 10.
        keys: hash of each episode.
        study: study of each episode.
        run: number of its earlier showings.
        true: its true outcome.
    """
    own = hash_words(hash_words(keys, study), run)
    fake = _unit(hash_words(own, np.array(0))) < level / 10
    chances = np.cumsum(design.fake_law[study, true], axis=1)
    shown = (_unit(hash_words(own, np.array(1)))[:, None] * chances[:, -1:] >= chances).sum(1)
    return np.where(fake, shown, true)


def _unit(hashes: NDArray[np.uint64]) -> Floats:
    """Return hashes as numbers in [0, 1)."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53


def replay(model: Model, course: Course) -> tuple[Posterior, Floats]:
    """Return the belief after a course, and the probability of each showing, when it came, that it was fake.

    The second has shape (E, T) and is 0 after the last showing.
    """
    belief = start(model, len(course.world))
    doubts = np.zeros(course.study.shape)
    for t, (study, shown) in enumerate(zip(course.study.T, course.shown.T, strict=True)):
        belief = update(model, belief, study, shown)
        doubts[:, t] = np.where(study >= 0, fake_chances(model, belief, study, shown), 0)
    return belief, doubts


@lru_cache(maxsize=1024)
def mean_worth(design: Design, level: int, limit: int, choice: str, episodes: int = 400) -> float:
    """Return what simulated showings are worth: the mean expected return of the best sheet.

    Args:
        design: the structure of the inquiry.
        level: fake level, 0 to 10, which the chooser knows.
        limit: turn limit.
        choice: one of `CHOICES`.
        episodes: number of episodes.
    """
    return _mean_worth(observe(design, level), limit, CHOICES[choice], episodes)


def _mean_worth(model: Model, limit: int, chooser: Chooser, episodes: int) -> float:
    level = model.level or 0
    course = play_courses(model.design, level, limit, chooser, model=model, episodes=episodes, seed=0)
    return float(expected_scores(model, axis_beliefs(model, replay(model, course)[0])).mean())


def stated_poles(design: Design, course: Course) -> Ints:
    """Return the pole that each showing states of each axis, shape (E, T, A). -1 for an axis that it does not read."""
    strides = design.strides.T[course.study]
    reads = _reads(design)[course.study] & (course.study >= 0)[:, :, None]
    return np.where(reads, course.shown[:, :, None] // np.maximum(strides, 1) % design.exam.poles, -1)


def _reads(design: Design) -> Bools:
    return np.array([[axis in axes for axis in range(len(design.exam.poles))] for axes in design.reads])
