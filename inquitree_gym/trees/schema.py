"""Research trees as all parts of the package know them, and what makes one playable.

Every `Tree` is playable: ids are unique, prerequisites and evidence refer to existing nodes, and the graph is acyclic.
The linter checks quality: rising hint ladders, distinguishable siblings. The formats are in `earlier_schema` and
`world_schema`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from operator import not_
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic_core import PydanticCustomError

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import (
    CLEAN,
    FrozenModel,
    Identifier,
    Node,
    Paper,
    Provenance,
    Text,
    document_digest,
)
from inquitree_gym.trees.rules import fault

HINT_LEVELS = 4
"""H: hints per ladder, level 1 vague to level 4 explicit."""
MAX_PARAPHRASES = 12
"""Largest number of paraphrases of a subtopic or study, and of rewordings of a result."""
MAX_SUBTOPICS = 1_000
MAX_AXES = 12
"""Largest number of axes. Three poles on each make 531,441 worlds."""
MAX_CYCLES = 20
"""Largest number of cycles reported at once. Each takes a walk over the graph."""

Name = Annotated[str, Field(min_length=1, max_length=60), CLEAN]
Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class Candidate(Node):
    """A subtopic or study: actions are matched with its text and its paraphrases together."""

    paraphrases: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The same question or protocol in other words. Left out of documents without any."""


class Study(Candidate, ABC):
    """A study of a subtopic: protocol (its text), hint ladder, and the results that it can have."""

    hints: Hints

    @property
    @abstractmethod
    def outcomes(self) -> tuple[tuple[str, ...], ...]:
        """Wordings of every result that the study can have, each with the same number of them.

        They are ordered by the poles of the axes that the study reads, the last axis running fastest. In a tree without
        axes the true result comes first, then the fakes. A control has one outcome.
        """

    @property
    def shown_texts(self) -> tuple[str, ...]:
        """All outcomes in the first wording, then in the second, and so on."""
        return tuple(text for wording in zip(*self.outcomes, strict=True) for text in wording)


class Subtopic(Candidate, ABC):
    """A question that is unlocked once the subtopics that it requires have been visited."""

    if TYPE_CHECKING:  # each format orders its fields
        name: str
        hints: tuple[str, ...]
        studies: tuple[Study, ...]

    @property
    @abstractmethod
    def requires(self) -> tuple[str, ...]:
        """Ids of the subtopics that have to be visited before."""


class ConclusionItem(FrozenModel, ABC):
    """A conclusion of the paper: statements of which one holds, and the studies it rests on."""

    if TYPE_CHECKING:
        id: str
        needs: tuple[tuple[str, ...], ...]

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """Statements by the poles of the axes of the item, the last axis running fastest.

        In a tree without axes the true statement comes first.
        """


class Axis(FrozenModel):
    """A fact about the world that could have come out in several ways, its poles. Agents never see it."""

    id: Identifier
    question: Text
    poles: tuple[Text, ...] = Field(min_length=2, max_length=3)
    actual: int | None
    """Index of the pole that the paper reports. None on every axis of a tree that was made up."""
    settled_by: Literal["data", "simulation", "paper"]
    """Means by which a reader could settle the question without the inquiry."""


class Tree(FrozenModel, ABC):
    """A research tree of either format, as all parts but linter and loader know it."""

    if TYPE_CHECKING:
        id: str
        version: int
        canary: str
        paper: Paper
        topic: str
        subtopics: tuple[Subtopic, ...]
        conclusions: tuple[ConclusionItem, ...]
        disclosure: Disclosure | None
        provenance: Provenance

        @property
        def axes(self) -> tuple[Axis, ...]:
            """Facts in which worlds differ. None in a tree that has one world."""

    def __hash__(self) -> int:
        """Return the hash of the digest, so that caches keyed by a tree are fast."""
        return hash(self.digest)

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """All studies, subtopic by subtopic. Study indices follow this order."""
        return tuple(study for subtopic in self.subtopics for study in subtopic.studies)

    @cached_property
    def families(self) -> tuple[tuple[Subtopic, ...] | tuple[Study, ...], ...]:
        """Groups of siblings, among which an action is matched: all subtopics, then the studies of each subtopic."""
        return self.subtopics, *(subtopic.studies for subtopic in self.subtopics)

    @property
    def structure(self) -> Structure:
        """The graph, the evidence and the sources."""
        requires = tuple(subtopic.requires for subtopic in self.subtopics)
        needs = tuple((item.id, item.needs) for item in self.conclusions)
        return Structure(self.families, requires, needs, self.disclosure, self.provenance)

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place in the document of each node by its id, such as ``subtopics[2].studies[0]``."""
        return self.structure.paths

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

    @cached_property
    @abstractmethod
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the axes that each study reads, in the order of its outcomes. None of them in a control."""

    @cached_property
    @abstractmethod
    def asks(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the axes of each conclusion item, in the order of its options."""

    @abstractmethod
    def can_be_told(self, study: int, fake: int) -> bool:
        """Return True if reasoning can tell the i-th fake of a study. Otherwise it can only be guessed."""

    @abstractmethod
    def texts(self) -> dict[str, str]:
        """Return all texts that can be matched or judged, by path, such as ``s1/s1a/hint1``."""


def ladder_texts(path: str, node: Candidate, hints: Sequence[str]) -> dict[str, str]:
    """Return the texts of a subtopic or study that are the same in every world, by path."""
    found = {path: node.text} | {f"{path}/paraphrase{i}": text for i, text in enumerate(node.paraphrases, 1)}
    return found | {f"{path}/hint{level}": hint for level, hint in enumerate(hints, 1)}


def refuse_unplayable(faults: list[Fault]) -> None:
    """Raise the error of a validator that `validation_faults` takes apart, if there is a fault."""
    if faults:
        context = {"faults": "\n".join(map(str, faults)), "list": faults}
        raise PydanticCustomError("not_playable", "{faults}", context)


class Structure(NamedTuple):
    """The parts that trees of both formats have, in one form."""

    families: tuple[tuple[Candidate, ...], ...]
    """Subtopics, then the studies of each."""
    prerequisites: tuple[tuple[str, ...], ...]
    """Ids of the prerequisites of each subtopic."""
    needs: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    """Id of each conclusion item, with the groups of studies that it needs."""
    disclosure: Disclosure | None
    provenance: Provenance

    @property
    def graph(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each subtopic with its prerequisites, by their ids."""
        return ((subtopic.id, needed) for subtopic, needed in zip(self.families[0], self.prerequisites, strict=True))

    @property
    def paths(self) -> dict[str, str]:
        """Place of each node in the document by its id."""
        subtopics, *families = self.families
        found = {"topic": "topic"}
        for i, (subtopic, studies) in enumerate(zip(subtopics, families, strict=True)):
            found[subtopic.id] = f"subtopics[{i}]"
            found |= {study.id: f"subtopics[{i}].studies[{k}]" for k, study in enumerate(studies)}
        return found | {item: f"conclusions[{i}]" for i, (item, _) in enumerate(self.needs)}


def playability_faults(tree: Structure) -> Iterator[Fault]:
    """Yield the faults that make a tree unplayable: repeated ids and texts, unknown references, cycles."""
    paths = tree.paths
    yield from _duplicates(tree, paths)
    yield from _repeated_paraphrases(tree, paths)
    yield from _dangling(tree, paths)
    yield from _dangling_support(tree, paths)
    yield from _cycles(tree, paths)


def _duplicates(tree: Structure, paths: dict[str, str]) -> Iterator[Fault]:
    seen = {"topic"}
    nodes = [node for family in tree.families for node in family]
    for name in (*(node.id for node in nodes), *(item for item, _ in tree.needs)):
        if name in seen:
            yield fault("T111", name, f"{paths[name]}.id", "this id is used more than once; ids are unique in a tree")
        seen.add(name)
    first: dict[str, str] = {}
    for node in nodes:
        if (twin := first.setdefault(node.text, node.id)) != node.id:
            message = f"has the same text as {twin}; no action could tell them apart"
            yield fault("T112", node.id, f"{paths[node.id]}.text", message)


def _repeated_paraphrases(tree: Structure, paths: dict[str, str]) -> Iterator[Fault]:
    for family in tree.families:
        first = {node.text.casefold(): f"the text of {node.id}" for node in family}
        for node in family:
            for i, paraphrase in enumerate(node.paraphrases):
                place = f"paraphrase {i + 1} of {node.id}"
                if (twin := first.setdefault(paraphrase.casefold(), place)) != place:
                    path = f"{paths[node.id]}.paraphrases[{i}]"
                    yield fault("T113", node.id, path, f"paraphrase {i + 1} repeats {twin}; reword or remove it")


def _dangling(tree: Structure, paths: dict[str, str]) -> Iterator[Fault]:
    subtopics = {subtopic for subtopic, _ in tree.graph}
    studies = {study.id for family in tree.families[1:] for study in family}
    for subtopic, prerequisites in tree.graph:
        path = f"{paths[subtopic]}.prerequisites"
        for i, name in enumerate(prerequisites):
            if name not in subtopics:
                message = f"prerequisite '{name}' is not a subtopic of this tree"
                yield fault("T114", subtopic, f"{path}[{i}]", message)
        if len(set(prerequisites)) < len(prerequisites):
            yield fault("T114", subtopic, path, "a prerequisite is listed twice")
    for node, path, name in _named_evidence(tree, paths):
        if name not in studies:
            yield fault("T116", node, path, f"needs '{name}', which is not a study of this tree")


def _named_evidence(tree: Structure, paths: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the node, place and name of each study that a conclusion item or a disclosed claim rests on."""
    for item, groups in tree.needs:
        for i, group in enumerate(groups):
            for k, name in enumerate(group):
                yield item, f"{paths[item]}.needs[{i}][{k}]", name
    for i, claim in enumerate(tree.disclosure.claims if tree.disclosure else ()):
        for k, name in enumerate(claim.evidence):
            yield claim.id, f"disclosure.claims[{i}].evidence[{k}]", name


def _dangling_support(tree: Structure, paths: dict[str, str]) -> Iterator[Fault]:
    sources: set[str] = set()
    for i, source in enumerate(tree.provenance.sources):
        if source.id in sources:
            message = f"source {source.id} is used more than once; ids are unique in a tree"
            yield fault("T117", "provenance", f"provenance.sources[{i}].id", message)
        sources.add(source.id)
    for i, support in enumerate(tree.provenance.support):
        path = f"provenance.support[{i}]"
        if support.node not in paths:
            message = f"supports '{support.node}', which is not a node of this tree"
            yield fault("T117", "provenance", f"{path}.node", message)
        for k, name in enumerate(support.sources):
            if name not in sources:
                message = f"{support.node} cites {name}, which is not among the sources"
                yield fault("T117", "provenance", f"{path}.sources[{k}]", message)


def _cycles(tree: Structure, paths: dict[str, str]) -> Iterator[Fault]:
    known = {subtopic for subtopic, _ in tree.graph}
    graph = {subtopic: [name for name in needs if name in known] for subtopic, needs in tree.graph}
    for _ in range(MAX_CYCLES):
        try:
            TopologicalSorter(graph).prepare()
            return
        except CycleError as error:
            cycle = error.args[1][::-1]
        message = f"prerequisites form a cycle: {' → '.join(cycle)}; none of them could ever be entered"
        yield fault("T115", cycle[0], f"{paths[cycle[0]]}.prerequisites", message)
        for name in cycle:
            graph.pop(name, None)


Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Function from n texts to an array of shape (n, dim) with rows of unit length."""


def wordings(node: Candidate) -> tuple[str, ...]:
    """Return the canonical text of a node, then its paraphrases."""
    return node.text, *node.paraphrases


def centroids(nodes: Sequence[Candidate], embed: Embed) -> NDArray[np.float32]:
    """Return the unit-length mean vector of the wordings of each node, shape ``(len(nodes), dim)``.

    A node without paraphrases keeps the vector of its text to the last bit.
    """
    rows = embed([text for node in nodes for text in wordings(node)])
    ends = np.cumsum([len(wordings(node)) for node in nodes])
    return np.stack([_centroid(each) for each in np.split(rows, ends[:-1])])


def _centroid(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = rows.mean(axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)  # opposite vectors cancel
    return rows[0] if len(rows) == 1 else np.asarray(mean / length, np.float32)
