"""Which episodes the inquiries of an `InquiryBatchEnv` are in: their trees and rules, their seeds, their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from inquitree_gym.envs.batch.encoding import Bools, Ints
from inquitree_gym.envs.batch.kernel import Core
from inquitree_gym.envs.batch.pool import Repertoire
from inquitree_gym.envs.batch.rng import Hashes, mixed
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import OptionError

Seed = int | Sequence[int | None] | None

_WORD = (1 << 64) - 1


class Episodes:
    """Starts the episodes of a batch of inquiries, each as `InquiryEnv.reset` starts it."""

    def __init__(self, inquiry: InquiryEnv, repertoire: Repertoire, own: Ints | None) -> None:
        """Play what ``inquiry`` is made for; ``own`` says for each inquiry which of its trees that is, None any."""
        self._inquiry = inquiry
        self._repertoire = repertoire
        self._own = own
        self._pool: Ints = np.zeros(0, np.int64)
        """What is played without an option: numbers of the repertoire."""
        self._seeded: Bools = np.zeros(repertoire.inquiries, np.bool_)

    @property
    def core(self) -> Core:
        """The inquiries.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._repertoire.core is None:
            raise ResetNeeded("no episode has been started; call reset() first")
        return self._repertoire.core

    def reset(self, rng: np.random.Generator, seed: Seed, options: Mapping[str, Any] | None) -> Ints:
        """Start episodes and return whose they are; see `InquiryBatchEnv.reset`.

        Args:
            rng: gives seeds to inquiries that never got one.
            seed: as `InquiryBatchEnv.reset` takes it.
            options: likewise.
        """
        seeds, others = _seeds(seed, len(self._seeded)), dict(options or {})
        rows = _rows(others.pop("reset_mask", None), len(self._seeded))
        if len(rows) < len(self._seeded):
            _ = self.core
        trees, rules = self._inquiry.resolve_options(others)
        if not self._pool.size:
            self._pool = self._repertoire.numbers(*self._inquiry.resolve_options(None))
        pool = self._repertoire.numbers(trees, rules, np.delete(self.core.play, rows))
        self._sow(rows, [seeds[row] for row in rows.tolist()], rng)
        self.core.begin(rows, self._drawn(rows, pool, own="tree" not in others))
        return rows

    def go_on(self, rows: Ints) -> None:
        """Start the next episodes of inquiries that are over."""
        self.core.seeds.advance(rows, drawn=self.core.tables.fakes or (self._own is None and len(self._pool) > 1))
        self.core.begin(rows, self._drawn(rows, self._pool, own=True))

    def _sow(self, rows: Ints, seeds: Sequence[int | None], rng: np.random.Generator) -> None:
        """Give these inquiries the seeds of their next episodes; without one, they go on from their last."""
        given = np.array([seed is not None for seed in seeds])
        new = rows[~given & ~self._seeded[rows]]
        self.core.seeds.advance(rows[~given & self._seeded[rows]], drawn=True)
        self.core.seeds.give(new, rng.integers(1 << 63, size=len(new), dtype=np.uint64))
        self.core.seeds.give(rows[given], np.array([seed & _WORD for seed in seeds if seed is not None], np.uint64))
        self._seeded[rows] = True

    def _drawn(self, rows: Ints, pool: Ints, *, own: bool) -> Ints:
        """Return which plays of ``pool`` the episodes of these inquiries are of: their own, or drawn by their seeds.

        Where there is but one, it stands for all.
        """
        if own and self._own is not None:
            return pool.take(self._own.take(rows))
        if len(pool) == 1:
            return pool
        count: Hashes = np.array(len(pool), np.uint64)
        return pool.take((mixed(self.core.seeds.hashes.take(rows), count) % count).astype(np.int64))


def _seeds(seed: Seed, inquiries: int) -> list[int | None]:
    """Return one seed for each inquiry, None where there is none."""
    if seed is None or isinstance(seed, int):
        seeds = [None if seed is None else seed + i for i in range(inquiries)]
    else:
        seeds = list(seed) if isinstance(seed, Sequence) else []
    if len(seeds) != inquiries or not all(each is None or (isinstance(each, int) and each >= 0) for each in seeds):
        raise OptionError(
            f"seed is None, a whole number from 0, or a list of one or the other for each of the {inquiries} "
            f"inquiries, not {seed!r:.80}"
        )
    return seeds


def _rows(mask: Any, inquiries: int) -> Ints:
    """Return which inquiries to reset."""
    if mask is None:
        return np.arange(inquiries)
    fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (inquiries,)
    if not (fits and mask.any()):
        raise OptionError(f"reset_mask is a bool array of shape ({inquiries},), True somewhere, not {mask!r:.80}")
    rows: Ints = mask.nonzero()[0]
    return rows
