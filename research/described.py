"""The trees that the labelled proposals of `research` describe: earlier texts of the shipped ones, where those changed.

The files in ``research/earlier`` have the questions and studies of fifteen trees before they were written anew. No
proposal is about findings, so they keep the true results and the first conclusion item alone.
"""

from __future__ import annotations

from pathlib import Path

from inquitree_gym.trees import Tree, builtin_ids, load_tree

EARLIER = Path(__file__).parent / "earlier"


def described_tree(name: str) -> Tree:
    """Return the tree of that id as proposals describe it."""
    earlier = EARLIER / f"{name}.json"
    return load_tree(earlier if earlier.is_file() else name)


def described_trees() -> list[Tree]:
    """Return all trees as proposals describe them."""
    return [described_tree(name) for name in builtin_ids()]
