"""New tasks from papers by a chat model, and what may be wrong with a tree: an audit, and what people decide."""

from inquitree_gym.authoring.author import Author, AuthoredTree, PaperRecord
from inquitree_gym.authoring.disclose import disclose, disclose_paper
from inquitree_gym.authoring.extract import PaperDocument, read_document
from inquitree_gym.authoring.findings import Finding, Findings, read_findings, write_findings
from inquitree_gym.authoring.sources import PaperSource, PaperText, SpringerNature, read_paper

__all__ = [
    "Author",
    "AuthoredTree",
    "Finding",
    "Findings",
    "PaperDocument",
    "PaperRecord",
    "PaperSource",
    "PaperText",
    "SpringerNature",
    "disclose",
    "disclose_paper",
    "read_document",
    "read_findings",
    "read_paper",
    "write_findings",
]
