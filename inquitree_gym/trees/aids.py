"""Tables that help an author of a tree with worlds: worlds, readings, the reach of a random course, and hints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.trees.courses import courses
from inquitree_gym.trees.fields import HINT_LEVELS
from inquitree_gym.trees.lint import char_tfidf, readers
from inquitree_gym.trees.meaning import embedded_once, ladder_similarities, quoting, targets
from inquitree_gym.trees.rules import MAX_COURSE_SHARE, MAX_FALL, MIN_LAST_HINT_SIMILARITY
from inquitree_gym.trees.schema import Embed, Tree, centroids
from inquitree_gym.trees.worlds import SETS, count_worlds

Table = Sequence[list[str]]
"""Rows of cells, the heading first."""


def author_tables(tree: Tree, embed: Embed | None = None) -> dict[str, Table]:
    """Return the tables by title. The similarities under an embedder only with ``embed``."""
    return {
        "Worlds": _worlds(tree),
        "Axes that each study reads": _readings(tree),
        "A course of 2n turns": _course(tree),
        "Hints, and what their similarities must exceed": _hints(tree, embed),
    }


def _worlds(tree: Tree) -> Table:
    rows = [["set", "worlds"]]
    for which in SETS:
        with suppress(OptionError):  # the tree has no such worlds
            rows.append([which, f"{count_worlds(tree, which):,}"])
    return rows


def _readings(tree: Tree) -> Table:
    found, examined = readers(tree), [item.axes for item in tree.conclusions]
    rows = [["study", *tree.axis_index, "support"]]
    for study in tree.studies:
        marks = ["●" if axis in study.result.axes else "" for axis in tree.axis_index]
        rows.append([study.id, *marks, study.result.support])
    rows.append(["studies", *(str(len(each)) for each in found.values()), ""])
    rows.append(["subtopics", *(str(len({subtopic for subtopic, _ in each})) for each in found.values()), ""])
    rows.append(["items", *(str(sum(axis in axes for axes in examined)) for axis in found), ""])
    return rows


def _course(tree: Tree) -> Table:
    steps, best, chance = courses(tree)
    share = f"{chance / best:.3f}" if best else ""
    return [
        ["studies", "axes, at best", "axes, at random", "share", "at most"],
        [str(steps), str(best), f"{chance:.2f}", share, str(MAX_COURSE_SHARE)],
    ]


def _hints(tree: Tree, embed: Embed | None) -> Table:
    """Return a row per hint: its similarity to its target beside that of the hint before, and its margin.

    The margin is its lead over the nearest sibling of its target, which the last hint needs. A last hint that holds the
    text of its target word for word needs nothing.
    """
    columns = [_rising(tree, char_tfidf, "T501")]
    heading = ["node", "hint", "TF-IDF", "more than"]
    if embed is not None:
        known = embedded_once(tree, embed)
        margins, naming = _margins(tree, known)
        columns += [_rising(tree, known, "T502"), margins, naming]
        heading += ["embedder", "more than", "margin", "to its text", "at least"]
    rows = [[*heading, "text"]]
    for i, node in enumerate(targets(tree)):
        for level, hint in enumerate(node.hints):
            cells = [cell for column in columns for cell in column[i * HINT_LEVELS + level]]
            rows.append([node.id, str(level + 1), *cells, hint])
    return rows


def _rising(tree: Tree, embed: Embed, code: str) -> list[list[str]]:
    """Return the similarity of each hint, and the bound that the best hint before it sets. A quotation has none."""
    ladders, quoted, rows = ladder_similarities(tree, embed, code).tolist(), quoting(tree), []
    for node, ladder in zip(targets(tree), ladders, strict=True):
        bounds = ["", *(f"{max(ladder[:level]) - MAX_FALL[code]:.3f}" for level in range(1, HINT_LEVELS))]
        if node.id in quoted:
            bounds[-1] = ""
        rows += [[f"{similarity:.3f}", bound] for similarity, bound in zip(ladder, bounds, strict=True)]
    return rows


def _margins(tree: Tree, embed: Embed) -> tuple[list[list[str]], list[list[str]]]:
    """Return the margin of each hint, and the similarity of last hints to the text that they name."""
    ladders, quoted = {node.id: node.hints for node in targets(tree)}, quoting(tree)
    margins: dict[str, list[list[str]]] = {}
    naming: dict[str, list[list[str]]] = {}
    for family in tree.families:
        ends = centroids(family, embed)
        for i, node in enumerate(family):
            hints = embed(ladders[node.id])
            similarities = hints @ ends.T
            others = np.delete(similarities, i, axis=1)
            lead = similarities[:, i] - others.max(axis=1) if len(family) > 1 else []
            margins[node.id] = [[f"{each:+.3f}"] for each in lead] or [[""]] * HINT_LEVELS
            named = float(hints[-1] @ embed([node.text])[0])
            least = "" if node.id in quoted else str(MIN_LAST_HINT_SIMILARITY)
            naming[node.id] = [["", ""]] * (HINT_LEVELS - 1) + [[f"{named:.3f}", least]]
    return [row for name in ladders for row in margins[name]], [row for name in ladders for row in naming[name]]
