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
from typing import Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.schema import Candidate

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


class LabelledSet(BaseModel):
    """Base class of the labelled texts about one tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    """Id of the tree."""


class ProposalSet(LabelledSet):
    """The proposals about one tree."""

    proposals: tuple[Proposal, ...]


SetType = TypeVar("SetType", bound=LabelledSet)


@dataclass(frozen=True, slots=True)
class MatchingCase:
    """A proposal and its candidates: all subtopics, or the studies of the target's subtopic."""

    tree: str
    target: str
    is_study: bool
    kind: ProposalKind
    text: str
    candidates: tuple[Candidate, ...]
    right: int
    """Index of the target among them."""


def load_proposals(folder: Path | None = None) -> list[ProposalSet]:
    """Return the proposals about every shipped tree, in paper order, or those of the JSON files of a folder.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    return load_sets(folder or resources.files(__package__).joinpath("data", "proposals"), ProposalSet, "proposals")


def load_sets(folder: Traversable, model: type[SetType], content: str) -> list[SetType]:
    """Read the labelled set of every JSON file of a folder, in paper order; ``content`` is its name in errors.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    files = [file for file in folder.iterdir() if file.name.endswith(".json")] if folder.is_dir() else []
    if not files:
        raise OptionError(f"no {content} (*.json) in '{folder}'; give a folder with one file per tree")
    return sorted((_load_set(file, model, content) for file in files), key=lambda each: (len(each.tree), each.tree))


def _load_set(file: Traversable, model: type[SetType], content: str) -> SetType:
    try:
        return model.model_validate_json(file.read_bytes())
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise OptionError(f"'{file}' is not a valid set of {content}: {fault['msg']} at {fault['loc']}") from error


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
        siblings: tuple[Candidate, ...] | None = subtopics.get(target) or studies.get(target)
        if siblings is None:
            raise OptionError(f"proposals of {tree.id}: '{target}' is no subtopic or study of the tree")
        right = [node.id for node in siblings].index(target)
        yield MatchingCase(tree.id, target, target in studies, proposal.kind, proposal.text, siblings, right)
