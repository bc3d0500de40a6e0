"""The format of research trees: subtopics with studies, whose results are functions of axes, facts with poles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from operator import is_, not_
from typing import Annotated, Literal

from pydantic import Field

from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import (
    CLEAN,
    HINT_LEVELS,
    Canary,
    FrozenModel,
    Identifier,
    Node,
    Paper,
    Provenance,
    Text,
)

MAX_PARAPHRASES = 12
"""Largest number of paraphrases of a subtopic or study."""
MAX_WORDINGS = 12
"""Largest number of wordings of a result in one world."""
MAX_SUBTOPICS = 1_000
MAX_AXES = 12
"""Largest number of axes. Three poles on each make 531,441 worlds."""

Name = Annotated[str, Field(min_length=1, max_length=60), CLEAN]
Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class Axis(FrozenModel):
    """A fact about the world that could have come out in several ways, its poles. Agents never see it."""

    id: Identifier
    question: Text
    poles: tuple[Text, ...] = Field(min_length=2, max_length=3)
    actual: int | None
    """Index of the pole that the paper reports. None on every axis of a tree that was made up."""
    settled_by: Literal["data", "simulation", "paper"]
    """Means by which a reader could settle the question without the inquiry."""


class Candidate(Node):
    """A subtopic or study: actions are matched with its text and its paraphrases together."""

    paraphrases: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The same question or protocol in other words. Left out of documents without any."""


class StudyResult(FrozenModel):
    """The result of a study as a function of the axes that it reads. A control reads none."""

    axes: tuple[Identifier, ...] = Field(max_length=2)
    texts: dict[str, Annotated[tuple[Text, ...], Field(min_length=1, max_length=MAX_WORDINGS)]]
    """Wordings by the poles of the axes, such as ``01``. The key of a control is empty."""
    support: Literal["sheet", "recomputed", "inferred", "precursor"]
    """Source of the reading in the actual world."""


class Study(Candidate):
    """A study of a subtopic: protocol (its text), hint ladder and result."""

    hints: Hints
    result: StudyResult

    @cached_property
    def outcomes(self) -> tuple[tuple[str, ...], ...]:
        """Wordings of every result that the study can have, each with the same number of them.

        They are ordered by the poles of the axes that the study reads, the last axis running fastest. A control has one
        outcome.
        """
        return tuple(self.result.texts[key] for key in sorted(self.result.texts))

    @property
    def shown_texts(self) -> tuple[str, ...]:
        """All outcomes in the first wording, then in the second, and so on."""
        return tuple(text for wording in zip(*self.outcomes, strict=True) for text in wording)


class Prerequisite(FrozenModel):
    """A subtopic that has to be visited before another one."""

    id: Identifier
    because: Text
    """Reason why the later question needs the earlier one."""


class Subtopic(Candidate):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Name
    prerequisites: tuple[Prerequisite, ...] = ()
    hints: Hints
    studies: tuple[Study, ...] = Field(min_length=1)

    @property
    def requires(self) -> tuple[str, ...]:
        """Ids of the subtopics that have to be visited before."""
        return tuple(each.id for each in self.prerequisites)


class ConclusionItem(FrozenModel):
    """A conclusion of the paper: one statement for each combination of the poles of its axes."""

    id: Identifier
    axes: tuple[Identifier, ...] = Field(min_length=1, max_length=2)
    texts: dict[str, Text]
    """Statements by the poles of the axes, such as ``01``."""
    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids. A true result of any study in a group meets the group (Eq. 8)."""

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Statements by the poles of the axes of the item, the last axis running fastest."""
        return tuple(self.texts[key] for key in sorted(self.texts))


class TreeDocument(FrozenModel):
    """The fields of a research tree, which may still contradict one another."""

    format: Literal["inquitree/2"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    reviewed: bool | None = Field(default=None, exclude_if=partial(is_, None))
    """False for a tree that a model wrote, until a person has decided on every finding. Left out of trees by hand."""
    paper: Paper
    topic: Text
    """Open question given to the agent. It implies no answer."""
    axes: tuple[Axis, ...] = Field(min_length=1, max_length=MAX_AXES)
    """The facts in which worlds differ. Every combination of their poles is a world."""
    constants: tuple[Text, ...] = ()
    """Findings that hold in every world, since questions or results name them."""
    subtopics: tuple[Subtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[ConclusionItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    """Material of the projection task. No inquiry shows it, so it is outside the digest."""
    provenance: Provenance

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """All studies, subtopic by subtopic. Study indices follow this order."""
        return tuple(study for subtopic in self.subtopics for study in subtopic.studies)

    @cached_property
    def families(self) -> tuple[tuple[Subtopic, ...] | tuple[Study, ...], ...]:
        """Groups of siblings, among which an action is matched: all subtopics, then the studies of each subtopic."""
        return self.subtopics, *(subtopic.studies for subtopic in self.subtopics)

    @cached_property
    def graph(self) -> dict[str, tuple[str, ...]]:
        """Ids of the prerequisites of each subtopic by its id."""
        return {subtopic.id: subtopic.requires for subtopic in self.subtopics}

    @cached_property
    def node_paths(self) -> dict[str, str]:
        """Place in the document of each node by its id, such as ``subtopics[2].studies[0]``."""
        found = {"topic": "topic"}
        for i, subtopic in enumerate(self.subtopics):
            found[subtopic.id] = f"subtopics[{i}]"
            found |= {study.id: f"subtopics[{i}].studies[{k}]" for k, study in enumerate(subtopic.studies)}
        return found | {item.id: f"conclusions[{i}]" for i, item in enumerate(self.conclusions)}

    @cached_property
    def axis_index(self) -> dict[str, int]:
        """Index of each axis by its id."""
        return {axis.id: index for index, axis in enumerate(self.axes)}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place in the document of each axis and node by its id."""
        return {axis: f"axes[{index}]" for axis, index in self.axis_index.items()} | self.node_paths

    def keys(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Return every combination of the poles of some axes, such as ``00``, ``01``, ``10``, ``11``."""
        poles = [range(len(self.axes[self.axis_index[axis]].poles)) for axis in axes]
        return tuple("".join(map(str, each)) for each in product(*poles))
