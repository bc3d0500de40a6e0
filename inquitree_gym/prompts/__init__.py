"""Sandboxed templates of all texts for agents and language models."""

from inquitree_gym.prompts.render import (
    AGENT_TEMPLATE_NAMES,
    BELIEF_TEMPLATE,
    PROJECTION_AGENT_TEMPLATE_NAMES,
    PROJECTION_TEMPLATE_NAMES,
    TEMPLATE_NAMES,
    Prompts,
)

__all__ = [
    "AGENT_TEMPLATE_NAMES",
    "BELIEF_TEMPLATE",
    "PROJECTION_AGENT_TEMPLATE_NAMES",
    "PROJECTION_TEMPLATE_NAMES",
    "TEMPLATE_NAMES",
    "Prompts",
]
