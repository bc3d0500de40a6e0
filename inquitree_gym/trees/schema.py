"""The format of research trees: frozen, strictly validated documents.

Every `Tree` is playable: ids are unique, prerequisites and evidence refer to existing nodes, and the graph is acyclic.
The linter checks quality: rising hint ladders, distinguishable siblings, fair fakes.
"""

from __future__ import annotations

from functools import cached_property
from operator import not_
from typing import Annotated, Any, Literal, Self

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

from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import CLEAN, Canary, FrozenModel, Identifier, Node, Text, document_digest
from inquitree_gym.trees.provenance import Paper, Provenance
from inquitree_gym.trees.rules import playability_faults

HINT_LEVELS = 4
"""H: hints per ladder, level 1 vague to level 4 explicit."""
MAX_PARAPHRASES = 12
"""Largest number of paraphrases of a subtopic or study, and of rewordings of a result."""
MAX_SUBTOPICS = 1_000

_TEXT: TypeAdapter[str] = TypeAdapter(Text)
Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class Candidate(Node):
    """A subtopic or study: actions are matched with its text and its paraphrases together."""

    paraphrases: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The same question or protocol in other words; left out of documents without any."""


class Fake(FrozenModel):
    """A false result. A document may give its text alone, which is also how a fake with nothing else is written."""

    text: Text
    told_by: tuple[Identifier, ...] = Field(default=(), strict=False)  # behind `_from_text` a JSON list is a list
    """Other studies of the tree whose true results show that the fake is false."""
    principle: Text | None = None
    """Rule that the fake breaks by itself: conservation, arithmetic, a bound or a definition."""

    @property
    def can_be_told(self) -> bool:
        """True if reasoning can tell the fake; otherwise it can only be guessed."""
        return bool(self.told_by or self.principle)

    @model_validator(mode="wrap")
    @classmethod
    def _from_text(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return handler(value if isinstance(value, dict | cls) else {"text": _TEXT.validate_python(value)})

    @model_serializer(mode="wrap")
    def _as_text(self, handler: SerializerFunctionWrapHandler) -> str | dict[str, Any]:
        if not self.can_be_told:
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
    """The true result in other words, for replications; left out of documents without any."""
    fakes: tuple[Fake, ...] = Field(min_length=2)
    """False results of the same length and number density."""
    control: bool = False
    """True if the result deliberately supports no conclusion item."""

    @property
    def results(self) -> tuple[str, ...]:
        """The texts of the true result and of the fakes, in this order."""
        return self.result, *(fake.text for fake in self.fakes)

    @property
    def wordings(self) -> tuple[str, ...]:
        """The true result as it stands and in other words."""
        return self.result, *self.rewordings


class Subtopic(Candidate):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Annotated[str, Field(min_length=1, max_length=60), CLEAN]
    prerequisites: tuple[Identifier, ...] = ()
    hints: Hints
    studies: tuple[Study, ...] = Field(min_length=1)


class ConclusionItem(Node):
    """A conclusion of the paper, with the evidence it rests on."""

    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids; a true result of any study in a group meets the group (Eq. 8)."""
    false_variants: tuple[Text, ...] = Field(min_length=1)


class Tree(FrozenModel):
    """A research tree: a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    paper: Paper
    topic: Text
    """Open question given to the agent; it implies no answer."""
    subtopics: tuple[Subtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[ConclusionItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    """Material of the projection task; no inquiry shows it, so it is outside the digest."""
    provenance: Provenance

    @model_validator(mode="after")
    def _is_playable(self) -> Tree:
        if faults := list(playability_faults(self)):
            context = {"faults": "\n".join(map(str, faults)), "list": faults}
            raise PydanticCustomError("not_playable", "{faults}", context)
        return self

    def __hash__(self) -> int:
        """Return the hash of the digest, so that caches keyed by a tree are fast."""
        return hash(self.digest)

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """All studies, subtopic by subtopic; study indices follow this order."""
        return tuple(study for subtopic in self.subtopics for study in subtopic.studies)

    @cached_property
    def families(self) -> tuple[tuple[Subtopic, ...] | tuple[Study, ...], ...]:
        """Groups of siblings, among which an action is matched: all subtopics, then the studies of each subtopic."""
        return self.subtopics, *(subtopic.studies for subtopic in self.subtopics)

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place in the document of each node by its id, such as ``subtopics[2].studies[0]``."""
        found = {"topic": "topic"}
        for i, subtopic in enumerate(self.subtopics):
            found[subtopic.id] = f"subtopics[{i}]"
            found |= {study.id: f"subtopics[{i}].studies[{k}]" for k, study in enumerate(subtopic.studies)}
        return found | {item.id: f"conclusions[{i}]" for i, item in enumerate(self.conclusions)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical document without its disclosure, in hex; identifies the tree in logs and caches."""
        return document_digest(self, exclude={"disclosure"})

    def texts(self) -> dict[str, str]:
        """Return all texts that can be matched or judged, by path, such as ``s1/s1a/result``."""
        found = {"topic": self.topic}
        for subtopic in self.subtopics:
            found |= _ladder(subtopic.id, subtopic)
            for study in subtopic.studies:
                path = f"{subtopic.id}/{study.id}"
                found |= _ladder(path, study)
                found[f"{path}/result"] = study.result
                found |= {f"{path}/rewording{i}": text for i, text in enumerate(study.rewordings, 1)}
                found |= {f"{path}/fake{i}": fake.text for i, fake in enumerate(study.fakes, 1)}
        for item in self.conclusions:
            found[item.id] = item.text
            found |= {f"{item.id}/false{i}": text for i, text in enumerate(item.false_variants, 1)}
        return found


def _ladder(path: str, node: Subtopic | Study) -> dict[str, str]:
    found = {path: node.text} | {f"{path}/paraphrase{i}": text for i, text in enumerate(node.paraphrases, 1)}
    return found | {f"{path}/hint{level}": hint for level, hint in enumerate(node.hints, 1)}
