"""Chance against the bounds of L, by tree and by topology."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from inquitree_gym.analysis.bounds.play import (
    FLOOR,
    HELD,
    RANDOM,
    MenuReadings,
    full_chance,
    ideal_readings,
    menu_readings,
    misread,
    traverse,
)
from inquitree_gym.analysis.bounds.turn_distribution import ERRORS, Lengths, analytic_mean, random_lengths
from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.engine import Engine, Rules, splitmix64
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.scoring import Estimate, clustered_mean
from inquitree_gym.trees import Tree, generator

AGENTS = (RANDOM, FLOOR)
"""Agents that bounds are measured for; with the second comes its held variant."""
IDEAL = Rules(threshold=0.5, max_turns=None)
"""Rules of trees whose texts are read ideally; any threshold up to 1 does the same."""


class Sampling(NamedTuple):
    """What is played where no exact law is at hand."""

    episodes: int
    """Per tree."""
    seed: int

    def seeds(self, tree: Tree) -> Iterator[int]:
        """Yield the seeds of the episodes on ``tree``; trees share none, so that they err independently."""
        own = zlib.crc32(tree.id.encode())
        return (splitmix64(self.seed, own, k) for k in range(self.episodes))


class Part(NamedTuple):
    """One agent on one tree."""

    tree: str
    lengths: Lengths
    full: float
    """Probability that every subtopic is visited before the decision to conclude."""
    full_exact: bool
    analytic: float
    """See `analytic_mean`."""


@dataclass(frozen=True)
class Bounds:
    """One agent on one tree, or on several trees of one topology and size."""

    subject: str
    """Id of the tree, or name of the topology."""
    n: int
    agent: str
    parts: tuple[Part, ...]

    @property
    def fewest_turns(self) -> int:
        """3n: L of a full traversal without a failure."""
        return IDEAL.fewest_turns(self.n)

    @property
    def most_turns(self) -> int:
        """n(2H + 3): L of a full traversal in which every choice fails until forced."""
        most = IDEAL.most_turns(self.n)
        assert most is not None
        return most

    @cached_property
    def lengths(self) -> Lengths:
        """The distribution of L, every tree weighing the same."""
        return Lengths.mixture([part.lengths for part in self.parts])

    @property
    def above(self) -> float:
        """Share of episodes with L beyond n(2H + 3)."""
        return self.lengths.above(self.most_turns)

    @property
    def mean(self) -> Estimate:
        """Mean L. Of one tree, the interval is what sampling leaves open; of several, that over trees."""
        return self._over_trees(lambda part: part.lengths.mean, self.lengths.half)

    @property
    def full(self) -> Estimate:
        """Probability of a full traversal, its interval as that of the mean; exact for one tree of moderate size."""
        first, episodes = self.parts[0], self.lengths.episodes
        half = 0.0 if first.full_exact or not episodes else ERRORS * (first.full * (1 - first.full) / episodes) ** 0.5
        return self._over_trees(lambda part: part.full, half)

    @property
    def analytic(self) -> Estimate:
        """`analytic_mean`; of several trees with the interval over trees."""
        return self._over_trees(lambda part: part.analytic, 0.0)

    def _over_trees(self, measure: Callable[[Part], float], half: float) -> Estimate:
        if len(self.parts) > 1:
            return clustered_mean((part.tree, measure(part)) for part in self.parts)
        value = measure(self.parts[0])
        low, high = (value - half, value + half) if half else (None, None)
        return Estimate(value, low, high, 1, self.lengths.episodes or 1)


def measure_tree(tree: Tree, embedder: Embedder, agents: Iterable[str], sampling: Sampling) -> list[Bounds]:
    """Measure agents on one tree as it is played: its menu texts read by ``embedder``, no turn limit.

    Raises:
        OptionError: an agent is unknown, no threshold has been calibrated for the embedder, or it cannot tell the
            subtopics of the tree apart.
    """
    if embedder.threshold is None:
        raise OptionError(
            f"no threshold has been calibrated for the embedder '{embedder.name}', so nobody knows what it accepts; "
            f"measure with one that has a threshold"
        )
    engine = Engine(tree, Rules(threshold=embedder.threshold, max_turns=None))
    readings = menu_readings(engine, tree_vectors(tree, embedder))
    for i, other in misread(engine, readings):
        read_as = tree.subtopics[other].id if other >= 0 else "nothing"
        raise OptionError(
            f"{tree.id}: under '{embedder.name}' the text of {tree.subtopics[i].id} is read as {read_as}, so a random "
            f"agent could wait for it without end; reword it (see inquitree check) or take another embedder"
        )
    return [
        Bounds(tree.id, engine.n, agent, (_measure(tree, engine, readings, agent, sampling),))
        for agent in _with_held(agents)
    ]


def measure_topology(topology: str, n: int, trees: int, agents: Iterable[str], sampling: Sampling) -> list[Bounds]:
    """Measure agents on synthetic trees of n subtopics whose menu texts are read ideally; see `ideal_readings`.

    The trees are those of seed ``sampling.seed`` and the following.

    Raises:
        OptionError: an agent or the topology is unknown, or n is out of range.
    """
    named = tuple(_with_held(agents))
    difficulty = {"subtopics": n, "topology": topology}
    parts: dict[str, list[Part]] = {agent: [] for agent in named}
    for k in range(trees):
        tree = generator.synthetic_tree(sampling.seed + k, difficulty)
        engine = Engine(tree, IDEAL)
        readings = ideal_readings(engine)
        for agent in named:
            parts[agent].append(_measure(tree, engine, readings, agent, sampling))
    return [Bounds(topology, n, agent, tuple(found)) for agent, found in parts.items()]


def _measure(tree: Tree, engine: Engine, readings: MenuReadings, agent: str, sampling: Sampling) -> Part:
    needs = engine.prerequisites
    analytic = analytic_mean(needs)
    law = random_lengths(needs) if agent == RANDOM else None
    if law is not None:
        return Part(tree.id, law, 1.0, True, analytic)
    played = [traverse(engine, readings, agent, seed) for seed in sampling.seeds(tree)]
    chance = full_chance(engine, readings) if agent == FLOOR else 1.0
    full = sum(each.full for each in played) / len(played) if chance is None else chance
    return Part(tree.id, Lengths.of([each.turns for each in played]), full, chance is not None, analytic)


def checked_agents(names: Iterable[str]) -> tuple[str, ...]:
    """Return the agents that are named, each once.

    Raises:
        OptionError: there are no bounds for one of them, or none is named.
    """
    named = tuple(dict.fromkeys(names))
    for name in named:
        if name not in AGENTS:
            raise OptionError(f"bounds are measured for {' and '.join(AGENTS)}, not '{name}'{suggest(name, AGENTS)}")
    if not named:
        raise OptionError(f"name an agent: {', '.join(AGENTS)}")
    return named


def _with_held(agents: Iterable[str]) -> Iterator[str]:
    for name in checked_agents(agents):
        yield name
        if name == FLOOR:
            yield HELD
