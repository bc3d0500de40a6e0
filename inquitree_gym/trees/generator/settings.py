"""How hard a synthetic tree is: one frozen value, checked whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.trees.generator.vocabulary import FIELDS
from inquitree_gym.trees.schema import MAX_SUBTOPICS

Topology = Literal["independent", "chain", "dag", "layered", "mixed"]
Count = int | tuple[int, int]
"""A number, or the smallest and the largest of which each tree draws one."""

MOST_STUDIES = 4
"""Studies of one subtopic at most: so many methods are known for each kind of question."""
FAKES = (2, 4)
"""Fake results per study, fewest and most."""
DEFAULT_DENSITY = 0.5
"""Of prerequisites, where none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """What a synthetic tree is like. Every setting is drawn for by itself, so that it moves little else."""

    subtopics: Count = 7
    """n, or its range; 1 to 1,000."""
    topology: Topology = "dag"
    """How prerequisites lie; "mixed" draws one of the four for each tree."""
    density: float | None = None
    """How many prerequisites there are, 0 to 1, for "dag", "layered" and "mixed"; None takes 0.5."""
    shuffled: bool = False
    """Whether subtopics stand in an order drawn by lot; else, as in the papers' trees, causes stand first."""
    studies: Count = (1, 2)
    """Studies per subtopic, or the range that each subtopic draws from; 1 to 4."""
    fakes: int = 2
    """Fake results per study; 2 to 4."""
    null_share: float = 0.2
    """Share of questions whose true answer is that there is no effect; 0 to 1/(fakes + 1)."""
    effect: float = 0.6
    """Size of a large effect, relative to the resting value; 0.05 to 4."""
    noise: float = 0.1
    """Standard deviation of a measured effect, relative to the effect; 0 to 0.3, at which sizes overlap."""
    nearness: float = 0.0
    """Chance that a subtopic asks what its neighbour asks, only of another name; 0 to 1."""
    fields: tuple[str, ...] = tuple(FIELDS)
    """Fields of science that trees are drawn from."""

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            OptionError: naming the setting, what it accepts and what came.
        """
        object.__setattr__(self, "subtopics", _count("subtopics", self.subtopics, MAX_SUBTOPICS))
        object.__setattr__(self, "studies", _count("studies", self.studies, MOST_STUDIES))
        if self.topology not in get_args(Topology):
            raise OptionError(f"topology is one of {get_args(Topology)}, not {self.topology!r}")
        self._check_density()
        if not isinstance(self.shuffled, bool):
            raise OptionError(f"shuffled is True or False, not {self.shuffled!r:.80}")
        if isinstance(self.fakes, bool) or not isinstance(self.fakes, int) or not FAKES[0] <= self.fakes <= FAKES[1]:
            raise OptionError(f"fakes is a whole number from {FAKES[0]} to {FAKES[1]}, not {self.fakes!r}")
        for name, low, high in (("effect", 0.05, 4), ("noise", 0, 0.3), ("nearness", 0, 1), ("null_share", 0, 1)):
            object.__setattr__(self, name, _number(name, getattr(self, name), low, high))
        if self.null_share * (self.fakes + 1) > 1:
            raise OptionError(
                f"null_share is at most 1/(fakes + 1) = {1 / (self.fakes + 1):.3f}, not {self.null_share}: a fake of a "
                f"result without an effect claims one, and beyond that share claiming one would give fakes away"
            )
        object.__setattr__(self, "fields", _fields(self.fields))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of(cls, settings: Difficulty | Mapping[str, Any] | None) -> Difficulty:
        """Return settings given as such, by name, or not at all.

        Raises:
            OptionError: an unknown setting or a value out of range.
        """
        if isinstance(settings, Difficulty):
            return settings
        if settings is not None and not isinstance(settings, Mapping):
            raise OptionError(f"difficulty is a Difficulty or a mapping of its settings, not {settings!r:.80}")
        for name in settings or {}:
            if name not in cls.names():
                raise OptionError(
                    f"unknown setting '{name}'{suggest(name, cls.names())}; known: {', '.join(cls.names())}"
                )
        return cls(**dict(settings or {}))

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for logs and for `Difficulty(**...)`."""
        return asdict(self)

    def largest(self) -> Difficulty:
        """Return settings for a tree than which no tree of these is larger."""
        return replace(self, subtopics=bounds(self.subtopics)[1], studies=bounds(self.studies)[1])

    @property
    def density_or_default(self) -> float:
        """The density in force."""
        return DEFAULT_DENSITY if self.density is None else self.density

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that name these settings."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:8]

    def _check_density(self) -> None:
        if self.density is None:
            return
        object.__setattr__(self, "density", _number("density", self.density, 0, 1))
        if self.topology in ("independent", "chain"):
            raise OptionError(f"density says nothing about the topology '{self.topology}'; leave it out, or take 'dag'")


def bounds(count: Count) -> tuple[int, int]:
    """Return the smallest and the largest of a count."""
    return (count, count) if isinstance(count, int) else count


def _count(name: str, value: object, most: int) -> Count:
    """Return a checked count, a pair as a tuple, since JSON knows only lists."""
    pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in pair)
    if len(pair) != 2 or not whole or not 1 <= pair[0] <= pair[1] <= most:
        raise OptionError(f"{name} is a whole number from 1 to {most:,}, or a pair (fewest, most), not {value!r:.80}")
    return pair if isinstance(value, list | tuple) else pair[0]


def _number(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise OptionError(f"{name} is a number from {low} to {high}, not {value!r:.80}")
    return float(value)


def _fields(value: object) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= FIELDS.keys():
        raise OptionError(f"fields is a sequence of one or more of {tuple(FIELDS)}, not {value!r:.80}")
    return names
