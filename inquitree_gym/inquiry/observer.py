"""Exact posterior over worlds after what an inquiry has shown, for many episodes at once.

A showing of a study is fake with probability level / 10. A fake is drawn evenly among the outcomes that differ from the
true one in the pole of one axis. Each showing is drawn afresh. So in each world the likelihood of all showings is a
product.

Axes that no result reads together are independent, given the level. So worlds are enumerated in blocks of axes that
results join, and trees of any size stay exact. All arrays have a row per episode. Shapes name E episodes, L levels, S
studies, A axes, W worlds of a block, K the largest number of poles of an axis and M that of outcomes of a study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.exam import Exam, exam_of

if TYPE_CHECKING:
    from inquitree_gym.sheets import Sheet
    from inquitree_gym.trees.schema import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNKNOWN = tuple(range(7))
"""Levels that are equally likely where the level is not known."""
TELLABLE = 0.6
"""A fake is tellable if it is fake with at least this probability when it is shown."""
MOST_WORLDS = 4096
"""Largest number of worlds of a block."""
_EVEN = 1e-9


@dataclass(frozen=True)
class Design:
    """Structure of an inquiry in numbers: what can be visited, and what each study reads."""

    exam: Exam
    prerequisites: tuple[int, ...]
    """Bit set of the prerequisites of each subtopic."""
    homes: tuple[int, ...]
    """Subtopic of each study."""
    reads: tuple[tuple[int, ...], ...]
    """Axes that each study reads, in the order of its keys. None for a control."""

    def outcomes(self, study: int) -> int:
        """Return the number of outcomes of a study: the combinations of the poles of its axes."""
        return math.prod(self.exam.poles[axis] for axis in self.reads[study])

    def outcome(self, study: int, poles: Sequence[int]) -> int:
        """Return the number of an outcome, given its poles in the order of the study's keys."""
        return int(sum(pole * step for pole, step in zip(poles, self._steps(study), strict=True)))

    def poles(self, study: int, outcome: int) -> dict[int, int]:
        """Return the pole that an outcome states of each axis that the study reads."""
        steps = zip(self.reads[study], self._steps(study), strict=True)
        return {axis: outcome // step % self.exam.poles[axis] for axis, step in steps}

    def _steps(self, study: int) -> list[int]:
        after = [self.exam.poles[axis] for axis in self.reads[study][1:]]
        return [math.prod(after[i:]) for i in range(len(self.reads[study]))]

    @cached_property
    def strides(self) -> Ints:
        """Matrix of shape (A, S): the outcomes of all studies in a world are ``world @ strides``."""
        strides = np.zeros((len(self.exam.poles), len(self.reads)), np.int64)
        for study, axes in enumerate(self.reads):
            strides[list(axes), study] = self._steps(study)
        return strides

    @cached_property
    def fake_law(self) -> Floats:
        """Probability of each outcome shown by a fake, shape (S, M true, M shown). A control shows the truth."""
        most = max(map(self.outcomes, range(len(self.reads))))
        law = np.zeros((len(self.reads), most, most))
        for study, axes in enumerate(self.reads):
            fakes = sum(self.exam.poles[axis] - 1 for axis in axes)
            if not axes:
                law[study, 0, 0] = 1
            for true in product(*(range(self.exam.poles[axis]) for axis in axes)):
                for place, axis in enumerate(axes):
                    for pole in set(range(self.exam.poles[axis])) - {true[place]}:
                        shown = self.outcome(study, (*true[:place], pole, *true[place + 1 :]))
                        law[study, self.outcome(study, true), shown] = 1 / fakes
        return law


@lru_cache(maxsize=64)
def design_of(tree: Tree) -> Design:
    """Return the design of a tree."""
    places = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
    return Design(
        exam_of(tree),
        tuple(sum(1 << places[needed] for needed in subtopic.requires) for subtopic in tree.subtopics),
        tuple(home for home, subtopic in enumerate(tree.subtopics) for _ in subtopic.studies),
        tuple(tuple(tree.axis_index[axis] for axis in study.result.axes) for study in tree.studies),
    )


class Block(NamedTuple):
    """Axes that results join, and all their worlds."""

    axes: tuple[int, ...]
    worlds: Ints
    """Poles, shape (W, axes of the block)."""
    reads: Bools
    """True for each study that reads an axis of the block, shape (S,)."""
    outcomes: Ints
    """Outcome of each study in each world, shape (S, W). 0 for a study that reads none of the block."""
    poles: Floats
    """1 for the pole of each axis of the block in each world, shape (W, axes of the block · K)."""
    shown: Floats
    """1 for the outcome of each study that reads the block in each world, shape (W, such studies · M)."""


@dataclass(frozen=True, eq=False)
class Model:
    """Assumptions of an observer: a design, the levels that it thinks possible, and the law of fakes."""

    design: Design
    blocks: tuple[Block, ...]
    law: Floats
    """Probability of each outcome of a showing, shape (L, S, M true, M shown)."""
    level: int | None
    """Fake level. None if it is not known."""


class Posterior(NamedTuple):
    """Belief in each of E episodes."""

    levels: Floats
    """Probability of each level, shape (E, L)."""
    worlds: tuple[Floats, ...]
    """Probability of each world of each block, given the level, shape (E, L, W)."""


@lru_cache(maxsize=64)
def observe(design: Design, level: int | None = None) -> Model:
    """Return the model of an observer that knows the fake level, or takes levels 0 to 6 as equally likely.

    Raises:
        OptionError: results join so many axes that their worlds cannot be listed.
    """
    rates = np.array(UNKNOWN if level is None else [level])[:, None, None, None] / 10
    law = (1 - rates) * np.eye(design.fake_law.shape[1]) + rates * design.fake_law
    return Model(design, tuple(_block(design, axes) for axes in _joined(design)), law, level)


def _joined(design: Design) -> list[tuple[int, ...]]:
    """Return the axes in groups that results join."""
    groups = [{axis} for axis in range(len(design.exam.poles))]
    for axes in design.reads:
        met = [group for group in groups if group & set(axes)]
        groups = [group for group in groups if group not in met] + ([set().union(*met)] if met else [])
    return sorted(tuple(sorted(group)) for group in groups)


def _block(design: Design, axes: tuple[int, ...]) -> Block:
    size = math.prod(design.exam.poles[axis] for axis in axes)
    if size > MOST_WORLDS:
        raise OptionError(
            f"results must join axes with at most {MOST_WORLDS} worlds, got {len(axes)} joined axes with {size}. "
            "Let fewer studies read two axes."
        )
    worlds = np.array(list(product(*(range(design.exam.poles[axis]) for axis in axes))), np.int64)
    reads = np.array([bool(set(each) & set(axes)) for each in design.reads])
    outcomes = (worlds @ design.strides[list(axes)]).T
    states, shown = np.eye(max(design.exam.poles))[worlds], np.eye(design.fake_law.shape[1])[outcomes[reads].T]
    return Block(axes, worlds, reads, outcomes, states.reshape(len(worlds), -1), shown.reshape(len(worlds), -1))


def start(model: Model, episodes: int = 1) -> Posterior:
    """Return the belief before any study: all levels and all worlds are equally likely."""
    levels = len(model.law)
    sizes = [len(block.worlds) for block in model.blocks]
    return Posterior(
        np.full((episodes, levels), 1 / levels), tuple(np.full((episodes, levels, size), 1 / size) for size in sizes)
    )


def update(model: Model, belief: Posterior, study: Ints, shown: Ints) -> Posterior:
    """Return the belief after one showing per episode.

    Args:
        model: the assumptions.
        belief: the belief before.
        study: study of each episode, shape (E,). -1 for no showing.
        shown: outcome that it showed, shape (E,).

    Raises:
        OptionError: the showings of an episode cannot occur under the model.
    """
    ran, likely = study >= 0, model.law[:, study, :, shown]
    levels, worlds = belief.levels.copy(), list(belief.worlds)
    for i, block in enumerate(model.blocks):
        mine = ran & block.reads[study]
        if not mine.any():
            continue
        joint = belief.worlds[i][mine] * np.take_along_axis(likely[mine], block.outcomes[study[mine], None], axis=2)
        total = joint.sum(2)
        levels[mine] *= total
        worlds[i] = belief.worlds[i].copy()
        worlds[i][mine] = np.divide(joint, total[..., None], out=worlds[i][mine], where=total[..., None] > 0)
    return Posterior(_shares(levels, study, shown), tuple(worlds))


def _update_one(model: Model, belief: Posterior, study: int, shown: int) -> Posterior:
    """Return what `update` returns for a single episode, which needs no choice of rows."""
    levels, worlds = belief.levels, list(belief.worlds)
    for i, block in enumerate(model.blocks):
        if block.reads[study]:
            joint = worlds[i] * model.law[:, study, block.outcomes[study], shown]
            levels = levels * (total := joint.sum(2))
            worlds[i] = np.divide(joint, total[..., None], out=worlds[i].copy(), where=total[..., None] > 0)
    return Posterior(_shares(levels, (study,), (shown,)), tuple(worlds))


def _shares(levels: Floats, study: Sequence[int] | Ints, shown: Sequence[int] | Ints) -> Floats:
    """Return the rows divided by their sums, none of which may be 0."""
    total = levels.sum(1, keepdims=True)
    if not total.all():
        row = int(np.argmin(total))
        raise OptionError(
            f"outcome {shown[row]} of study {study[row]} is impossible at the fake level assumed; pass level=None"
        )
    return np.asarray(levels / total)


def beliefs_along(model: Model, showings: Iterable[tuple[int, int]]) -> Iterator[Posterior]:
    """Yield the belief of one episode before any showing and after each, a study and the place of its outcome."""
    yield (belief := start(model))
    for study, outcome in showings:
        yield (belief := _update_one(model, belief, study, outcome))


def believe(model: Model, showings: Iterable[tuple[int, int]]) -> Posterior:
    """Return the belief of one episode after all its showings. See `beliefs_along`."""
    *_, belief = beliefs_along(model, showings)
    return belief


def stack(beliefs: Sequence[Posterior]) -> Posterior:
    """Return several beliefs, at least one, as the rows of one."""
    blocks = zip(*(belief.worlds for belief in beliefs), strict=True)
    return Posterior(np.concatenate([belief.levels for belief in beliefs]), tuple(map(np.concatenate, blocks)))


def outcome_beliefs(model: Model, belief: Posterior) -> Floats:
    """Return the joint probability of level and true outcome of each study, shape (E, L, S, M)."""
    most = model.law.shape[-1]
    found = np.zeros((*belief.levels.shape, len(model.design.reads), most))
    found[..., 0] = 1
    for block, worlds in zip(model.blocks, belief.worlds, strict=True):
        shown = np.dot(worlds.reshape(-1, len(block.worlds)), block.shown)
        found[:, :, block.reads] = shown.reshape(*belief.levels.shape, -1, most)
    return found * belief.levels[:, :, None, None]


def axis_beliefs(model: Model, belief: Posterior) -> Floats:
    """Return the probability of each pole of each axis, shape (E, A, K). Poles that an axis lacks have 0."""
    poles = model.design.exam.poles
    found = np.zeros((len(belief.levels), len(poles), max(poles)))
    for block, worlds in zip(model.blocks, belief.worlds, strict=True):
        mixed = np.einsum("el,elw->ew", belief.levels, worlds)
        found[:, list(block.axes)] = np.dot(mixed, block.poles).reshape(len(mixed), -1, max(poles))
    return found


def option_beliefs(model: Model, belief: Posterior) -> list[tuple[float, ...]]:
    """Return the probability, in one episode, that each option of each item of the exam holds."""
    exam, found = model.design.exam, []
    for item, axes in enumerate(exam.items):
        chances = np.repeat(belief.levels[0][:, None], exam.options(item), axis=1)
        stated = np.array([exam.stated(item, option) for option in range(exam.options(item))])
        for block, worlds in zip(model.blocks, belief.worlds, strict=True):
            mine = [(place, block.axes.index(axis)) for place, axis in enumerate(axes) if axis in block.axes]
            for_items, for_worlds = [place for place, _ in mine], [place for _, place in mine]
            holds = (block.worlds[:, None, for_worlds] == stated[None, :, for_items]).all(2)
            chances *= worlds[0] @ holds
        found.append(tuple(map(float, chances.sum(0))))
    return found


def fake_chances(model: Model, belief: Posterior, study: Ints, shown: Ints) -> Floats:
    """Return the probability that a showing was fake, shape (E,): that the study's true outcome is another one.

    Args:
        model: the assumptions.
        belief: the belief after the showing, or after any later one.
        study: study of each episode, shape (E,).
        shown: outcome that it showed, shape (E,).
    """
    true = outcome_beliefs(model, belief).sum(1)[np.arange(len(study)), study, shown]
    return np.asarray(np.clip(1 - true, 0, 1))


def information(model: Model, belief: Posterior) -> Floats:
    """Return the expected information of the next showing of each study about its axes in bits, shape (E, S)."""
    joint = _next_showings(model, belief)
    bits = _bits(joint).sum((2, 3)) - _bits(joint.sum(3)).sum(2) - _bits(joint.sum(2)).sum(2)
    return np.asarray(np.clip(bits, 0, None))


def promise(model: Model, belief: Posterior) -> Floats:
    """Return the expected growth of the sum of score^1.5 over the axes by the next showing of each study, shape (E, S).

    In expectation, a second reading of an axis adds nothing to its score, although it makes a third one useful, and it
    adds so many bits that other axes are left unread. The exponent lies between.
    """
    joint, exam = _next_showings(model, belief), model.design.exam
    gain = np.zeros(joint.shape[:2])
    for axis, poles in enumerate(exam.poles):
        studies = [study for study, axes in enumerate(model.design.reads) if axis in axes]
        steps = model.design.strides[axis, studies]
        pole = np.arange(joint.shape[2]) // steps[:, None] % poles
        chances = np.einsum("estm,stk->eskm", joint[:, studies], np.eye(poles)[pole])
        shown = chances.sum(2)
        likeliest = np.divide(chances.max(2), shown, out=np.zeros_like(shown), where=shown > 0)
        now = chances.sum(3).max(2)
        gain[:, studies] += (shown * _promised(likeliest, poles)).sum(2) - _promised(now, poles)
    return np.clip(gain, 0, None)


def _promised(likeliest: Floats, poles: int) -> Floats:
    return np.asarray(np.clip((likeliest * poles - 1) / (poles - 1), 0, 1) ** 1.5)


def _next_showings(model: Model, belief: Posterior) -> Floats:
    """Return the joint probability of true and next shown outcome of each study, shape (E, S, M, M)."""
    several = len(model.law) > 1  # for one level, a fast order of the sum would take longer to find than the sum
    return np.asarray(np.einsum("elst,lstm->estm", outcome_beliefs(model, belief), model.law, optimize=several))


def _bits(chance: Floats) -> Floats:
    return chance * np.log2(chance, out=np.zeros_like(chance), where=chance > 0)


def likeliest_poles(model: Model, beliefs: Floats) -> Ints:
    """Return the likeliest pole of each axis, the first of equally likely ones, shape (E, A). -1 if all are."""
    even = 1 / np.array(model.design.exam.poles)
    return np.where(beliefs.max(2) > even + _EVEN, beliefs.argmax(2), -1)


def expected_scores(model: Model, beliefs: Floats) -> Floats:
    """Return the expected score of each axis with the best sheet, in [0, 1], shape (E, A)."""
    poles = np.array(model.design.exam.poles)
    stated = likeliest_poles(model, beliefs)
    gain = (beliefs.max(2) * poles - 1) / (poles - 1)
    return np.where(stated >= 0, gain * answered_shares(model.design.exam, stated), 0.0)


def expected_return(model: Model, beliefs: Floats, sheet: Sheet, credit: Sequence[float]) -> float:
    """Return the mean of `exam.exam_return` of one episode over the worlds as they are believed in, in [-1, 1].

    Args:
        model: the assumptions.
        beliefs: probability of each pole of each axis after the last showing, shape (A, K).
        sheet: the answers.
        credit: credit of each axis. See `exam.exam_return`.
    """
    exam = model.design.exam
    total = 0.0
    for item, choice in enumerate(sheet.choices):
        for axis, pole in zip(exam.items[item], () if choice is None else exam.stated(item, choice), strict=False):
            poles = exam.poles[axis]
            score = (beliefs[axis, pole] * poles - 1) / (poles - 1)
            total += credit[axis] * score / exam.readers[axis]
    return total / len(exam.poles)


def answered_shares(exam: Exam, stated: Ints) -> Floats:
    """Return the share of the items of each axis that are answered, shape (E, A).

    Args:
        exam: the exam.
        stated: pole that is stated of each axis, shape (E, A). -1 for none. An item is left out if none of its axes has
            one.
    """
    reads, readers = _asked(exam)
    return np.asarray(((stated >= 0) @ reads.T > 0) @ reads / readers)


@lru_cache(maxsize=64)
def _asked(exam: Exam) -> tuple[Floats, Floats]:
    """Return 1 for each axis that an item of an exam reads, shape (items, A), and the number of them, or 1, by axis."""
    reads = np.zeros((len(exam.items), len(exam.poles)))
    for item, axes in enumerate(exam.items):
        reads[item, list(axes)] = 1
    return reads, np.maximum(reads.sum(0), 1)
