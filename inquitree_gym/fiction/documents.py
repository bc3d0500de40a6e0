"""Texts of generated documents: templates of sentences, the parts that all share, and random variables."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import cycle
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from numpy.random import PCG64
from pydantic import BaseModel, ConfigDict, Field

from inquitree_gym.errors import OptionError

T = TypeVar("T")


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
    control: StudyTemplate
    """Study of the measurement itself."""
    elsewhere: str
    """Beginning of a study that measures the relation of another subtopic again."""
    because: str
    """Reason why a question needs an earlier one."""
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
CONTROL, ELSEWHERE, BECAUSE = _sentences.control, _sentences.elsewhere, _sentences.because
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
        raise OptionError(f"the seed of a synthetic document must be an integer from 0 to 2^63 - 1, got {seed!r:.80}")


def tree_seed(number: int, split: str) -> int:
    """Return the seed of the n-th tree of a split: 2n for ``"train"``, 2n + 1 for ``"test"``.

    Args:
        number: a non-negative whole number, taken modulo 2^62.
        split: ``"train"`` or ``"test"``. The two share no seed.

    Raises:
        OptionError: the split is unknown.
    """
    if split not in get_args(Split):
        raise OptionError(f"split must be one of {get_args(Split)}, got {split!r:.80}")
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
        raise OptionError(f"{name} must be an integer from 1 to {most:,}, or a pair (fewest, most), got {value!r:.80}")
    return pair if isinstance(value, list | tuple) else pair[0]


def checked_number(name: str, value: object, low: float, high: float) -> float:
    """Return a number from ``low`` to ``high``. Raise `OptionError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise OptionError(f"{name} must be a number from {low} to {high}, got {value!r:.80}")
    return float(value)


def listed(parts: list[str]) -> str:
    """Return the parts as one phrase, the last joined by "and"."""
    *rest, last = parts
    return f"{', '.join(rest)} and {last}" if rest else last


STREAMS = ("shape", "names", "world", "mechanisms", "wording", "numbers", "items", "axes")
"""Independent streams of one seed, so that a change of one setting leaves most other draws alone."""
_BLOCK = 256
"""Raw integers fetched at once."""


class RandomStream:
    """Random draws for one seed and one purpose.

    NumPy guarantees the integers of a bit generator forever, but those of a `Generator` only within a version. All
    draws are therefore computed here from the integers of PCG64, with operations that IEEE 754 defines to the bit.
    """

    def __init__(self, seed: int, stream: str) -> None:
        self._source = PCG64([STREAMS.index(stream), seed])
        self._ready: list[int] = []

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        return (self._next() >> 11) * 2.0**-53

    def below(self, count: int) -> int:
        """Return an integer in [0, count)."""
        return self._next() * count >> 64

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.uniform() < probability

    def bell(self) -> float:
        """Return the scaled sum of three uniforms: mean 0, standard deviation 1, range [-3, 3]."""
        return (self.uniform() + self.uniform() + self.uniform() - 1.5) * 2

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options, each equally likely."""
        return options[self.below(len(options))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order (Fisher-Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _next(self) -> int:
        if not self._ready:
            self._ready = self._source.random_raw(_BLOCK).tolist()
        return self._ready.pop()


@dataclass(frozen=True, slots=True)
class Variable:
    """A quantity of a thing, or an external factor."""

    full: str
    short: str
    noun: str
    thing: str
    """Carrier of the quantity. Empty for a factor."""
    units: str
    unit: str
    base: int
    """Resting value of a quantity, or highest dose of a factor."""

    @property
    def is_factor(self) -> bool:
        """True for an external factor."""
        return not self.thing


class VariablePool:
    """Draws variables. No quantity, thing or factor repeats before all have been used, and no name ever does."""

    def __init__(self, science: Science, names: RandomStream, stream: RandomStream) -> None:
        self._names = names
        self._stream = stream
        self._used_names: set[str] = set()
        self._quantities = cycle(stream.shuffled(science.quantities))
        self._things = cycle(stream.shuffled(science.things))
        self._factors = cycle(stream.shuffled(science.factors))
        self._quantity = next(self._quantities)
        self._thing = next(self._things)

    def outcome(self, near: bool) -> Variable:
        """Return the next outcome. A near one has the quantity and kind of thing of the previous one."""
        if not near:
            self._quantity, self._thing = next(self._quantities), next(self._things)
        quantity, thing = self._quantity, self.named(self._thing.form)
        return Variable(
            full=f"the {quantity.phrase} of {thing}",
            short=f"the {quantity.noun} of {thing}",
            noun=quantity.noun,
            thing=thing,
            units=self._thing.units,
            unit=quantity.unit,
            base=self._stream.between(quantity.low, quantity.high),
        )

    def factor(self) -> Variable:
        """Return a new external factor."""
        factor, name = next(self._factors), self._new_name()
        short = _filled(factor.short, name)
        return Variable(_filled(factor.form, name), short, short, "", "", factor.unit, factor.top)

    def named(self, form: str) -> str:
        """Return the form with a new name filled in."""
        return _filled(form, self._new_name())

    def _new_name(self) -> str:
        while True:
            name = "".join(self._names.choice(choices) for choices in SYLLABLES)
            if name not in self._used_names:
                self._used_names.add(name)
                return name


def _filled(form: str, name: str) -> str:
    return form.format(name, N=name.capitalize())
