"""Readings of labelled proposals: how many are understood, misread, refused, or taken though they mean no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from inquitree_gym.analysis.proposals import (
    MatchingCase,
    ProposalKind,
    case_similarities,
    load_proposal_file,
    matching_cases,
)
from inquitree_gym.embeddings import Embedder, TreeVectors, tree_vectors
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.errors import OptionError
from inquitree_gym.scoring.statistics import Estimate, clustered_mean
from inquitree_gym.trees import Tree, load_tree

KINDS_TAKEN: tuple[ProposalKind, ...] = ("foreign", "vague", "near_miss", "off_target")
"""Kinds of proposals that should be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedProposal(MatchingCase):
    """A proposal and its nearest candidate under one embedder."""

    index: int
    """Index of the nearest candidate; -1 if a reader chose none."""
    similarity: float
    """Cosine similarity to the nearest candidate."""

    @property
    def right_node(self) -> bool:
        """True if the nearest candidate is a node that the proposal means."""
        return self.index >= 0 and self.index in (self.right, *self.also)

    @property
    def nearest(self) -> str:
        """Id of the nearest candidate; empty without one."""
        return self.candidates[self.index].id if self.index >= 0 else ""


@dataclass(frozen=True, slots=True)
class ReadingShares:
    """Shares of proposals, in [0, 1], as means over trees; the kinds are those of `proposals.Proposal`."""

    proposals: int
    nearest_subtopic: Estimate
    """Right proposals at the topic whose nearest candidate is right, at any similarity."""
    nearest_study: Estimate
    """The same for designs in a subtopic with several studies."""
    understood: Estimate
    """Right proposals at the topic that are accepted as a node that they mean."""
    misread: Estimate
    """Right proposals at the topic that are accepted as another node."""
    refused: Estimate
    """Right proposals at the topic that are not accepted."""
    foreign: Estimate
    """Proposals of this and the next kinds, at the topic or in a subtopic, that are accepted."""
    vague: Estimate
    near_miss: Estimate
    off_target: Estimate
    locked: int
    """Right proposals whose target was still locked when they were said."""
    several: int
    """Right proposals that mean several nodes."""


@dataclass(frozen=True, slots=True)
class WrongReading:
    """A proposal that is not read as it is meant."""

    text: str
    kind: ProposalKind
    meant: tuple[str, ...]
    """Ids of the nodes that it means; empty for a proposal that should be refused."""
    read: str | None
    """Id of the node that it is accepted as; None if it is refused."""
    similarity: float
    """Similarity to the nearest candidate."""


@dataclass(frozen=True, slots=True)
class FileReadings:
    """Readings of a file of labelled proposals about one tree."""

    tree: str
    embedder: str
    threshold: float
    shares: dict[str, ReadingShares]
    """Shares of all proposals, and of each author and origin where there are several."""
    wrong: list[WrongReading]


def measure_file(file: Path, tree: Tree, embedder: Embedder, threshold: float) -> FileReadings:
    """Match the proposals of a file with their tree.

    Raises:
        OptionError: the file cannot be read or is invalid, or is about another tree.
    """
    proposals = load_proposal_file(file)
    if proposals.tree != tree.id:
        raise OptionError(f"'{file}' holds proposals about {proposals.tree}, not about {tree.id}")
    cases = matching_cases([proposals], lambda name: tree)
    found = match_cases(cases, embedder, find=lambda name: tree)
    groups = {"all": found}
    for field in ("author", "origin"):
        names = list(dict.fromkeys(getattr(each, field) for each in found))
        for name in names if len(names) > 1 else ():
            groups[f"{field} {name}"] = [each for each in found if getattr(each, field) == name]
    shares = {name: reading_shares(group, threshold) for name, group in groups.items()}
    wrong = [each for each in (_wrong(one, threshold) for one in found) if each is not None]
    return FileReadings(tree.id, embedder.name, threshold, shares, wrong)


def _wrong(found: MatchedProposal, threshold: float) -> WrongReading | None:
    accepted = found.similarity >= threshold
    meant = tuple(found.candidates[i].id for i in (found.right, *found.also)) if found.kind == "right" else ()
    read = found.nearest if accepted else None
    as_meant = read in meant if meant else not accepted
    return None if as_meant else WrongReading(found.text, found.kind, meant, read, found.similarity)


def matched(case: MatchingCase, index: int, similarity: float) -> MatchedProposal:
    """Return a proposal whose nearest candidate is known by its index."""
    known = {each.name: getattr(case, each.name) for each in fields(case)}
    return MatchedProposal(**known, index=index, similarity=similarity)


def match_cases(
    cases: Sequence[MatchingCase],
    embedder: Embedder,
    *,
    paraphrases: bool = True,
    find: Callable[[str], Tree] = load_tree,
) -> list[MatchedProposal]:
    """Match every proposal with the centroids of its candidates, or with their canonical texts alone.

    ``find`` loads a tree by id.
    """
    said = list(dict.fromkeys(case.text for case in cases))
    vectors = dict(zip(said, embedder.embed(said), strict=True))
    known = {name: tree_vectors(find(name), embedder) for name in dict.fromkeys(case.tree for case in cases)}
    return [_match(case, vectors[case.text], known[case.tree], paraphrases) for case in cases]


def reading_shares(proposals: Sequence[MatchedProposal], threshold: float) -> ReadingShares:
    """Return the shares at ``threshold``."""
    right = [each for each in proposals if each.kind == "right"]
    asked = [each for each in right if not each.is_study]
    designs = [each for each in right if each.is_study and len(each.candidates) > 1]
    taken = {
        kind: _share((each, each.similarity >= threshold) for each in proposals if each.kind == kind)
        for kind in KINDS_TAKEN
    }
    return ReadingShares(
        proposals=len(proposals),
        nearest_subtopic=_share((each, each.right_node) for each in asked),
        nearest_study=_share((each, each.right_node) for each in designs),
        understood=_share((each, each.right_node and each.similarity >= threshold) for each in asked),
        misread=_share((each, not each.right_node and each.similarity >= threshold) for each in asked),
        refused=_share((each, each.similarity < threshold) for each in asked),
        locked=sum(each.locked for each in right),
        several=sum(bool(each.also) for each in right),
        **taken,
    )


def _match(case: MatchingCase, said: Vector, known: TreeVectors, paraphrases: bool) -> MatchedProposal:
    def embed(texts: Sequence[str]) -> Vectors:
        return np.stack([said if text == case.text else known.of(text) for text in texts])

    similarities = case_similarities(case, embed, paraphrases=paraphrases)
    best = int(np.argmax(similarities))
    return matched(case, best, float(similarities[best]))


def _share(flags: Iterable[tuple[MatchedProposal, bool]]) -> Estimate:
    return clustered_mean((each.tree, float(flag)) for each, flag in flags)
