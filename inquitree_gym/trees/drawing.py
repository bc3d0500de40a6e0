"""Pictures of a research tree: Mermaid, and a diagram for SVG, PNG and HTML pages."""

from __future__ import annotations

import io
import math
import re
import textwrap
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import accumulate, pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from inquitree_gym.errors import require
from inquitree_gym.trees.document import Subtopic
from inquitree_gym.trees.schema import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LANE = 0.3
"""Width of a lane, where a box with its margin takes 1."""
SWEEPS, MOVES = 24, 200
"""Passes over the layers, to order them and to position their vertices."""
STIFF, CENTRE = 8.0, 0.003
"""Weights of the pull between two lanes of one arrow, which keeps it straight, and to the middle. Others weigh 1."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Positions as (x, layer): x from 0 to ``width`` in boxes, layer from 0 at the top."""

    width: float
    centres: dict[str, tuple[float, int]]
    """Centre of the box of each subtopic."""
    arrows: list[list[tuple[float, int]]]
    """Per prerequisite the positions that its arrow joins, one per layer: a box, lanes, a box."""


@dataclass(frozen=True, slots=True)
class _Layers:
    """Vertices by number, subtopics first and then lanes. Edges join neighbouring rows only."""

    rows: list[list[int]]
    parents: list[list[int]]
    children: list[list[int]]
    chains: list[list[int]]
    boxes: int

    def room(self, vertex: int) -> float:
        return 1.0 if vertex < self.boxes else LANE


def place(layers: Sequence[Sequence[Subtopic]]) -> Placement:
    """Return positions for subtopics given by layer, prerequisites above the subtopics that need them."""
    graph = _untangled(_graph(layers))
    xs = _settled(graph)
    level = {vertex: y for y, row in enumerate(graph.rows) for vertex in row}
    subtopics = [subtopic for row in layers for subtopic in row]
    return Placement(
        width=max(xs[row[-1]] + graph.room(row[-1]) / 2 for row in graph.rows),
        centres={subtopic.id: (xs[i], level[i]) for i, subtopic in enumerate(subtopics)},
        arrows=[[(xs[vertex], level[vertex]) for vertex in chain] for chain in graph.chains],
    )


def _graph(layers: Sequence[Sequence[Subtopic]]) -> _Layers:
    subtopics = [(subtopic, y) for y, row in enumerate(layers) for subtopic in row]
    number = {subtopic.id: i for i, (subtopic, _) in enumerate(subtopics)}
    rows = [[number[subtopic.id] for subtopic in row] for row in layers]
    chains, size = [], len(subtopics)
    for subtopic, y in subtopics:
        for name in subtopic.requires:
            above = subtopics[number[name]][1]
            lanes = list(range(size, size + y - above - 1))
            for row, lane in zip(rows[above + 1 :], lanes, strict=False):
                row.append(lane)
            chains.append([number[name], *lanes, number[subtopic.id]])
            size += len(lanes)
    parents: list[list[int]] = [[] for _ in range(size)]
    children: list[list[int]] = [[] for _ in range(size)]
    for chain in chains:
        for upper, lower in pairwise(chain):
            parents[lower].append(upper)
            children[upper].append(lower)
    return _Layers(rows, parents, children, chains, len(subtopics))


def _untangled(graph: _Layers) -> _Layers:
    """Return the graph with its rows in the best order found: the one with the fewest crossings."""
    best, fewest = graph.rows, _crossings(graph)
    rows = [list(row) for row in graph.rows]
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        steps = list(pairwise(range(len(rows)) if down else reversed(range(len(rows)))))
        for fixed, loose in steps:
            rows[loose] = _by_barycentre(rows[loose], rows[fixed], graph.parents if down else graph.children)
        if (crossings := _crossings(replace(graph, rows=rows))) < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return replace(graph, rows=best)


def _by_barycentre(row: Sequence[int], fixed: Sequence[int], neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Return the row ordered by the mean position of its neighbours. Vertices without any keep their position."""
    share = {vertex: (i + 0.5) / len(fixed) for i, vertex in enumerate(fixed)}
    goal = {
        vertex: fmean(share[other] for other in neighbours[vertex]) if neighbours[vertex] else (i + 0.5) / len(row)
        for i, vertex in enumerate(row)
    }
    return sorted(row, key=goal.__getitem__)


def _crossings(graph: _Layers) -> int:
    """Count the pairs of edges that cross: inversions among the ends of the edges of each layer."""
    count = 0
    for upper, lower in pairwise(graph.rows):
        rank = {vertex: i for i, vertex in enumerate(lower)}
        seen: list[int] = []
        for vertex in upper:
            ends = sorted(rank[child] for child in graph.children[vertex])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _settled(graph: _Layers) -> list[float]:
    """Return the x of each vertex, as near to its neighbours as the order and the room of its row allow.

    Each move lowers one convex sum of weighted squared distances, so the positions converge.
    """
    xs = [0.0] * len(graph.parents)
    for move in range(MOVES):
        for row in graph.rows if move % 2 else reversed(graph.rows):
            goals, pulls = zip(*(_goal(graph, vertex, xs) for vertex in row), strict=True)
            for vertex, x in zip(row, _fitted(goals, pulls, [graph.room(vertex) for vertex in row]), strict=True):
                xs[vertex] = x
    left = min(xs[row[0]] - graph.room(row[0]) / 2 for row in graph.rows)
    return [round(x - left, 3) for x in xs]


def _goal(graph: _Layers, vertex: int, xs: Sequence[float]) -> tuple[float, float]:
    """Return the position that a vertex is pulled to, and the weight of the pull."""
    near = graph.parents[vertex] + graph.children[vertex]
    pulls = [STIFF if min(vertex, other) >= graph.boxes else 1.0 for other in near]
    total = sum(pulls) + CENTRE
    return sum(xs[other] * pull for other, pull in zip(near, pulls, strict=True)) / total, total


def _fitted(goals: Sequence[float], pulls: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """Return the positions nearest to the goals that keep order and room, by isotonic regression (pooling)."""
    offsets = list(accumulate(((a + b) / 2 for a, b in pairwise(rooms)), initial=0.0))
    blocks: list[tuple[float, float, int]] = []
    for goal, pull, offset in zip(goals, pulls, offsets, strict=True):
        mean, weight, size = goal - offset, pull, 1
        while blocks and blocks[-1][0] > mean:
            other, more, count = blocks.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, size = weight + more, size + count
        blocks.append((mean, weight, size))
    means = (mean for mean, _, size in blocks for _ in range(size))
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


COLOURS = {"open": "#ffffff", "visited": "#cfe8d5", "current": "#ffd98a", "target": "#f6c6c0"}
"""Fill by mark. A subtopic without a mark is open."""
EDGE_COLOUR, TEXT_COLOUR = "#6b7280", "#1f2430"
PIXELS_PER_INCH = 96
BOX_WIDTH, GAP, ROW_GAP, LINE, PAD, DOT = 168, 16, 46, 17, 12, 18
"""Pixels: box width, space between boxes and between rows, line height, padding of a box, room of a study's mark."""
LABEL_WIDTH = 20
"""Characters to a line."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StudyDot:
    """Mark of a study. Coordinates of its centre in pixels."""

    id: str
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class SubtopicBox:
    """Box of a subtopic. ``x`` is its centre and ``y`` its upper edge, in pixels from the upper left corner."""

    id: str
    text: str
    lines: tuple[str, ...]
    x: float
    y: float
    dots: tuple[StudyDot, ...]


@dataclass(frozen=True, slots=True)
class TreeDiagram:
    """Boxes and arrows of a research tree. Sizes in pixels."""

    width: float
    height: float
    box_width: float
    box_height: float
    boxes: tuple[SubtopicBox, ...]
    arrows: tuple[tuple[tuple[Point, Point, Point, Point], ...], ...]
    """One arrow per prerequisite: cubic Bézier curves, joined by vertical lines where it passes a row."""


def depths(tree: Tree) -> dict[str, int]:
    """Return per subtopic the length of its longest chain of prerequisites. 0 without any."""
    parents = {subtopic.id: subtopic.requires for subtopic in tree.subtopics}
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
        lines += [f"    {nodes[name]} --> {nodes[subtopic.id]}" for name in subtopic.requires]
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
    """Return a Matplotlib figure of the diagram. Its axes are in pixels, with y downwards from the diagram's top.

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
    """Return the figure as SVG. Equal trees give equal bytes under one version of Matplotlib."""
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
    """Draw a small Matplotlib marker. A white circle is a study that has not been run."""
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
