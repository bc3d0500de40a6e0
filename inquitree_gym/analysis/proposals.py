"""Labelled proposals about the shipped trees, and the candidates among which each has to be matched.

Some were written, several for each subtopic and study; others were said in play, by players who saw observations alone,
and labelled afterwards by somebody else. They calibrate thresholds and train the embedders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.candidates import Embed, centroids
from inquitree_gym.trees.schema import Candidate

ProposalKind = Literal["right", "vague", "near_miss", "off_target", "foreign"]
PROPOSAL_KINDS: tuple[ProposalKind, ...] = get_args(ProposalKind)
Origin = Literal["written", "played"]
TOPIC = "topic"
THRESHOLD_GRID = np.round(np.arange(0.20, 0.8001, 0.005), 3)
"""Candidate thresholds of a calibration."""


class Proposal(BaseModel):
    """A text that an agent might propose instead of a subtopic or study, and its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = ""
    """Id of the subtopic or study that the text means, or beside which it was written."""
    also: tuple[str, ...] = ()
    """Further nodes of the same choice that the text means as well."""
    at: str = ""
    """``topic`` or the id of the subtopic where it was said; needed without a target."""
    kind: ProposalKind
    """``right`` means the target. The other kinds mean no node of the tree: ``foreign`` is a sensible question or study
    about the topic, ``near_miss`` one about something else in the field, ``vague`` no particular one, ``off_target``
    nothing of the field."""
    text: str
    author: str = "first"
    origin: Origin = "written"
    locked: bool = False
    """True if the target was still locked when the text was said."""
    sure: bool = True
    """False if another careful reader might decide otherwise."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Proposal:
        if not (self.target or self.at):
            raise ValueError("a proposal without a target needs 'at': topic, or the id of a subtopic")
        if self.kind == "right" and not self.target:
            raise ValueError("a right proposal needs a target")
        return self


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
    """A proposal and its candidates: all subtopics, or the studies of one subtopic."""

    tree: str
    target: str
    is_study: bool
    kind: ProposalKind
    text: str
    candidates: tuple[Candidate, ...]
    right: int
    """Index of the target among them; -1 without a target."""
    also: tuple[int, ...] = ()
    """Indices of further candidates that the text means as well."""
    author: str = "first"
    origin: Origin = "written"
    locked: bool = False
    sure: bool = True


def load_proposals(folder: Path | None = None) -> list[ProposalSet]:
    """Return the proposals about every shipped tree, in paper order, or those of the JSON files of a folder.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    return load_sets(folder or resources.files(__package__).joinpath("data", "proposals"), ProposalSet, "proposals")


def load_proposal_file(file: Path) -> ProposalSet:
    """Return the proposals of one JSON file.

    Raises:
        OptionError: the file cannot be read or is invalid.
    """
    if not file.is_file():
        raise OptionError(f"no file of proposals at '{file}'; give a .json file")
    return _load_set(file, ProposalSet, "proposals")


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


def case_similarities(case: MatchingCase, embed: Embed, *, paraphrases: bool = True) -> NDArray[np.float32]:
    """Return the similarity of a proposal to each candidate: to its centroid, or to its canonical text alone."""
    candidates = centroids(case.candidates, embed) if paraphrases else embed([node.text for node in case.candidates])
    return np.asarray(candidates @ embed([case.text])[0])


def _cases(proposals: ProposalSet, tree: Tree) -> Iterator[MatchingCase]:
    by_place: dict[str, tuple[Candidate, ...]] = {TOPIC: tree.subtopics}
    by_place |= {subtopic.id: subtopic.studies for subtopic in tree.subtopics}
    places = {node.id: place for place, nodes in by_place.items() for node in nodes}
    for proposal in proposals.proposals:
        place = proposal.at or places.get(proposal.target, "")
        named = [proposal.target, *proposal.also] if proposal.target else []
        ids = [node.id for node in by_place.get(place, ())]
        if not ids or not set(named) <= set(ids):
            missing = ", ".join(f"'{name}'" for name in named if name not in ids) or f"'{place}'"
            raise OptionError(f"proposals of {tree.id}: {missing} is no subtopic or study of the tree at that place")
        right, *also = [ids.index(name) for name in named] or [-1]
        yield MatchingCase(
            tree.id,
            proposal.target,
            place != TOPIC,
            proposal.kind,
            proposal.text,
            by_place[place],
            right,
            tuple(also),
            proposal.author,
            proposal.origin,
            proposal.locked,
            proposal.sure,
        )
