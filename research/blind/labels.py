"""Agreement of two labellers who did not see each other's labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from research.proposals import TOPIC, ProposalSet


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement of two labellers on one kind of text."""

    texts: int
    same: float
    """Share of equal labels, in [0, 1]. A label is a node or the kind of a text that means none."""
    kappa: float
    """Cohen's κ with the chance agreement within each choice."""


def label_agreement(sets: Iterable[ProposalSet], second: Path) -> dict[str, LabelAgreement]:
    """Return the agreement of two labellers on proposals at the topic and on designs in a subtopic.

    ``second`` is a file with the other labels of some of the proposals. Those that it does not hold are left out.
    """
    first = {
        (each.tree, proposal.at, proposal.text): _label(proposal.kind, proposal.target)
        for each in sets
        for proposal in each.proposals
    }
    pairs: dict[str, dict[tuple[str, str], list[tuple[str, str]]]] = {"topic": {}, "design": {}}
    for label in json.loads(second.read_text(encoding="utf-8")):
        place = label["tree"], label["at"]
        theirs = _label(label["kind"], label.get("target", ""))
        if (ours := first.get((*place, label["text"]))) is not None:
            pairs["topic" if label["at"] == TOPIC else "design"].setdefault(place, []).append((ours, theirs))
    return {name: _agreement(list(by_choice.values())) for name, by_choice in pairs.items()}


def _label(kind: str, target: str) -> str:
    return target if kind == "right" else kind


def _agreement(choices: Sequence[Sequence[tuple[str, str]]]) -> LabelAgreement:
    texts = sum(map(len, choices))
    same = sum(one == other for pairs in choices for one, other in pairs) / texts
    chance = sum(_chance(pairs) for pairs in choices) / texts
    return LabelAgreement(texts, same, (same - chance) / (1 - chance))


def _chance(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the number of equal labels that two independent labellers with these frequencies would give."""
    ours, theirs = (Counter(side) for side in zip(*pairs, strict=True))
    return sum(ours[label] * theirs[label] for label in ours) / len(pairs)
