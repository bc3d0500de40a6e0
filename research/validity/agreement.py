"""How near one embedder's readings come to another's, on the same proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import Vectors
from research.validity.reading import GRID, Question

REFUSED = -1
Similarities = list[NDArray[np.float32]]
"""Per proposal, those to its candidates."""


class Agreement(NamedTuple):
    """Shares in [0, 1], and a correlation, over proposals of all kinds where nothing else is said."""

    right: float
    """Right proposals whose nearest candidate is their target (top 1)."""
    nearest: float
    """Proposals with two candidates or more whose nearest one is the same for both embedders."""
    correlation: float
    """Pearson's, between the similarities of every proposal to each of its candidates."""
    read_alike: float
    """Proposals that both accept at the same node, or both refuse; τ of the measured one chosen on the other trees."""


def similarities(questions: Sequence[Question], vectors: Mapping[str, Mapping[str, Vectors]]) -> Similarities:
    """Return the similarities of every question, from vectors by tree and text."""
    found = []
    for question in questions:
        known = vectors[question.tree]
        found.append(np.stack([known[text] for text in question.candidates]) @ known[question.text])
    return found


def choices(similarities: Similarities, threshold: float) -> NDArray[np.intp]:
    """Return the candidate that each proposal is read as, or `REFUSED`."""
    return np.array([each.argmax() if each.max() >= threshold else REFUSED for each in similarities], np.intp)


def matching_threshold(ours: Similarities, expected: NDArray[np.intp]) -> float:
    """Return the threshold at which most readings are the expected ones; the middle one where several are as good."""
    nearest = np.array([each.argmax() for each in ours])
    highest = np.array([each.max() for each in ours])
    alike = [np.mean(np.where(highest >= threshold, nearest, REFUSED) == expected) for threshold in GRID]
    best = np.flatnonzero(np.array(alike) >= max(alike) - 1e-12)
    return float(GRID[best[len(best) // 2]])


def right_share(questions: Sequence[Question], similarities: Similarities) -> float:
    """Return the share of right proposals whose nearest candidate is their target."""
    pairs = zip(questions, similarities, strict=True)
    return float(np.mean([each.argmax() == question.right for question, each in pairs if question.kind == "right"]))


def measure_agreement(
    questions: Sequence[Question], ours: Similarities, theirs: Similarities, expected: NDArray[np.intp]
) -> Agreement:
    """Compare the readings of ``ours`` with those of ``theirs``, whose choices at their own τ are ``expected``."""
    nearest = np.array([each.argmax() for each in ours])
    same = nearest == np.array([each.argmax() for each in theirs])
    open_choice = np.array([len(question.candidates) > 1 for question in questions])
    return Agreement(
        right_share(questions, ours),
        float(np.mean(same[open_choice])),
        float(np.corrcoef(np.concatenate(ours), np.concatenate(theirs))[0, 1]),
        float(np.mean(_left_out_choices(questions, ours, expected) == expected)),
    )


def _left_out_choices(
    questions: Sequence[Question], ours: Similarities, expected: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the choices of ``ours`` in every tree, at the threshold that matches best on the other trees."""
    owners = np.array([question.tree for question in questions])
    found = np.empty_like(expected)
    for tree in dict.fromkeys(owners.tolist()):
        others = np.flatnonzero(owners != tree)
        threshold = matching_threshold([ours[index] for index in others], expected[others])
        within = np.flatnonzero(owners == tree)
        found[within] = choices([ours[index] for index in within], threshold)
    return found
