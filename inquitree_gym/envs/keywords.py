"""The keywords and options of an inquiry: their types, and checks of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar, get_type_hints

from inquitree_gym.embeddings import Embedder
from inquitree_gym.engine import Rules
from inquitree_gym.engine.rules import (
    Candidates,
    Decisions,
    Evidence,
    Explore,
    FakeKey,
    Feedback,
    LastHint,
    NamedAtResult,
    OnTie,
    Preset,
    Replication,
    expand_preset,
)
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.judges.registry import AsyncJudge
from inquitree_gym.readers import Reader
from inquitree_gym.trees import Tree, load_tree

P = ParamSpec("P")
R = TypeVar("R")
TreeLike = str | os.PathLike[str] | Tree


class BatchKeywords(TypedDict, total=False):
    """Keywords of `InquiryEnv` that the array environment takes, too."""

    embedder: str | Embedder
    prompts: str | os.PathLike[str] | None
    privileged: bool
    render_mode: str | None
    rules: Preset
    threshold: float | None
    fake_level: int
    max_turns: int | Literal["default"] | None
    candidates: Candidates
    on_last_hint: LastHint
    study_turn: bool
    redo_turn: bool
    explore: Explore
    decisions: Decisions
    bare_decisions: bool
    feedback: Feedback
    on_tie: OnTie
    tie_margin: float
    fake_key: FakeKey
    replication: Replication
    named_at_result: NamedAtResult
    evidence: Evidence


class InquiryKeywords(BatchKeywords, total=False):
    """Keywords of `InquiryEnv`; its signature has the defaults."""

    reader: str | Reader
    judge: str | AsyncJudge


class _Made(NamedTuple):
    """The keyword that a synthetic environment does not take, because it makes its trees or tasks itself."""

    rule: str
    """Rule that only environments of this kind have."""
    advice: str


_MADE = {
    "tree": _Made(
        "fake_level",
        "a synthetic inquiry makes its own trees; to play one of yours, make InquiTree-v0 with tree=..., or "
        'pass reset(options={"tree": ...})',
    ),
    "task": _Made(
        "form",
        "a synthetic projection makes its own tasks; to play one of yours, make ProjectionBench-v0 with task=..., or "
        'pass reset(options={"task": ...})',
    ),
}


def suggest_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` raise `OptionError` with a suggestion for an unknown keyword, and expand ``rules``.

    The preset that ``rules`` names stands for its rules and its prompts, unless these are given themselves.
    """
    known = tuple(name for name in signature(function).parameters if name != "self")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in _MADE.keys() & kwargs.keys() - set(known):
            if _MADE[name].rule in known:
                raise OptionError(_MADE[name].advice)
        check_names(kwargs, known, "the environment")
        if "rules" in kwargs:
            given = {**kwargs, "prompts": kwargs["rules"] if kwargs.get("prompts") is None else kwargs["prompts"]}
            kwargs.update(expand_preset(given))
        return function(*args, **kwargs)

    return checked


def unpack_keywords(template: Callable[..., Any], keywords: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take ``**keywords: Unpack[...]``.

    Their signature names each of these ``keywords``, a `TypedDict`, with the default that it has in ``template``, as
    `help` shows it, and an unknown one raises `OptionError` with a suggestion.
    """
    offered = [each for name, each in signature(template).parameters.items() if name in keywords.__annotations__]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = signature(function)
        named = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*named, *offered])  # type: ignore[attr-defined]
        function.__annotations__ |= get_type_hints(keywords)
        return suggest_keywords(function)

    return decorate


def load_trees(tree: TreeLike | Sequence[TreeLike]) -> tuple[Tree, ...]:
    """Return one tree or several.

    Raises:
        OptionError: ``tree`` is neither.
        TreeError: a tree is unknown or invalid.
    """
    if isinstance(tree, str | os.PathLike | Tree):
        return (load_tree(tree),)
    check_several(tree, "tree is an id, a path, a Tree")
    return tuple(load_tree(each) for each in tree)


def check_several(given: Any, kinds: str) -> None:
    """Raise `OptionError` unless ``given`` is a sequence with at least one item; ``kinds`` names what one item is."""
    if not isinstance(given, Sequence) or not given:
        raise OptionError(f"{kinds}, or a sequence with at least one of them, not {given!r:.80}")


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


def episode_rules(rules: Rules, options: Mapping[str, Any], embedder: Embedder) -> Rules:
    """Return the rules of an episode with these `reset` options, in an environment with ``rules``.

    Raises:
        OptionError: an option is unknown or out of range, or there is no threshold.
    """
    check_names(options, ("tree", "rules", *Rules.names()), "reset")
    given = expand_preset({name: value for name, value in options.items() if name != "tree"})
    return with_threshold(rules.override(given), embedder)
