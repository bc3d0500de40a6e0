"""Help for the author of a tree: tables of worlds, readings, courses and hints, and what a program can mend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from inquitree_gym.errors import OptionError
from inquitree_gym.trees.courses import courses
from inquitree_gym.trees.fields import HINT_LEVELS
from inquitree_gym.trees.lint import char_tfidf, implied_prerequisites, readers
from inquitree_gym.trees.load import parse_tree
from inquitree_gym.trees.meaning import embedded_once, ladder_similarities, quoting, targets
from inquitree_gym.trees.reading import refuse_ambiguous_json
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


def mended(document: bytes, where: str) -> tuple[Tree, list[str]]:
    """Return a tree with stubs for missing texts and without implied prerequisites, and a line for each change.

    A stub says TODO, which `lint_tree` lists. There are stubs for hints, reasons of prerequisites, and texts of results
    and conclusions for combinations of poles that have none.

    Raises:
        TreeError: the document is invalid all the same.
    """
    refuse_ambiguous_json(document, where)
    found = json.loads(document)
    changes = list(_stubs(found)) if isinstance(found, dict) else []
    tree = parse_tree(json.dumps(found).encode(), where)
    implied = list(implied_prerequisites(tree))
    changes += [f"{subtopic}: prerequisite {name} removed, since another one implies it" for subtopic, name in implied]
    if implied:
        subtopics = tuple(
            each.model_copy(
                update={"prerequisites": tuple(old for old in each.prerequisites if (each.id, old.id) not in implied)}
            )
            for each in tree.subtopics
        )
        tree = tree.model_copy(update={"subtopics": subtopics})
    return tree, changes


def _stubs(document: dict[str, Any]) -> Iterator[str]:
    """Add the stubs to a document that may have any other fault. Yield what was added."""
    poles = {str(axis.get("id")): len(_list(axis.get("poles"))) for axis in _objects(document.get("axes"))}
    for subtopic in _objects(document.get("subtopics")):
        yield from _missing_hints(subtopic)
        for each in _objects(subtopic.get("prerequisites")):
            if "because" not in each:
                each["because"] = "TODO: the reason why this question needs the earlier one"
                yield f"{subtopic.get('id')}: reason of prerequisite {each.get('id')} added"
        for study in _objects(subtopic.get("studies")):
            yield from _missing_hints(study)
            for result in _objects([study.get("result")]):
                texts = result.get("texts")
                counts = [len(_list(each)) for each in texts.values()] if isinstance(texts, dict) else []
                yield from _missing_texts(study.get("id"), result, poles, max(1, *counts, 1))
    for item in _objects(document.get("conclusions")):
        yield from _missing_texts(item.get("id"), item, poles, 0)


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


def _objects(values: Any) -> list[dict[str, Any]]:
    return [each for each in _list(values) if isinstance(each, dict)]


def _missing_hints(node: dict[str, Any]) -> Iterator[str]:
    hints = node.setdefault("hints", [])
    for level in range(len(hints) + 1, HINT_LEVELS + 1) if isinstance(hints, list) else ():
        hints.append(f"TODO: hint {level} of {HINT_LEVELS}, from vague to explicit")
        yield f"{node.get('id')}: hint {level} added"


def _missing_texts(node: Any, holder: dict[str, Any], poles: dict[str, int], wordings: int) -> Iterator[str]:
    """Add a text, or so many wordings, for each combination of the poles of known axes that has none."""
    axes, texts = holder.get("axes"), holder.setdefault("texts", {})
    if not isinstance(axes, list) or not isinstance(texts, dict) or len(axes) > 2:
        return
    if any(not 2 <= poles.get(str(axis), 0) <= 3 for axis in axes):
        return  # the check tells of these
    for key in ("".join(map(str, each)) for each in product(*(range(poles[str(axis)]) for axis in axes))):
        if key not in texts:
            stub = f"TODO: the text at '{key}'"
            texts[key] = [f"{stub}, wording {i}" for i in range(1, wordings + 1)] if wordings else stub
            yield f"{node}: text for '{key}' added"
