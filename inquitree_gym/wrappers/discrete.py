"""Factories of the discrete view, ``InquiTree-…-menu-v0``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.engine.rules import Candidates, Explore, LastHint
from inquitree_gym.envs.inquiry import InquiryEnv, TreeLike, inquiry_keywords, suggest_keywords
from inquitree_gym.envs.menu import OnMasked
from inquitree_gym.envs.synthetic import SyntheticEnv
from inquitree_gym.trees import Difficulty
from inquitree_gym.wrappers.actions import MenuActions
from inquitree_gym.wrappers.observations import EmbeddingObservation, Observation


@suggest_keywords
def menu_env(  # noqa: PLR0913  (keywords)
    tree: TreeLike | Sequence[TreeLike],
    *,
    size: tuple[int, int] | None = None,
    on_masked: OnMasked = "play",
    text_dim: int | None = None,
    as_dict: bool = False,
    embedder: str | Embedder = DEFAULT_EMBEDDER,
    prompts: str | os.PathLike[str] | None = None,
    privileged: bool = False,
    render_mode: str | None = None,
    threshold: float | None = None,
    fake_level: int = 0,
    max_turns: int | Literal["default"] | None = "default",
    candidates: Candidates = "all",
    on_last_hint: LastHint = "advance",
    study_turn: bool = False,
    explore: Explore = "hub",
) -> gym.Env[Observation, int]:
    """Return an `InquiryEnv` with discrete actions and feature observations.

    ``size`` and ``on_masked`` are those of `MenuActions`, ``text_dim`` and ``as_dict`` those of `EmbeddingObservation`,
    all others those of `InquiryEnv`.
    """
    env = InquiryEnv(tree, **inquiry_keywords(locals()))
    return _discrete(env, size=size, on_masked=on_masked, text_dim=text_dim, as_dict=as_dict)


@suggest_keywords
def synthetic_menu_env(  # noqa: PLR0913  (keywords)
    *,
    split: str = "train",
    difficulty: Difficulty | Mapping[str, Any] | None = None,
    size: tuple[int, int] | None = None,
    on_masked: OnMasked = "play",
    text_dim: int | None = None,
    as_dict: bool = False,
    embedder: str | Embedder = DEFAULT_EMBEDDER,
    prompts: str | os.PathLike[str] | None = None,
    privileged: bool = False,
    render_mode: str | None = None,
    threshold: float | None = None,
    fake_level: int = 0,
    max_turns: int | Literal["default"] | None = "default",
    candidates: Candidates = "all",
    on_last_hint: LastHint = "advance",
    study_turn: bool = False,
    explore: Explore = "hub",
) -> gym.Env[Observation, int]:
    """Return a `SyntheticEnv` as `menu_env` does; without ``size`` it has slots for the largest tree of the difficulty.

    ``split`` and ``difficulty`` are those of `SyntheticEnv`.
    """
    env = SyntheticEnv(split=split, difficulty=difficulty, **inquiry_keywords(locals()))
    return _discrete(env, size=size, on_masked=on_masked, text_dim=text_dim, as_dict=as_dict)


def _discrete(
    env: InquiryEnv, *, size: tuple[int, int] | None, on_masked: OnMasked, text_dim: int | None, as_dict: bool
) -> gym.Env[Observation, int]:
    actions = MenuActions(env, size=size, on_masked=on_masked)
    return EmbeddingObservation(actions, subtopics=actions.size.subtopics, text_dim=text_dim, as_dict=as_dict)
