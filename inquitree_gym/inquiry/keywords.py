"""The keywords and options of an inquiry: their types, and checks of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from inquitree_gym.embeddings import Embedder
from inquitree_gym.envs.keywords import check_names, checked_keywords, load_each, signed_keywords
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.engine.rules import (
    Decisions,
    Evidence,
    ExamForm,
    Feedback,
    Limit,
    NamedAtResult,
    Preset,
    Replication,
    Reruns,
    expand_preset,
)
from inquitree_gym.inquiry.llm_matcher import Reader
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.trees import Tree, load_tree

P = ParamSpec("P")
R = TypeVar("R")
RewardOf = Literal["exam", "exam-expected", "judge"]
TreeLike = str | os.PathLike[str] | Tree


class RuleKeywords(TypedDict, total=False):
    """Rules as keywords. `Rules` has their defaults."""

    threshold: float | None
    world: str
    fake_level: int
    max_turns: Limit
    redo_turn: bool
    decisions: Decisions
    bare_decisions: bool
    feedback: Feedback
    reruns: Reruns
    replication: Replication
    named_at_result: NamedAtResult
    evidence: Evidence
    exam: ExamForm
    briefing: bool


class BatchKeywords(RuleKeywords, total=False):
    """Keywords of `InquiryEnv` that the array environment takes, too."""

    embedder: str | Embedder
    prompts: str | os.PathLike[str] | None
    privileged: bool
    render_mode: str | None
    rules: Preset


class InquiryKeywords(BatchKeywords, total=False):
    """Keywords of `InquiryEnv`. Its signature has the defaults."""

    reader: str | Reader
    reward: RewardOf | None
    judge: str | AsyncJudge[Any] | None


_MADE = (
    "a synthetic inquiry makes its own trees; to play one of yours, make InquiTree-v0 with tree=..., or pass "
    'reset(options={"tree": ...})'
)
_EXAM_ALONE = (
    "array environments pay the exam alone; for reward=... or judge=... make one environment, or a vector of them with "
    "vectorization_mode='sync'"
)


def _expanded(keywords: dict[str, Any]) -> dict[str, Any]:
    """Replace the preset that ``rules`` names by its rules and its prompts, unless these are given themselves."""
    if "rules" not in keywords:
        return keywords
    prompts = keywords["rules"] if keywords.get("prompts") is None else keywords["prompts"]
    return expand_preset({**keywords, "prompts": prompts})


_REFUSED = {"tree": _MADE, "reward": _EXAM_ALONE, "judge": _EXAM_ALONE}
suggest_keywords = checked_keywords(refused=_REFUSED, expand=_expanded)
"""Makes a function raise `OptionError` with a suggestion for an unknown keyword, and expands ``rules``."""


def unpack_keywords(template: Callable[..., Any], keywords: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take ``**keywords: Unpack[...]``. See `signed_keywords`."""
    return signed_keywords(template, keywords, suggest_keywords)


def load_trees(tree: TreeLike | Sequence[TreeLike]) -> tuple[Tree, ...]:
    """Return one tree or several.

    Raises:
        OptionError: ``tree`` is neither.
        TreeError: a tree is unknown or invalid.
    """
    return load_each(tree, load_tree, single=(str, os.PathLike, Tree), noun="tree must be an id, a path, a Tree")


def with_threshold(rules: Rules, embedder: Embedder) -> Rules:
    """Return the rules with a threshold, by default the embedder's.

    Raises:
        OptionError: neither rules nor embedder have one.
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
