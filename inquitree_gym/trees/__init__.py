"""Research trees: schema, loading, linting, catalogue and synthetic generation."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.errors import Fault
    from inquitree_gym.trees.catalogue import CATALOGUE, CatalogueEntry, builtin_ids, user_files
    from inquitree_gym.trees.generator import Difficulty, synthetic_tree, tree_seed
    from inquitree_gym.trees.load import dump_tree, load_tree, parse_tree
    from inquitree_gym.trees.schema import CANARY, HINT_LEVELS, Tree

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
        "rules": "Fault",
        "schema": "CANARY HINT_LEVELS Tree",
        "catalogue": "CATALOGUE CatalogueEntry builtin_ids user_files",
        "generator": "Difficulty synthetic_tree tree_seed",
        "load": "dump_tree load_tree parse_tree",
    },
)
