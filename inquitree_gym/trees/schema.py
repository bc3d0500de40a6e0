"""What a research tree is: a frozen, strictly validated document (DESIGN section 4).

A `Tree` that exists is playable: ids are unique, prerequisites and evidence name nodes that exist, the graph has no
cycle. Softer virtues (rising hint ladders, distinguishable siblings, fair fakes) are the linter's business.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

HINT_LEVELS = 4
"""H: hints per ladder, level 1 vague to level 4 explicit."""
CANARY = "inquitree-gym benchmark data; keep out of training corpora; canary 5b0e0f8c-6a6e-4d0c-9d39-0f5c2b8a7e41"
"""Stands in every tree and every log, so that leaked data can be found."""
MAX_TEXT = 4_000
"""Longest text of one node, in characters."""
MAX_SUBTOPICS = 1_000
MAX_CYCLES = 20
"""Cycles reported at once; each costs a walk over the graph."""

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # control codes, no characters
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators, and marks that turn the reading order round
    r"\ufeff\U000e0000-\U000e007f]"  # text that a model reads and a person does not see
)


def _clean(text: str) -> str:
    if text != text.strip():
        raise PydanticCustomError("untidy_text", "text starts or ends with white space; strip it")
    if found := _CONTROL.search(text):
        code = f"U+{ord(found.group()):04X}"
        raise PydanticCustomError(
            "control_character", "text holds the control character {code}; remove it", {"code": code}
        )
    return text


Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_clean)]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields replaced, validated like any other; ``deep`` changes nothing.

        Raises:
            ValidationError: the new values do not fit.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(fields | dict(update or {}))


class Node(_Part):
    """A node that actions or conclusions are compared with."""

    id: Identifier
    text: Text


class PublicationDate(_Part):
    """When the paper appeared, and how precisely that is known."""

    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    """ISO date; the first day of the period where the precision is month or year."""
    precision: Literal["day", "month", "year"]

    @model_validator(mode="after")
    def _is_a_date(self) -> PublicationDate:
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError as error:
            raise PydanticCustomError("no_date", "'{date}' is no calendar date", {"date": self.date}) from error
        return self

    @property
    def written(self) -> str:
        """The date as precisely as it is known: ``2024-10-03``, ``2024-10`` or ``2024``."""
        return self.date[: {"day": 10, "month": 7, "year": 4}[self.precision]]


class Paper(_Part):
    """The paper behind the tree."""

    title: Text
    authors: tuple[Text, ...] = Field(min_length=1)
    journal: Text
    year: int = Field(ge=1600, le=2200)
    published: PublicationDate
    doi: Annotated[str, Field(pattern=r"^$|^10\.\d{4,9}/\S+$", max_length=300), AfterValidator(_clean)]
    """Digital object identifier without resolver; empty where there is none."""
    licence: Text


class Source(_Part):
    """A public address that facts came from."""

    id: Annotated[str, Field(pattern=r"^S\d{1,2}$")]
    address: Text
    what: Text


Strength = Literal["full_text", "released_material", "recomputed", "abstract", "secondary", "unconfirmed"]
"""How directly a statement is supported, strongest first."""


class Support(_Part):
    """Where the statement of one node comes from."""

    node: Text
    sources: tuple[Annotated[str, Field(pattern=r"^S\d{1,2}$")], ...]
    facts: tuple[Annotated[str, Field(pattern=r"^[FMB]\d{1,2}$")], ...] = ()
    """Facts of the paper's fact sheet: F findings, M methods, B background."""
    strength: Strength
    note: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_clean)] = ""


class Provenance(_Part):
    """The addresses behind the facts, and the support of each node that states one."""

    sources: tuple[Source, ...] = ()
    support: tuple[Support, ...] = ()


Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class Study(Node):
    """One way to investigate a subtopic, what it showed, and what it did not show. Its text is the protocol."""

    hints: Hints
    result: Text
    """What was observed, not what it means."""
    fakes: tuple[Text, ...] = Field(min_length=2)
    """False results of the same length and number density."""
    control: bool = False
    """True where the result serves no conclusion item on purpose."""


class Subtopic(Node):
    """A question that can be asked once its prerequisites have been visited."""

    name: Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_clean)]
    prerequisites: tuple[Identifier, ...] = ()
    hints: Hints
    studies: tuple[Study, ...] = Field(min_length=1)


class ConclusionItem(Node):
    """One thing the paper concludes, with the evidence it rests on."""

    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids: a group is met by a true result of any one of its studies (Eq. 8)."""
    false_variants: tuple[Text, ...] = Field(min_length=1)


class Claim(_Part):
    """An outcome as subject, relation, object."""

    subject: Text
    relation: Text
    object: Text


class Disclosure(_Part):
    """Optional block for progressive disclosure."""

    research_question: Text
    null_hypothesis: Text
    procedure: Text
    claims: tuple[Claim, ...] = Field(min_length=1)


class Fault(NamedTuple):
    """One thing wrong with a tree."""

    node: str
    message: str

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"


class Tree(_Part):
    """A research tree: a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_clean)]
    paper: Paper
    topic: Text
    """The open question given to the agent; implies no answer."""
    subtopics: tuple[Subtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """In reading order, which breaks ties for hint targets."""
    conclusions: tuple[ConclusionItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    provenance: Provenance

    @model_validator(mode="after")
    def _is_playable(self) -> Tree:
        if faults := list(_graph_faults(self)):
            raise PydanticCustomError(
                "not_playable", "{faults}", {"faults": "\n".join(map(str, faults)), "list": faults}
            )
        return self

    def __hash__(self) -> int:
        """Hash by digest, so that caches keyed by a tree are fast."""
        return hash(self.digest)

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """Every study, subtopic by subtopic: the order of study indices everywhere."""
        return tuple(study for subtopic in self.subtopics for study in subtopic.studies)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical document, in hex: names this very tree in logs and caches."""
        document = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(document.encode()).hexdigest()

    def texts(self) -> dict[str, str]:
        """Return every text that can be matched or judged, by a path such as ``s1/s1a/result``."""
        found = {"topic": self.topic}
        for subtopic in self.subtopics:
            found |= _ladder(subtopic.id, subtopic.text, subtopic.hints)
            for study in subtopic.studies:
                path = f"{subtopic.id}/{study.id}"
                found |= _ladder(path, study.text, study.hints)
                found[f"{path}/result"] = study.result
                found |= {f"{path}/fake{i}": fake for i, fake in enumerate(study.fakes, 1)}
        for item in self.conclusions:
            found[item.id] = item.text
            found |= {f"{item.id}/false{i}": text for i, text in enumerate(item.false_variants, 1)}
        return found


def _ladder(path: str, text: str, hints: tuple[str, ...]) -> dict[str, str]:
    return {path: text} | {f"{path}/hint{level}": hint for level, hint in enumerate(hints, 1)}


def _graph_faults(tree: Tree) -> Iterator[Fault]:
    yield from _duplicates(tree)
    yield from _dangling(tree)
    yield from _cycles(tree)


def _duplicates(tree: Tree) -> Iterator[Fault]:
    seen = {"topic"}
    for node in (*tree.subtopics, *tree.studies, *tree.conclusions):
        if node.id in seen:
            yield Fault(node.id, "this id stands more than once; ids are unique in a tree")
        seen.add(node.id)
    first: dict[str, str] = {}
    for node in (*tree.subtopics, *tree.studies):
        if (twin := first.setdefault(node.text, node.id)) != node.id:
            yield Fault(node.id, f"has the same text as {twin}; no action could tell them apart")


def _dangling(tree: Tree) -> Iterator[Fault]:
    subtopics = {subtopic.id for subtopic in tree.subtopics}
    studies = {study.id for study in tree.studies}
    for subtopic in tree.subtopics:
        for name in subtopic.prerequisites:
            if name not in subtopics:
                yield Fault(subtopic.id, f"prerequisite '{name}' is no subtopic of this tree")
        if len(set(subtopic.prerequisites)) < len(subtopic.prerequisites):
            yield Fault(subtopic.id, "a prerequisite stands twice")
    for item in tree.conclusions:
        for name in (name for group in item.needs for name in group):
            if name not in studies:
                yield Fault(item.id, f"needs '{name}', which is no study of this tree")
    yield from _dangling_support(tree)


def _dangling_support(tree: Tree) -> Iterator[Fault]:
    nodes = {"topic", *(node.id for node in (*tree.subtopics, *tree.studies, *tree.conclusions))}
    sources: set[str] = set()
    for source in tree.provenance.sources:
        if source.id in sources:
            yield Fault("provenance", f"source {source.id} stands more than once; ids are unique in a tree")
        sources.add(source.id)
    for support in tree.provenance.support:
        if support.node not in nodes:
            yield Fault("provenance", f"supports '{support.node}', which is no node of this tree")
        for name in support.sources:
            if name not in sources:
                yield Fault("provenance", f"{support.node} cites {name}, which is not among the sources")


def _cycles(tree: Tree) -> Iterator[Fault]:
    known = {subtopic.id for subtopic in tree.subtopics}
    graph = {subtopic.id: [name for name in subtopic.prerequisites if name in known] for subtopic in tree.subtopics}
    for _ in range(MAX_CYCLES):
        if not (cycle := _cycle(graph)):
            return
        yield Fault(cycle[0], f"prerequisites form a cycle: {' → '.join(cycle)}; none of them could ever be entered")
        for name in cycle:
            graph.pop(name, None)


def _cycle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle, its first node again at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
