"""Pictures of a research tree: Mermaid, and a diagram for SVG, PNG and HTML pages."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from inquitree_gym.errors import require
from inquitree_gym.trees.layout import place
from inquitree_gym.trees.schema import Subtopic, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"open": "#ffffff", "visited": "#cfe8d5", "current": "#ffd98a", "target": "#f6c6c0"}
"""Fill by mark; a subtopic without a mark is open."""
EDGE_COLOUR, TEXT_COLOUR = "#6b7280", "#1f2430"
PIXELS_PER_INCH = 96
BOX_WIDTH, GAP, ROW_GAP, LINE, PAD, DOT = 168, 16, 46, 17, 12, 18
"""Pixels: box width, space between boxes and between rows, line height, padding of a box, room of a study's mark."""
LABEL_WIDTH = 20
"""Characters to a line."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StudyDot:
    """Mark of a study; coordinates of its centre in pixels."""

    id: str
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class SubtopicBox:
    """Box of a subtopic; ``x`` is its centre and ``y`` its upper edge, in pixels from the upper left corner."""

    id: str
    text: str
    lines: tuple[str, ...]
    x: float
    y: float
    dots: tuple[StudyDot, ...]


@dataclass(frozen=True, slots=True)
class TreeDiagram:
    """Boxes and arrows of a research tree; sizes in pixels."""

    width: float
    height: float
    box_width: float
    box_height: float
    boxes: tuple[SubtopicBox, ...]
    arrows: tuple[tuple[tuple[Point, Point, Point, Point], ...], ...]
    """One arrow per prerequisite: cubic Bézier curves, joined by vertical lines where it passes a row."""


def depths(tree: Tree) -> dict[str, int]:
    """Return per subtopic the length of its longest chain of prerequisites; 0 without any."""
    parents = {subtopic.id: subtopic.prerequisites for subtopic in tree.subtopics}
    found: dict[str, int] = {}
    for node in TopologicalSorter(parents).static_order():
        found[node] = 1 + max((found[name] for name in parents[node]), default=-1)
    return {node: found[node] for node in parents}


def layers(tree: Tree) -> list[list[Subtopic]]:
    """Return the subtopics by depth, each layer in tree order."""
    depth = depths(tree)
    rows: list[list[Subtopic]] = [[] for _ in range(max(depth.values()) + 1)]
    for subtopic in tree.subtopics:
        rows[depth[subtopic.id]].append(subtopic)
    return rows


def mermaid(tree: Tree) -> str:
    """Return the graph as a Mermaid flowchart.

    Its nodes are called s1, s2, … in tree order, since an id may be a Mermaid keyword.
    """
    nodes = {subtopic.id: f"s{i}" for i, subtopic in enumerate(tree.subtopics, 1)}
    lines = ["flowchart TD"]
    lines += [f'    {nodes[each.id]}["{each.id} · {_plain(each.name)}"]' for each in tree.subtopics]
    for subtopic in tree.subtopics:
        lines += [f"    {nodes[name]} --> {nodes[subtopic.id]}" for name in subtopic.prerequisites]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=64)
def diagram(tree: Tree) -> TreeDiagram:
    """Return the diagram of a tree, with prerequisites above the subtopics that need them."""
    rows = layers(tree)
    placement = place(rows)
    labels = {subtopic.id: tuple(textwrap.wrap(subtopic.name, LABEL_WIDTH)) for subtopic in tree.subtopics}
    height = 2 * PAD + LINE * (1 + max(map(len, labels.values()))) + DOT

    def at(point: tuple[float, int]) -> Point:
        return round(point[0] * (BOX_WIDTH + GAP) + GAP / 2, 1), point[1] * (height + ROW_GAP) + GAP / 2

    return TreeDiagram(
        width=round(placement.width * (BOX_WIDTH + GAP) + GAP, 1),
        height=len(rows) * (height + ROW_GAP) - ROW_GAP + GAP,
        box_width=BOX_WIDTH,
        box_height=height,
        boxes=tuple(_box(each, labels[each.id], at(placement.centres[each.id]), height) for each in tree.subtopics),
        arrows=tuple(_arrow([at(point) for point in points], height) for points in placement.arrows),
    )


def figure(
    tree: Tree, marks: Mapping[str, str] | None = None, *, margins: tuple[int, int] = (0, 0), width: int = 0
) -> Figure:
    """Return a Matplotlib figure of the diagram; its axes are in pixels, with y downwards from the diagram's top.

    Args:
        tree: the tree.
        marks: name in `COLOURS` by subtopic id.
        margins: empty pixels above and below the diagram.
        width: least width in pixels.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    drawn = diagram(tree)
    right = _whole_inches(max(drawn.width, width))
    above, below = margins
    height = _whole_inches(above + drawn.height + below)
    size = (right / PIXELS_PER_INCH, height / PIXELS_PER_INCH)
    canvas: Figure = require("matplotlib.figure", "plots").Figure(figsize=size, dpi=PIXELS_PER_INCH)
    left = (drawn.width - right) / 2
    axes = canvas.add_axes((0, 0, 1, 1), xlim=(left, left + right), ylim=(height - above, -above), frameon=False)
    axes.set_axis_off()
    for arrow in drawn.arrows:
        _draw_arrow(axes, arrow)
    for box in drawn.boxes:
        _draw_box(axes, box, drawn.box_height, COLOURS[(marks or {}).get(box.id, "open")])
    return canvas


def svg(tree: Tree, marks: Mapping[str, str] | None = None) -> str:
    """Return the figure as SVG; equal trees give equal bytes under one version of Matplotlib."""
    settings = {"svg.hashsalt": tree.digest, "svg.fonttype": "none"}
    with require("matplotlib", "plots").rc_context(settings):
        buffer = io.StringIO()
        figure(tree, marks).savefig(buffer, format="svg", metadata={"Creator": None, "Date": None})
        return buffer.getvalue()


def draw_text(axes: Axes, place: Point, text: str, *, align: str = "center", bold: bool = False) -> None:
    """Write one line of plain text with its baseline at ``place``."""
    axes.text(
        *place, text, ha=align, va="baseline", fontsize=10, color=TEXT_COLOUR, weight="bold" if bold else "normal",
        parse_math=False, zorder=3,
    )  # fmt: skip


def draw_mark(axes: Axes, place: Point, marker: str = "o", colour: str = "#ffffff") -> None:
    """Draw a small Matplotlib marker; a white circle is a study that has not been run."""
    edge = colour if marker == "X" else TEXT_COLOUR
    axes.plot(*place, marker=marker, color=colour, markersize=7, markeredgecolor=edge, markeredgewidth=1, zorder=3)


def _plain(name: str) -> str:
    """Return a name on one line with the characters escaped that Mermaid or a browser would interpret."""
    return re.sub(r"[#\"<>&`]", lambda found: f"#{ord(found.group())};", " ".join(name.split()))


def _box(subtopic: Subtopic, lines: tuple[str, ...], place: Point, height: float) -> SubtopicBox:
    x, y = place
    first = x - DOT * (len(subtopic.studies) - 1) / 2
    dots = tuple(
        StudyDot(study.id, study.text, first + DOT * i, y + height - PAD - DOT / 2 + 2)
        for i, study in enumerate(subtopic.studies)
    )
    return SubtopicBox(subtopic.id, subtopic.text, lines, x, y, dots)


def _arrow(points: Sequence[Point], height: float) -> tuple[tuple[Point, Point, Point, Point], ...]:
    bend = ROW_GAP / 2
    return tuple(
        ((x0, y0 + height), (x0, y0 + height + bend), (x1, y1 - bend), (x1, y1))
        for (x0, y0), (x1, y1) in pairwise(points)
    )


def _whole_inches(pixels: float) -> int:
    """Round up to quarter inches, which are whole pixels and exact in binary."""
    quarter = PIXELS_PER_INCH // 4
    return math.ceil(pixels / quarter) * quarter


def _draw_arrow(axes: Axes, arrow: Sequence[tuple[Point, Point, Point, Point]]) -> None:
    path = require("matplotlib.path", "plots").Path
    points, codes = [arrow[0][0]], [path.MOVETO]
    for start, *curve in arrow:
        if start != points[-1]:
            points, codes = [*points, start], [*codes, path.LINETO]
        points, codes = [*points, *curve], [*codes, *[path.CURVE4] * 3]
    axes.add_patch(
        require("matplotlib.patches", "plots").FancyArrowPatch(
            path=path(points, codes), arrowstyle="-|>", mutation_scale=12, color=EDGE_COLOUR, linewidth=1.2,
            shrinkA=0, shrinkB=0, zorder=1,
        )
    )  # fmt: skip


def _draw_box(axes: Axes, box: SubtopicBox, height: float, colour: str) -> None:
    axes.add_patch(
        require("matplotlib.patches", "plots").FancyBboxPatch(
            (box.x - BOX_WIDTH / 2, box.y), BOX_WIDTH, height, boxstyle="round,pad=0,rounding_size=9",
            facecolor=colour, edgecolor=TEXT_COLOUR, linewidth=1, zorder=2,
        )
    )  # fmt: skip
    # Each line is a text of its own, so that it stays centred in any font.
    for i, line in enumerate((box.id, *box.lines)):
        draw_text(axes, (box.x, box.y + 22 + LINE * i), line, bold=not i)
    for dot in box.dots:
        draw_mark(axes, (dot.x, dot.y))
