"""Caches of runtimes: everything that an environment needs to play one tree or task under one set of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Literal, Self, TypeVar

About = TypeVar("About")
SomeRules = TypeVar("SomeRules")
Runtime = TypeVar("Runtime")

Scope = Literal["shared", "private", "episode"]
"""Lifetime of the vectors of a tree or task; see `Runtimes`."""


class Runtimes(ABC, Generic[About, SomeRules, Runtime]):
    """Runtimes by tree or task and rules; built on first use."""

    most: int
    """Runtimes cached at most; the oldest one goes first."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self._cached: dict[tuple[About, SomeRules], Runtime] = {}

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """Lifetime of the vectors.

        ``"shared"`` uses one set of vectors per process; ``"private"`` keeps vectors that were embedded in a batch away
        from other environments; ``"episode"`` drops runtimes and vectors after each episode, for trees and tasks that
        are played once.
        """

    @abstractmethod
    def within(self, scope: Scope) -> Self:
        """Return an empty cache with vectors of another lifetime."""

    @abstractmethod
    def _build(self, about: About, rules: SomeRules) -> Runtime:
        """Return a new runtime."""

    def get(self, about: About, rules: SomeRules) -> Runtime:
        """Return the runtime of a tree or task under ``rules``, the same object while it is cached."""
        runtime = self._cached.get((about, rules))
        if runtime is None:
            runtime = self._build(about, rules)
            if self.scope != "episode":
                self._cached[about, rules] = runtime
            if len(self._cached) > self.most:
                del self._cached[next(iter(self._cached))]
        return runtime
