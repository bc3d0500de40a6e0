"""Research trees: schema, loading, linting, catalogue and synthetic generation."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.errors import Fault
    from inquitree_gym.trees.catalogue import CATALOGUE, CatalogueEntry, builtin_ids, user_files
    from inquitree_gym.trees.disclosure import Disclosure, ProjectionTask
    from inquitree_gym.trees.fields import CANARY
    from inquitree_gym.trees.generator import Difficulty, WorldSettings, synthetic_task, synthetic_tree, tree_seed
    from inquitree_gym.trees.load import dump_tree, load_tree, parse_tree
    from inquitree_gym.trees.schema import HINT_LEVELS, Tree

__all__ = [
    "CANARY",
    "CATALOGUE",
    "HINT_LEVELS",
    "CatalogueEntry",
    "Difficulty",
    "Disclosure",
    "Fault",
    "ProjectionTask",
    "Tree",
    "WorldSettings",
    "builtin_ids",
    "dump_tree",
    "load_tree",
    "parse_tree",
    "synthetic_task",
    "synthetic_tree",
    "tree_seed",
    "user_files",
]

__getattr__ = lazy(
    __name__,
    {
        "rules": "Fault",
        "disclosure": "Disclosure ProjectionTask",
        "fields": "CANARY",
        "schema": "HINT_LEVELS Tree",
        "catalogue": "CATALOGUE CatalogueEntry builtin_ids user_files",
        "generator": "Difficulty WorldSettings synthetic_task synthetic_tree tree_seed",
        "load": "dump_tree load_tree parse_tree",
    },
)
