"""The local judge of projections on real weights."""

from __future__ import annotations

import numpy as np
import pytest

from inquitree_gym.judges.projections.local import LocalProjectionJudge, local_projection_judge
from tests.judges.projections.bread import bread

pytestmark = pytest.mark.weights
TASK = bread()


@pytest.fixture(scope="module")
def judge() -> LocalProjectionJudge:
    return local_projection_judge(TASK)


def f1(judge: LocalProjectionJudge, *claims: str) -> float:
    return float(judge.align("\n".join(claims)).score().f1)


def test_the_true_claims_score_1_their_contraries_and_nothing_0(judge: LocalProjectionJudge):
    assert f1(judge, *(claim.text for claim in TASK.claims)) == 1
    assert f1(judge, TASK.disclosure.outcome) == 1
    for k in range(2):
        assert f1(judge, *(claim.contraries[k] for claim in TASK.claims)) == 0
    assert f1(judge, "") == 0


@pytest.mark.parametrize(
    ("claim", "rating"),
    [
        ("Warmer dough rises faster.", 1),
        ("Warmer dough rises more slowly.", -1),
        ("Warmth makes no difference to how fast the dough rises.", -1),
        ("Warmth affects how fast the dough rises.", 0),
        ("Warmer dough may or may not rise faster.", 0),
    ],
)
def test_a_claim_is_rated_by_its_direction(judge: LocalProjectionJudge, claim: str, rating: float):
    aligned = judge.align(claim)
    assert aligned.analogous == (claim.removesuffix("."), None, None, None)
    np.testing.assert_array_equal(aligned.pair_ratings[0], [rating, rating])


def test_what_is_disclosed_earns_nothing_and_the_null_is_opposed(judge: LocalProjectionJudge):
    shown = TASK.disclosure
    assert f1(judge, shown.question) == f1(judge, shown.topic) == 0
    assert f1(judge, *shown.procedure) <= 0.05
    assert judge.align(shown.null_hypothesis).pairs[0] == -1
