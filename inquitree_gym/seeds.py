"""Hashes of whole numbers: draws that are the same on every platform, one at a time or in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

WORD = (1 << 64) - 1
"""Largest 64-bit word, as a mask."""
_GOLDEN, _FIRST, _SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


def splitmix64(*words: int) -> int:
    """Hash whole numbers to 64 bits with the finaliser of SplitMix64, chained over the words."""
    mixed = 0
    for word in words:
        mixed = ((mixed ^ word) + 0x9E3779B97F4A7C15) & WORD
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & WORD
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & WORD
        mixed ^= mixed >> 31
    return mixed


def draw_orders(options: Sequence[int], *words: int) -> tuple[tuple[int, ...], ...]:
    """Draw the order of each item's options, of which there are so many, by the hash of words, item and option."""
    return tuple(
        tuple(sorted(range(count), key=lambda option: splitmix64(*words, item, option)))
        for item, count in enumerate(options)
    )


def hash_text(text: str) -> int:
    """Hash a text to 64 bits."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def seed_of_agent(seed: int, document: str) -> int:
    """Return a one-way hash of an episode's seed and the id of its tree or task, from 0 to 2^63 - 1."""
    key = (seed & WORD).to_bytes(8, "big") + document.encode()
    return int.from_bytes(blake2b(key, digest_size=8, person=b"inquitree agent").digest(), "big") >> 1


def hash_words(hashes: Hashes, words: NDArray[np.integer]) -> Hashes:
    """Chain one more word onto each hash: ``splitmix64(*a, b)`` is ``hash_words(splitmix64(*a), b)``.

    Args:
        hashes: hashes of the words before. 0 for none.
        words: one word for each, in the same shape, or a single one.
    """
    mixed = hashes ^ words.astype(np.uint64)
    mixed += _GOLDEN
    mixed ^= mixed >> _S30
    mixed *= _FIRST
    mixed ^= mixed >> _S27
    mixed *= _SECOND
    mixed ^= mixed >> _S31
    return mixed


def signed(word: int) -> int:
    """Return a 64-bit word as the signed integer with the same bits."""
    return (word & WORD ^ 1 << 63) - (1 << 63)
