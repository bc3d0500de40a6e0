"""Which subtopic needs which: prerequisites without a redundant edge, each before what needs it."""

from __future__ import annotations

from inquitree_gym.trees.generator.rng import Lots

TOPOLOGIES = ("independent", "chain", "dag", "layered")
MOST_PARENTS = 3
"""Prerequisites of one subtopic at most; a question about more causes is hard to read."""

Parents = list[tuple[int, ...]]
"""Per subtopic the indices of its prerequisites, ascending."""


def prerequisites(count: int, topology: str, density: float, lots: Lots) -> Parents:
    """Return the prerequisites of ``count`` subtopics.

    Args:
        count: subtopics, from 1 on.
        topology: ``independent``, ``chain``, ``dag`` or ``layered``.
        density: for ``dag`` the chance of each of `MOST_PARENTS` tries to find one more prerequisite; for ``layered``
            that of each prerequisite after the first. From 0 to 1.
        lots: where the draws come from.
    """
    if topology == "independent":
        return [()] * count
    if topology == "chain":
        return [(i - 1,) if i else () for i in range(count)]
    return _dag(count, density, lots) if topology == "dag" else _layered(count, density, lots)


def _dag(count: int, density: float, lots: Lots) -> Parents:
    """Let every subtopic try earlier ones, and keep those of which none implies another."""
    parents: Parents = []
    ancestors: list[int] = []
    for i in range(count):
        chosen: set[int] = set()
        for _ in range(MOST_PARENTS if i else 0):
            if lots.chance(density):
                other = lots.below(i)
                if not any(ancestors[other] >> j & 1 or ancestors[j] >> other & 1 for j in chosen):
                    chosen.add(other)
        parents.append(tuple(sorted(chosen)))
        known = 0
        for j in chosen:
            known |= ancestors[j] | 1 << j
        ancestors.append(known)
    return parents


def _layered(count: int, density: float, lots: Lots) -> Parents:
    """Fill layers of up to √n + 1 subtopics; each needs one or more of the layer above, never two of one line."""
    widest = int(count**0.5) + 1
    parents: Parents = []
    above: list[int] = []
    while len(parents) < count:
        layer = range(len(parents), min(count, len(parents) + lots.between(1, widest)))
        for _ in layer:
            order = lots.shuffled(above)[:MOST_PARENTS]
            parents.append(tuple(sorted(j for place, j in enumerate(order) if not place or lots.chance(density))))
        above = list(layer)
    return parents
