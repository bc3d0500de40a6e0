"""One-to-one pairing of true and projected claims by their nearness, such as a similarity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, Alignment, Floats

_DECIMALS = 5
"""Decimals to which the nearness is rounded. Further ones depend on the batch in which a vector was computed."""
_FIRST = 1e-9
"""Bonus by which a claim is preferred to the next one when both are equally near."""


def one_to_one(nearness: Floats) -> dict[int, int]:
    """Return the projected claim of each true claim that has one, so that the sum of the nearness is highest.

    Of equally near claims the first is taken, so that the last bits of a batched vector decide nothing.

    Args:
        nearness: shape (P, M), nearness of P projected claims to M true claims. A negative value forbids a pair.
    """
    from scipy.optimize import linear_sum_assignment  # takes long to import

    order = _FIRST * np.arange(len(nearness))[:, None]
    rows, columns = linear_sum_assignment(np.maximum(nearness.round(_DECIMALS) - order, 0.0), maximize=True)
    return {int(i): int(j) for j, i in zip(rows, columns, strict=True) if nearness[j, i] >= 0}


def paired_alignment(
    claims: Sequence[str], nearness: Floats, ratings: Floats, why: Callable[[int, int], str]
) -> Alignment:
    """Return the alignment of projected claims that are paired with the true ones by nearness. See `one_to_one`.

    The first `MAX_EXTRAS` claims without a pair are extraneous. ``ratings``, shape (P, M, `ORDERS`), are those of each
    projected claim against every true one. ``why`` returns the reason for the rating of a pair of indices.
    """
    chosen = one_to_one(nearness)
    extras = [j for j in range(len(claims)) if j not in chosen.values()][:MAX_EXTRAS]
    true = range(nearness.shape[1])
    nothing = np.full(ratings.shape[-1], np.nan)
    return Alignment(
        analogous=tuple(claims[chosen[i]] if i in chosen else None for i in true),
        extraneous=tuple(claims[j] for j in extras),
        pair_ratings=np.array([ratings[chosen[i], i] if i in chosen else nothing for i in true]),
        extra_ratings=ratings[extras],
        reasons=tuple(why(chosen[i], i) if i in chosen else "no analogous claim" for i in true),
    )
