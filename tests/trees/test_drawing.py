"""Pictures show every subtopic and edge, and whatever a name holds stays a name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from inquitree_gym.trees import Tree, builtin_ids, dump_tree, load_tree, parse_tree
from inquitree_gym.trees.drawing import COLOURS, depths, diagram, figure, layers, mermaid, svg
from tests.strategies import make_tree, trees

DIAMOND = [[], [0], [0], [1, 2], []]
HOSTILE = [
    r"$\frac$ or more",
    "<script>alert(1)</script>",
    'say "x"] --> s1["y',
    "#quot; &amp; &lt;b&gt;",
    "two\nlines\tand tab",
    "`code` **bold** %%",
    "{{ 7 * 7 }} {% raw %}",
    "x" * 60,
]


def named(name: str, identifier: str = "s1") -> Tree:
    document = json.loads(dump_tree(make_tree([[], [0]], [1, 1])))
    document["subtopics"][0] |= {"name": name, "id": identifier}
    document["subtopics"][1]["prerequisites"] = [{"id": identifier, "because": "It needs it."}]
    return parse_tree(json.dumps(document).encode())


def words(picture: str) -> str:
    """Everything written in an SVG, without white space: names are broken into lines."""
    root = ElementTree.fromstring(picture)
    return squeezed("".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")))


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def fills(drawn: Figure) -> dict[str, str]:
    """Colour of the box behind each id."""
    (axes,) = drawn.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    found = {}
    for text in axes.texts:
        if re.fullmatch(r"s\d+", text.get_text()):
            (box,) = [box for box in boxes if box.get_bbox().contains(*text.get_position())]
            found[text.get_text()] = to_hex(box.get_facecolor())
    return found


@settings(deadline=None)
@given(trees())
def test_layers_hold_each_subtopic_once_by_depth_in_tree_order(tree: Tree):
    found, rows = depths(tree), layers(tree)
    order = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
    assert sorted(each.id for row in rows for each in row) == sorted(order)
    for level, row in enumerate(rows):
        assert row
        assert all(found[each.id] == level for each in row)
        assert [order[each.id] for each in row] == sorted(order[each.id] for each in row)


@pytest.mark.e2e
def test_a_chain_against_the_tree_order_may_be_a_thousand_long():
    tree = make_tree([[i + 1] if i < 999 else [] for i in range(1000)], [1] * 1000)
    assert depths(tree) == {f"s{i}": 1000 - i for i in range(1, 1001)}
    assert [row[0].id for row in layers(tree)[:2]] == ["s1000", "s999"]


def test_mermaid_names_every_subtopic_and_every_edge():
    assert mermaid(make_tree([[], [0], [0, 1]], [1] * 3)).splitlines() == [
        "flowchart TD",
        '    s1["s1 · Question 1"]',
        '    s2["s2 · Question 2"]',
        '    s3["s3 · Question 3"]',
        "    s1 --> s2",
        "    s1 --> s3",
        "    s2 --> s3",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_cannot_leave_its_label_in_mermaid(name: str):
    text = mermaid(named(name))
    assert text.count("\n") == 4
    label = re.fullmatch(r'    s1\["s1 · ([^"<>&`]*)"\]', text.splitlines()[1])
    assert label
    shown = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label[1])
    assert shown == " ".join(name.split()), "a viewer turns the codes back into the name"


@settings(max_examples=30)
@given(tree=trees())
def test_boxes_stand_apart_inside_the_picture_and_arrows_join_them(tree: Tree):
    found = diagram(tree)
    assert [box.id for box in found.boxes] == [subtopic.id for subtopic in tree.subtopics]
    assert len(found.arrows) == sum(len(subtopic.prerequisites) for subtopic in tree.subtopics)
    for box in found.boxes:
        assert box.x - found.box_width / 2 >= 0
        assert box.x + found.box_width / 2 <= found.width
        assert box.y >= 0
        assert box.y + found.box_height <= found.height
        assert all(box.y < dot.y < box.y + found.box_height for dot in box.dots)
    for one, other in combinations(found.boxes, 2):
        apart = abs(one.x - other.x) >= found.box_width or abs(one.y - other.y) >= found.box_height
        assert apart, f"{one.id} and {other.id} overlap"
    by_id = {box.id: box for box in found.boxes}
    assert sorted((arrow[0][0], arrow[-1][-1]) for arrow in found.arrows) == sorted(
        ((by_id[need].x, by_id[need].y + found.box_height), (by_id[s.id].x, by_id[s.id].y))
        for s in tree.subtopics
        for need in s.requires
    )


def test_a_figure_marks_what_it_is_told_to_and_nothing_else():
    marks = {"s2": "visited", "s3": "current", "s4": "target"}
    assert fills(figure(make_tree(DIAMOND, [1] * 5), marks)) == {
        "s1": COLOURS["open"],
        "s2": COLOURS["visited"],
        "s3": COLOURS["current"],
        "s4": COLOURS["target"],
        "s5": COLOURS["open"],
    }
    assert len(set(COLOURS.values())) == 4


@pytest.mark.e2e
@pytest.mark.parametrize("name", builtin_ids())
def test_an_svg_holds_every_id_and_name_and_is_the_same_twice(name: str):
    tree = load_tree(name)
    picture = svg(tree)
    assert svg(tree) == picture
    written = words(picture)
    assert all(subtopic.id in written and squeezed(subtopic.name) in written for subtopic in tree.subtopics)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_a_name_in_an_svg(name: str):
    picture = svg(named(name))
    assert squeezed(name) in words(picture)
    assert "<script" not in picture


SVG = """
import sys
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.drawing import svg
sys.stdout.buffer.write(svg(load_tree("paper8"), {"s1": "visited"}).encode())
"""


@pytest.mark.e2e
def test_an_svg_has_the_same_bytes_in_every_process():
    environment = os.environ | {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "1"}
    run = subprocess.run([sys.executable, "-c", SVG], env=environment, capture_output=True, check=True)
    assert run.stdout.decode() == svg(load_tree("paper8"), {"s1": "visited"})


WITHOUT_MATPLOTLIB = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from inquitree_gym.errors import MissingExtraError
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.drawing import figure, mermaid, svg
tree = load_tree("paper8")
assert mermaid(tree).startswith("flowchart TD")
for draw in (figure, svg):
    try:
        draw(tree)
    except MissingExtraError as error:
        print(error)
"""


@pytest.mark.e2e
def test_without_matplotlib_mermaid_works_and_the_rest_names_the_extra():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True, check=True)
    assert run.stdout.count("pip install -c constraints.txt '.[plots]'") == 2
