"""The format of research trees: frozen, strictly validated documents.

Every `Tree` is playable: ids are unique, prerequisites and evidence refer to existing nodes, and the graph is acyclic.
The linter checks quality: rising hint ladders, distinguishable siblings, fair fakes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from inquitree_gym.trees.rules import playability_faults

HINT_LEVELS = 4
"""H: hints per ladder, level 1 vague to level 4 explicit."""
CANARY = "inquitree-gym benchmark data; keep out of training corpora; canary 5b0e0f8c-6a6e-4d0c-9d39-0f5c2b8a7e41"
"""Text in every shipped tree and every log by which leaked data can be found."""
GENERATED = "generated:"
"""Start of the address of a source that was made up together with the tree."""
MAX_TEXT = 4_000
"""Maximum length of a text, in characters."""
MAX_PARAPHRASES = 12
"""Largest number of paraphrases of a subtopic or study, and of rewordings of a result."""
MAX_SUBTOPICS = 1_000

ID_PATTERN = r"^[a-z][a-z0-9_.-]{0,63}$"
SOURCE_PATTERN = r"^S\d{1,2}$"
FACT_PATTERN = r"^[FMB]\d{1,2}$"
DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
DOI_PATTERN = r"^$|^10\.\d{4,9}/\S+$"

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"  # control codes, surrogates, non-characters
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators and bidirectional controls
    r"\ufeff\U000e0000-\U000e007f]"  # text that is invisible to people but not to models
)


def _clean(text: str) -> str:
    if text != text.strip():
        raise PydanticCustomError("untidy_text", "text starts or ends with white space; strip it")
    if found := _CONTROL.search(text):
        message = "text holds the control character {code}; remove it"
        raise PydanticCustomError("control_character", message, {"code": f"U+{ord(found.group()):04X}"})
    return text


Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_clean)]
_TEXT: TypeAdapter[str] = TypeAdapter(Text)
Identifier = Annotated[str, Field(pattern=ID_PATTERN)]
SourceId = Annotated[str, Field(pattern=SOURCE_PATTERN)]
FactId = Annotated[str, Field(pattern=FACT_PATTERN)]
Hints = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS, max_length=HINT_LEVELS)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a validated copy with some fields replaced; ``deep`` has no effect on frozen values.

        Raises:
            ValidationError: a new value is invalid.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(fields | dict(update or {}))


class Node(_Model):
    """A node whose text is matched with actions or conclusions."""

    id: Identifier
    text: Text


class Candidate(Node):
    """A subtopic or study: actions are matched with its text and its paraphrases together."""

    paraphrases: tuple[Text, ...] = Field(default=(), max_length=MAX_PARAPHRASES, exclude_if=not_)
    """The same question or protocol in other words; left out of documents without any."""


class PublicationDate(_Model):
    """Publication date of a paper, with its precision."""

    date: str = Field(pattern=DATE_PATTERN)
    """ISO date; the first day of the period if the precision is month or year."""
    precision: Literal["day", "month", "year"]

    @model_validator(mode="after")
    def _is_a_date(self) -> PublicationDate:
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError as error:
            raise PydanticCustomError("no_date", "'{date}' is not a calendar date", {"date": self.date}) from error
        return self

    @property
    def written(self) -> str:
        """The date at its precision: ``2024-10-03``, ``2024-10`` or ``2024``."""
        return self.date[: {"day": 10, "month": 7, "year": 4}[self.precision]]


class Paper(_Model):
    """The paper behind the tree."""

    title: Text
    authors: tuple[Text, ...] = Field(min_length=1)
    journal: Text
    year: int = Field(ge=1600, le=2200)
    published: PublicationDate
    doi: Annotated[str, Field(pattern=DOI_PATTERN, max_length=300), AfterValidator(_clean)]
    """Digital object identifier without resolver, or an empty string."""
    licence: Text


class Source(_Model):
    """A public address of the facts."""

    id: SourceId
    address: Text
    what: Text


Strength = Literal["full_text", "released_material", "recomputed", "abstract", "secondary", "unconfirmed"]
"""Directness of the support for a statement, strongest first."""


class Support(_Model):
    """Sources of the statement of one node."""

    node: Text
    sources: tuple[SourceId, ...]
    facts: tuple[FactId, ...] = ()
    """Ids in the paper's fact sheet: F for findings, M for methods, B for background."""
    strength: Strength
    note: Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_clean)] = ""


Tier = Literal["A", "B", "C"]
"""Evidence behind a tree: A the full text, B the abstract with data or code, C the abstract."""


class Provenance(_Model):
    """Sources of the facts, and the support for each node."""

    tier: Tier | None = Field(default=None, exclude_if=not_)
    """Evidence tier of the whole tree; left out of documents without one."""
    sources: tuple[Source, ...] = ()
    support: tuple[Support, ...] = ()


class Fake(_Model):
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

    name: Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_clean)]
    prerequisites: tuple[Identifier, ...] = ()
    hints: Hints
    studies: tuple[Study, ...] = Field(min_length=1)


class ConclusionItem(Node):
    """A conclusion of the paper, with the evidence it rests on."""

    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids; a true result of any study in a group meets the group (Eq. 8)."""
    false_variants: tuple[Text, ...] = Field(min_length=1)


class Claim(_Model):
    """An outcome as subject, relation and object."""

    subject: Text
    relation: Text
    object: Text


class Disclosure(_Model):
    """Optional block for progressive disclosure."""

    research_question: Text
    null_hypothesis: Text
    procedure: Text
    claims: tuple[Claim, ...] = Field(min_length=1)


class Tree(_Model):
    """A research tree: a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_clean)]
    paper: Paper
    topic: Text
    """Open question given to the agent; it implies no answer."""
    subtopics: tuple[Subtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[ConclusionItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
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
        """SHA-256 of the canonical document, in hex; identifies the tree in logs and caches."""
        document = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(document.encode()).hexdigest()

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
