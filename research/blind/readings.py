"""Readings of the blind proposals, and the shares of them that a rule of acceptance reads as they are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import TextVectors
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees.schema import wordings
from research.proposals import (
    MatchedProposal,
    MatchingCase,
    ProposalSet,
    case_similarities,
    load_proposals,
    matched,
    matching_cases,
)

PROPOSALS = Path(__file__).parent / "proposals"
"""Blind and played proposals about the shipped trees, with the labels that count."""
SECOND_LABELS = Path(__file__).parent / "second_labels.json"
"""Labels of some of them by another labeller, who did not see the first ones."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A proposal with its nearest candidate, and its similarity to every candidate."""

    found: MatchedProposal
    similarities: NDArray[np.float32]
    """Cosine similarities, one for each candidate, in the order of the candidates."""

    @property
    def margin(self) -> float:
        """Lead of the nearest candidate over the second one, in cosine. 1 for a single candidate."""
        ordered = np.sort(self.similarities)
        return float(ordered[-1] - ordered[-2]) if len(ordered) > 1 else 1.0


class Share(NamedTuple):
    """A share of proposals, at the topic or at a study."""

    name: str
    is_study: bool
    meant: bool
    """True for the proposals that mean a node, False for those that mean none."""
    holds: Callable[[MatchedProposal, bool], bool | None]
    """Whether a proposal counts, given that it is accepted or not. None leaves it out."""


SHARES = (
    Share("nearest subtopic right", False, True, lambda found, taken: found.right_node),
    Share("understood", False, True, lambda found, taken: taken and found.right_node),
    Share("misread", False, True, lambda found, taken: taken and not found.right_node),
    Share("refused", False, True, lambda found, taken: not taken),
    Share("foreign idea taken", False, False, lambda found, taken: taken),
    Share("nearest study right", True, True, lambda found, taken: _of_several(found, found.right_node)),
    Share("design understood", True, True, lambda found, taken: taken and found.right_node),
    Share("design misread", True, True, lambda found, taken: taken and not found.right_node),
    Share("foreign design taken", True, False, lambda found, taken: taken),
)
"""Shares that are printed. Designs for a single study are no part of "nearest study right"."""


def blind_sets() -> list[ProposalSet]:
    """Return the blind proposals, in paper order."""
    return load_proposals(PROPOSALS)


def read_blind(embedder: Embedder, trees: Sequence[str]) -> list[Reading]:
    """Return the readings of all proposals about ``trees`` (ids) among their nodes."""
    return read_cases(matching_cases([each for each in blind_sets() if each.tree in trees]), embedder)


def read_cases(cases: Sequence[MatchingCase], embedder: Embedder) -> list[Reading]:
    """Compare every proposal with the centroids of its candidates."""
    candidates = {text: None for case in cases for node in case.candidates for text in wordings(node)}
    texts = list(candidates | {case.text: None for case in cases})
    vectors = dict(zip(texts, TextVectors("", (), embedder, lasting=False).stored(tuple(texts)), strict=True))

    def embed(wanted: Sequence[str]) -> Vectors:
        return np.stack([vectors[text] for text in wanted])

    found = []
    for case in cases:
        similarities = case_similarities(case, embed)
        best = int(np.argmax(similarities))
        found.append(Reading(matched(case, best, float(similarities[best])), similarities))
    return found


def shares(found: Iterable[tuple[MatchedProposal, bool]]) -> list[Estimate]:
    """Return each of `SHARES` of proposals and whether they are accepted, as means over trees in [0, 1]."""
    found = list(found)
    return [
        clustered_mean((each.tree, _value(share, each, taken)) for each, taken in found if _counts(share, each))
        for share in SHARES
    ]


def _counts(share: Share, found: MatchedProposal) -> bool:
    return (found.is_study, found.kind == "right") == (share.is_study, share.meant)


def _value(share: Share, found: MatchedProposal, taken: bool) -> float | None:
    value = share.holds(found, taken)
    return None if value is None else float(value)


def _of_several(found: MatchedProposal, flag: bool) -> bool | None:
    return flag if len(found.candidates) > 1 else None
