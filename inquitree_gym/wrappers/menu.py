"""The discrete view whole: what ``InquiTree-…-menu-v0`` makes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym

from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.menu import OnMasked
from inquitree_gym.envs.synthetic import SyntheticEnv
from inquitree_gym.wrappers.actions import MenuActions
from inquitree_gym.wrappers.features import EmbeddingObservation, Observation


def menu_env(
    *,
    make: Callable[..., InquiryEnv] = InquiryEnv,
    size: tuple[int, int] | None = None,
    on_masked: OnMasked = "play",
    text_dim: int | None = None,
    as_dict: bool = False,
    **inquiry: Any,
) -> gym.Env[Observation, int]:
    """Return an inquiry that is acted on by number and observed as numbers.

    Args:
        make: `InquiryEnv`, or a class of its kind.
        size: slots for subtopics and for studies; see `MenuActions`.
        on_masked: what an action outside the mask does; see `MenuActions`.
        text_dim: length of the text's part; see `EmbeddingObservation`.
        as_dict: a Dict instead of a flat Box; see `EmbeddingObservation`.
        **inquiry: the keywords of ``make``.
    """
    actions = MenuActions(make(**inquiry), size=size, on_masked=on_masked)
    return EmbeddingObservation(actions, subtopics=actions.size.subtopics, text_dim=text_dim, as_dict=as_dict)


synthetic_menu_env = partial(menu_env, make=SyntheticEnv)
"""What ``InquiTree-synthetic-menu-v0`` makes; unless ``size`` says otherwise, with room for its largest tree."""
