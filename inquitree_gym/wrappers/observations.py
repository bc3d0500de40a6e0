"""Observations as feature rows and as chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from inquitree_gym.engine import State
from inquitree_gym.envs.inquiry import InquiryEnv, unwrap_inquiry
from inquitree_gym.envs.menu import MenuSize
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow, observation_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree

Observation = FeatureRow | dict[str, FeatureRow]

Message = dict[str, str]

MAX_CACHED_ROWS = 4_096
"""Feature rows cached per environment, of one tree at a time."""


class EmbeddingObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Replace the text by a row of features: phase, hint level, visited subtopics, embedding (see `FeatureLayout`)."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        subtopics: int | None = None,
        text_dim: int | None = None,
        as_dict: bool = False,
    ) -> None:
        """Wrap ``env``.

        Args:
            env: an inquiry, with or without `MenuActions`, in either order.
            subtopics: slots for visited subtopics; None takes the number of the largest tree of ``env``.
            text_dim: length of the text part; None for the whole embedding.
            as_dict: return a Dict with a Box per part instead of one flat Box.

        Raises:
            OptionError: ``env`` is no inquiry, a value is out of range, or a tree has more subtopics than slots.
        """
        RecordConstructorArgs.__init__(self, subtopics=subtopics, text_dim=text_dim, as_dict=as_dict)
        gym.Wrapper.__init__(self, env)
        self._inquiry: InquiryEnv = unwrap_inquiry(self)
        slots = MenuSize.fitting(self._inquiry.trees).subtopics if subtopics is None else subtopics
        self.features = FeatureLayout.create(slots, self._inquiry.embedder.dim, text_dim)
        self.observation_space = self.features.dict() if as_dict else self.features.box()
        self._parts = self.features.parts
        self._as_dict = as_dict
        self._tree: Tree | None = None
        self._vectors: dict[str, FeatureRow] = {}
        self._rows: dict[tuple[str, int, int, int], FeatureRow] = {}
        self._check(self._inquiry.trees)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; see `InquiryEnv.reset`.

        Raises:
            OptionError: a tree in the options has more subtopics than there are slots; the current episode is left as
                it is.
        """
        self._check(self._inquiry.requested_trees(options))
        text, info = self.env.reset(seed=seed, options=options)
        if self._tree is not self._inquiry.tree:
            self._load(self._inquiry.tree)
        return self._observe(text), info

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn; see `InquiryEnv.step`."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return self._observe(text), reward, terminated, truncated, info

    def _check(self, trees: Sequence[Tree]) -> None:
        slots = self.features.subtopics
        for tree in trees:
            if (needed := len(tree.subtopics)) > slots:
                raise OptionError(
                    f"{tree.id} has {needed} subtopics and the observation {slots} slots for them; make it with "
                    f"subtopics={needed} or more"
                )

    def _load(self, tree: Tree) -> None:
        runtime = self._inquiry.runtime
        self._vectors = observation_vectors(runtime.observations, runtime.vectors, runtime.engine.rules)
        self._rows.clear()
        self._tree = tree

    def _observe(self, text: str) -> Observation:
        state = self._inquiry.state
        key = (text, state.phase, state.hint_level, state.visited)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(text, state)
            if len(self._rows) > MAX_CACHED_ROWS:
                del self._rows[next(iter(self._rows))]
        row = row.copy()
        return {name: row[at] for name, at in self._parts.items()} if self._as_dict else row

    def _row(self, text: str, state: State) -> FeatureRow:
        vector = self._vectors.get(text)
        vector = self._inquiry.vectors.of(text) if vector is None else vector
        row = self.features.row(state.phase, state.hint_level, vector)
        row[self._parts["visited"]] = [state.visited >> i & 1 for i in range(self.features.subtopics)]
        return row


class Transcript(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Record the episode as chat messages: observations with the role user, actions with the role assistant."""

    def __init__(self, env: gym.Env[str, str], *, system: str | None = None, keep: int | None = None) -> None:
        """Wrap ``env``.

        Args:
            env: the environment.
            system: text of the system message that comes first; None for none.
            keep: number of latest exchanges (an action and its observation) kept after the opening; None for all.

        Raises:
            OptionError: ``keep`` is no integer from 0.
        """
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
            raise OptionError(f"keep is a whole number from 0 or None, not {keep!r}")
        RecordConstructorArgs.__init__(self, system=system, keep=keep)
        gym.Wrapper.__init__(self, env)
        self._head: list[Message] = []
        self._exchanges: list[tuple[Message, Message]] = []
        self._system = system
        self._keep = keep

    @property
    def messages(self) -> list[Message]:
        """Messages so far, oldest first, as a new list of dicts with ``role`` and ``content``."""
        dropped = 0 if self._keep is None else max(0, len(self._exchanges) - self._keep)
        kept = self._exchanges[dropped:]
        return [dict(message) for message in (*self._head, *(message for pair in kept for message in pair))]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode and a new transcript; see `InquiryEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        self._head = [*system, {"role": "user", "content": observation}]
        self._exchanges = []
        return observation, info

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one turn; see `InquiryEnv.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._exchanges.append(({"role": "assistant", "content": action}, {"role": "user", "content": observation}))
        return observation, reward, terminated, truncated, info
