"""Examples for the reader: proposals with the candidates among which each has to be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inquitree_gym.trees import Tree
from inquitree_gym.trees.schema import wordings
from research.proposals import MatchingCase, ProposalSet, matching_cases
from research.static.proposals import load_sets

PROPOSALS = Path(__file__).parent / "proposals"
"""Proposals that are used for training alone, in the ways in which agents speak."""
PARAPHRASES = Path(__file__).parent.parent / "paraphrases"
"""One folder per author, with one file per tree: node id to paraphrases."""


@dataclass(frozen=True, slots=True)
class Family:
    """Candidates of one choice: the subtopics of a tree, or the studies of one subtopic."""

    tree: str
    nodes: tuple[str, ...]
    """Ids of the candidates."""
    texts: tuple[tuple[str, ...], ...]
    """Canonical text and paraphrases of each candidate."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text that an agent might propose, and the candidates that it may mean."""

    family: int
    """Index of its family."""
    text: str
    targets: tuple[int, ...]
    """Indices of the candidates that it means. Empty for none."""
    author: str
    kind: str
    """``right`` or the reason why it means none, as in `research.proposals`."""


@dataclass(frozen=True, slots=True)
class Examples:
    """All families with the examples about them."""

    families: tuple[Family, ...]
    examples: tuple[Example, ...]


Places = Mapping[tuple[str, str], tuple[int, int]]
"""Family and index by tree and node."""


def gather(trees: Sequence[Tree], proposals: Sequence[ProposalSet], folder: Path = PARAPHRASES) -> Examples:
    """Return the families of ``trees`` with their examples: these proposals, those of `PROPOSALS`, and paraphrases."""
    families = [family for tree in trees for family in _families(tree)]
    places = {(f.tree, node): (k, i) for k, f in enumerate(families) for i, node in enumerate(f.nodes)}
    index = {(family.tree, family.nodes): k for k, family in enumerate(families)}
    known = {tree.id for tree in trees}
    more = [each for each in load_sets(PROPOSALS, ProposalSet, "proposals") if each.tree in known]
    cases = matching_cases([*proposals, *more], {tree.id: tree for tree in trees}.__getitem__)
    examples = [*(_of_case(case, index) for case in cases), *_of_paraphrases(folder, places)]
    return Examples(tuple(families), tuple(dict.fromkeys(examples)))


def _families(tree: Tree) -> Iterator[Family]:
    for nodes in (tree.subtopics, *(subtopic.studies for subtopic in tree.subtopics)):
        yield Family(tree.id, tuple(node.id for node in nodes), tuple(wordings(node) for node in nodes))


def _of_case(case: MatchingCase, index: Mapping[tuple[str, tuple[str, ...]], int]) -> Example:
    family = index[case.tree, tuple(node.id for node in case.candidates)]
    targets = (case.right, *case.also) if case.kind == "right" else ()
    return Example(family, case.text, targets, case.author, case.kind)


def _of_paraphrases(folder: Path, places: Places) -> Iterator[Example]:
    known = {tree for tree, _ in places}
    for file in sorted(folder.glob("*/*.json")):
        labelled = json.loads(file.read_text(encoding="utf-8")) if file.stem in known else {}
        for node, texts in labelled.items():
            family, index = places[file.stem, node]
            yield from (Example(family, text, (index,), file.parent.name, "right") for text in texts)
