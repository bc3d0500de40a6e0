"""Turns L of the random agents for a full traversal, against [3n, n(2H + 3)], by tree and by topology.

The agents play over menu actions through the real engine, without texts, unless `random_distribution` has an exact
result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from inquitree_gym.embeddings import Embedder, TreeVectors, tree_vectors
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.inquiry.bounds.distribution import (
    Z_95,
    MenuReadings,
    TurnDistribution,
    analytic_mean,
    full_chance,
    random_distribution,
)
from inquitree_gym.inquiry.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.inquiry.generator.generate import synthetic_tree
from inquitree_gym.inquiry.matching import Matcher
from inquitree_gym.inquiry.menu import Menu
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees import Tree

RANDOM, FLOOR, HELD = "random", "random-menu", "random-menu, held"
"""Two agents, and the second one kept from concluding before it has visited every subtopic."""
AGENTS = (RANDOM, FLOOR)
"""Agents to measure. `HELD` comes with `FLOOR`."""
HINTED: dict[str, Any] = {"max_turns": None, "feedback": "hint"}
"""Rules under which L has bounds: every failure gives a hint, as the paper prints it, and no limit cuts it off."""
IDEAL = Rules(threshold=0.5, **HINTED)
"""Rules for ideally read texts, equivalent for every threshold up to 1."""
_BLOCK = 64
_NOTHING = Reading()
_DECISIONS = tuple(Reading(decision=each) for each in (Decision.REDO, Decision.EXPLORE, Decision.CONCLUDE))

Choose = Callable[[State], int]
"""Policy: from a state to the number of a menu action."""


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Episodes to play when no exact distribution is available."""

    episodes: int
    """Episodes per tree."""
    seed: int

    def seeds(self, tree: Tree) -> Iterator[int]:
        """Yield the seeds of the episodes on ``tree``. Trees share none, so their sampling errors are independent."""
        own = zlib.crc32(tree.id.encode())
        return (splitmix64(self.seed, own, k) for k in range(self.episodes))


@dataclass(frozen=True, slots=True)
class TreeTurns:
    """Turns of one agent on one tree."""

    tree: str
    distribution: TurnDistribution
    full: float
    """Probability of visiting every subtopic before the decision to conclude."""
    full_exact: bool
    analytic: float
    """See `analytic_mean`."""


@dataclass(frozen=True)
class AgentTurns:
    """Turns of one agent on one tree, or on several trees of one topology and size."""

    subject: str
    """Id of the tree, or name of the topology."""
    n: int
    agent: str
    parts: tuple[TreeTurns, ...]

    @property
    def fewest_turns(self) -> int:
        """3n: L of a full traversal without a failure."""
        return IDEAL.fewest_turns(self.n)

    @property
    def most_turns(self) -> int:
        """n(2H + 3): L of a full traversal whose every choice fails until forced."""
        most = IDEAL.most_turns(self.n)
        assert most is not None
        return most

    @cached_property
    def distribution(self) -> TurnDistribution:
        """The distribution of L, with equal weight for every tree."""
        return TurnDistribution.mixture([part.distribution for part in self.parts])

    @property
    def above(self) -> float:
        """Share of episodes with L > n(2H + 3)."""
        return self.distribution.above(self.most_turns)

    @property
    def mean(self) -> Estimate:
        """Mean L. Its interval is over episodes for one tree, over trees for several."""
        return self._over_trees(lambda part: part.distribution.mean, self.distribution.half)

    @property
    def full(self) -> Estimate:
        """Probability of a full traversal, with an interval like that of the mean."""
        first, episodes = self.parts[0], self.distribution.episodes
        half = 0.0 if first.full_exact or not episodes else Z_95 * (first.full * (1 - first.full) / episodes) ** 0.5
        return self._over_trees(lambda part: part.full, half)

    @property
    def analytic(self) -> Estimate:
        """`analytic_mean`, for several trees with the interval over trees."""
        return self._over_trees(lambda part: part.analytic, 0.0)

    def _over_trees(self, measure: Callable[[TreeTurns], float], half: float) -> Estimate:
        if len(self.parts) > 1:
            return clustered_mean((part.tree, measure(part)) for part in self.parts)
        value = measure(self.parts[0])
        low, high = (value - half, value + half) if half else (None, None)
        return Estimate(value, low, high, 1, self.distribution.episodes or 1)


@dataclass(frozen=True, slots=True)
class Traversal:
    """One episode up to the decision to conclude."""

    turns: int
    """L, including the decision to conclude."""
    full: bool
    """True if every subtopic was visited."""


def measure_tree(tree: Tree, embedder: Embedder, agents: Iterable[str], plan: SamplingPlan) -> list[AgentTurns]:
    """Measure agents on one tree whose menu texts are read by ``embedder``, without a turn limit.

    Raises:
        OptionError: an agent is unknown, the embedder has no calibrated threshold, or it cannot tell the subtopics of
            the tree apart.
    """
    if embedder.threshold is None:
        raise OptionError(
            f"no threshold has been calibrated for the embedder '{embedder.name}', so its readings are undefined; "
            "measure with an embedder that has one"
        )
    engine = Engine(tree, Rules(threshold=embedder.threshold, **HINTED))
    readings = menu_readings(engine, tree_vectors(tree, embedder))
    for i, other in misread(engine, readings):
        read_as = tree.subtopics[other].id if other >= 0 else "nothing"
        raise OptionError(
            f"{tree.id}: under '{embedder.name}' the text of {tree.subtopics[i].id} is read as {read_as}, so a random "
            "agent could wait for it without end; reword it (see inquitree check) or take another embedder"
        )
    return [
        AgentTurns(tree.id, engine.n, agent, (_measure(tree, engine, readings, agent, plan),))
        for agent in _with_held(agents)
    ]


def measure_topology(topology: str, n: int, trees: int, agents: Iterable[str], plan: SamplingPlan) -> list[AgentTurns]:
    """Measure agents on synthetic trees of n subtopics with ideally read menu texts. See `ideal_readings`.

    The trees have the seeds ``plan.seed``, ``plan.seed + 1``, ….

    Raises:
        OptionError: an agent or the topology is unknown, or n is out of range.
    """
    named = tuple(_with_held(agents))
    difficulty = {"subtopics": n, "topology": topology}
    parts: dict[str, list[TreeTurns]] = {agent: [] for agent in named}
    for k in range(trees):
        tree = synthetic_tree(plan.seed + k, difficulty)
        engine = Engine(tree, IDEAL)
        readings = ideal_readings(engine)
        for agent in named:
            parts[agent].append(_measure(tree, engine, readings, agent, plan))
    return [AgentTurns(topology, n, agent, tuple(found)) for agent, found in parts.items()]


def checked_agents(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named agents without repetition.

    Raises:
        OptionError: an agent is unknown, or none is named.
    """
    named = tuple(dict.fromkeys(names))
    for name in named:
        if name not in AGENTS:
            raise OptionError(f"an agent of bounds must be {' or '.join(AGENTS)}, got '{name}'{suggest(name, AGENTS)}")
    if not named:
        raise OptionError(f"name an agent: {', '.join(AGENTS)}")
    return named


def menu_readings(engine: Engine, vectors: TreeVectors) -> MenuReadings:
    """Return the readings of a tree's menu texts by an embedder."""
    menu = Menu(vectors.tree)
    matcher, texts = Matcher(engine, vectors), menu.texts[: menu.nothing]
    start = engine.start(0).state

    def read(phase: Phase, subtopic: int = -1) -> tuple[Reading, ...]:
        state = start.replace(phase=phase, subtopic=subtopic)
        return tuple(matcher.read(state, text) for text in texts)

    studies = tuple(read(Phase.SUBTOPIC, i) for i in range(engine.n))
    return MenuReadings(read(Phase.TOPIC), studies, read(Phase.RESULT))


def ideal_readings(engine: Engine) -> MenuReadings:
    """Return readings of every menu text as itself if it is a candidate, and as nothing otherwise."""
    subtopics = tuple(Reading(i, 1.0) for i in range(engine.n))
    no_study, no_decision = (_NOTHING,) * len(engine.subtopic_of), (_NOTHING,) * len(_DECISIONS)

    def studies(subtopic: int) -> tuple[Reading, ...]:
        return tuple(Reading(k, 1.0) if i == subtopic else _NOTHING for k, i in enumerate(engine.subtopic_of))

    return MenuReadings(
        topic=(*subtopics, *no_study, *no_decision),
        subtopic=tuple(((_NOTHING,) * engine.n + studies(i) + no_decision) for i in range(engine.n)),
        result=(*subtopics, *no_study, *_DECISIONS),
    )


def misread(engine: Engine, readings: MenuReadings) -> list[tuple[int, int]]:
    """Return the subtopics whose text is not read as themselves, each with the subtopic read, -1 for none."""
    threshold = engine.rules.threshold
    assert threshold is not None
    found = [r.candidate if r.similarity >= threshold else -1 for r in readings.topic[: engine.n]]
    return [(i, other) for i, other in enumerate(found) if other != i]


def traverse(engine: Engine, readings: MenuReadings, agent: str, seed: int) -> Traversal:
    """Play one episode up to the decision to conclude, with the very draws of the agent in the environment.

    Args:
        engine: the rules, without a turn limit.
        readings: the readings of the menu texts.
        agent: `RANDOM`, `FLOOR` or `HELD`.
        seed: seed of the episode.
    """
    rng = np.random.default_rng(engine.agent_seed(seed))
    choose = _random_policy(engine, rng) if agent == RANDOM else _menu_policy(engine, rng, held=agent == HELD)
    advance, at = engine.advance, readings.at
    state = engine.start(seed).state
    while state.phase < Phase.CONCLUSION:
        state = advance(state, at(state)[choose(state)]).state
    return Traversal(state.turn, state.visited == _everything(engine))


def _measure(tree: Tree, engine: Engine, readings: MenuReadings, agent: str, plan: SamplingPlan) -> TreeTurns:
    analytic = analytic_mean(engine.prerequisites)
    exact = random_distribution(engine.prerequisites) if agent == RANDOM else None
    if exact is not None:
        return TreeTurns(tree.id, exact, 1.0, True, analytic)
    played = [traverse(engine, readings, agent, seed) for seed in plan.seeds(tree)]
    chance = full_chance(engine, readings) if agent == FLOOR else 1.0
    full = sum(each.full for each in played) / len(played) if chance is None else chance
    distribution = TurnDistribution.from_sample([each.turns for each in played])
    return TreeTurns(tree.id, distribution, full, chance is not None, analytic)


def _with_held(agents: Iterable[str]) -> Iterator[str]:
    for name in checked_agents(agents):
        yield name
        if name == FLOOR:
            yield HELD


def _random_policy(engine: Engine, rng: np.random.Generator) -> Choose:
    """Return the policy of `RandomAgent`."""
    n, everything = engine.n, _everything(engine)
    explore = n + len(engine.subtopic_of) + 1

    def choose(state: State) -> int:
        if state.phase == Phase.TOPIC:
            left = [i for i in range(n) if not state.visited >> i & 1]
            return left[rng.integers(len(left))]
        if state.phase == Phase.SUBTOPIC:
            studies = engine.studies_of[state.subtopic]
            return n + studies[rng.integers(len(studies))]
        return explore + (state.visited == everything)

    return choose


def _menu_policy(engine: Engine, rng: np.random.Generator, *, held: bool) -> Choose:
    """Return the policy of `RandomMenuAgent`. ``held`` redraws the conclusion until everything is visited."""
    size, everything = engine.n + len(engine.subtopic_of) + len(_DECISIONS), _everything(engine)
    first_decision, conclude = size - len(_DECISIONS), size - 1

    def draw() -> Iterator[int]:
        while True:  # in blocks, which are faster and draw the same numbers
            yield from rng.integers(size, size=_BLOCK).tolist()

    draws = draw()

    def choose(state: State) -> int:
        for action in draws:
            early = held and action == conclude and state.visited != everything
            if (action < first_decision or state.phase >= Phase.STUDY) and not early:
                return action
        raise AssertionError("unreachable")

    return choose


def _everything(engine: Engine) -> int:
    return (1 << engine.n) - 1
