"""Worlds are drawn uniformly from their set, and no sheet that is written beforehand earns anything in most sets."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.trees.schema import Tree
from inquitree_gym.trees.worlds import SETS, World, count_worlds, world_id, worlds
from tests.worlds import draw_world, read, world_document, world_trees

SEEDS = st.integers(-(2**63), 2**65)
SPLIT = ("train", "test")


def tree_of(*poles: int, tree_id: str = "made") -> Tree:
    axes = [[index] for index in range(len(poles))]
    return read(world_document(poles, [axes], axes, tree_id))


def binary(tree: Tree) -> list[int]:
    return [index for index, axis in enumerate(tree.axes) if len(axis.poles) == 2]


def score(tree: Tree, sheet: World, world: World) -> float:
    """The score by axis: 1 for the right pole, less for a wrong one by chance of three poles."""
    right = [1 if said == pole else -1 / (len(axis.poles) - 1)
             for axis, said, pole in zip(tree.axes, sheet, world, strict=True)]  # fmt: skip
    return sum(right) / len(right)


@given(world_trees(max_axes=5))
def test_any_holds_every_combination_of_poles_once(tree: Tree):
    found = list(worlds(tree))
    assert found == list(product(*(range(len(axis.poles)) for axis in tree.axes)))
    assert count_worlds(tree) == len(found)


@given(world_trees(max_axes=6, binary=4))
def test_train_and_test_part_the_worlds_in_halves(tree: Tree):
    train, test = (set(worlds(tree, which)) for which in SPLIT)
    assert not train & test
    assert train | test == set(worlds(tree))
    assert len(train) == len(test) == count_worlds(tree, "train")


@given(world_trees(max_axes=6, binary=4), st.sampled_from(SPLIT))
def test_within_a_half_all_axes_but_one_are_uniform_together(tree: Tree, which: str):
    half = list(worlds(tree, which))
    for left_out in binary(tree):
        rest = Counter(world[:left_out] + world[left_out + 1 :] for world in half)
        assert set(rest.values()) == {1}
        assert len(rest) == count_worlds(tree) // 2


@given(world_trees(max_axes=5, binary=4), st.sampled_from(("any", *SPLIT)), st.data())
def test_a_fixed_sheet_earns_nothing(tree: Tree, which: str, data: st.DataObject):
    sheet = tuple(data.draw(st.integers(0, len(axis.poles) - 1)) for axis in tree.axes)
    assert sum(score(tree, sheet, world) for world in worlds(tree, which)) == pytest.approx(0, abs=1e-9)


@given(world_trees())
def test_every_pole_of_the_complement_is_another_one(tree: Tree):
    (actual,) = worlds(tree, "actual")
    assert actual == tuple(axis.actual for axis in tree.axes)
    found = list(worlds(tree, "complement"))
    assert len(found) == 2 ** (len(tree.axes) - len(binary(tree)))
    assert all(pole != own for world in found for pole, own in zip(world, actual, strict=True))


@given(world_trees(binary=4), st.sampled_from(SETS), SEEDS)
def test_a_draw_is_a_world_of_its_set_and_the_same_again(tree: Tree, which: str, seed: int):
    world = draw_world(tree, which, seed)
    assert world in set(worlds(tree, which))
    assert draw_world(tree, which, seed) == world
    assert draw_world(tree, world_id(world), seed) == world


@pytest.mark.parametrize("which", ["any", "complement", *SPLIT])
def test_every_world_of_a_set_is_drawn_equally_often(which: str):
    tree = tree_of(2, 3, 2, 2, 3, 2)
    expected = 8_000 / count_worlds(tree, which)
    counts = Counter(draw_world(tree, which, seed) for seed in range(8_000))
    assert counts.keys() == set(worlds(tree, which))
    spread = sum((count - expected) ** 2 / expected for count in counts.values())
    assert spread < 1.5 * len(counts) + 12  # chi squared, with a mean of the number of worlds less one


def test_a_seed_draws_other_worlds_from_other_trees_and_sets():
    one, other = tree_of(*[2] * 12), tree_of(*[2] * 12, tree_id="other")
    assert len({draw_world(tree, which, 5) for tree in (one, other) for which in ("any", *SPLIT)}) == 6


def test_the_parity_of_train_differs_between_trees():
    parities = {sum(next(worlds(tree_of(2, 2, 2, 2, tree_id=f"t{i}"), "train"))) % 2 for i in range(20)}
    assert parities == {0, 1}


def test_the_key_of_a_text_names_the_poles_in_the_order_of_its_axes():
    tree = tree_of(2, 3, 2)
    assert world_id((1, 2, 0)) == "120"
    assert tree.keys(["a1", "a2"]) == ("00", "01", "02", "10", "11", "12")
    assert tree.keys([]) == ("",)


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("trian", "test or the id of a world such as '00000', got 'trian'"),
        ("", "got ''"),
        ("³1111", "got '³1111'"),
        ("0110", "must have one digit for each axis of 'made' (a1, a2, a3, a4, a5), got 4 digits. Write 5 digits."),
        ("01102", "world '01102': the pole of axis a5 must be a digit from 0 to 1, got 2. Write 0 to 1 in its place."),
        ("train", "needs a tree with at least 4 axes of two poles, 'made' has 3. Take world 'any', or another tree."),
    ],
)  # fmt: skip
def test_an_unknown_world_is_refused_with_place_value_and_remedy(which: str, told: str):
    tree = tree_of(2, 2, 2, 3, 3) if which == "train" else tree_of(2, 2, 2, 2, 2)
    with pytest.raises(OptionError) as caught:
        draw_world(tree, which, 0)
    assert told in str(caught.value)


@pytest.mark.parametrize("which", ["actual", "complement"])
def test_a_tree_without_a_paper_has_no_actual_world(which: str):
    document = world_document([2, 2], [[[0], [1]]], [[0], [1]])
    for axis in document["axes"]:
        axis["actual"] = None
    with pytest.raises(OptionError, match=f"world '{which}' needs the findings of a paper, and 'made' was made up"):
        list(worlds(read(document), which))
