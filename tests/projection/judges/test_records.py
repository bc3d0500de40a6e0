"""Alignments are kept in logs without loss."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inquitree_gym.log import to_line
from inquitree_gym.projection.events import AlignmentRecord
from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, ORDERS, Alignment
from inquitree_gym.projection.judging import alignment_record, recorded_alignment

RATINGS = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0, float("nan")])


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    claims, extras = draw(st.integers(1, 6)), draw(st.integers(0, MAX_EXTRAS))
    pairs = draw(st.lists(RATINGS, min_size=claims * ORDERS, max_size=claims * ORDERS))
    others = draw(st.lists(RATINGS, min_size=extras * claims * ORDERS, max_size=extras * claims * ORDERS))
    return Alignment(
        analogous=tuple(draw(st.lists(st.none() | st.text(), min_size=claims, max_size=claims))),
        extraneous=tuple(draw(st.lists(st.text(), min_size=extras, max_size=extras))),
        pair_ratings=np.array(pairs).reshape(claims, ORDERS),
        extra_ratings=np.array(others).reshape(extras, claims, ORDERS),
        reasons=tuple(draw(st.lists(st.text(), max_size=claims))),
    )


@given(alignments())
def test_an_alignment_comes_back_from_its_record(alignment: Alignment):
    line = to_line(alignment_record(alignment, 0.5))
    document = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    found = recorded_alignment(AlignmentRecord.model_validate(document))
    assert found is not None
    assert (found.analogous, found.extraneous, found.reasons) == (
        alignment.analogous, alignment.extraneous, alignment.reasons
    )  # fmt: skip
    np.testing.assert_array_equal(found.pair_ratings, alignment.pair_ratings)
    np.testing.assert_array_equal(found.extra_ratings, alignment.extra_ratings)


def test_a_projection_without_an_alignment_is_unscored():
    record = alignment_record(None, None)
    assert record.f1 is None
    assert recorded_alignment(record) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pair_ratings": ()}, "not have one entry for each claim"),
        ({"extra_ratings": ((), ())}, "not have one entry for each claim"),
        ({"extra_ratings": (((1.0, 1.0), (0.0, 0.0)),)}, "not have one entry for each claim"),
        ({"pair_ratings": ((1.0, 1.0, 0.0),)}, "pair_ratings"),
        ({"pair_ratings": ((1.5, 1.0),)}, "less than or equal to 1"),
        ({"f1": -0.1}, "greater than or equal to 0"),
    ],
)
def test_ratings_out_of_shape_or_range_are_refused(changes: dict[str, Any], told: str):
    right: dict[str, Any] = {
        "analogous": ("It rises.",), "extraneous": ("Age counts.",), "pair_ratings": ((1.0, 1.0),),
        "extra_ratings": (((0.0, 0.0),),), "f1": 1.0,
    }  # fmt: skip
    assert recorded_alignment(AlignmentRecord(**right)) is not None
    with pytest.raises(ValidationError, match=told):
        AlignmentRecord(**(right | changes))
