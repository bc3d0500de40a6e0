"""How well actions are read: proposals with known targets against every threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.schema import Node
from research.validity.sets import CalibrationSet

Kind = Literal["right", "vague", "near_miss", "off_target"]
KINDS: tuple[Kind, ...] = ("right", "vague", "near_miss", "off_target")
GRID = np.round(np.arange(0.20, 0.8001, 0.005), 3)
"""Thresholds that are tried."""


class Proposal(BaseModel):
    """What an agent might say when the target's turn has come."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    """Id of a subtopic or study."""
    kind: Kind
    """``right`` means the target; the others mean no node of the tree."""
    text: str


class ProposalSet(CalibrationSet):
    """The proposals of one tree."""

    proposals: tuple[Proposal, ...]


class Question(NamedTuple):
    """A proposal and the candidates it meets: all subtopics, or the studies of the target's subtopic."""

    tree: str
    target: str
    is_study: bool
    kind: Kind
    text: str
    candidates: tuple[str, ...]
    """Texts of the candidates."""
    right: int
    """Index of the target among them."""


class ReadProposal(NamedTuple):
    """One proposal and what an embedder makes of it."""

    tree: str
    target: str
    is_study: bool
    kind: Kind
    right_node: bool
    """Whether the nearest candidate is the target."""
    similarity: float
    """To the nearest candidate."""


class Rates(NamedTuple):
    """What one threshold does; shares in [0, 1]."""

    threshold: float
    understood: float
    """Right proposals accepted at their target."""
    misread: float
    """Right proposals accepted at another node."""
    refused: float
    """Right proposals not accepted."""
    vague: float
    near_miss: float
    off_target: float
    """Proposals of these kinds accepted anywhere."""

    @property
    def balance(self) -> float:
        """Youden's J: understood minus the mean share wrongly accepted, the misread among them."""
        return self.understood - (self.misread + self.vague + self.near_miss + self.off_target) / 4


def read_all(sets: Sequence[ProposalSet], embedder: Embedder) -> list[ReadProposal]:
    """Match every proposal to the candidates it would meet."""
    return [_read(question, embedder) for question in questions(sets)]


def questions(sets: Sequence[ProposalSet], find: Callable[[str], Tree] = load_tree) -> list[Question]:
    """Return every proposal with its candidates; ``find`` gives the tree of an id.

    Raises:
        OptionError: a proposal means something that its tree does not hold.
    """
    return [question for each in sets for question in _questions(each, find(each.tree))]


def _questions(proposals: ProposalSet, tree: Tree) -> Iterator[Question]:
    subtopics = {subtopic.id: tree.subtopics for subtopic in tree.subtopics}
    studies = {study.id: subtopic.studies for subtopic in tree.subtopics for study in subtopic.studies}
    for proposal in proposals.proposals:
        target = proposal.target
        family: Sequence[Node] | None = subtopics.get(target) or studies.get(target)
        if family is None:
            raise OptionError(f"proposals of {tree.id}: '{target}' is no subtopic or study of the tree")
        texts = tuple(node.text for node in family)
        right = [node.id for node in family].index(target)
        yield Question(tree.id, target, target in studies, proposal.kind, proposal.text, texts, right)


def _read(question: Question, embedder: Embedder) -> ReadProposal:
    vectors = tree_vectors(load_tree(question.tree), embedder)
    similarities = vectors.matrix(question.candidates) @ vectors.of(question.text)
    best = int(np.argmax(similarities))
    tree, target, is_study, kind = question[:4]
    return ReadProposal(tree, target, is_study, kind, best == question.right, float(similarities[best]))


def rates(read: Sequence[ReadProposal], threshold: float) -> Rates:
    """Return what ``threshold`` does to these proposals; a kind without any counts as never accepted."""
    right = [each for each in read if each.kind == "right"]
    taken = [each for each in right if each.similarity >= threshold]
    understood = sum(each.right_node for each in taken) / len(right)
    misread = len(taken) / len(right) - understood
    wrongly = {kind: _share(read, kind, threshold) for kind in KINDS[1:]}
    return Rates(threshold, understood, misread, 1 - understood - misread, **wrongly)


def sweep(read: Sequence[ReadProposal]) -> list[Rates]:
    """Return the rates at every threshold of the grid."""
    return [rates(read, float(threshold)) for threshold in GRID]


def best_threshold(read: Sequence[ReadProposal]) -> float:
    """Return the threshold with the best balance; the middle one where several are equally good."""
    curve = np.array([each.balance for each in sweep(read)])
    best: NDArray[np.intp] = np.flatnonzero(curve >= curve.max() - 1e-12)
    return float(GRID[best[len(best) // 2]])


def _share(read: Sequence[ReadProposal], kind: Kind, threshold: float) -> float:
    similarities = [each.similarity for each in read if each.kind == kind]
    return sum(value >= threshold for value in similarities) / len(similarities) if similarities else 0.0
