"""Labelled proposals about the shipped trees, and the candidates among which each has to be matched.

The proposals were written by hand, several for each subtopic and study. They calibrate thresholds and train the static
embedder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.schema import Node

ProposalKind = Literal["right", "vague", "near_miss", "off_target"]
PROPOSAL_KINDS: tuple[ProposalKind, ...] = ("right", "vague", "near_miss", "off_target")
THRESHOLD_GRID = np.round(np.arange(0.20, 0.8001, 0.005), 3)
"""Candidate thresholds of a calibration."""


class Proposal(BaseModel):
    """A text that an agent might propose instead of a subtopic or study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    """Id of a subtopic or study."""
    kind: ProposalKind
    """``right`` means the target; the other kinds mean no node of the tree."""
    text: str


class ProposalSet(BaseModel):
    """The proposals about one tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    """Id of the tree."""
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True)
class MatchingCase:
    """A proposal and its candidates: all subtopics, or the studies of the target's subtopic."""

    tree: str
    target: str
    is_study: bool
    kind: ProposalKind
    text: str
    candidates: tuple[str, ...]
    """Texts of the candidates."""
    right: int
    """Index of the target among them."""


def load_proposals(folder: Path | None = None) -> list[ProposalSet]:
    """Return the proposals about every shipped tree, in paper order, or those of the JSON files of a folder.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    source = folder or resources.files(__package__).joinpath("data", "proposals")
    files = [file for file in source.iterdir() if file.name.endswith(".json")] if source.is_dir() else []
    if not files:
        raise OptionError(f"no proposals (*.json) in '{source}'; give a folder with one file per tree")
    return sorted(map(_load_set, files), key=lambda each: (len(each.tree), each.tree))


def _load_set(file: Traversable) -> ProposalSet:
    try:
        return ProposalSet.model_validate_json(file.read_bytes())
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise OptionError(f"'{file}' is not a valid set of proposals: {fault['msg']} at {fault['loc']}") from error


def matching_cases(sets: Sequence[ProposalSet], find: Callable[[str], Tree] = load_tree) -> list[MatchingCase]:
    """Return every proposal with its candidates; ``find`` loads a tree by id.

    Raises:
        OptionError: a target is not in its tree.
    """
    return [case for each in sets for case in _cases(each, find(each.tree))]


def _cases(proposals: ProposalSet, tree: Tree) -> Iterator[MatchingCase]:
    subtopics = {subtopic.id: tree.subtopics for subtopic in tree.subtopics}
    studies = {study.id: subtopic.studies for subtopic in tree.subtopics for study in subtopic.studies}
    for proposal in proposals.proposals:
        target = proposal.target
        siblings: Sequence[Node] | None = subtopics.get(target) or studies.get(target)
        if siblings is None:
            raise OptionError(f"proposals of {tree.id}: '{target}' is no subtopic or study of the tree")
        texts = tuple(node.text for node in siblings)
        right = [node.id for node in siblings].index(target)
        yield MatchingCase(tree.id, target, target in studies, proposal.kind, proposal.text, texts, right)
