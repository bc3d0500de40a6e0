"""Research trees: schema, loading, linting, catalogue and synthetic generation."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.trees.catalogue import CATALOGUE, CatalogueEntry
    from inquitree_gym.trees.generator import Difficulty, synthetic_tree, tree_seed
    from inquitree_gym.trees.load import dump_tree, load_tree, parse_tree
    from inquitree_gym.trees.paths import builtin_ids, user_files
    from inquitree_gym.trees.schema import CANARY, HINT_LEVELS, Fault, Tree

__all__ = [
    "CANARY",
    "CATALOGUE",
    "HINT_LEVELS",
    "CatalogueEntry",
    "Difficulty",
    "Fault",
    "Tree",
    "builtin_ids",
    "dump_tree",
    "load_tree",
    "parse_tree",
    "synthetic_tree",
    "tree_seed",
    "user_files",
]

__getattr__ = lazy(
    __name__,
    {
        "CANARY": "inquitree_gym.trees.schema",
        "CATALOGUE": "inquitree_gym.trees.catalogue",
        "CatalogueEntry": "inquitree_gym.trees.catalogue",
        "Difficulty": "inquitree_gym.trees.generator",
        "Fault": "inquitree_gym.trees.schema",
        "HINT_LEVELS": "inquitree_gym.trees.schema",
        "Tree": "inquitree_gym.trees.schema",
        "builtin_ids": "inquitree_gym.trees.paths",
        "dump_tree": "inquitree_gym.trees.load",
        "load_tree": "inquitree_gym.trees.load",
        "parse_tree": "inquitree_gym.trees.load",
        "synthetic_tree": "inquitree_gym.trees.generator",
        "tree_seed": "inquitree_gym.trees.generator",
        "user_files": "inquitree_gym.trees.paths",
    },
)
