"""Options of the discrete view as numbers: three for every true claim of many tasks.

The options of a claim are the claim itself, its first contrary, and nothing. A seed shuffles them claim by claim.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.trees.hashing import Hashes, hash_words

Signs = NDArray[np.int8]

ITSELF, CONTRARY, NOTHING = range(3)
OPTIONS = 3
"""Options for every claim."""
RATINGS = np.array([1.0, -1.0, np.nan])
"""Alignment a of each option with its claim; NaN for nothing, which has no analogous claim."""
_ORDERS = np.array(list(permutations(range(OPTIONS))))
_SHUFFLE = 1 << 32
"""First of the words that extend a seed's hash to shuffle the options of each claim."""


class ClaimNumbers(NamedTuple):
    """Claims of N tasks as numbers, in a fixed number of slots."""

    claims: NDArray[np.int64]
    """Shape (N,): number of claims M; the slots after them are empty."""
    directions: Signs
    """Shape (N, slots, 2): direction that the claim and its contrary state, 1 a rise, -1 a fall, 0 neither."""
    given: Signs
    """Shape (N, slots): direction that the procedure reveals; 0 for none."""


class ClaimOptions(NamedTuple):
    """Options of N tasks; the fields of empty slots are 0."""

    claims: NDArray[np.int64]
    """Shape (N,): number of claims M."""
    order: NDArray[np.int64]
    """Shape (N, slots, 3): `ITSELF`, `CONTRARY` or `NOTHING`, in the order of the actions."""
    directions: Signs
    """Shape (N, slots, 3): direction that each option states."""
    given: Signs
    """Shape (N, slots): direction that the procedure reveals; 0 for none."""

    @classmethod
    def shuffled(cls, numbers: ClaimNumbers, seeds: Hashes) -> ClaimOptions:
        """Return the options in the order that ``seeds``, shape (N,), draw for each claim."""
        slots = numbers.given.shape[1]
        words = np.arange(_SHUFFLE, _SHUFFLE + slots, dtype=np.uint64)
        roots = hash_words(np.zeros_like(seeds), seeds)
        draws = hash_words(np.repeat(roots[:, None], slots, axis=1), words)
        order = _ORDERS[(draws % np.uint64(len(_ORDERS))).astype(np.int64)]
        with_nothing = np.pad(numbers.directions, ((0, 0), (0, 0), (0, 1)))
        return cls(numbers.claims, order, np.take_along_axis(with_nothing, order, axis=2), numbers.given)
