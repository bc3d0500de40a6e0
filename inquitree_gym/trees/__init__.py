"""Research trees: schema, loading, linting and catalogue."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.errors import Fault
    from inquitree_gym.fiction.documents import tree_seed
    from inquitree_gym.inquiry.generator.difficulty import Difficulty
    from inquitree_gym.inquiry.generator.generate import synthetic_tree
    from inquitree_gym.projection.worlds import WorldSettings, synthetic_task
    from inquitree_gym.trees.catalogue import CATALOGUE, CatalogueEntry, builtin_ids, user_files
    from inquitree_gym.trees.disclosure import Disclosure, ProjectionTask
    from inquitree_gym.trees.fields import CANARY, HINT_LEVELS
    from inquitree_gym.trees.load import dump_tree, load_tree, parse_tree
    from inquitree_gym.trees.schema import Tree

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "errors": "Fault",
        "trees.disclosure": "Disclosure ProjectionTask",
        "trees.fields": "CANARY HINT_LEVELS",
        "trees.schema": "Tree",
        "trees.catalogue": "CATALOGUE CatalogueEntry builtin_ids user_files",
        "trees.load": "dump_tree load_tree parse_tree",
        "fiction.documents": "tree_seed",
        "inquiry.generator.difficulty": "Difficulty",
        "inquiry.generator.generate": "synthetic_tree",
        "projection.worlds": "WorldSettings synthetic_task",
    },
)
