"""The format of research trees with worlds: what was found is a function of axes, facts with two or three poles.

Every `WorldTree` is playable in every world: besides what holds for a `schema.Tree`, results and conclusion items read
axes of the tree, and have a text for every combination of their poles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import Canary, FrozenModel, Identifier, Paper, Provenance, Text
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import (
    MAX_AXES,
    MAX_SUBTOPICS,
    Axis,
    ConclusionItem,
    Hints,
    Name,
    Study,
    Subtopic,
    Tree,
    ladder_texts,
    playability_faults,
    refuse_unplayable,
)
from inquitree_gym.trees.validation import legible

MAX_WORDINGS = 12
"""Largest number of wordings of a result in one world."""


class Finding(FrozenModel):
    """The result of a study as a function of the axes that it reads. A control reads none."""

    axes: tuple[Identifier, ...] = Field(max_length=2)
    texts: dict[str, Annotated[tuple[Text, ...], Field(min_length=1, max_length=MAX_WORDINGS)]]
    """Wordings by the poles of the axes, such as ``01``. The key of a control is empty."""
    support: Literal["sheet", "recomputed", "inferred", "precursor"]
    """Source of the reading in the actual world."""


class WorldStudy(Study):
    """A study of a subtopic: protocol (its text), hint ladder and result."""

    result: Finding

    @cached_property
    def outcomes(self) -> tuple[tuple[str, ...], ...]:
        """The wordings by the poles of the axes. See `Study.outcomes`."""
        return tuple(self.result.texts[key] for key in sorted(self.result.texts))


class Prerequisite(FrozenModel):
    """A subtopic that has to be visited before another one."""

    id: Identifier
    because: Text
    """Reason why the later question needs the earlier one."""


class WorldSubtopic(Subtopic):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Name
    prerequisites: tuple[Prerequisite, ...] = ()
    hints: Hints
    studies: tuple[WorldStudy, ...] = Field(min_length=1)

    @property
    def requires(self) -> tuple[str, ...]:
        """See `Subtopic.requires`."""
        return tuple(each.id for each in self.prerequisites)


class WorldConclusion(ConclusionItem):
    """A conclusion item: one statement for each combination of the poles of its axes."""

    id: Identifier
    axes: tuple[Identifier, ...] = Field(min_length=1, max_length=2)
    texts: dict[str, Text]
    """Statements by the poles of the axes, such as ``01``."""
    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids. A true result of any study in a group meets the group (Eq. 8)."""

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The statements by the poles of the axes. See `ConclusionItem.options`."""
        return tuple(self.texts[key] for key in sorted(self.texts))


class WorldTree(Tree):
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

    @model_validator(mode="after")
    def _is_playable(self) -> WorldTree:
        refuse_unplayable([*playability_faults(self.structure), *_axis_faults(self), *_reader_faults(self)])
        return self

    if TYPE_CHECKING:
        studies: tuple[WorldStudy, ...]

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """See `Tree.reads`."""
        return tuple(tuple(self.axis_index[axis] for axis in study.result.axes) for study in self.studies)

    @cached_property
    def asks(self) -> tuple[tuple[int, ...], ...]:
        """See `Tree.asks`."""
        return tuple(tuple(self.axis_index[axis] for axis in item.axes) for item in self.conclusions)

    def can_be_told(self, study: int, fake: int) -> bool:
        """Return True if another study reads one of the axes, which can contradict any fake."""
        axes = set(self.reads[study])
        return any(axes & set(others) for other, others in enumerate(self.reads) if other != study)

    @cached_property
    def axis_index(self) -> dict[str, int]:
        """Index of each axis by its id."""
        return {axis.id: index for index, axis in enumerate(self.axes)}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place in the document of each node and axis by its id, such as ``subtopics[2].studies[0]``."""
        return {axis: f"axes[{index}]" for axis, index in self.axis_index.items()} | self.structure.paths

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
