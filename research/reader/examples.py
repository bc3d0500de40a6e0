"""Examples for the reader: proposals with the candidates among which each has to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inquitree_gym.trees import Tree
from inquitree_gym.trees.schema import wordings
from research.proposals import MatchingCase, ProposalSet, matching_cases


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
    """Who wrote it. A paraphrase has the id of its tree."""
    kind: str
    """``right`` or the reason why it means none, as in `research.proposals`."""


@dataclass(frozen=True, slots=True)
class Examples:
    """All families with the examples about them."""

    families: tuple[Family, ...]
    examples: tuple[Example, ...]


def gather(trees: Sequence[Tree], proposals: Sequence[ProposalSet]) -> Examples:
    """Return the families of ``trees`` with their examples: the proposals about them, and their paraphrases."""
    families = [family for tree in trees for family in _families(tree)]
    index = {(family.tree, family.nodes): k for k, family in enumerate(families)}
    known = {tree.id: tree for tree in trees}
    cases = matching_cases([each for each in proposals if each.tree in known], known.__getitem__)
    examples = [*(_of_case(case, index) for case in cases), *_of_paraphrases(families)]
    return Examples(tuple(families), tuple(dict.fromkeys(examples)))


def _families(tree: Tree) -> Iterator[Family]:
    for nodes in (tree.subtopics, *(subtopic.studies for subtopic in tree.subtopics)):
        yield Family(tree.id, tuple(node.id for node in nodes), tuple(wordings(node) for node in nodes))


def _of_case(case: MatchingCase, index: Mapping[tuple[str, tuple[str, ...]], int]) -> Example:
    family = index[case.tree, tuple(node.id for node in case.candidates)]
    targets = (case.right, *case.also) if case.kind == "right" else ()
    return Example(family, case.text, targets, case.author, case.kind)


def _of_paraphrases(families: Sequence[Family]) -> Iterator[Example]:
    for k, family in enumerate(families):
        for i, (_, *others) in enumerate(family.texts):
            yield from (Example(k, text, (i,), family.tree, "right") for text in others)
