"""Alignments as logs and files of judgements keep them."""

from __future__ import annotations

import numpy as np

from inquitree_gym.judges.projections.alignment import ORDERS, Alignment
from inquitree_gym.log import AlignmentRecord


def alignment_record(alignment: Alignment | None, f1: float | None) -> AlignmentRecord:
    """Return the record of an alignment.

    Args:
        alignment: the alignment; None where the judge could not find the claims.
        f1: its score in [0, 1]; None for an unscored projection.
    """
    if alignment is None:
        return AlignmentRecord(analogous=(), extraneous=(), pair_ratings=(), extra_ratings=(), f1=None)
    return AlignmentRecord(
        analogous=alignment.analogous,
        extraneous=alignment.extraneous,
        pair_ratings=tuple((one, other) for one, other in alignment.pair_ratings.tolist()),
        extra_ratings=tuple(tuple((one, other) for one, other in each) for each in alignment.extra_ratings.tolist()),
        f1=f1,
        reasons=alignment.reasons,
    )


def recorded_alignment(record: AlignmentRecord) -> Alignment | None:
    """Return the alignment of a record, with NaN for null; None where the judge could not find the claims."""
    if not record.analogous:
        return None
    claims, extras = len(record.analogous), len(record.extraneous)
    return Alignment(
        analogous=record.analogous,
        extraneous=record.extraneous,
        pair_ratings=np.array(record.pair_ratings, np.float64).reshape(claims, ORDERS),
        extra_ratings=np.array(record.extra_ratings, np.float64).reshape(extras, claims, ORDERS),
        reasons=record.reasons,
    )
