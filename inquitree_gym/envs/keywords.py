"""Checks of the keywords and options of an inquiry."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from inquitree_gym.embeddings import Embedder
from inquitree_gym.engine import Rules
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.trees import Tree, load_tree

P = ParamSpec("P")
R = TypeVar("R")
TreeLike = str | os.PathLike[str] | Tree


def suggest_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` raise `OptionError` with a suggestion for an unknown keyword."""
    known = tuple(name for name in signature(function).parameters if name != "self")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if "tree" in kwargs and "tree" not in known:
            raise OptionError(
                "a synthetic inquiry makes its own trees; to play one of yours, make InquiTree-v0 with tree=..., or "
                'pass reset(options={"tree": ...})'
            )
        check_names(kwargs, known, "the environment")
        return function(*args, **kwargs)

    return checked


def load_trees(tree: TreeLike | Sequence[TreeLike]) -> tuple[Tree, ...]:
    """Return one tree or several.

    Raises:
        OptionError: ``tree`` is neither.
        TreeError: a tree is unknown or invalid.
    """
    if isinstance(tree, str | os.PathLike | Tree):
        return (load_tree(tree),)
    if not isinstance(tree, Sequence) or not tree:
        raise OptionError(f"tree is an id, a path, a Tree, or a sequence with at least one of them, not {tree!r:.80}")
    return tuple(load_tree(each) for each in tree)


def check_names(given: Mapping[str, Any], known: tuple[str, ...], taker: str) -> None:
    """Raise `OptionError` with a suggestion for a name that ``taker`` does not know."""
    for name in given:
        if name not in known:
            raise OptionError(f"unknown option '{name}'{suggest(name, known)}; {taker} takes: {', '.join(known)}")


def with_threshold(rules: Rules, embedder: Embedder) -> Rules:
    """Return the rules with a threshold, by default the embedder's.

    Raises:
        OptionError: neither has one.
    """
    if rules.threshold is not None:
        return rules
    if embedder.threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{embedder.name}'; pass threshold=...")
    return rules.override({"threshold": embedder.threshold})
