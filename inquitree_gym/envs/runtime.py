"""Runtime of a tree under one set of rules: engine, matcher, observation texts, judge, and the info of its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inquitree_gym.embeddings import Embedder, TreeVectors, tree_vectors
from inquitree_gym.engine import Engine, Event, Phase, Reading, Rules, State, event_values
from inquitree_gym.envs.observations import ObservationRenderer
from inquitree_gym.envs.runtime_cache import Runtimes, Scope
from inquitree_gym.judges.local import LocalJudge, judge_vectors, local_judge
from inquitree_gym.judges.quality import conclusion_reward
from inquitree_gym.matching import MAX_ACTION_LENGTH, Matcher
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree

MAX_CACHED_REWARDS = 1_024
"""Conclusion rewards cached per runtime."""
MAX_CACHED_RUNTIMES = 64
"""Runtimes cached per `RuntimeCache`."""

PHASE_NAMES = tuple(phase.name.lower() for phase in Phase)


@dataclass(frozen=True, slots=True, eq=False)
class TreeRuntime:
    """Everything that an environment needs to play one tree under one set of rules."""

    tree: Tree
    engine: Engine
    matcher: Matcher
    observations: ObservationRenderer
    judge: LocalJudge
    vectors: TreeVectors
    _rewards: dict[tuple[int, str], float] = field(default_factory=dict)
    """Latest rewards by true results seen and conclusion text."""

    def reward(self, state: State, conclusion: str) -> float:
        """Return Q/|C| of a conclusion in [0, 1] (Eq. 9), cached by evidence and the text that is read."""
        key = (state.proven, conclusion[:MAX_ACTION_LENGTH])
        reward = self._rewards.get(key)
        if reward is None:
            reward = self._rewards[key] = conclusion_reward(
                self.judge, self.tree, state, conclusion, self.engine.rules.evidence
            )
            if len(self._rewards) > MAX_CACHED_REWARDS:
                del self._rewards[next(iter(self._rewards))]
        return reward

    def uncached_texts(self, state: State, action: str) -> Iterator[tuple[TreeVectors, str]]:
        """Yield the texts that ``action`` still has to have embedded in ``state``, each with its vector cache."""
        if state.phase == Phase.CONCLUSION:
            for claim in self.judge.claims(action):
                if not self.judge.vectors.knows(claim):
                    yield self.judge.vectors, claim
        elif (text := self.matcher.to_embed(state, action)) is not None:
            yield self.vectors, text


class RuntimeCache(Runtimes[Tree, Rules, TreeRuntime]):
    """Runtimes by tree and rules, for one embedder and one set of templates; built on first use."""

    most = MAX_CACHED_RUNTIMES

    def __init__(self, embedder: Embedder, prompts: Prompts, *, scope: Scope = "shared") -> None:
        """Create an empty cache.

        Args:
            embedder: reads the actions.
            prompts: templates of the observations.
            scope: see `Runtimes.scope`.
        """
        super().__init__()
        self._embedder = embedder
        self._prompts = prompts
        self._scope = scope

    @property
    def scope(self) -> Scope:
        """See `Runtimes.scope`."""
        return self._scope

    def within(self, scope: Scope) -> RuntimeCache:
        """Return an empty cache with vectors of another lifetime."""
        return RuntimeCache(self._embedder, self._prompts, scope=scope)

    def _build(self, about: Tree, rules: Rules) -> TreeRuntime:
        engine = Engine(about, rules)
        vectors = self._vectors(about, self._embedder)
        return TreeRuntime(
            tree=about,
            engine=engine,
            matcher=Matcher(engine, vectors),
            observations=ObservationRenderer(about, self._prompts, engine),
            judge=self._judge(about),
            vectors=vectors,
        )

    def _vectors(self, tree: Tree, embedder: Embedder) -> TreeVectors:
        if self.scope == "shared":
            return tree_vectors(tree, embedder)
        return TreeVectors(tree, embedder, lasting=self.scope == "private")

    def _judge(self, tree: Tree) -> LocalJudge:
        if self.scope == "shared":
            return local_judge(tree)
        return LocalJudge(judge_vectors(tree, lasting=self.scope == "private"))


class Transition(NamedTuple):
    """The reading of an action and the event that it led to; privileged."""

    reading: Reading
    event: Event
    action: str = ""
    """The action as text; empty after a reset."""
    phase: Phase = Phase.TOPIC
    """Phase in which the action was taken."""


def public_info(event: Event) -> dict[str, Any]:
    """Return the info that agents may see, as plain values."""
    state = event.state
    return {
        "state": PHASE_NAMES[state.phase],
        "turn": state.turn,
        "accepted": event.accepted,
        "hint_level": state.hint_level,
        "forced": event.forced,
    }


def privileged_info(transition: Transition, turn_limit: int | None) -> dict[str, Any]:
    """Return the info that agents must not see, as plain values."""
    reading, event = transition.reading, transition.event
    values = event_values(event)
    return {
        **{name: values[name] for name in ("kind", "node", "other", "fake", "wording", "limit", "reason", "decision")},
        "target": event.state.target,
        "candidate": reading.candidate,
        "similarity": reading.similarity,
        "margin": reading.margin,
        "top": [list(pair) for pair in reading.top],
        "visits": list(event.state.visits),
        "turn_limit": turn_limit,
    }
