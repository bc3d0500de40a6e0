"""The format of research trees with worlds: what was found is a function of axes, facts with two or three poles.

Every `WorldTree` is playable in every world: besides what holds for a `schema.Tree`, results and conclusion items read
axes of the tree, and have a text for every combination of their poles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from operator import not_
from typing import Annotated, Literal

from pydantic import Field, model_validator

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import (
    CLEAN,
    Canary,
    FrozenModel,
    Identifier,
    Paper,
    Provenance,
    Text,
    document_digest,
)
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import (
    MAX_SUBTOPICS,
    Candidate,
    Hints,
    Structure,
    ladder_texts,
    playability_faults,
    refuse_unplayable,
)
from inquitree_gym.trees.validation import legible

MAX_AXES = 12
"""Largest number of axes. Three poles on each make 531,441 worlds."""
MAX_WORDINGS = 12
"""Largest number of wordings of a result in one world."""


class Axis(FrozenModel):
    """A fact about the world that could have come out in several ways, its poles. Agents never see it."""

    id: Identifier
    question: Text
    poles: tuple[Text, ...] = Field(min_length=2, max_length=3)
    actual: int | None
    """Index of the pole that the paper reports. None on every axis of a tree that was made up."""
    settled_by: Literal["data", "simulation", "paper"]
    """Means by which a reader could settle the question without the inquiry."""


class Finding(FrozenModel):
    """The result of a study as a function of the axes that it reads. A control reads none."""

    axes: tuple[Identifier, ...] = Field(max_length=2)
    texts: dict[str, Annotated[tuple[Text, ...], Field(min_length=1, max_length=MAX_WORDINGS)]]
    """Wordings by the poles of the axes, such as ``01``. The key of a control is empty."""
    support: Literal["sheet", "recomputed", "inferred", "precursor"]
    """Source of the reading in the actual world."""


class WorldStudy(Candidate):
    """A study of a subtopic: protocol (its text), hint ladder and result."""

    hints: Hints
    result: Finding


class Prerequisite(FrozenModel):
    """A subtopic that has to be visited before another one."""

    id: Identifier
    because: Text
    """Reason why the later question needs the earlier one."""


class WorldSubtopic(Candidate):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Annotated[str, Field(min_length=1, max_length=60), CLEAN]
    prerequisites: tuple[Prerequisite, ...] = ()
    hints: Hints
    studies: tuple[WorldStudy, ...] = Field(min_length=1)


class WorldConclusion(FrozenModel):
    """A conclusion item: one statement for each combination of the poles of its axes."""

    id: Identifier
    axes: tuple[Identifier, ...] = Field(min_length=1, max_length=2)
    texts: dict[str, Text]
    """Statements by the poles of the axes, such as ``01``."""
    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids. A true result of any study in a group meets the group (Eq. 8)."""


class WorldTree(FrozenModel):
    """A research tree: axes, a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/2"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    paper: Paper
    topic: Text
    """Open question given to the agent. It implies no answer."""
    axes: tuple[Axis, ...] = Field(min_length=1, max_length=MAX_AXES)
    """The facts in which worlds differ. Every combination of their poles is a world."""
    constants: tuple[Text, ...] = ()
    """Findings that hold in every world, since questions or results name them."""
    subtopics: tuple[WorldSubtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[WorldConclusion, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    """Material of the projection task. No inquiry shows it, so it is outside the digest."""
    provenance: Provenance
    converted: bool = Field(default=False, exclude_if=not_)
    """True if a program made the axes from a tree of format 1. Left out of other documents."""

    @model_validator(mode="after")
    def _is_playable(self) -> WorldTree:
        refuse_unplayable([*playability_faults(self.structure), *_axis_faults(self), *_reader_faults(self)])
        return self

    def __hash__(self) -> int:
        """Return the hash of the digest, so that caches keyed by a tree are fast."""
        return hash(self.digest)

    @cached_property
    def studies(self) -> tuple[WorldStudy, ...]:
        """All studies, subtopic by subtopic. Study indices follow this order."""
        return tuple(study for subtopic in self.subtopics for study in subtopic.studies)

    @cached_property
    def families(self) -> tuple[tuple[WorldSubtopic, ...] | tuple[WorldStudy, ...], ...]:
        """Groups of siblings, among which an action is matched: all subtopics, then the studies of each subtopic."""
        return self.subtopics, *(subtopic.studies for subtopic in self.subtopics)

    @property
    def structure(self) -> Structure:
        """The parts that trees of both formats have."""
        prerequisites = tuple(tuple(each.id for each in subtopic.prerequisites) for subtopic in self.subtopics)
        needs = tuple((item.id, item.needs) for item in self.conclusions)
        return Structure(self.families, prerequisites, needs, self.disclosure, self.provenance)

    @cached_property
    def axis_index(self) -> dict[str, int]:
        """Index of each axis by its id."""
        return {axis.id: index for index, axis in enumerate(self.axes)}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place in the document of each node and axis by its id, such as ``subtopics[2].studies[0]``."""
        return {axis: f"axes[{index}]" for axis, index in self.axis_index.items()} | self.structure.paths

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical document without its disclosure, in hex. Identifies the tree in logs and caches."""
        return document_digest(self, exclude={"disclosure"})

    @property
    def group(self) -> str:
        """Group in tables. Trees have none."""
        return ""

    @property
    def published(self) -> str:
        """Date of publication of the paper."""
        return self.paper.published.written

    def keys(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Return every combination of the poles of some axes, such as ``00``, ``01``, ``10``, ``11``."""
        poles = [range(len(self.axes[self.axis_index[axis]].poles)) for axis in axes]
        return tuple("".join(map(str, each)) for each in product(*poles))

    def texts(self) -> dict[str, str]:
        """Return all texts that can be matched or judged, by path, such as ``s1/s1a/result/01/1``."""
        found = {"topic": self.topic}
        for subtopic in self.subtopics:
            found |= ladder_texts(subtopic.id, subtopic, subtopic.hints)
            for study in subtopic.studies:
                path = f"{subtopic.id}/{study.id}"
                found |= ladder_texts(path, study, study.hints)
                for key, wordings in study.result.texts.items():
                    place = f"{path}/result/{key}" if key else f"{path}/result"
                    found |= {f"{place}/{i}": text for i, text in enumerate(wordings, 1)}
        for item in self.conclusions:
            found |= {f"{item.id}/{key}": text for key, text in item.texts.items()}
        return found


def _axis_faults(tree: WorldTree) -> Iterator[Fault]:
    """Yield repeated ids of axes, and actual poles that are none."""
    others = set(tree.structure.paths)
    for i, axis in enumerate(tree.axes):
        if axis.id in others:
            yield fault("T111", axis.id, f"axes[{i}].id", "this id is used more than once; ids are unique in a tree")
        others.add(axis.id)
        if axis.actual is not None and not 0 <= axis.actual < len(axis.poles):
            message = f"its actual pole is {axis.actual}, needs 0 to {len(axis.poles) - 1}"
            yield fault("T121", axis.id, f"axes[{i}].actual", message)
    unknown = [axis.id for axis in tree.axes if axis.actual is None]
    if 0 < len(unknown) < len(tree.axes):
        message = f"{', '.join(unknown)} have no actual pole, the other axes have; give one to all axes or to none"
        yield fault("T121", unknown[0], f"{tree.paths[unknown[0]]}.actual", message)


def _reader_faults(tree: WorldTree) -> Iterator[Fault]:
    """Yield the faults of what reads axes: results and conclusion items."""
    for study in tree.studies:
        result, path = study.result, f"{tree.paths[study.id]}.result"
        yield from _key_faults(tree, study.id, path, result.axes, result.texts)
        counts = {key: len(wordings) for key, wordings in result.texts.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{count} for '{key}'" for key, count in counts.items())
            message = f"its result has {told}; every key needs the same number of wordings"
            yield fault("T120", study.id, f"{path}.texts", message)
    for item in tree.conclusions:
        yield from _key_faults(tree, item.id, tree.paths[item.id], item.axes, item.texts)


def _key_faults(
    tree: WorldTree, node: str, path: str, axes: tuple[str, ...], texts: Mapping[str, object]
) -> Iterator[Fault]:
    for i, name in enumerate(axes):
        if name not in tree.axis_index:
            yield fault("T119", node, f"{path}.axes[{i}]", f"reads '{name}', which is not an axis of this tree")
    if len(set(axes)) < len(axes):
        yield fault("T119", node, f"{path}.axes", "reads an axis twice; name it once")
    if len(tree.axis_index.keys() & set(axes)) < len(axes):
        return  # nothing can be said of the texts
    known = tree.keys(axes)
    if missing := [key for key in known if key not in texts]:
        message = f"has no text for {_quoted(missing)}; write one for every combination of the poles of its axes"
        yield fault("T120", node, f"{path}.texts", message)
    if unknown := [key for key in texts if key not in known]:
        message = f"has texts for {_quoted(unknown)}, but its axes need {_quoted(known)}; remove or rename them"
        yield fault("T120", node, f"{path}.texts", message)


def _quoted(keys: Sequence[str]) -> str:
    shown = ", ".join(f"'{legible(key)}'" for key in keys[:9])
    return f"{shown} and {len(keys) - 9} more" if len(keys) > 9 else shown
