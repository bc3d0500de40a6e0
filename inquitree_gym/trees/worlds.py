"""Worlds of a tree, one pole per axis: their ids, sets of them, and draws from a set by seed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from inquitree_gym.errors import OptionError, plural, suggest
from inquitree_gym.seeds import hash_text, splitmix64
from inquitree_gym.trees.load import format_of, read_document, refuse_ambiguous_json, validated
from inquitree_gym.trees.world_schema import WorldTree

World = tuple[int, ...]
"""Index of the pole of each axis, in the order of the tree."""
SETS = ("any", "actual", "complement", "train", "test")
"""Names of the sets of worlds. The id of a world names the set of this world alone."""
MIN_PARITY_AXES = 4
"""Smallest number of axes with two poles for which a tree has worlds to train and to test on."""


def load_world_tree(tree: str | os.PathLike[str] | WorldTree) -> WorldTree:
    """Return the tree at a path. A `WorldTree` is returned as it is. See `load.load_tree` for the errors."""
    if isinstance(tree, WorldTree):
        return tree
    return parse_world_tree(read_document(tree), where=os.fspath(tree))


def parse_world_tree(document: bytes, where: str = "tree") -> WorldTree:
    """Validate one JSON document. See `load.parse_tree` for the errors."""
    return validated(WorldTree, document, where)


def has_worlds(document: bytes) -> bool:
    """Return True if a JSON document says that it has the format of a `WorldTree`."""
    refuse_ambiguous_json(document, "document")
    return format_of(document) == "inquitree/2"


def world_id(world: World) -> str:
    """Return the id of a world: its poles as digits, such as ``01102``."""
    return "".join(map(str, world))


def poles_of(tree: WorldTree, axes: Sequence[str], world: World) -> str:
    """Return the key of the text of a result or conclusion item with these axes that is true in a world."""
    return "".join(str(world[tree.axis_index[axis]]) for axis in axes)


def worlds(tree: WorldTree, which: str = "any") -> Iterator[World]:
    """Yield every world of a set in the order of their ids. See `poles_in` for the errors."""
    for world in product(*poles_in(tree, which)):
        if which not in ("train", "test") or which == split(tree, world):
            yield world


def count_worlds(tree: WorldTree, which: str = "any") -> int:
    """Return the number of worlds of a set, without making them. See `poles_in` for the errors."""
    combinations = prod(map(len, poles_in(tree, which)))
    return combinations // 2 if which in ("train", "test") else combinations


def draw_world(tree: WorldTree, which: str, seed: int) -> World:
    """Return the world of a set that a hash of seed, tree and set picks. Every world of the set is equally likely.

    Raises:
        OptionError: see `poles_in`.
    """
    number, drawn = splitmix64(seed, hash_text(f"{tree.id}\n{which}\nworld")), []
    for poles in poles_in(tree, which):
        number, index = divmod(number, len(poles))
        drawn.append(poles[index])
    if which in ("train", "test") and split(tree, tuple(drawn)) != which:
        last = _binary(tree)[-1]
        drawn[last] = 1 - drawn[last]
    return tuple(drawn)


def split(tree: WorldTree, world: World) -> str:
    """Return the set of a world: ``train`` or ``test``, by the parity of its poles on the axes that have two.

    Any other number of axes than all of them says nothing about the parity, and a bit of the tree flips it.
    """
    bit = hash_text(f"{tree.id}\nparity") & 1
    return ("train", "test")[(sum(world[axis] for axis in _binary(tree)) + bit) % 2]


def poles_in(tree: WorldTree, which: str) -> tuple[tuple[int, ...], ...]:
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
    if which in ("train", "test") and (count := len(_binary(tree))) < MIN_PARITY_AXES:
        raise OptionError(
            f"world '{which}' needs a tree with at least {MIN_PARITY_AXES} axes of two poles, '{tree.id}' has {count}. "
            "Take world 'any', or another tree."
        )
    return every if which in SETS else tuple((pole,) for pole in _parsed(tree, which))


def _binary(tree: WorldTree) -> list[int]:
    return [index for index, axis in enumerate(tree.axes) if len(axis.poles) == 2]


def _actual(tree: WorldTree, which: str) -> World:
    found = tuple(axis.actual for axis in tree.axes if axis.actual is not None)
    if not found:
        raise OptionError(
            f"world '{which}' needs the findings of a paper, and '{tree.id}' was made up: no world of it is the actual "
            "one. Take 'any', 'train', 'test' or the id of a world."
        )
    return found


def _parsed(tree: WorldTree, which: str) -> World:
    """Return the world with an id."""
    if not (which.isascii() and which.isdigit()):
        raise OptionError(
            f"world must be {', '.join(SETS)} or the id of a world such as '{'0' * len(tree.axes)}', got "
            f"'{which:.80}'{suggest(which, SETS)}. Take one of these."
        )
    if len(which) != len(tree.axes):
        names = ", ".join(tree.axis_index)
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
