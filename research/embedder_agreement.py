"""Agreement of two embedders on the same proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import Vectors
from research.thresholds import GRID, MatchingCase

REFUSED = -1
"""Choice of a proposal that is not accepted."""
Similarities = list[NDArray[np.float32]]
"""Similarities of every proposal to its candidates."""


class EmbedderAgreement(NamedTuple):
    """Agreement over proposals of all kinds, except ``right``; shares in [0, 1]."""

    right: float
    """Right proposals whose nearest candidate is their target (top 1)."""
    nearest: float
    """Proposals with two candidates or more whose nearest one is the same for both embedders."""
    correlation: float
    """Pearson's r of the similarities of proposals to their candidates."""
    read_alike: float
    """Proposals accepted at the same node, or refused, by both; the measured embedder's threshold is chosen on the
    other trees."""


def similarities(cases: Sequence[MatchingCase], vectors: Mapping[str, Mapping[str, Vectors]]) -> Similarities:
    """Return the similarities of every case; ``vectors`` maps tree and text to a vector."""
    found = []
    for case in cases:
        known = vectors[case.tree]
        found.append(np.stack([known[text] for text in case.candidates]) @ known[case.text])
    return found


def choices(similarities: Similarities, threshold: float) -> NDArray[np.intp]:
    """Return the index of the accepted candidate of each proposal, or `REFUSED`."""
    return np.array([each.argmax() if each.max() >= threshold else REFUSED for each in similarities], np.intp)


def matching_threshold(ours: Similarities, expected: NDArray[np.intp]) -> float:
    """Return the threshold with the most expected choices, the middle one of several equally good ones."""
    nearest = np.array([each.argmax() for each in ours])
    highest = np.array([each.max() for each in ours])
    alike = [np.mean(np.where(highest >= threshold, nearest, REFUSED) == expected) for threshold in GRID]
    best = np.flatnonzero(np.array(alike) >= max(alike) - 1e-12)
    return float(GRID[best[len(best) // 2]])


def right_share(cases: Sequence[MatchingCase], similarities: Similarities) -> float:
    """Return the share of right proposals whose nearest candidate is their target."""
    pairs = zip(cases, similarities, strict=True)
    return float(np.mean([each.argmax() == case.right for case, each in pairs if case.kind == "right"]))


def measure_agreement(
    cases: Sequence[MatchingCase], ours: Similarities, theirs: Similarities, expected: NDArray[np.intp]
) -> EmbedderAgreement:
    """Compare ``ours`` with ``theirs``, whose choices at their own threshold are ``expected``."""
    nearest = np.array([each.argmax() for each in ours])
    same = nearest == np.array([each.argmax() for each in theirs])
    open_choice = np.array([len(case.candidates) > 1 for case in cases])
    return EmbedderAgreement(
        right_share(cases, ours),
        float(np.mean(same[open_choice])),
        float(np.corrcoef(np.concatenate(ours), np.concatenate(theirs))[0, 1]),
        float(np.mean(_left_out_choices(cases, ours, expected) == expected)),
    )


def _left_out_choices(
    cases: Sequence[MatchingCase], ours: Similarities, expected: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the choices of ``ours`` in every tree, at the best threshold of the other trees."""
    owners = np.array([case.tree for case in cases])
    found = np.empty_like(expected)
    for tree in dict.fromkeys(owners.tolist()):
        others = np.flatnonzero(owners != tree)
        threshold = matching_threshold([ours[index] for index in others], expected[others])
        within = np.flatnonzero(owners == tree)
        found[within] = choices([ours[index] for index in within], threshold)
    return found
