"""The format of research trees that have one world: true results with fakes beside them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.fields import Canary, FrozenModel, Identifier, Node, Paper, Provenance, Text
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.schema import (
    MAX_PARAPHRASES,
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

_TEXT: TypeAdapter[str] = TypeAdapter(Text)


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


class EarlierStudy(Study):
    """A study of a subtopic: protocol (its text), hint ladder, true result and fake results."""

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

    @cached_property
    def outcomes(self) -> tuple[tuple[str, ...], ...]:
        """The true result and each fake, in as many wordings as the poorest of them has."""
        return tuple(zip(*zip(*self.wordings, strict=False), strict=True))


class EarlierSubtopic(Subtopic):
    """A question that is unlocked once all its prerequisites have been visited."""

    name: Name
    prerequisites: tuple[Identifier, ...] = ()
    hints: Hints
    studies: tuple[EarlierStudy, ...] = Field(min_length=1)

    @property
    def requires(self) -> tuple[str, ...]:
        """See `Subtopic.requires`."""
        return self.prerequisites


class EarlierItem(ConclusionItem, Node):
    """A conclusion of the paper, with the evidence it rests on."""

    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)
    """Groups of study ids. A true result of any study in a group meets the group (Eq. 8)."""
    false_variants: tuple[Text, ...] = Field(min_length=1)

    @property
    def options(self) -> tuple[str, ...]:
        """The conclusion, then what is false."""
        return self.text, *self.false_variants


class EarlierTree(Tree):
    """A research tree: a topic, a DAG of subtopics with studies and results, and conclusion items."""

    format: Literal["inquitree/1"]
    id: Identifier
    version: int = Field(ge=1)
    canary: Canary
    paper: Paper
    topic: Text
    """Open question given to the agent. It implies no answer."""
    subtopics: tuple[EarlierSubtopic, ...] = Field(min_length=1, max_length=MAX_SUBTOPICS)
    """Subtopics in reading order, which breaks ties between hint targets."""
    conclusions: tuple[EarlierItem, ...] = Field(min_length=1)
    disclosure: Disclosure | None = None
    """Material of the projection task. No inquiry shows it, so it is outside the digest."""
    provenance: Provenance

    @model_validator(mode="after")
    def _is_playable(self) -> EarlierTree:
        refuse_unplayable([*playability_faults(self.structure), *_dangling_clues(self)])
        return self

    axes: ClassVar[tuple[Axis, ...]] = ()
    """None: the tree has one world."""
    if TYPE_CHECKING:
        studies: tuple[EarlierStudy, ...]

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """None for every study."""
        return ((),) * len(self.studies)

    @cached_property
    def asks(self) -> tuple[tuple[int, ...], ...]:
        """None for every item."""
        return ((),) * len(self.conclusions)

    def can_be_told(self, study: int, fake: int) -> bool:
        """See `Tree.can_be_told`."""
        return self.studies[study].fakes[fake - 1].can_be_told

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


def _dangling_clues(tree: EarlierTree) -> Iterator[Fault]:
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
