"""Sandboxed templates of all texts for agents and language models."""

from inquitree_gym.prompts.render import Prompts

__all__ = ["Prompts"]
