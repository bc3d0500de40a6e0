"""Agreement of two trees of one paper: the subtopics, studies, prerequisites and axes that they share.

Nodes are paired one to one so that the sum of their similarities is largest, and a pair below the threshold is dropped.
A prerequisite or a reading is shared if both of its ends are paired and the partners have it too. Ids and order make no
difference. Similarity hears topics, not directions: a pair may report opposite findings.

    python -m research.agreement_of_trees one.json another.json
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, NamedTuple

import typer

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import out, print_table
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.document import Study
from inquitree_gym.trees.schema import Embed

Pairs = Mapping[str, str]
"""Ids of the second tree by those of the first."""


class Shared(NamedTuple):
    """Parts of one sort that two trees share."""

    part: str
    both: int
    first: int
    """Parts of the first tree; of prerequisites and readings those whose two ends are paired."""
    second: int

    @property
    def precision(self) -> float | None:
        """Share of the parts of the first tree, in [0, 1]. None if it has none."""
        return self.both / self.first if self.first else None

    @property
    def recall(self) -> float | None:
        """Share of the parts of the second tree, in [0, 1]. None if it has none."""
        return self.both / self.second if self.second else None


def agreement_of_trees(first: Tree, second: Tree, embed: Embed, threshold: float) -> list[Shared]:
    """Return what two trees share: subtopics, studies, axes, prerequisites, and readings of an axis by a study.

    Args:
        first: the tree that is measured.
        second: the tree that it is measured against.
        embed: embedder of the texts.
        threshold: smallest cosine similarity of a pair, in [-1, 1].
    """
    subtopics = paired(_subtopics(first), _subtopics(second), embed, threshold)
    studies = paired(_studies(first), _studies(second), embed, threshold)
    axes = paired(_axes(first), _axes(second), embed, threshold)
    return [
        Shared("subtopics", len(subtopics), len(first.subtopics), len(second.subtopics)),
        Shared("studies", len(studies), len(first.studies), len(second.studies)),
        Shared("axes", len(axes), len(first.axes), len(second.axes)),
        _links("prerequisites", _edges(first), _edges(second), subtopics, subtopics),
        _links("readings", _readings(first), _readings(second), studies, axes),
    ]


def paired(first: Mapping[str, str], second: Mapping[str, str], embed: Embed, threshold: float) -> Pairs:
    """Return the pairs of texts, by id, with the largest sum of similarities, those below the threshold left out."""
    from scipy.optimize import linear_sum_assignment

    if not first or not second:
        return {}
    one, other = list(first), list(second)
    similarities = embed(list(first.values())) @ embed(list(second.values())).T
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    return {one[i]: other[k] for i, k in zip(rows, columns, strict=True) if similarities[i, k] >= threshold}


def _subtopics(tree: Tree) -> dict[str, str]:
    return {subtopic.id: subtopic.text for subtopic in tree.subtopics}


def _studies(tree: Tree) -> dict[str, str]:
    return {study.id: _finding(tree, study) for study in tree.studies}


def _axes(tree: Tree) -> dict[str, str]:
    return {axis.id: axis.question for axis in tree.axes}


def _finding(tree: Tree, study: Study) -> str:
    """Return the protocol of a study with the first wording of its result in the paper's world."""
    actual = {axis.id: str(axis.actual) for axis in tree.axes}
    return f"{study.text} {study.result.texts[''.join(actual[axis] for axis in study.result.axes)][0]}"


def _edges(tree: Tree) -> set[tuple[str, str]]:
    return {(subtopic.id, name) for subtopic in tree.subtopics for name in subtopic.requires}


def _readings(tree: Tree) -> set[tuple[str, str]]:
    return {(study.id, axis) for study in tree.studies for axis in study.result.axes}


def _links(
    part: str, first: Collection[tuple[str, str]], second: Collection[tuple[str, str]], starts: Pairs, ends: Pairs
) -> Shared:
    moved = {(starts[a], ends[b]) for a, b in first if a in starts and b in ends}
    known = {(a, b) for a, b in second if a in starts.values() and b in ends.values()}
    return Shared(part, len(moved & known), len(moved), len(known))


app = typer.Typer()


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="Tree file or id that is measured.")],
    second: Annotated[str, typer.Argument(help="Tree file or id that it is measured against.")],
    embedder: Annotated[str, typer.Option(help="Embedder of the texts.")] = DEFAULT_EMBEDDER,
    threshold: Annotated[float | None, typer.Option(help="Least similarity of a pair; the embedder's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two trees of one paper."""
    if threshold is not None and not -1 <= threshold <= 1:
        raise OptionError(f"--threshold must be a cosine similarity from -1 to 1, got {threshold}. Give such a number.")
    model = load_embedder(embedder)
    least = model.threshold if threshold is None else threshold
    if least is None:
        raise OptionError(f"'{model.name}' has no threshold of its own, so --threshold is needed. Give one.")
    found = agreement_of_trees(load_tree(first), load_tree(second), partial(embedded, model), least)
    if as_json:
        out.print_json(json.dumps({"threshold": least, "parts": [_row(each) for each in found]}))
        return
    rows = [[each.part, *map(str, each[1:]), *map(_written, (each.precision, each.recall))] for each in found]
    heads = ["part", "shared", "first", "second", "precision", "recall"]
    print_table(f"Agreement under {model.name}, pairs from {least:.2f}", [heads, *rows])


def _row(shared: Shared) -> dict[str, object]:
    return {**shared._asdict(), "precision": shared.precision, "recall": shared.recall}


def _written(share: float | None) -> str:
    return "none" if share is None else f"{share:.2f}"


if __name__ == "__main__":
    run_app(app)
