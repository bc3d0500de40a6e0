"""The local judge of projections on real weights."""

from __future__ import annotations

import numpy as np
import pytest

from inquitree_gym.embeddings import TextVectors
from inquitree_gym.projection.judges.local import (
    PROJECTION_SETTINGS,
    LocalProjectionJudge,
    local_projection_judge,
)
from tests.projection.judges.bread import bread

pytestmark = pytest.mark.weights
TASK = bread()


@pytest.fixture(scope="module")
def judge() -> LocalProjectionJudge:
    return local_projection_judge(TASK)


def f1(judge: LocalProjectionJudge, *claims: str) -> float:
    return float(judge.judge("\n".join(claims)).score().f1)


def test_the_true_claims_score_1_their_contraries_and_nothing_0(judge: LocalProjectionJudge):
    assert f1(judge, *(claim.text for claim in TASK.claims)) == 1
    assert f1(judge, TASK.disclosure.outcome) == 1
    for k in range(2):
        assert f1(judge, *(claim.contraries[k] for claim in TASK.claims)) == 0
    assert f1(judge, "") == 0


@pytest.mark.parametrize(
    ("number", "claim", "rating"),
    [
        (0, "Warmer dough rises faster.", 1),
        (0, "Warmer dough rises more slowly.", -1),
        (0, "Warmth makes no difference to how fast the dough rises.", -1),
        (0, "Warmth affects how fast the dough rises.", 0),
        (0, "Warmer dough may or may not rise faster.", 0),
        (3, "The tin leaves the taste of the bread unchanged.", 1),
        (3, "The shape of the tin has a large influence on the taste of the bread.", -1),
    ],
)
def test_a_claim_is_rated_by_its_direction(judge: LocalProjectionJudge, number: int, claim: str, rating: float):
    aligned = judge.judge(claim)
    assert [bool(text) for text in aligned.analogous] == [k == number for k in range(4)]
    np.testing.assert_array_equal(aligned.pair_ratings[number], [rating, rating])
    assert local_projection_judge(bread()) is judge


def test_what_is_disclosed_earns_nothing_and_the_null_is_opposed(judge: LocalProjectionJudge):
    shown = TASK.disclosure
    assert f1(judge, shown.question) == f1(judge, shown.topic) == 0
    assert f1(judge, *shown.procedure) <= 0.05
    assert judge.judge(shown.null_hypothesis).pairs[0] == -1


def test_one_projected_claim_goes_with_one_true_claim_and_up_to_three_others_are_extraneous(
    judge: LocalProjectionJudge,
):
    texts = [claim.text for claim in TASK.claims]
    others = ["Bakers sleep late on Sundays.", "Flour is sold in paper bags.", "Cats avoid water.", "Moons are round."]
    aligned = judge.judge("\n".join([*others, *texts[::-1]]))
    assert list(aligned.analogous) == [text.removesuffix(".") for text in texts]
    assert list(aligned.extraneous) == [text.removesuffix(".") for text in others[:3]]
    assert aligned.score().f1 == 1
    assert aligned.score("strict").f1 == pytest.approx(2 * (4 / 7) / (4 / 7 + 1))


@pytest.mark.parametrize(
    ("setting", "value", "rating"),
    [("pair_at", 1.5, np.nan), ("about_at", 1.5, 0), ("asked_at", 1e6, 0), ("direction_weight", -1e3, -1)],
)
def test_settings_are_its_own(judge: LocalProjectionJudge, setting: str, value: float, rating: float):
    claim = "More warmth raises the dough faster."
    assert judge.judge(claim).pairs[0] == 1
    other = LocalProjectionJudge(TASK, judge.vectors, settings=PROJECTION_SETTINGS._replace(**{setting: value}))
    np.testing.assert_array_equal(other.judge(claim).pairs[0], rating)


def test_an_extra_is_rated_against_what_it_is_about():
    task = bread(1)
    judge = local_projection_judge(task)
    text = f"{task.claims[0].text}\nMore warmth hastens the rise of the dough."
    assert judge.judge(text).extras.tolist() == [1]
    far = LocalProjectionJudge(task, judge.vectors, settings=PROJECTION_SETTINGS._replace(extra_at=1.5))
    assert far.judge(text).extras.tolist() == [0]


def test_a_batch_of_vectors_gives_the_same_alignment(judge: LocalProjectionJudge):
    text = "Warmer dough rises faster, salt makes the yeast lazy, and the crust grows with the hours in the oven."
    fresh = LocalProjectionJudge(TASK, TextVectors(TASK.digest, tuple(TASK.texts()), judge.vectors.embedder))
    wanted = list(fresh.uncached_texts(text))
    assert [claim for _, claim in wanted] == fresh.claims(text)
    for (vectors, claim), row in zip(wanted, judge.vectors.embedder.embed([each for _, each in wanted]), strict=True):
        vectors.take(claim, row)
    assert list(fresh.uncached_texts(text)) == []
    one, other = fresh.judge(text), judge.judge(text)
    assert one.analogous == other.analogous
    np.testing.assert_array_equal(one.pair_ratings, other.pair_ratings)
