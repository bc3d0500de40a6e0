"""Tricks against `bayes`, the ceiling of the exam: ``python -m research.ceiling``.

Tricks choose studies and answer without a sense of what is worth a turn, or with another one. All play the same
simulated episodes as `bayes`, so differences are paired. A bandit (UCB1, Auer et al. 2002) chooses among the tricks of
a tree from episode to episode by the returns so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import numpy as np
import typer

from inquitree_gym.cli import output
from inquitree_gym.inquiry.courses import (
    CHOICES,
    REPEAT,
    VISIT,
    Chooser,
    View,
    best_course,
    choose_blind,
    choose_course,
    choose_cover,
    choose_greedy,
    missing,
    play_courses,
    visited,
)
from inquitree_gym.inquiry.observer import (
    Bools,
    Design,
    Floats,
    Ints,
    Model,
    design_of,
    information,
    observe,
    outcome_beliefs,
    promise,
)
from inquitree_gym.inquiry.players import Answerer, answer_exactly, answer_first, answer_majority, mark
from inquitree_gym.kinds import kind
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import load_tree

LIMITS, LEVELS = (3, 5), (0, 3)
"""Turns per subtopic, and fake levels."""
SURE = 0.9
"""Belief in an outcome from which `until_sure` goes on."""
_SAME = 1e-9
HEADS = "| player | return | − bayes | above in |\n| --- | --: | --: | --: |"
BAYES, BANDIT = "bayes", "bandit over the tricks"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def open_studies(model: Model, view: View) -> Bools:
    """Return the studies that were not run, can be run now and fit, shape (E, S)."""
    design = model.design
    ready = (missing(design, visited(design, view.runs)) == 0)[:, list(design.homes)]
    return np.asarray((view.runs == 0) & ready & (view.left[:, None] >= VISIT))


def _largest(worth: Floats, mask: Bools) -> Ints:
    """Return the column of each row with the largest worth among those of a mask. -1 where it has none."""
    return np.where(mask.any(1), np.where(mask, worth, -np.inf).argmax(1), -1)


def _repeatable(view: View) -> Bools:
    return np.asarray((view.last >= 0) & (view.left >= REPEAT))


def _ran_last(view: View) -> Ints:
    return np.where(view.last >= 0, view.runs[np.arange(len(view.last)), view.last], 0)


def once_more(model: Model, view: View) -> Ints:
    """Repeat every study once, and choose the most informative new one."""
    again = _repeatable(view) & (_ran_last(view) == 1)
    return np.where(again, view.last, choose_greedy(model, view, repeats=False))


def until_sure(model: Model, view: View) -> Ints:
    """Repeat a study until one of its outcomes is likely enough, then choose the most informative new one."""
    found = outcome_beliefs(model, view.belief).sum(1)[np.arange(len(view.last)), view.last].max(1)
    again = _repeatable(view) & (found < SURE)
    return np.where(again, view.last, choose_greedy(model, view, repeats=False))


def stop_early(model: Model, view: View) -> Ints:
    """Choose the most informative new study until every axis was read, and conclude."""
    reads = model.design.strides.T > 0
    done = ((view.runs > 0) @ reads > 0).all(1)
    return np.where(done, -1, choose_greedy(model, view, repeats=False))


def one_subtopic(model: Model, view: View) -> Ints:
    """Run all studies of the subtopic whose studies tell the most together, and conclude."""
    homes = np.array(model.design.homes)
    can, own = open_studies(model, view), homes[view.last]
    inside = can & (homes == own[:, None]) & (view.last >= 0)[:, None]
    told = np.asarray(information(model, view.belief) @ np.eye(homes.max() + 1)[homes], np.float64)
    first = can & (view.last < 0)[:, None]
    return np.where(view.last < 0, _largest(told[:, homes], first), _largest(np.zeros(view.runs.shape), inside))


def alternate(model: Model, view: View) -> Ints:
    """Repeat by promise at every second showing, and choose a new study by information at the others."""
    odd = view.runs.sum(1) % 2 == 1
    return np.where(odd, choose_greedy(model, view, value=promise), choose_greedy(model, view, repeats=False))


def two_axes(model: Model, view: View) -> Ints:
    """Run studies of two axes where one is open, else a random one."""
    wide = np.array([len(axes) > 1 for axes in model.design.reads])
    found = _largest(view.rng.random(view.runs.shape), open_studies(model, view) & wide)
    return np.where(found >= 0, found, choose_cover(model, view))


class TwoAgree:
    """Repeats a study until two of its showings agree, then chooses a random new one.

    A showing is the outcome whose belief it raised by the largest factor. One that earlier results rule out is taken
    for the one that they leave.
    """

    def __init__(self) -> None:
        self._before: Floats | None = None
        self._seen: Ints = np.zeros((0, 0, 0), np.int64)

    def __call__(self, model: Model, view: View) -> Ints:
        """Return the next study of each episode."""
        rows, now = np.arange(len(view.last)), outcome_beliefs(model, view.belief).sum(1)
        if self._before is None or not view.runs.any():
            self._seen = np.zeros(now.shape, np.int64)
        else:
            before, after = self._before[rows, view.last], now[rows, view.last]
            raised = np.divide(after, before, out=np.zeros_like(after), where=before > 0).argmax(1)
            self._seen[rows, view.last, raised] += 1
        self._before = now
        again = _repeatable(view) & (self._seen[rows, view.last].max(1) < 2)
        return np.where(again, view.last, choose_cover(model, view))


def tricks(design: Design, limit: int) -> dict[str, tuple[Chooser, Answerer]]:
    """Return choices and answers of all that play against `bayes`, by name."""
    fixed = partial(choose_course, course=best_course(design, limit))
    return {
        "cover": (choose_cover, answer_exactly),
        "greedy": (CHOICES["greedy"], answer_exactly),
        "best fixed course": (fixed, answer_exactly),
        "cover, first showing": (choose_cover, answer_first),
        "cover, majority": (choose_cover, answer_majority),
        "each study three times, majority": (choose_blind, answer_majority),
        "each study twice": (once_more, answer_exactly),
        "until two agree": (TwoAgree(), answer_majority),
        "until 0.9 sure": (until_sure, answer_exactly),
        "stop at one reading": (stop_early, answer_exactly),
        "one subtopic": (one_subtopic, answer_exactly),
        "alternate": (alternate, answer_exactly),
        "two axes first": (two_axes, answer_exactly),
        "information with repeats": (choose_greedy, answer_exactly),
    }


def returns(design: Design, level: int, limit: int, episodes: int) -> dict[str, Floats]:
    """Return the exam of every player in every episode by name, shape (E,) each, with that of the bandit."""
    model = observe(design, level)
    found = {}
    players = {BAYES: (CHOICES[BAYES], answer_exactly)} | tricks(design, limit)
    for name, (chooser, answerer) in players.items():
        course = play_courses(design, level, limit, chooser, model=model, episodes=episodes, seed=0)
        found[name] = mark(design, course, answerer(model, course)).score
    found[BANDIT] = bandit(np.stack([each for name, each in found.items() if name != BAYES]))
    return found


def bandit(rewards: Floats) -> Floats:
    """Return what UCB1 earns in each episode, shape (E,), given what each arm would, shape (arms, E), in [-1, 1]."""
    arms, episodes = rewards.shape
    earned, total, pulls = np.zeros(episodes), np.zeros(arms), np.zeros(arms)
    for episode in range(episodes):
        bonus = np.sqrt(2 * math.log(episode + 1) / np.maximum(pulls, 1)) * 2  # the range of a return is 2
        arm = int(np.where(pulls == 0, np.inf, total / np.maximum(pulls, 1) + bonus).argmax())
        earned[episode] = rewards[arm, episode]
        total[arm] += earned[episode]
        pulls[arm] += 1
    return earned


@app.command()
def ceiling(
    papers: output.PapersOption = ALL,
    episodes: Annotated[int, typer.Option(min=2, help="Episodes of each tree, level and limit.")] = 400,
) -> None:
    """Print Markdown tables of the exam of every trick and of its difference from that of bayes: means over trees."""
    trees = [load_tree(name) for name in kind("inquiry").tasks.expand(output.split(papers))]
    for level in LEVELS:
        for turns in LIMITS:
            found = {tree.id: returns(design_of(tree), level, turns * len(tree.subtopics), episodes) for tree in trees}
            typer.echo(f"\nlevel {level}, {turns}n turns\n\n{HEADS}")
            for name in next(iter(found.values())):
                mean, gap, above = compared(found, name)
                typer.echo(f"| {name} | {mean} | {gap} | {above} of {len(trees)} |")


def compared(found: Mapping[str, Mapping[str, Floats]], name: str) -> tuple[Estimate, Estimate, int]:
    """Return the mean return of a player, its difference from bayes, and in how many trees it is above by 2 errors."""
    gaps = {tree: each[name] - each[BAYES] for tree, each in found.items()}
    above = sum(gap.mean() > max(2 * gap.std() / math.sqrt(len(gap)), _SAME) for gap in gaps.values())
    mean = clustered_mean((tree, float(each[name].mean())) for tree, each in found.items())
    return mean, clustered_mean((tree, float(gap.mean())) for tree, gap in gaps.items()), above


if __name__ == "__main__":
    app()
