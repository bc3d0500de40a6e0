"""Every sentence shown to an agent, as sandboxed templates."""

from inquitree_gym.prompts.render import TEMPLATE_NAMES, Prompts

__all__ = ["TEMPLATE_NAMES", "Prompts"]
