"""The plugin ``inquitree`` of verifiers, whose ids cannot hold a dot: three names of inquitree-gym."""

from inquitree_gym.integrations.verifiers import VerifiersEnv, VerifiersHarness, VerifiersTaskset

__all__ = ["VerifiersEnv", "VerifiersHarness", "VerifiersTaskset"]
