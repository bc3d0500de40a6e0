"""From a wrapper down to the inquiry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree


def inquiry_of(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> InquiryEnv:
    """Return the inquiry that ``wrapper`` wraps, however deep.

    Raises:
        OptionError: it wraps something else.
    """
    env = wrapper.unwrapped
    if not isinstance(env, InquiryEnv):
        raise OptionError(f"{type(wrapper).__name__} wraps an InquiryEnv, not {type(env).__name__}")
    return env


def trees_asked_for(inquiry: InquiryEnv, options: Mapping[str, Any] | None) -> tuple[Tree, ...]:
    """Return the trees that options of a reset name instead of those that ``inquiry`` was made with; or none."""
    return inquiry.resolve_options({"tree": options["tree"]})[0] if options and "tree" in options else ()
