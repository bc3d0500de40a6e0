"""Texts of generated documents: templates of sentences, and the parts that all documents share."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field

from inquitree_gym.errors import OptionError


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
    """The vocabulary of one invented science. Every quantity fits every thing."""

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
    file = resources.files("inquitree_gym").joinpath("fiction", "data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


_vocabulary = _Vocabulary.model_validate(_data("vocabulary"))
_sentences = _Sentences.model_validate(_data("sentences"))

SYLLABLES = tuple(tuple(choices.split()) for choices in _vocabulary.syllables)
"""Choices for each part of an invented name."""
SCIENCES = _vocabulary.sciences
TOPIC = _sentences.topic
FIRST_HINTS = _sentences.first_hints
KINDS = _sentences.kinds
WORLD = WorldTemplates.model_validate(_data("worlds"))


MAX_SEED = 2**63 - 1
Split = Literal["train", "test"]
Document = dict[str, Any]
Count = int | tuple[int, int]
"""A number, or an inclusive range that it is drawn from."""

FICTION: Document = {
    "authors": ("the generator of inquitree-gym",),
    "journal": "none: generated fiction, true of no world but its own",
    "year": 2026,
    "published": {"date": "2026-01-01", "precision": "year"},
    "doi": "",
    "licence": "Apache-2.0, as the generator",
}
"""Paper of everything that is generated, without its title."""


def check_seed(seed: object) -> None:
    """Raise `OptionError` unless the seed of a synthetic document is a whole number from 0 to 2^63 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise OptionError(f"the seed of a synthetic document is a whole number from 0 to 2^63 - 1, not {seed!r:.80}")


def tree_seed(number: int, split: str) -> int:
    """Return the seed of the n-th tree of a split: 2n for ``"train"``, 2n + 1 for ``"test"``.

    Args:
        number: a non-negative whole number, taken modulo 2^62.
        split: ``"train"`` or ``"test"``. The two share no seed.

    Raises:
        OptionError: the split is unknown.
    """
    if split not in get_args(Split):
        raise OptionError(f"split is one of {get_args(Split)}, not {split!r:.80}")
    return 2 * (number % 2**62) + (split == "test")


def count_range(count: Count) -> tuple[int, int]:
    """Return the smallest and the largest value of a count."""
    return (count, count) if isinstance(count, int) else count


def is_integer(value: object) -> bool:
    """Tell whether a value is a whole number and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def checked_count(name: str, value: object, most: int) -> Count:
    """Return a count or a pair of counts, 1 to ``most``, a list as a tuple. Raise `OptionError` for anything else."""
    pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(pair) != 2 or not all(map(is_integer, pair)) or not 1 <= pair[0] <= pair[1] <= most:
        raise OptionError(f"{name} is a whole number from 1 to {most:,}, or a pair (fewest, most), not {value!r:.80}")
    return pair if isinstance(value, list | tuple) else pair[0]


def checked_number(name: str, value: object, low: float, high: float) -> float:
    """Return a number from ``low`` to ``high``. Raise `OptionError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise OptionError(f"{name} is a number from {low} to {high}, not {value!r:.80}")
    return float(value)


def listed(parts: list[str]) -> str:
    """Return the parts as one phrase, the last joined by "and"."""
    *rest, last = parts
    return f"{', '.join(rest)} and {last}" if rest else last
