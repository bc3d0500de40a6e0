"""Labelled projections, and the measurements on the page of ProjectionBench."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.judges.local import PROJECTION_SETTINGS, local_projection_judge
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees import builtin_ids, load_tree
from research.projection.crossval import MOST_INVENTED, Measured, chosen, kappa
from research.projection.measures import SHARES, Judged, Slice, composed_texts, judge_composed, judge_set, sliced
from research.projection.projections import WRITTEN_KINDS, load_projections
from research.projection.report import ProjectionEvidence, ordered_papers, slice_correlation, write_report

SETS = load_projections()
FIRST = SETS[0].projections[0]


def judged(kind: str, labels: tuple[int, ...], ratings: tuple[int, ...], f1: float = 0.0) -> Judged:
    return Judged("paper1", FIRST.model_copy(update={"kind": kind}), labels, ratings, f1)


def test_every_claim_of_every_paper_is_labelled():
    assert tuple(each.tree for each in SETS) == builtin_ids()
    for each in SETS:
        kinds = Counter(projection.kind for projection in each.projections)
        assert kinds == Counter({**dict.fromkeys(WRITTEN_KINDS, 1), "played": 3})
        assert all(len(one.ratings(load_task(each.tree))) == len(one.labels) for one in each.projections)


def test_labels_of_other_claims_are_refused():
    with pytest.raises(OptionError, match="label it again"):
        FIRST.model_copy(update={"labels": {"p99": "same"}}).ratings(load_task("paper1"))


def test_kappa_and_order_by_hand():
    rows = [judged("perfect", (1, 1), (1, 1), 1.0), judged("half", (1, -1), (1, -1), 0.5)]
    assert kappa(rows) == 1
    assert kappa([judged("half", (1, -1), (-1, 1))]) == -1
    assert ordered_papers([*rows, judged("reversed", (-1, -1), (-1, -1))]) == 1
    assert ordered_papers([*rows, judged("reversed", (-1, -1), (1, -1), 0.5)]) == 0


def test_a_setting_that_invents_credit_is_not_chosen():
    right, wrong = [judged("half", (1, -1), (1, -1))], [judged("half", (1, -1), (1, 1))]
    lenient, strict = PROJECTION_SETTINGS._replace(pair_at=0.1), PROJECTION_SETTINGS
    found = {lenient: [Measured(right, 2 * MOST_INVENTED)], strict: [Measured(wrong, 0.0)]}
    assert chosen(found, [0]) == strict
    assert chosen({lenient: [Measured(right, 0.0)], strict: [Measured(wrong, 0.0)]}, [0]) == lenient


def test_the_correlation_of_slices_is_that_of_means_over_papers():
    rising = [Slice("paper1", share, share) for share in SHARES]
    assert slice_correlation(rising) == pytest.approx(1)
    assert slice_correlation([*rising, *(Slice("paper2", share, 1 - 3 * share) for share in SHARES)]) == pytest.approx(
        -1
    )


@pytest.mark.weights
def test_texts_of_known_worth_and_the_page(tmp_path: Path):
    sets = SETS[:2]
    tasks = [load_task(each.tree) for each in sets]
    composed = list(judge_composed(tasks))
    f1 = {(each.tree, each.kind): each.f1 for each in composed}
    assert len(f1) == 2 * (len(composed_texts(*tasks)) + 1)
    assert f1["paper1", "other-paper"] < 0.2
    assert f1["paper1", "claims, both sides"] < 0.5
    for task in tasks:
        assert f1[task.id, "claims, oracle"] == 1
        assert f1[task.id, "outcome"] >= 0.9
        assert all(f1[task.id, kind] == 0 for kind in ("claims, reversed", "question", "injected", "empty"))
    rows = [
        row for each, task in zip(sets, tasks, strict=True) for row in judge_set(each, local_projection_judge(task))
    ]
    slices = list(sliced(load_tree("paper2"), np.random.default_rng(0)))
    assert slices[0].f1 == 0 < slices[-1].f1
    page = write_report(ProjectionEvidence(sets, rows, rows, composed, slices), tmp_path).read_text(encoding="utf-8")
    assert "| perfect | 2 |" in page
    assert (tmp_path / "figures" / "projection-slices.svg").stat().st_size > 1_000
