"""Pictures of a research tree: terminal lines, Mermaid, and a figure for SVG and PNG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import require
from inquitree_gym.trees.schema import Subtopic, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"open": "#ffffff", "visited": "#cfe8d5", "current": "#ffd98a", "target": "#f6c6c0"}
"""Fill by mark; a subtopic without a mark is open."""
EDGE_COLOUR = "#8a8f98"
TEXT_COLOUR = "#1f2430"
BOX_WIDTH, BOX_HEIGHT = 2.3, 0.9
COLUMN, ROW = 2.7, 1.6
"""Distances between box centres, in inches."""
DOTS_PER_INCH = 80


def depths(tree: Tree) -> dict[str, int]:
    """Return per subtopic the length of its longest chain of prerequisites; 0 for one without any."""
    known = {subtopic.id: subtopic for subtopic in tree.subtopics}
    found: dict[str, int] = {}

    def depth(subtopic: Subtopic) -> int:
        if subtopic.id not in found:
            found[subtopic.id] = 1 + max((depth(known[name]) for name in subtopic.prerequisites), default=-1)
        return found[subtopic.id]

    for subtopic in tree.subtopics:
        depth(subtopic)
    return found


def layers(tree: Tree) -> list[list[Subtopic]]:
    """Return the subtopics by depth, each layer in tree order."""
    depth = depths(tree)
    rows: list[list[Subtopic]] = [[] for _ in range(max(depth.values()) + 1)]
    for subtopic in tree.subtopics:
        rows[depth[subtopic.id]].append(subtopic)
    return rows


def mermaid(tree: Tree) -> str:
    """Return the graph in Mermaid's flowchart language."""
    lines = ["flowchart TD"]
    for subtopic in tree.subtopics:
        label = subtopic.name.replace('"', "#quot;")
        lines.append(f'    {subtopic.id}["{subtopic.id} · {label}"]')
    for subtopic in tree.subtopics:
        lines += [f"    {name} --> {subtopic.id}" for name in subtopic.prerequisites]
    return "\n".join(lines) + "\n"


def figure(tree: Tree, marks: Mapping[str, str] | None = None) -> Figure:
    """Return a Matplotlib figure of the graph; ``marks`` maps subtopic ids to the names in `COLOURS`.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    rows = layers(tree)
    width = max(len(row) for row in rows) * COLUMN
    height = len(rows) * ROW
    canvas: Figure = require("matplotlib.figure", "plots").Figure(figsize=(width, height), dpi=DOTS_PER_INCH)
    axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), frameon=False)
    axes.set_axis_off()
    places = {
        subtopic.id: ((i + 0.5) * width / len(row), height - (level + 0.5) * ROW)
        for level, row in enumerate(rows)
        for i, subtopic in enumerate(row)
    }
    for subtopic in tree.subtopics:
        for name in subtopic.prerequisites:
            _arrow(axes, places[name], places[subtopic.id])
        _box(axes, places[subtopic.id], subtopic, COLOURS[(marks or {}).get(subtopic.id, "open")])
    return canvas


def svg(tree: Tree, marks: Mapping[str, str] | None = None) -> str:
    """Return the figure as SVG, the same bytes for the same tree."""
    settings = {"svg.hashsalt": tree.digest, "svg.fonttype": "none"}
    with require("matplotlib", "plots").rc_context(settings):
        buffer = io.StringIO()
        figure(tree, marks).savefig(buffer, format="svg", metadata={"Date": None})
        return buffer.getvalue()


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    (x0, y0), (x1, y1) = start, end
    style: dict[str, Any] = {"arrowstyle": "-|>", "color": EDGE_COLOUR, "shrinkA": 0, "shrinkB": 1, "linewidth": 1.4}
    style["connectionstyle"] = f"arc3,rad={0.0 if abs(y0 - y1) < ROW * 1.5 else 0.18}"
    tail, head = (x0, y0 - BOX_HEIGHT / 2), (x1, y1 + BOX_HEIGHT / 2)
    axes.annotate("", xy=head, xytext=tail, arrowprops=style, zorder=1)


def _box(axes: Axes, centre: tuple[float, float], subtopic: Subtopic, colour: str) -> None:
    x, y = centre
    box = require("matplotlib.patches", "plots").FancyBboxPatch(
        (x - BOX_WIDTH / 2 + 0.08, y - BOX_HEIGHT / 2 + 0.08), BOX_WIDTH - 0.16, BOX_HEIGHT - 0.16,
        boxstyle="round,pad=0.08", facecolor=colour, edgecolor=TEXT_COLOUR, linewidth=1.2, zorder=2,
    )  # fmt: skip
    axes.add_patch(box)
    label = textwrap.fill(f"{subtopic.id} · {subtopic.name}", 22)
    axes.text(x, y, label, ha="center", va="center", fontsize=10, color=TEXT_COLOUR, zorder=3)
