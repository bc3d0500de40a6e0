"""Pictures of a research tree: terminal lines, Mermaid, and a figure for SVG and PNG."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
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
EDGE_COLOUR = "#6b7280"
TEXT_COLOUR = "#1f2430"
BOX_WIDTH, BOX_GAP, ROW_GAP = 1.75, 0.2, 0.65
"""Width of a box and the space between neighbours and between rows, in inches."""
LABEL_WIDTH, LINE_HEIGHT, FONT_SIZE = 19, 0.18, 10
"""Characters to a line, its height in inches, its size in points."""
DOTS_PER_INCH = 80


def depths(tree: Tree) -> dict[str, int]:
    """Return per subtopic the length of its longest chain of prerequisites; 0 for one without any."""
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
    """Return the graph in Mermaid's flowchart language.

    Nodes are called s1, s2, … in tree order, since an id may be a word of that language; names stand as they are.
    """
    nodes = {subtopic.id: f"s{i}" for i, subtopic in enumerate(tree.subtopics, 1)}
    lines = ["flowchart TD"]
    lines += [f'    {nodes[each.id]}["{each.id} · {_plain(each.name)}"]' for each in tree.subtopics]
    for subtopic in tree.subtopics:
        lines += [f"    {nodes[name]} --> {nodes[subtopic.id]}" for name in subtopic.prerequisites]
    return "\n".join(lines) + "\n"


def _plain(name: str) -> str:
    """Return a name on one line, without what Mermaid or a browser would read as more than text."""
    return re.sub(r"[#\"<>&`]", lambda found: f"#{ord(found.group())};", " ".join(name.split()))


def figure(tree: Tree, marks: Mapping[str, str] | None = None) -> Figure:
    """Return a Matplotlib figure of the graph; ``marks`` maps subtopic ids to the names in `COLOURS`.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    rows = layers(tree)
    layout = place(rows)
    labels = {subtopic.id: textwrap.wrap(subtopic.name, LABEL_WIDTH) for subtopic in tree.subtopics}
    box_height = LINE_HEIGHT * (2.2 + max(map(len, labels.values())))
    column, row = BOX_WIDTH + BOX_GAP, box_height + ROW_GAP
    width, height = _whole_dots(layout.width * column), _whole_dots(len(rows) * row)
    canvas: Figure = require("matplotlib.figure", "plots").Figure(figsize=(width, height), dpi=DOTS_PER_INCH)
    axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), frameon=False)
    axes.set_axis_off()
    left, top = (width - layout.width * column) / 2, height - (height - len(rows) * row) / 2

    def at(point: tuple[float, int]) -> tuple[float, float]:
        return left + point[0] * column, top - (point[1] + 0.5) * row

    for points in layout.arrows:
        _arrow(axes, [at(point) for point in points], box_height)
    for name, lines in labels.items():
        _box(axes, at(layout.centres[name]), box_height, COLOURS[(marks or {}).get(name, "open")])
        _label(axes, at(layout.centres[name]), [name, *lines])
    return canvas


def svg(tree: Tree, marks: Mapping[str, str] | None = None) -> str:
    """Return the figure as SVG, the same bytes for the same tree under one version of Matplotlib."""
    settings = {"svg.hashsalt": tree.digest, "svg.fonttype": "none"}
    with require("matplotlib", "plots").rc_context(settings):
        buffer = io.StringIO()
        figure(tree, marks).savefig(buffer, format="svg", metadata={"Creator": None, "Date": None})
        return buffer.getvalue()


def _whole_dots(inches: float) -> float:
    """Round up to quarter inches, which are whole dots and exact in binary."""
    return math.ceil(inches * 4) / 4


def _arrow(axes: Axes, points: Sequence[tuple[float, float]], box_height: float) -> None:
    """Draw one arrow: curved between rows, upright where it passes one."""
    path = require("matplotlib.path", "plots").Path
    half, bend = box_height / 2, (box_height + ROW_GAP) / 2
    route = [(points[0][0], points[0][1] - half)]
    codes = [path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        route += [(x0, y0 - bend), (x1, y1 + bend), (x1, y1 + half), (x1, y1 - half)]
        codes += [path.CURVE4] * 3 + [path.LINETO]
    arrow = require("matplotlib.patches", "plots").FancyArrowPatch(
        path=path(route[:-1], codes[:-1]), arrowstyle="-|>", mutation_scale=12,
        color=EDGE_COLOUR, linewidth=1.4, shrinkA=0, shrinkB=0, zorder=1,
    )  # fmt: skip
    axes.add_patch(arrow)


def _box(axes: Axes, centre: tuple[float, float], height: float, colour: str) -> None:
    x, y = centre
    box = require("matplotlib.patches", "plots").FancyBboxPatch(
        (x - BOX_WIDTH / 2 + 0.08, y - height / 2 + 0.08), BOX_WIDTH - 0.16, height - 0.16,
        boxstyle="round,pad=0.08", facecolor=colour, edgecolor=TEXT_COLOUR, linewidth=1.2, zorder=2,
    )  # fmt: skip
    axes.add_patch(box)


def _label(axes: Axes, centre: tuple[float, float], lines: Sequence[str]) -> None:
    """Write the id in bold and the name below it, each line a text of its own, so that any font stays centred."""
    x, y = centre
    for i, line in enumerate(lines):
        down = (i - (len(lines) - 1) / 2) * LINE_HEIGHT
        axes.text(
            x, y - down, line, ha="center", va="center_baseline", fontsize=FONT_SIZE, color=TEXT_COLOUR,
            weight="normal" if i else "bold", parse_math=False, zorder=3,
        )  # fmt: skip
