"""Trees of the earlier format, which are the ones with texts of fakes and of conclusion items."""

from inquitree_gym.trees import Tree
from inquitree_gym.trees.earlier_schema import EarlierTree


def earlier(tree: Tree) -> EarlierTree:
    """Return ``tree`` as one of the earlier format.

    Raises:
        TypeError: the tree has axes.
    """
    if not isinstance(tree, EarlierTree):
        raise TypeError(f"this measurement takes trees of the format inquitree/1; {tree.id} has axes")
    return tree
