"""Vocabulary and sentence templates, read once from the TOML files in ``data/``."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Quantity(NamedTuple):
    """A quantity that can be measured on a thing."""

    phrase: str
    """Long form, such as ``night-time glow``."""
    noun: str
    """Short form, such as ``glow``."""
    unit: str
    low: int
    """Lowest resting value."""
    high: int
    """Highest resting value."""


class Thing(NamedTuple):
    """A carrier of quantities."""

    form: str
    """Name with a placeholder: ``{}`` for an invented name, ``{N}`` for the same name with a capital letter."""
    units: str
    """Unit of a sample, in the plural."""


class Factor(NamedTuple):
    """An external factor that may act on a quantity."""

    form: str
    short: str
    unit: str
    top: int
    """Highest dose."""


class _Template(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Science(_Template):
    """The vocabulary of one invented science; every quantity fits every thing."""

    scene: str
    subject: str
    quantities: tuple[Quantity, ...]
    things: tuple[Thing, ...]
    factors: tuple[Factor, ...]
    tools: tuple[str, ...]


class QuestionTemplate(_Template):
    """A wording of a question."""

    text: str
    third_hint: str


class StudyTemplate(_Template):
    """A method of investigation: protocol, hints 1 to 3, and result in two wordings."""

    text: str
    hints: tuple[str, str, str]
    result: str
    reworded: str


class KindTemplates(_Template):
    """All sentences for one kind of question."""

    second_hint: str
    questions: tuple[QuestionTemplate, ...]
    studies: tuple[StudyTemplate, ...]
    phrases: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Wording of a result, by effect."""
    conclusions: dict[str, str]
    """Conclusion, by effect."""


Pair = tuple[str, str]
"""Wordings of a rise and of a fall."""


class FactTemplate(_Template):
    """A wording of a known link between two variables."""

    text: str
    verb: Pair


class WorldTemplates(_Template):
    """All sentences of a synthetic world."""

    topic: str
    question: str
    hypothesis: str
    change: Pair
    null: str
    trial: str
    measurement: str
    open: str
    """Step that names a link without its direction."""
    outcome: str
    independent: str
    relation: Pair
    unchanged: str
    """Relation of a contrary without an effect."""
    facts: tuple[FactTemplate, ...]


class _Vocabulary(_Template):
    syllables: tuple[str, ...]
    sciences: dict[str, Science]


class _Sentences(_Template):
    topic: str
    first_hints: tuple[str, ...]
    kinds: dict[str, KindTemplates]


def _data(name: str) -> dict[str, Any]:
    file = resources.files("inquitree_gym").joinpath("trees", "generator", "data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


_vocabulary = _Vocabulary.model_validate(_data("vocabulary"))
_sentences = _Sentences.model_validate(_data("sentences"))

SYLLABLES = tuple(tuple(choices.split()) for choices in _vocabulary.syllables)
"""Choices for each part of an invented name."""
SCIENCES = _vocabulary.sciences
TOPIC = _sentences.topic
FIRST_HINTS = _sentences.first_hints
KINDS = _sentences.kinds
"""Templates by kind of question."""
WORLD = WorldTemplates.model_validate(_data("worlds"))
"""Templates of synthetic worlds."""
