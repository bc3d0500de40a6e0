"""New projection tasks: papers from a source, and their disclosures by a chat model."""

from inquitree_gym.authoring.disclose import disclose, disclose_paper
from inquitree_gym.authoring.sources import PaperSource, PaperText, SpringerNature, read_paper

__all__ = ["PaperSource", "PaperText", "SpringerNature", "disclose", "disclose_paper", "read_paper"]
