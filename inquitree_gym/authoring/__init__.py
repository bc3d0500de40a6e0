"""New projection tasks from papers, and what may be wrong with a tree: an audit, and what people decide."""

from inquitree_gym.authoring.disclose import disclose, disclose_paper
from inquitree_gym.authoring.findings import Finding, Findings, read_findings, write_findings
from inquitree_gym.authoring.sources import PaperSource, PaperText, SpringerNature, read_paper

__all__ = [
    "Finding",
    "Findings",
    "PaperSource",
    "PaperText",
    "SpringerNature",
    "disclose",
    "disclose_paper",
    "read_findings",
    "read_paper",
    "write_findings",
]
