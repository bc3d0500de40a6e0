"""Base of the rules of an environment: frozen values with names, which options override and logs hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from inquitree_gym.errors import OptionError, suggest


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """Rules of an environment that can be switched. A subclass has one field per rule and checks their values."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all rules."""
        return tuple(cls.__dataclass_fields__)  # not fields(), which takes much of the time of reading a log

    def override(self, options: Mapping[str, Any]) -> Self:
        """Return a copy with some rules replaced.

        Raises:
            OptionError: a rule is unknown or out of range.
        """
        known = self.names()
        for name in options:
            if name not in known:
                raise OptionError(f"unknown option '{name}'{suggest(name, known)}; known: {', '.join(known)}")
        return replace(self, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return the rules by name as plain values, for logs and for the constructor."""
        return {name: getattr(self, name) for name in self.names()}
