"""Courses of a few turns through a tree: how many axes the best one and a random one read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from inquitree_gym.trees.schema import Tree

COURSES = 4_000
"""Number of random courses that are simulated."""


def courses(tree: Tree) -> tuple[int, int, float]:
    """Return the number of studies that fit into 2n turns, and of axes that they read: at best, and at random.

    A course enters an open subtopic and runs a study of it that it has not run, three turns each. The result of a study
    that reaches the limit counts. The random number is a mean over `COURSES` courses, the same ones in each call.
    """
    steps = (2 * len(tree.subtopics) + 1) // 3
    return steps, _best_course(tree, steps), _random_course(tree, steps)


def _best_course(tree: Tree, steps: int) -> int:
    """Return the largest number of axes that a course of some studies reads. Studies run twice add nothing."""
    bit = {subtopic.id: 1 << i for i, subtopic in enumerate(tree.subtopics)}
    needed = {name: sum(bit[each] for each in prerequisites) for name, prerequisites in tree.graph.items()}
    moves = {
        (needed[subtopic.id], bit[subtopic.id], sum(1 << tree.axis_index[axis] for axis in study.result.axes))
        for subtopic in tree.subtopics
        for study in subtopic.studies
    }
    states = {(0, 0)}
    for _ in range(steps):
        states |= {
            (visited | own, read | axes)
            for visited, read in states
            for needs, own, axes in moves
            if needs & visited == needs
        }
    return max(read.bit_count() for _, read in states)


def _random_course(tree: Tree, steps: int) -> float:
    rng = np.random.default_rng(0)
    needed = tree.graph
    total = 0
    for _ in range(COURSES):
        left = {subtopic.id: list(subtopic.studies) for subtopic in tree.subtopics}
        visited, read = set[str](), set[str]()
        for _ in range(steps):
            open_ones = [name for name, studies in left.items() if studies and visited.issuperset(needed[name])]
            if not open_ones:
                break
            name = open_ones[rng.integers(len(open_ones))]
            visited.add(name)
            read.update(left[name].pop(rng.integers(len(left[name]))).result.axes)
        total += len(read)
    return total / COURSES
