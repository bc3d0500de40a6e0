"""Boxes keep apart, arrows keep clear of boxes, and nothing depends on chance."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.trees import Tree, builtin_ids, load_tree
from inquitree_gym.trees.drawing import LANE, depths, layers, place
from tests.strategies import make_tree, trees

SLACK = 0.002
"""Places are rounded to thousandths."""
TREES = st.one_of(trees(max_subtopics=14), st.sampled_from([load_tree(name) for name in builtin_ids()]))


@given(TREES)
def test_boxes_of_a_layer_never_overlap_and_stay_in_the_picture(tree: Tree) -> None:
    layout = place(layers(tree))
    rows: dict[int, list[float]] = {}
    for x, y in layout.centres.values():
        rows.setdefault(y, []).append(x)
    for xs in map(sorted, rows.values()):
        assert all(right - left >= 1 - SLACK for left, right in pairwise(xs))
        assert xs[0] >= 0.5 - SLACK
        assert xs[-1] <= layout.width - 0.5 + SLACK


@pytest.mark.e2e
@given(TREES)
def test_an_arrow_joins_a_prerequisite_to_its_subtopic_layer_by_layer(tree: Tree) -> None:
    layout = place(layers(tree))
    wanted = [(name, subtopic.id) for subtopic in tree.subtopics for name in subtopic.requires]
    ends = [(arrow[0], arrow[-1]) for arrow in layout.arrows]
    assert sorted(ends) == sorted((layout.centres[above], layout.centres[below]) for above, below in wanted)
    assert {name: y for name, (_, y) in layout.centres.items()} == depths(tree)
    for arrow in layout.arrows:
        assert [y for _, y in arrow] == list(range(arrow[0][1], arrow[-1][1] + 1))


@pytest.mark.e2e
@given(TREES)
def test_a_passing_arrow_keeps_clear_of_every_box(tree: Tree) -> None:
    layout = place(layers(tree))
    for x, y in (point for arrow in layout.arrows for point in arrow[1:-1]):
        beside = [abs(x - centre) for centre, level in layout.centres.values() if level == y]
        assert min(beside) >= (1 + LANE) / 2 - SLACK


def test_arrows_that_need_not_cross_do_not() -> None:
    # In tree order, 1 → 4 and 2 → 3 would cross.
    layout = place(layers(make_tree([[], [], [1], [0]], [1] * 4)))
    (one, _), (two, _), (three, _), (four, _) = (layout.centres[f"s{i}"] for i in range(1, 5))
    assert (one < two) == (four < three)
