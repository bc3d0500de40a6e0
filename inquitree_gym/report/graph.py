"""A research tree as a picture that a page can change: boxes and arrows by place, studies as dots."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from inquitree_gym.trees import Tree
from inquitree_gym.trees.drawing import layers
from inquitree_gym.trees.layout import place

BOX_WIDTH, GAP, ROW_GAP, LINE, PAD = 168, 16, 46, 17, 12
"""Pixels: width of a box, space between boxes and between rows, height of a line of text, margin in a box."""
LABEL = 21
"""Characters to a line."""
DOT = 18
"""Pixels that the mark of a study takes."""


class Dot(NamedTuple):
    """One study."""

    id: str
    text: str
    x: float
    y: float


class Box(NamedTuple):
    """One subtopic."""

    id: str
    text: str
    lines: tuple[str, ...]
    x: float
    """Of its centre."""
    y: float
    """Of its upper edge."""
    dots: tuple[Dot, ...]


class Graph(NamedTuple):
    """A whole tree; sizes in pixels."""

    width: float
    height: float
    box_width: float
    box_height: float
    boxes: tuple[Box, ...]
    arrows: tuple[str, ...]
    """Path data, one per prerequisite."""


@lru_cache(maxsize=64)
def graph(tree: Tree) -> Graph:
    """Lay a tree out, prerequisites above what needs them."""
    rows = layers(tree)
    layout = place(rows)
    labels = {subtopic.id: tuple(textwrap.wrap(subtopic.name, LABEL)) for subtopic in tree.subtopics}
    height = 2 * PAD + LINE * (1 + max(map(len, labels.values()))) + DOT
    column, row = BOX_WIDTH + GAP, height + ROW_GAP

    def at(point: tuple[float, int]) -> tuple[float, float]:
        return round(point[0] * column + GAP / 2, 1), point[1] * row + GAP / 2

    boxes = []
    for subtopic in tree.subtopics:
        x, y = at(layout.centres[subtopic.id])
        first = x - DOT * (len(subtopic.studies) - 1) / 2
        dots = tuple(
            Dot(study.id, study.text, first + DOT * i, y + height - PAD - DOT / 2 + 2)
            for i, study in enumerate(subtopic.studies)
        )
        boxes.append(Box(subtopic.id, subtopic.text, labels[subtopic.id], x, y, dots))
    return Graph(
        width=round(layout.width * column + GAP, 1),
        height=len(rows) * row - ROW_GAP + GAP,
        box_width=BOX_WIDTH,
        box_height=height,
        boxes=tuple(boxes),
        arrows=tuple(_arrow([at(point) for point in points], height) for points in layout.arrows),
    )


def _arrow(points: Sequence[tuple[float, float]], height: float) -> str:
    """Return the path of one arrow: curved between rows, upright where it passes one."""
    x, y = points[0]
    parts = [f"M{x:g} {y + height:g}"]
    for last, (x, y) in enumerate(points[1:], 2):
        before = points[last - 2]
        bend = ROW_GAP / 2
        parts.append(f"C{before[0]:g} {before[1] + height + bend:g} {x:g} {y - bend:g} {x:g} {y:g}")
        if last < len(points):
            parts.append(f"V{y + height:g}")
    return "".join(parts)
