"""Chance at play: the random agents over menu actions, through the real engine and without its texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from inquitree_gym.analysis.bounds.turn_distribution import visited_sets
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.engine import Decision, Engine, Event, Kind, Phase, Reading, State
from inquitree_gym.envs.menu import Menu
from inquitree_gym.matching import Matcher
from inquitree_gym.trees import HINT_LEVELS

RANDOM, FLOOR, HELD = "random", "random-menu", "random-menu, held"
"""Two agents as they are, and the floor when it may draw the conclusion only once it has visited every subtopic."""

MAX_ASKED = 1 << 10
"""Sets of visited subtopics about which `full_chance` asks the engine."""

_BLOCK = 64
_NOTHING = Reading()
_DECISIONS = tuple(Reading(decision=each) for each in (Decision.REDO, Decision.EXPLORE, Decision.CONCLUDE))


class MenuReadings(NamedTuple):
    """What each menu text means where it can be said; in the order of `Menu`: subtopics, studies, decisions."""

    topic: tuple[Reading, ...]
    subtopic: tuple[tuple[Reading, ...], ...]
    """By subtopic under study."""
    result: tuple[Reading, ...]

    def at(self, state: State) -> tuple[Reading, ...]:
        """Return the readings that hold in ``state``."""
        if state.phase == Phase.SUBTOPIC:
            return self.subtopic[state.subtopic]
        return self.topic if state.phase == Phase.TOPIC else self.result


class Traversal(NamedTuple):
    """One episode."""

    turns: int
    """L: turns up to and including the decision to conclude."""
    full: bool
    """Whether every subtopic was visited by then."""


Choose = Callable[[State], int]
"""From a state to the number of a menu action."""


def menu_readings(engine: Engine, vectors: TreeVectors) -> MenuReadings:
    """Return what an embedder makes of the menu texts of its tree."""
    matcher, texts = Matcher(engine, vectors), Menu(vectors.tree).texts
    start = engine.start(0).state

    def read(phase: Phase, subtopic: int = -1) -> tuple[Reading, ...]:
        state = start._replace(phase=phase, subtopic=subtopic)
        return tuple(matcher.read(state, text) for text in texts)

    studies = tuple(read(Phase.SUBTOPIC, i) for i in range(engine.n))
    return MenuReadings(read(Phase.TOPIC), studies, read(Phase.RESULT))


def ideal_readings(engine: Engine) -> MenuReadings:
    """Return the readings under which a menu text means itself where it is a candidate, and nothing elsewhere."""
    subtopics = tuple(Reading(i, 1.0) for i in range(engine.n))
    silent = (_NOTHING,) * len(engine.subtopic_of)
    studies = tuple(
        (
            *(_NOTHING,) * engine.n,
            *(Reading(k, 1.0) if owner == i else _NOTHING for k, owner in enumerate(engine.subtopic_of)),
            *(_NOTHING,) * len(_DECISIONS),
        )
        for i in range(engine.n)
    )
    return MenuReadings(
        (*subtopics, *silent, *(_NOTHING,) * len(_DECISIONS)), studies, (*subtopics, *silent, *_DECISIONS)
    )


def misread(engine: Engine, readings: MenuReadings) -> list[tuple[int, int]]:
    """Return the subtopics whose own text is read as another one, with that other one (-1 for none).

    The agent ``random`` could wait for such a subtopic without end, so nothing is measured on such a tree.
    """
    least = engine.rules.threshold
    assert least is not None
    found = [r.candidate if r.similarity >= least else -1 for r in readings.topic[: engine.n]]
    return [(i, other) for i, other in enumerate(found) if other != i]


def choose_random(engine: Engine, rng: np.random.Generator) -> Choose:
    """Return the choices of `RandomAgent`, with its very draws."""
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


def choose_menu(engine: Engine, rng: np.random.Generator) -> Choose:
    """Return the choices of `RandomMenuAgent`, with its very draws."""
    draws = _draws(engine, rng)
    return lambda state: next(draws)


def choose_held(engine: Engine, rng: np.random.Generator) -> Choose:
    """Return choices as those of `choose_menu`, where "draw conclusion" is drawn anew until all is visited."""
    draws, everything = _draws(engine, rng), _everything(engine)
    conclude = _menu_size(engine) - 1

    def choose(state: State) -> int:
        return next(action for action in draws if action != conclude or state.visited == everything)

    return choose


CHOOSERS = {RANDOM: choose_random, FLOOR: choose_menu, HELD: choose_held}


def traverse(engine: Engine, readings: MenuReadings, agent: str, seed: int) -> Traversal:
    """Play one episode up to the decision to conclude.

    Args:
        engine: the rules, without a turn limit.
        readings: what its menu texts mean.
        agent: `RANDOM`, `FLOOR` or `HELD`.
        seed: that of the episode and of the agent.
    """
    choose = CHOOSERS[agent](engine, np.random.default_rng(seed))
    advance, at = engine.advance, readings.at
    state = engine.start(seed).state
    while state.phase < Phase.CONCLUSION:
        state = advance(state, at(state)[choose(state)]).state
    return Traversal(state.turn, state.visited == _everything(engine))


def full_chance(engine: Engine, readings: MenuReadings, max_sets: int = MAX_ASKED) -> float | None:
    """Return the exact probability that ``random-menu`` visits every subtopic before it draws the conclusion.

    Going from the full set of subtopics back to the empty one, the engine is asked what each action leads to.

    Returns: None where more than ``max_sets`` sets of visited subtopics would have to be gone through.
    """
    sets = visited_sets(engine.prerequisites, max_sets)
    if sets is None:
        return None
    *fewer, everything = sets
    chance = {everything: 1.0}
    goes_on = {visited: _explores(engine, readings, visited) for visited in fewer} | {everything: 1.0}
    for visited in reversed(fewer):
        again = further = 0.0
        for subtopic, p in _entries(engine, readings, visited).items():
            after = visited | 1 << subtopic
            if after == visited:
                again += p * goes_on[visited]
            else:
                further += p * goes_on[after] * chance[after]
        chance[visited] = further / (1 - again)
    return chance[0]


def _entries(engine: Engine, readings: MenuReadings, visited: int) -> dict[int, float]:
    """Return with which probability the next choice at TOPIC enters which subtopic."""
    outcomes = _outcomes(engine, readings, _standing(engine, visited, Phase.TOPIC))
    found: dict[int, float] = defaultdict(float)
    miss = sum(p for event, p in outcomes if event.kind == Kind.SUBTOPIC_HINT)
    tries = sum(miss**failures for failures in range(HINT_LEVELS + 1))
    for event, p in outcomes:
        if event.kind == Kind.SUBTOPIC:
            found[event.node] += p * tries
        else:  # every failure hints at one target, where H + 1 of them lead
            found[event.node] += p / miss * miss ** (HINT_LEVELS + 1)
    return found


def _explores(engine: Engine, readings: MenuReadings, visited: int) -> float:
    """Return the probability that a result is left for another subtopic and not for the conclusion."""
    outcomes = _outcomes(engine, readings, _standing(engine, visited, Phase.RESULT))
    back, end = (sum(p for event, p in outcomes if event.kind == kind) for kind in (Kind.TOPIC, Kind.CONCLUSION))
    return back / (back + end)


def _outcomes(engine: Engine, readings: MenuReadings, state: State) -> list[tuple[Event, float]]:
    """Return what an action drawn from the menu leads to, with probabilities; actions read alike stand together."""
    counts = Counter(readings.at(state))
    return [(engine.advance(state, reading), count / counts.total()) for reading, count in counts.items()]


def _standing(engine: Engine, visited: int, phase: Phase) -> State:
    visits = tuple(visited >> i & 1 for i in range(engine.n))
    return engine.start(0).state._replace(phase=phase, visited=visited, visits=visits, subtopic=0, study=0)


def _draws(engine: Engine, rng: np.random.Generator) -> Iterator[int]:
    """Yield actions, each drawn from the whole menu; drawn many at once they are the same, and come faster."""
    size = _menu_size(engine)
    while True:
        yield from rng.integers(size, size=_BLOCK).tolist()


def _everything(engine: Engine) -> int:
    return (1 << engine.n) - 1


def _menu_size(engine: Engine) -> int:
    return engine.n + len(engine.subtopic_of) + len(_DECISIONS)
