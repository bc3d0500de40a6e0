"""Settings of synthetic trees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.fiction.documents import (
    KINDS,
    SCIENCES,
    Count,
    checked_count,
    checked_number,
    count_range,
    is_integer,
)
from inquitree_gym.trees.document import MAX_SUBTOPICS

Topology = Literal["independent", "chain", "dag", "layered", "mixed"]
TOPOLOGIES = ("independent", "chain", "dag", "layered")
"""Shapes of the prerequisite graph. ``mixed`` draws one of them for each tree."""

MAX_STUDIES = min(len(templates.studies) for templates in KINDS.values()) - 1
"""Largest number of own studies of a subtopic: one method of each kind of question is left to another subtopic."""
MIN_POLES, MAX_POLES = 2, 3
"""Range of the number of poles of an axis."""
DEFAULT_DENSITY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Settings of synthetic trees: size, prerequisite graph, effect sizes, measurement noise and vocabulary.

    Each setting has its own draws, so that changing one leaves most of a tree as it is.
    """

    subtopics: Count = 7
    """Number of subtopics n, or a range from which each tree draws it. 1 to 1,000."""
    topology: Topology = "dag"
    """Shape of the prerequisite graph: ``independent``, ``chain``, ``dag`` (random), ``layered`` or ``mixed``."""
    density: float | None = None
    """Edge density of the prerequisite graph, 0 to 1, for ``dag``, ``layered`` and ``mixed``. None means 0.5."""
    shuffled: bool = False
    """List subtopics in random order. The default is topological order, as in the papers' trees."""
    studies: Count = 2
    """Number of a subtopic's studies of its own relation, or a range from which each subtopic draws it. 1 to 3."""
    poles: int = 2
    """Number of ways in which a relation can come out. 2 or 3."""
    null_share: float = 0.2
    """Base rate of null effects: the share of poles without an effect. 0 to 1/poles."""
    effect: float = 0.6
    """Effect size of a large effect, relative to the resting value. 0.05 to 4."""
    noise: float = 0.1
    """Measurement noise: standard deviation of a measured effect, relative to the effect. 0 to 0.3."""
    nearness: float = 0.0
    """Probability that a subtopic repeats the previous question for another name (a hard negative). 0 to 1."""
    fields: tuple[str, ...] = tuple(SCIENCES)
    """Sciences from which each tree draws its vocabulary. Hold some out to test generalisation."""

    def __post_init__(self) -> None:
        """Validate every setting.

        Raises:
            OptionError: a setting is out of range.
        """
        object.__setattr__(self, "subtopics", checked_count("subtopics", self.subtopics, MAX_SUBTOPICS))
        object.__setattr__(self, "studies", checked_count("studies", self.studies, MAX_STUDIES))
        if self.topology not in get_args(Topology):
            raise OptionError(f"topology must be one of {get_args(Topology)}, got {self.topology!r}")
        if self.density is not None:
            object.__setattr__(self, "density", checked_number("density", self.density, 0, 1))
            if self.topology in ("independent", "chain"):
                raise OptionError(
                    f"density has no effect on the topology '{self.topology}'; leave it out, or take 'dag'"
                )
        if not isinstance(self.shuffled, bool):
            raise OptionError(f"shuffled must be True or False, got {self.shuffled!r:.80}")
        if not is_integer(self.poles) or not MIN_POLES <= self.poles <= MAX_POLES:
            raise OptionError(f"poles must be an integer from {MIN_POLES} to {MAX_POLES}, got {self.poles!r}")
        for name, low, high in (("effect", 0.05, 4), ("noise", 0, 0.3), ("nearness", 0, 1), ("null_share", 0, 1)):
            object.__setattr__(self, name, checked_number(name, getattr(self, name), low, high))
        if self.null_share * self.poles > 1:
            raise OptionError(
                f"null_share must be at most 1/poles = {1 / self.poles:.3f}, got {self.null_share}; a relation has one "
                "pole without an effect at most"
            )
        object.__setattr__(self, "fields", _checked_fields(self.fields))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all settings."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of(cls, settings: Difficulty | Mapping[str, Any] | None) -> Difficulty:
        """Return the settings given as a `Difficulty`, by name, or None for the defaults.

        Raises:
            OptionError: a setting is unknown or out of range.
        """
        if isinstance(settings, Difficulty):
            return settings
        if settings is not None and not isinstance(settings, Mapping):
            raise OptionError(f"difficulty must be a Difficulty or a mapping of its settings, got {settings!r:.80}")
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
        """Return the same settings with the largest number of subtopics and studies that they allow."""
        return replace(self, subtopics=count_range(self.subtopics)[1], studies=count_range(self.studies)[1])

    @property
    def density_or_default(self) -> float:
        """The density in force."""
        return DEFAULT_DENSITY if self.density is None else self.density

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that identify the settings."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:8]


def _checked_fields(value: object) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= SCIENCES.keys():
        raise OptionError(f"fields must be a sequence of one or more of {tuple(SCIENCES)}, got {value!r:.80}")
    return names
