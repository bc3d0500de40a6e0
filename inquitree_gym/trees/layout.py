"""Layered layout of a graph: few crossings, and no arrow through a box.

An arrow that passes layers gets a narrow lane in each of them. The order within a layer follows the barycentres of its
neighbours, and positions are pulled towards their neighbours. The layout is deterministic.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import fmean

from inquitree_gym.trees.schema import Subtopic

LANE = 0.3
"""Width of a lane, where a box with its margin takes 1."""
SWEEPS, MOVES = 24, 200
"""Passes over the layers, to order them and to position their vertices."""
STIFF, CENTRE = 8.0, 0.003
"""Weights of the pull between two lanes of one arrow, which keeps it straight, and to the middle; others weigh 1."""


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
    """Vertices by number, subtopics first and then lanes; edges join neighbouring rows only."""

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
        for name in subtopic.prerequisites:
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
    """Return the row ordered by the mean position of its neighbours; vertices without any keep their position."""
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
