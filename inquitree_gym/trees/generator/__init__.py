"""Synthetic research trees: fiction from a seed, any number of subtopics, decided by a hidden causal model.

A tree is made in five steps, each a module: which subtopic needs which (`topology`), what its variables are and what
acts on them (`causes`, `world`), what studies read (`studies`), how all of it is said (`questions`, `wording`), and the
document (`document`). `generate` runs them; `settings` holds the knobs.
"""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.trees.generator.generate import synthetic_tree, tree_seed
    from inquitree_gym.trees.generator.settings import Difficulty

__all__ = ["Difficulty", "synthetic_tree", "tree_seed"]

__getattr__ = lazy(
    __name__,
    {
        "Difficulty": "inquitree_gym.trees.generator.settings",
        "synthetic_tree": "inquitree_gym.trees.generator.generate",
        "tree_seed": "inquitree_gym.trees.generator.generate",
    },
)
