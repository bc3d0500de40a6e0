"""Synthetic research trees: from a seed to a whole, valid tree of fiction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from inquitree_gym.errors import OptionError
from inquitree_gym.trees.generator.causes import draw_world
from inquitree_gym.trees.generator.document import Part, document
from inquitree_gym.trees.generator.rng import Lots
from inquitree_gym.trees.generator.settings import Difficulty, bounds
from inquitree_gym.trees.generator.topology import TOPOLOGIES, prerequisites
from inquitree_gym.trees.generator.wording import accounts
from inquitree_gym.trees.schema import Tree

MAX_SEED = 2**63 - 1

Split = Literal["train", "test"]


def synthetic_tree(seed: int, difficulty: Difficulty | Mapping[str, Any] | None = None) -> Tree:
    """Return the synthetic tree of a seed: the same for one seed and one difficulty, wherever it is made.

    Args:
        seed: from 0 to 2^63 - 1; trees of even seeds are for training, those of odd seeds for testing.
        difficulty: settings as a `Difficulty` or by name; None takes the defaults.

    Raises:
        OptionError: the seed is out of range, or a setting is unknown or out of range.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise OptionError(f"the seed of a synthetic tree is a whole number from 0 to 2^63 - 1, not {seed!r:.80}")
    settings = Difficulty.of(difficulty)
    shape = Lots(seed, "shape")
    topology = shape.pick(TOPOLOGIES) if settings.topology == "mixed" else settings.topology
    parents = prerequisites(shape.between(*bounds(settings.subtopics)), topology, settings.density_or_default, shape)
    world = draw_world(parents, settings, seed)
    fewest, most = bounds(settings.studies)
    parts = [
        Part(needs, account, tuple(account.studies(shape.between(fewest, most))))
        for needs, account in zip(parents, accounts(world, Lots(seed, "wording"), Lots(seed, "numbers")), strict=True)
    ]
    if settings.shuffled:
        parts = _shuffled(parts, shape)
    return Tree.model_validate(document(seed, settings, world, parts))


def _shuffled(parts: list[Part], lots: Lots) -> list[Part]:
    """Return the subtopics in another order, with their prerequisites where they then stand."""
    order = lots.shuffled(range(len(parts)))
    place = {old: new for new, old in enumerate(order)}
    return [parts[old]._replace(needs=tuple(sorted(place[j] for j in parts[old].needs))) for old in order]


def tree_seed(number: int, split: str) -> int:
    """Return the seed of the tree of this number in a split: twice the number for "train", one more for "test".

    Args:
        number: a whole number from 0, taken modulo 2^62.
        split: ``"train"`` or ``"test"``. No seed is in both.

    Raises:
        OptionError: there is no such split.
    """
    if split not in get_args(Split):
        raise OptionError(f"split is one of {get_args(Split)}, not {split!r:.80}")
    return 2 * (number % 2**62) + (split == "test")
