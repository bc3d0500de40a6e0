"""The format of research trees: frozen, strictly validated documents.

Every `Tree` is playable: ids are unique, prerequisites and evidence refer to existing nodes, and the graph is acyclic.
The linter checks quality: rising hint ladders, distinguishable siblings, fair fakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from operator import not_
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import (
    CLEAN,
    Canary,
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
MAX_CYCLES = 20
"""Largest number of cycles reported at once. Each takes a walk over the graph."""

_TEXT: TypeAdapter[str] = TypeAdapter(Text)
Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class Candidate(Node):
    """A subtopic or study: actions are matched with its text and its paraphrases together."""

    paraphrases: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The same question or protocol in other words. Left out of documents without any."""


class Fake(FrozenModel):
    """A false result. A fake that has nothing but its text is written as that text."""

    text: Text
    told_by: tuple[Identifier, ...] = Field(default=(), strict=False)  # behind `_from_text` a JSON list is a list
    """Other studies of the tree whose true results show that the fake is false."""
    principle: Text | None = None
    """Rule that the fake breaks by itself: conservation, arithmetic, a bound or a definition."""
    rewordings: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, strict=False)
    """The fake in other words, as a study's ``rewordings`` are those of its true result."""

    @property
    def can_be_told(self) -> bool:
        """True if reasoning can tell the fake. Otherwise it can only be guessed."""
        return bool(self.told_by or self.principle)

    @model_validator(mode="wrap")
    @classmethod
    def _from_text(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return handler(value if isinstance(value, dict | cls) else {"text": _TEXT.validate_python(value)})

    @model_serializer(mode="wrap")
    def _as_text(self, handler: SerializerFunctionWrapHandler) -> str | dict[str, Any]:
        if not (self.can_be_told or self.rewordings):
            return self.text
        return {name: value for name, value in handler(self).items() if value}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema: a text, or an object."""
        return {"anyOf": [_TEXT.json_schema(), handler(schema)]}


class Study(Candidate):
    """A study of a subtopic: protocol (its text), hint ladder, true result and fake results."""

    hints: Hints
    result: Text
    """Observation, without its interpretation."""
    rewordings: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The true result in other words, for replications. Left out of documents without any."""
    fakes: tuple[Fake, ...] = Field(min_length=2)
    """False results of the same length and number density."""
    control: bool = False
    """True if the result deliberately supports no conclusion item."""

    @property
    def results(self) -> tuple[str, ...]:
        """The texts of the true result and of the fakes, in this order."""
        return self.result, *(fake.text for fake in self.fakes)

    @property
    def wordings(self) -> tuple[tuple[str, ...], ...]:
        """The true result and each fake, as it stands and in other words."""
        return (self.result, *self.rewordings), *((fake.text, *fake.rewordings) for fake in self.fakes)

    @property
    def shown_texts(self) -> tuple[str, ...]:
        """All results in the first wording, then in the second, and so on, as far as the poorest of them has any."""
        return tuple(text for wording in zip(*self.wordings, strict=False) for text in wording)


class Subtopic(Candidate):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Annotated[str, Field(min_length=1, max_length=60), CLEAN]
    prerequisites: tuple[Identifier, ...] = ()
    hints: Hints
    studies: tuple[Study, ...] = Field(min_length=1)


class ConclusionItem(Node):
    """A conclusion of the paper, with the evidence it rests on."""

    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids. A true result of any study in a group meets the group (Eq. 8)."""
    false_variants: tuple[Text, ...] = Field(min_length=1)


class Tree(FrozenModel):
    """A research tree: a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    paper: Paper
    topic: Text
    """Open question given to the agent. It implies no answer."""
    subtopics: tuple[Subtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[ConclusionItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    """Material of the projection task. No inquiry shows it, so it is outside the digest."""
    provenance: Provenance

    @model_validator(mode="after")
    def _is_playable(self) -> Tree:
        refuse_unplayable([*playability_faults(self.structure), *_dangling_clues(self)])
        return self

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
        """The parts that trees of both formats have."""
        prerequisites = tuple(subtopic.prerequisites for subtopic in self.subtopics)
        needs = tuple((item.id, item.needs) for item in self.conclusions)
        return Structure(self.families, prerequisites, needs, self.disclosure, self.provenance)

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

    def texts(self) -> dict[str, str]:
        """Return all texts that can be matched or judged, by path, such as ``s1/s1a/result``."""
        found = {"topic": self.topic}
        for subtopic in self.subtopics:
            found |= ladder_texts(subtopic.id, subtopic, subtopic.hints)
            for study in subtopic.studies:
                path = f"{subtopic.id}/{study.id}"
                found |= ladder_texts(path, study, study.hints)
                found[f"{path}/result"] = study.result
                found |= {f"{path}/rewording{i}": text for i, text in enumerate(study.rewordings, 1)}
                for i, fake in enumerate(study.fakes, 1):
                    found[f"{path}/fake{i}"] = fake.text
                    found |= {f"{path}/fake{i}/rewording{k}": text for k, text in enumerate(fake.rewordings, 1)}
        for item in self.conclusions:
            found[item.id] = item.text
            found |= {f"{item.id}/false{i}": text for i, text in enumerate(item.false_variants, 1)}
        return found


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


def _dangling_clues(tree: Tree) -> Iterator[Fault]:
    studies = {study.id for study in tree.studies}
    for study in tree.studies:
        for i, fake in enumerate(study.fakes):
            path = f"{tree.paths[study.id]}.fakes[{i}].told_by"
            for k, name in enumerate(fake.told_by):
                if name not in studies - {study.id}:
                    message = f"told_by of fake {i + 1} names '{name}', which is not another study of this tree"
                    yield fault("T118", study.id, f"{path}[{k}]", message)
            if len(set(fake.told_by)) < len(fake.told_by):
                yield fault("T118", study.id, path, f"told_by of fake {i + 1} names a study twice")


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
