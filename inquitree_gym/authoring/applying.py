"""Decisions of a review, written into the tree: texts replaced, prerequisites added and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.authoring.findings import EDGES, Finding, Findings, write_findings
from inquitree_gym.errors import Fault, OptionError
from inquitree_gym.files import write_whole
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.load import dump_tree, parse_tree
from inquitree_gym.trees.schema import Tree

_NO_TEXTS = ("id", "axes", "needs", "studies", "prerequisites", "support", "settled_by", "actual")
"""Fields of a node that hold no text of its own."""


class Applied(NamedTuple):
    """A tree with the decisions of a review."""

    tree: Tree
    written: tuple[int, ...]
    """Rows that were written into it."""
    left: dict[int, str]
    """Rows that were accepted or edited and not written, with the reason."""
    faults: list[Fault]
    """Faults of the tree that need no embedder."""


def apply_decisions(tree: Tree, findings: Findings) -> Applied:
    """Return the tree with all accepted and edited rows. Its version rises by one if a row was written.

    Raises:
        TreeError: the tree with these rows would not load. Every fault is listed.
    """
    document = tree.model_dump(mode="json")
    written, left = [], {}
    for row, decision in enumerate(findings.states):
        if decision is None or decision.choice not in ("accepted", "edited"):
            continue
        finding = findings.rows[row]
        if reason := _write(document, tree, finding, decision.text or finding.proposal):
            left[row] = reason
        else:
            written.append(row)
    document["version"] += bool(written)
    if tree.reviewed is not None:
        document["reviewed"] = not findings.open_rows
    applied = parse_tree(json.dumps(document).encode(), tree.id)
    return Applied(applied, tuple(written), left, lint_tree(applied))


def _write(document: dict[str, Any], tree: Tree, finding: Finding, text: str | None) -> str:
    """Write one row into a document. Return the reason if that cannot be done, or an empty string."""
    if finding.node not in tree.paths:
        return f"the tree has no node {finding.node}"
    node = _node(document, tree.paths[finding.node])
    if finding.rule in EDGES and finding.node not in tree.graph:
        return f"{finding.node} is no subtopic, which alone has prerequisites"
    if finding.rule in EDGES:
        return _write_edge(node, finding, text)
    if not text:
        return "it proposes no text; change the tree by hand, or edit the row"
    places = list(_places(document if finding.node == "topic" else node, finding))
    for holder, key in places:
        holder[key] = text
    if isinstance(node, dict) and node.get("text") == text:  # its last hint names it
        node["hints"] = [hint.replace(finding.text, text) for hint in node["hints"]]
    return "" if places else "its text is no longer in the tree"


def _node(document: dict[str, Any], path: str) -> Any:
    found: Any = document
    for step in path.replace("[", ".").replace("]", "").split("."):
        found = found[int(step) if step.isdigit() else step]
    return found


def _places(value: Any, finding: Finding) -> Iterator[tuple[Any, Any]]:
    """Yield the holders and keys of the text of a row. Of the topic, only the topic itself."""
    if finding.node == "topic":
        if value["topic"] == finding.text:
            yield value, "topic"
        return
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        if isinstance(inner, str) and inner == finding.text and key not in _NO_TEXTS:
            yield value, key
        elif isinstance(inner, dict | list) and key not in _NO_TEXTS:
            yield from _places(inner, finding)


def _write_edge(node: dict[str, Any], finding: Finding, text: str | None) -> str:
    edges = node.get("prerequisites", [])
    known = any(each["id"] == finding.text for each in edges)
    if finding.rule == "missing-edge":
        if known:
            return f"{finding.node} needs {finding.text} already"
        if not text:
            return "it gives no reason for the prerequisite; edit the row"
        node["prerequisites"] = [*edges, {"id": finding.text, "because": text}]
        return ""
    node["prerequisites"] = [each for each in edges if each["id"] != finding.text]
    return "" if known else f"{finding.node} does not need {finding.text} any more"


def save_tree(file: Path, tree: Tree) -> None:
    """Write a tree in canonical form. Raise `OptionError` if the file cannot be written."""
    try:
        write_whole(file, dump_tree(tree).encode())
    except OSError as error:
        raise OptionError(f"cannot write '{file}': {error.strerror}; check the folder and its rights") from error


def save_decisions(file: Path, tree_file: Path, tree: Tree, findings: Findings) -> Tree:
    """Write a record, and into a tree by a pipeline whether every row of it is decided. Return the tree.

    A tree without the field ``reviewed`` was written by hand and keeps its file as it is.
    """
    write_findings(file, findings)
    if tree.reviewed is None or tree.reviewed is not bool(findings.open_rows):
        return tree
    tree = tree.model_copy(update={"reviewed": not findings.open_rows})
    save_tree(tree_file, tree)
    return tree
