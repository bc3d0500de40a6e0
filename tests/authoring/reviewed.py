"""A tree with findings about it, in files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from inquitree_gym.authoring.findings import Finding, Findings, read_findings, side_file, write_findings
from inquitree_gym.trees import Tree, dump_tree, load_tree


class Case(NamedTuple):
    file: Path
    tree: Tree

    @property
    def findings(self) -> Findings:
        return read_findings(side_file(self.file), self.tree)

    @property
    def now(self) -> Tree:
        return load_tree(self.file)


def rows_about(tree: Tree) -> list[Finding]:
    """A protocol to reword, a prerequisite to drop, one that is missing, and a remark without a proposal."""
    study = tree.subtopics[0].studies[0]
    later = next(subtopic for subtopic in tree.subtopics if subtopic.prerequisites)
    return [
        Finding(
            node=study.id, text=study.text, rule="leak", severity="error", proposal="Measure it twice.", why="It tells."
        ),
        Finding(node=later.id, text=later.requires[0], rule="superfluous-edge", severity="warning", proposal=""),
        Finding(node="topic", text=tree.topic, rule="recall", severity="warning", why="4 of 4 without a result."),
    ]


def case_in(folder: Path, reviewed: bool | None = None, shipped: str = "paper2") -> Case:
    """Write a shipped tree and three rows about it into a folder."""
    tree = load_tree(shipped).model_copy(update={"id": "mine", "reviewed": reviewed})
    file = folder / "mine.json"
    file.write_text(dump_tree(tree), encoding="utf-8")
    write_findings(side_file(file), Findings(tree=tree.id, digest=tree.digest, rows=tuple(rows_about(tree))))
    return Case(file, tree)
