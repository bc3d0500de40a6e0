"""Results of the cross-validation, stored beside the code: what each reader took each proposal for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.errors import OptionError
from research.proposals import MatchedProposal, MatchingCase, matched

EVIDENCE = Path(__file__).parent / "evidence.json"
CANONICAL, PARAPHRASES = "MiniLM, canonical texts", "MiniLM, with paraphrases"
TREES_OUT, AUTHORS_OUT = "reader, trees left out", "reader, authors left out"


class Read(NamedTuple):
    """Nearest candidate of a proposal."""

    nearest: int
    similarity: float


Readings = list[Read]
"""One per proposal, in the order of `matching_cases`."""


def write_evidence(
    file: Path, cases: Sequence[MatchingCase], found: Mapping[str, Readings], settings: Mapping[str, Any]
) -> None:
    """Write the readings of every reader with the settings of the training."""
    readers = {
        name: {"nearest": [read.nearest for read in reads], "similarity": [round(read.similarity, 4) for read in reads]}
        for name, reads in found.items()
    }
    content = {"settings": dict(settings), "cases": _digest(cases), "readers": readers}
    file.write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_evidence(cases: Sequence[MatchingCase], file: Path = EVIDENCE) -> dict[str, list[MatchedProposal]]:
    """Return every proposal as each reader matched it.

    Raises:
        OptionError: the file was made from other proposals or trees.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["cases"] != _digest(cases):
        raise OptionError(
            f"'{file}' was made from other proposals or trees; run: python -m research.reader crossvalidate"
        )
    return {
        name: [
            matched(case, nearest, similarity)
            for case, nearest, similarity in zip(cases, reads["nearest"], reads["similarity"], strict=True)
        ]
        for name, reads in content["readers"].items()
    }


def _digest(cases: Sequence[MatchingCase]) -> str:
    texts = [[case.tree, case.text, case.right, *case.also, *(node.text for node in case.candidates)] for case in cases]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
