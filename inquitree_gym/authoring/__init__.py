"""New tasks by a chat model: research trees and disclosures of papers from files or a source."""

from inquitree_gym.authoring.author import Author, AuthoredTree, PaperRecord
from inquitree_gym.authoring.disclose import disclose, disclose_paper
from inquitree_gym.authoring.extract import PaperDocument, read_document
from inquitree_gym.authoring.sources import PaperSource, PaperText, SpringerNature, read_paper

__all__ = [
    "Author",
    "AuthoredTree",
    "PaperDocument",
    "PaperRecord",
    "PaperSource",
    "PaperText",
    "SpringerNature",
    "disclose",
    "disclose_paper",
    "read_document",
    "read_paper",
]
