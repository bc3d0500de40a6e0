"""The entailment judge of projections on given probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.judging.nli import ENTAILS_AT, LABELS, Probabilities, TextPair
from inquitree_gym.judging.registry import load_judge, make_judges
from inquitree_gym.projection.judges.nli import NLIProjectionJudge
from tests.projection.judges.bread import bread
from tests.projection.tasks import WORDS

TASK = bread()
WARM, SALT = (claim.text for claim in TASK.claims[:2])
SAID = "Warm dough rises faster"


class Table:
    """Answers pairs from a table; what stands not in it is neutral."""

    name = "table"

    def __init__(self, **said: dict[TextPair, float]) -> None:
        self._said = said

    def read(self, pairs: Sequence[TextPair]) -> Probabilities:
        rows = [[self._said.get(label, {}).get(pair, 0.0) for label in LABELS] for pair in pairs]
        return np.array([[row[0], 1 - sum(row), row[2]] for row in rows], np.float64).reshape(-1, 3)


def aligned(text: str, **said: dict[TextPair, float]):
    return NLIProjectionJudge(TASK, Table(**said)).judge(text)


def test_the_two_orders_are_the_two_directions_of_entailment():
    found = aligned(SAID, entailment={(SAID, WARM): 0.9})
    assert found.analogous == (SAID, None, None, None)
    np.testing.assert_array_equal(found.pair_ratings[0], [1, 0])
    found = aligned(SAID, entailment={(SAID, WARM): 0.9, (WARM, SAID): 0.8})
    np.testing.assert_array_equal(found.pair_ratings[0], [1, 1])
    assert found.reasons[0] == f"entails 0.90, follows 0.80, against 0.00: {SAID}"


def test_a_contradiction_or_a_contrary_that_is_entailed_is_opposed():
    against = aligned(SAID, contradiction={(SAID, WARM): 0.9, (WARM, SAID): 0.9})
    np.testing.assert_array_equal(against.pair_ratings[0], [-1, -1])
    contrary = aligned(SAID, entailment={(SAID, TASK.claims[0].contraries[1]): 0.9})
    np.testing.assert_array_equal(contrary.pair_ratings[0], [-1, 0])


def test_claims_that_bear_on_nothing_are_extraneous_up_to_three():
    claims = [f"Fact number {k} is here" for k in range(5)]
    found = aligned("\n".join([*claims, SAID]), entailment={(SAID, WARM): 0.9, (claims[0], SALT): ENTAILS_AT - 0.01})
    assert found.analogous == (SAID, None, None, None)
    assert found.extraneous == tuple(claims[:3])
    np.testing.assert_array_equal(found.extras, [0, 0, 0])


def test_judges_are_made_by_name_and_once_and_none_is_local():
    found = make_judges(["nli:some/model", "nli:other/model", "nli:some/model"], task_kind="projection")
    assert [judge.name for judge in found] == ["nli:some/model", "nli:other/model"]
    assert load_judge(WORDS, task_kind="projection") is WORDS
    with pytest.raises(OptionError, match=r"no judge is called 'local'; known: nli:MODEL, llm:MODEL"):
        make_judges(["local"], task_kind="projection")
