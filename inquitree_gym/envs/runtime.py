"""What a tree needs to be played: engine, matcher, texts and judge, made once per tree and rules and kept ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inquitree_gym.embeddings import Embedder, TreeVectors, tree_vectors
from inquitree_gym.engine import Engine, Phase, Rules, State
from inquitree_gym.envs.observations import Observations
from inquitree_gym.judges import LocalJudge, conclusion_reward, local_judge
from inquitree_gym.matching import MAX_READ, Matcher
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree

REMEMBERED = 1_024
"""Rewards kept in memory, per tree and rules."""
MAX_PLAYS = 64
"""Pairs of tree and rules kept ready."""


class Play(NamedTuple):
    """What one tree needs to be played under one set of rules."""

    tree: Tree
    engine: Engine
    matcher: Matcher
    observations: Observations
    judge: LocalJudge
    vectors: TreeVectors
    rewards: dict[tuple[int, str], float]
    """By true results seen and conclusion, those last judged."""

    def reward(self, state: State, conclusion: str) -> float:
        """Judge a conclusion, unless it was judged on the same evidence before; only what is read of it counts."""
        key = (state.proven, conclusion[:MAX_READ])
        reward = self.rewards.get(key)
        if reward is None:
            reward = self.rewards[key] = conclusion_reward(self.judge, self.tree, state, conclusion)
            if len(self.rewards) > REMEMBERED:
                del self.rewards[next(iter(self.rewards))]
        return reward

    def to_embed(self, state: State, action: str) -> Iterator[tuple[TreeVectors, str]]:
        """Yield the texts that an action in ``state`` needs vectors of, with who keeps them; none that are known."""
        if state.phase == Phase.CONCLUSION:
            for claim in self.judge.claims(action):
                if not self.judge.vectors.knows(claim):
                    yield self.judge.vectors, claim
        elif (text := self.matcher.to_embed(state, action)) is not None:
            yield self.vectors, text


class Plays:
    """Plays under one embedder and one set of templates, made when first asked for."""

    def __init__(self, embedder: Embedder, prompts: Prompts) -> None:
        """Hold none yet."""
        self._embedder = embedder
        self._prompts = prompts
        self._ready: dict[tuple[Tree, Rules], Play] = {}

    def of(self, tree: Tree, rules: Rules) -> Play:
        """Return what ``tree`` needs under ``rules``; the same object as long as it is kept ready."""
        play = self._ready.get((tree, rules))
        if play is None:
            play = self._ready[tree, rules] = self._prepare(tree, rules)
            if len(self._ready) > MAX_PLAYS:
                del self._ready[next(iter(self._ready))]
        return play

    def _prepare(self, tree: Tree, rules: Rules) -> Play:
        vectors = self._vectors(tree)
        engine = Engine(tree, rules)
        texts = Observations(tree, self._prompts, engine.turn_limit)
        return Play(tree, engine, Matcher(engine, vectors), texts, self._judge(tree, vectors), vectors, {})

    def _vectors(self, tree: Tree) -> TreeVectors:
        return tree_vectors(tree, self._embedder)

    def _judge(self, tree: Tree, vectors: TreeVectors) -> LocalJudge:
        return local_judge(tree)
