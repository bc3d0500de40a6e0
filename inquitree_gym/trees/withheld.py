"""Entry point of the ids of papers whose trees may not be distributed. Gymnasium lists them apart, as ``withheld``."""

from __future__ import annotations

from typing import Any, NoReturn

from inquitree_gym.errors import UnknownTreeError
from inquitree_gym.trees.catalogue import TREES_VARIABLE
from inquitree_gym.trees.load import load_tree


def refuse(tree: str, **_keywords: Any) -> NoReturn:
    """Raise the error of `load_tree`, whatever the keywords of the environment."""
    load_tree(tree)
    raise UnknownTreeError(
        f"'{tree}.json' must be in a folder named by {TREES_VARIABLE} when inquitree_gym is imported, got it later. "
        "Start Python again."
    )
