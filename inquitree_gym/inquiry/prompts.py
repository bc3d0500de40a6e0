"""Templates of inquiries: those of the observations, and those of the agents that ask models."""

from __future__ import annotations

import os
from collections.abc import Sequence

from inquitree_gym.prompts import Prompts

PACKAGE = "inquitree_gym.inquiry"
"""Package of the templates."""
TEMPLATE_NAMES = (
    "start", "topic", "subtopic", "result", "subtopic_hint", "study_hint", "ask_again", "conclusion", "limit",
    "end", "declined", "redo", "wait", "recall", "exam",
)  # fmt: skip
"""Templates of the observations."""
AGENT_TEMPLATE_NAMES = (
    "llm_system", "llm_exam", "llm_correction", "llm_dropped", "sceptic_system", "sceptic_check", "sceptic_note",
    "recall_system",
)  # fmt: skip
"""Templates of the messages from an agent to language models."""
BELIEF_TEMPLATE = "llm_belief"
"""Template that follows ``llm_system`` for an agent that asks for beliefs. The prompts of the others do not have it."""


def inquiry_prompts(chosen: str | os.PathLike[str] | None = None, names: Sequence[str] = TEMPLATE_NAMES) -> Prompts:
    """Return the templates with these names: ``"default"``, ``"paper"``, or overridden by a folder. See `Prompts`."""
    return Prompts(chosen, names, PACKAGE)
