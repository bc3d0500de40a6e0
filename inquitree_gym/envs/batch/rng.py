"""Episode seeds and the hash of the engine, for many inquiries at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_GOLDEN, _FIRST, _SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_NEXT = np.ones((), np.uint64)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(hashes: Hashes, words: NDArray[np.integer]) -> Hashes:
    """Return hashes that take one more word in: ``splitmix64(*a, b)`` is ``mixed(splitmix64(*a), b)``.

    Both arrays have one shape, or the words are a single one; the hash of no word is 0.
    """
    found = hashes ^ words.astype(np.uint64)
    found += _GOLDEN
    found ^= found >> _S30
    found *= _FIRST
    found ^= found >> _S27
    found *= _SECOND
    found ^= found >> _S31
    return found


class Seeds:
    """Which episode each inquiry is in, and its seed: the one given, or for the k-th after it a hash of it and k."""

    def __init__(self, inquiries: int) -> None:
        """Hold no seed yet."""
        self.first: Hashes = np.zeros(inquiries, np.uint64)
        self.episode: Hashes = np.zeros(inquiries, np.uint64)
        self._roots: Hashes = np.zeros(inquiries, np.uint64)
        self.hashes: Hashes = np.zeros(inquiries, np.uint64)
        """``splitmix64(seed)`` of the episode in progress, which its draws go on from; see `advance`."""

    def give(self, rows: NDArray[np.int64], seeds: Hashes) -> None:
        """Start these inquiries anew, each from a seed of its own."""
        self.first[rows] = seeds
        self.episode[rows] = 0
        self.hashes[rows] = self._roots[rows] = mixed(np.zeros_like(seeds), seeds)

    def advance(self, rows: NDArray[np.int64], *, drawn: bool) -> None:
        """Go on to the next episode of these inquiries; without ``drawn`` their `hashes` stay as they were."""
        episode = self.episode.take(rows)
        episode += _NEXT
        self.episode[rows] = episode
        if drawn:
            seeds = mixed(self._roots.take(rows), episode)
            self.hashes[rows] = mixed(np.zeros_like(seeds), seeds)

    def of(self, row: int) -> int:
        """Return the seed of an episode in progress."""
        seed = self.first[row] if not self.episode[row] else mixed(self._roots[row : row + 1], self.episode[row])[0]
        return int(seed)
