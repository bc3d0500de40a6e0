"""Worlds of a tree, one pole per axis: their ids, sets of them, and the tree in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from inquitree_gym.errors import OptionError, plural, suggest
from inquitree_gym.seeds import hash_text
from inquitree_gym.trees.schema import Tree

World = tuple[int, ...]
"""Index of the pole of each axis, in the order of the tree."""
SETS = ("any", "actual", "complement", "train", "test")
"""Names of the sets of worlds. The id of a world names the set of this world alone."""
SPLIT = ("train", "test")
EVEN = ("any", *SPLIT)
"""Sets of worlds in which each pole of each axis holds equally often."""
MIN_PARITY_AXES = 4
"""Smallest number of axes with two poles for which a tree has worlds to train and to test on."""


def world_id(world: World) -> str:
    """Return the id of a world: its poles as digits, such as ``01102``."""
    return "".join(map(str, world))


class StudyInWorld(NamedTuple):
    """The results of a study in one world."""

    id: str
    outcomes: tuple[tuple[str, ...], ...]
    """Wordings of the true result, then of those with one axis changed, the first axis first. These are its fakes."""

    @property
    def results(self) -> tuple[str, ...]:
        """The true result and the fakes in their first wording."""
        return tuple(wordings[0] for wordings in self.outcomes)


class ItemInWorld(NamedTuple):
    """The statements of a conclusion item in one world."""

    id: str
    text: str
    """Statement that holds."""
    others: tuple[str, ...]
    """Statements that do not."""
    needs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TreeInWorld:
    """A tree in one world: what is true and what is not. Judges of conclusions get this."""

    tree: Tree
    world: World
    studies: tuple[StudyInWorld, ...]
    conclusions: tuple[ItemInWorld, ...]

    @property
    def id(self) -> str:
        """Id of the tree."""
        return self.tree.id

    @property
    def topic(self) -> str:
        """Topic of the tree."""
        return self.tree.topic

    @property
    def digest(self) -> str:
        """Digest of the tree, with the id of the world."""
        return f"{self.tree.digest}-{world_id(self.world)}"


@lru_cache(maxsize=256)
def in_world(tree: Tree, world: World) -> TreeInWorld:
    """Return a tree in one of its worlds.

    Raises:
        OptionError: the tree has other axes or poles.
    """
    poles_in(tree, world_id(world))
    studies = tuple(
        StudyInWorld(study.id, tuple(study.outcomes[i] for i in outcomes_in(tree, axes, world)))
        for study, axes in zip(tree.studies, tree.reads, strict=True)
    )
    items = []
    for item, axes in zip(tree.conclusions, tree.asks, strict=True):
        holds = _place(tree, axes, world)
        others = tuple(option for i, option in enumerate(item.options) if i != holds)
        items.append(ItemInWorld(item.id, item.options[holds], others, item.needs))
    return TreeInWorld(tree, world, studies, tuple(items))


def outcomes_in(tree: Tree, axes: Sequence[int], world: World) -> Iterator[int]:
    """Yield the true outcome, then the fakes in the order in which the engine numbers them."""
    yield _place(tree, axes, world)
    for axis in axes:
        kinds = len(tree.axes[axis].poles)
        for step in range(1, kinds):
            changed = tuple((pole + step) % kinds if i == axis else pole for i, pole in enumerate(world))
            yield _place(tree, axes, changed)


def _place(tree: Tree, axes: Sequence[int], world: World) -> int:
    """Return the place of the combination of poles in a world, the last axis running fastest."""
    place = 0
    for axis in axes:
        place = place * len(tree.axes[axis].poles) + world[axis]
    return place


def worlds(tree: Tree, which: str = "any") -> Iterator[World]:
    """Yield every world of a set in the order of their ids. See `poles_in` for the errors."""
    for world in product(*poles_in(tree, which)):
        if which not in SPLIT or which == split(tree, world):
            yield world


def count_worlds(tree: Tree, which: str = "any") -> int:
    """Return the number of worlds of a set, without making them. See `poles_in` for the errors."""
    combinations = prod(map(len, poles_in(tree, which)))
    return combinations // 2 if which in SPLIT else combinations


class WorldSet(NamedTuple):
    """A set of worlds, as a draw needs it."""

    key: int
    """64-bit word that the draw depends on besides the seed."""
    poles: tuple[tuple[int, ...], ...]
    """Poles that each axis can have. See `poles_in`."""
    parity: int
    """Parity of the sum of poles over the axes with two poles. -1 for any."""


def told_as(tree: Tree | TreeInWorld) -> TreeInWorld:
    """Return a tree in a world as it is, and a tree in its actual world. See `poles_in` for the errors."""
    return tree if isinstance(tree, TreeInWorld) else in_world(tree, actual_world(tree))


def actual_world(tree: Tree) -> World:
    """Return the world of the paper. See `poles_in` for the errors."""
    return tuple(poles[0] for poles in poles_in(tree, "actual"))


def world_set(tree: Tree, which: str) -> WorldSet:
    """Return a set of worlds. See `poles_in` for the errors."""
    parity = (SPLIT.index(which) + _bit(tree)) % 2 if which in SPLIT else -1
    return WorldSet(hash_text(f"{tree.id}\n{which}\nworld"), poles_in(tree, which), parity)


def split(tree: Tree, world: World) -> str:
    """Return the set of a world: ``train`` or ``test``, by the parity of its poles on the axes that have two.

    Any other number of axes than all of them says nothing about the parity, and a bit of the tree flips it.
    """
    return SPLIT[(sum(world[axis] for axis in _binary(tree)) + _bit(tree)) % 2]


def _bit(tree: Tree) -> int:
    return hash_text(f"{tree.id}\nparity") & 1


def poles_in(tree: Tree, which: str) -> tuple[tuple[int, ...], ...]:
    """Return the poles that each axis can have in a set. In ``train`` and ``test`` the last one depends on the others.

    Raises:
        OptionError: the set is unknown, or the tree has none of its worlds.
    """
    every = tuple(tuple(range(len(axis.poles))) for axis in tree.axes)
    if which in ("actual", "complement"):
        actual = _actual(tree, which)
        if which == "actual":
            return tuple((pole,) for pole in actual)
        return tuple(tuple(pole for pole in poles if pole != own) for poles, own in zip(every, actual, strict=True))
    if which in SPLIT and (count := len(_binary(tree))) < MIN_PARITY_AXES:
        raise OptionError(
            f"world '{which}' needs a tree with at least {MIN_PARITY_AXES} axes of two poles, '{tree.id}' has {count}. "
            "Take world 'any', or another tree."
        )
    return every if which in SETS else tuple((pole,) for pole in _parsed(tree, which))


def _binary(tree: Tree) -> list[int]:
    return [index for index, axis in enumerate(tree.axes) if len(axis.poles) == 2]


def _actual(tree: Tree, which: str) -> World:
    found = tuple(axis.actual for axis in tree.axes if axis.actual is not None)
    if not found:
        raise OptionError(
            f"world '{which}' needs the findings of a paper, and '{tree.id}' was made up: no world of it is the actual "
            "one. Take 'any', 'train', 'test' or the id of a world."
        )
    return found


def _parsed(tree: Tree, which: str) -> World:
    """Return the world with an id."""
    if not (which.isascii() and which.isdigit()):
        raise OptionError(
            f"world must be {', '.join(SETS)} or the id of a world such as '{'0' * len(tree.axes)}', got "
            f"'{which:.80}'{suggest(which, SETS)}. Take one of these."
        )
    if len(which) != len(tree.axes):
        names = ", ".join(axis.id for axis in tree.axes)
        raise OptionError(
            f"world '{which:.80}' must have one digit for each axis of '{tree.id}' ({names}), got "
            f"{plural(len(which), 'digit')}. Write {len(tree.axes)} digits."
        )
    for axis, digit in zip(tree.axes, which, strict=True):
        if int(digit) >= len(axis.poles):
            last = len(axis.poles) - 1
            raise OptionError(
                f"world '{which}': the pole of axis {axis.id} must be a digit from 0 to {last}, got {digit}. "
                f"Write 0 to {last} in its place."
            )
    return tuple(map(int, which))
