"""Hidden causal models of synthetic trees: variables, and the mechanisms between them.

Each subtopic asks about one relation between causes and an outcome. For most relations two or three mechanisms that
differ in direction or size are drawn, in random order: the poles of an axis. Which one holds is up to the world. The
other relations have one mechanism, which holds in every world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inquitree_gym.fiction.documents import SCIENCES, RandomStream, Science, Variable, VariablePool
from inquitree_gym.inquiry.generator.difficulty import Difficulty
from inquitree_gym.trees.document import MAX_AXES

KINDS_BY_CAUSES: tuple[tuple[str, ...], ...] = (
    ("linear", "threshold"),
    ("linear", "threshold", "mediation"),
    ("moderation", "attribution"),
    ("attribution",),
)
"""Kinds of question by the number of prerequisites."""
STRENGTHS = {3: 1.0, 2: 0.45, 1: 0.2}
"""Share of a large effect by strength: large, medium, small."""
DOSES = 5
"""Levels of a cause that studies examine, evenly spaced up to the highest."""
MEDIATED_SHARES = {"all": 1.0, "most": 0.75, "half": 0.5, "quarter": 0.25, "against": -0.6}
"""Share of an effect that passes through a mediator. Negative if the mediator counteracts it."""
MODERATIONS = {"gone": 0.0, "weaker": 0.4, "double": 2.0, "triple": 3.0, "reversed": -1.0}
"""Size of an effect under a high moderator, relative to its size under a low one."""

FEW_AXES, SMALL_TREE = 8, 10
"""Most axes of a tree with up to this many subtopics."""

Parents = list[tuple[int, ...]]
"""Indices of the prerequisites of each subtopic, ascending."""
Response = Callable[..., float]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One way in which causes may act on an outcome."""

    effect: str
    """Key of the effect, such as ``up3`` or ``half``. Unique among the mechanisms of a relation."""
    response: Response
    """Relative change of the outcome. Takes the level of each cause, from 0 (resting) to 1 (highest)."""

    @property
    def direction(self) -> str:
        """The effect without its number: ``up`` for ``up3``."""
        return self.effect.rstrip("0123456789")

    @property
    def number(self) -> int:
        """The number at the end of the effect: 3 for ``up3``."""
        return int(self.effect.removeprefix(self.direction))


@dataclass(frozen=True, slots=True)
class Relation:
    """The subject of one subtopic."""

    kind: str
    """``linear``, ``threshold``, ``mediation``, ``moderation`` or ``attribution``."""
    causes: tuple[Variable, ...]
    outcome: Variable
    mechanisms: tuple[Mechanism, ...]
    """Poles of the relation's axis. One that holds in every world, if the relation has no axis."""
    large: float
    """Size of a large effect, relative to the resting value."""
    noise: float
    is_near: bool
    """True if the question repeats that of the previous subtopic for another name."""


@dataclass(frozen=True, slots=True)
class CausalModel:
    """One relation per subtopic, set in an invented science and place."""

    science: Science
    place: str
    relations: tuple[Relation, ...]


def axis_count(subtopics: int) -> int:
    """Return how many relations have an axis: at most `FEW_AXES` in small trees, whose worlds can be listed."""
    return min(subtopics, FEW_AXES if subtopics <= SMALL_TREE else MAX_AXES)


def draw_model(parents: Parents, settings: Difficulty, seed: int) -> CausalModel:
    """Return the causal model of a tree, in which the outcomes of prerequisites become causes.

    A subtopic without prerequisites asks about an external factor. With one prerequisite, the variable established
    there is the cause, or the mediator of a new factor. With several, all their variables are causes.
    """
    stream, fate = RandomStream(seed, "world"), RandomStream(seed, "mechanisms")
    science = SCIENCES[stream.choice(settings.fields)]
    pool = VariablePool(science, RandomStream(seed, "names"), stream)
    place = pool.named(science.scene)
    with_axis = set(RandomStream(seed, "axes").shuffled(range(len(parents)))[: axis_count(len(parents))])
    relations: list[Relation] = []
    for i, needs in enumerate(parents):
        near = bool(relations) and stream.chance(settings.nearness)
        outcome = pool.outcome(near)
        kind = stream.choice(KINDS_BY_CAUSES[len(needs)])
        if near and relations[-1].kind in KINDS_BY_CAUSES[len(needs)]:
            kind = relations[-1].kind
        causes = tuple(relations[j].outcome for j in needs)
        if kind == "mediation" or not causes:
            causes = (pool.factor(), *causes)
        mechanisms = _mechanisms(kind, len(causes), settings, fate)[: None if i in with_axis else 1]
        relations.append(Relation(kind, causes, outcome, mechanisms, settings.effect, settings.noise, near))
    return CausalModel(science, place, tuple(relations))


def _mechanisms(kind: str, causes: int, settings: Difficulty, stream: RandomStream) -> tuple[Mechanism, ...]:
    """Draw a mechanism for each pole, in random order."""
    effects, null = _candidates(kind, causes, settings.effect, stream)
    has_null = stream.chance(settings.null_share * settings.poles)
    return tuple(stream.shuffled([*stream.shuffled(effects)[: settings.poles - has_null], *[null] * has_null]))


def _candidates(kind: str, causes: int, large: float, stream: RandomStream) -> tuple[list[Mechanism], Mechanism]:
    """Return all mechanisms of one kind that have an effect, and the null mechanism."""
    signed = (("up", large), ("down", -large))
    if kind == "linear":
        effects = {f"{sign}{k}": _linear(size * share) for sign, size in signed for k, share in STRENGTHS.items()}
        return _named_mechanisms(effects), Mechanism("null", _linear(0.0))
    if kind == "threshold":
        effects = {f"{sign}{dose}": _threshold(size, dose) for sign, size in signed for dose in range(2, DOSES)}
        return _named_mechanisms(effects), Mechanism("null", _threshold(0.0, DOSES))
    if kind == "attribution":
        effects = {}
        for sign, size in signed:
            effects |= {f"{sign}{j}": _additive(tuple(size * (i == j) for i in range(causes))) for j in range(causes)}
            effects[f"{sign}all"] = _additive((size / 2,) * causes)
        return _named_mechanisms(effects), Mechanism("null", _additive((0.0,) * causes))
    size = stream.choice(signed)[1]
    if kind == "mediation":
        effects = {name: _mediated(size, share) for name, share in MEDIATED_SHARES.items()}
        return _named_mechanisms(effects), Mechanism("null", _mediated(size, 0.0))
    effects = {name: _moderated(size, factor) for name, factor in MODERATIONS.items()}
    return _named_mechanisms(effects), Mechanism("null", _moderated(size, 1.0))


def _named_mechanisms(responses: dict[str, Response]) -> list[Mechanism]:
    return [Mechanism(effect, response) for effect, response in responses.items()]


def _linear(size: float) -> Response:
    return lambda level: size * level


def _threshold(size: float, dose: int) -> Response:
    return lambda level: size if level * DOSES >= dose - 0.5 else 0.0


def _mediated(size: float, share: float) -> Response:
    """Return a response to the cause and to the mediator, whose level runs from 0 (clamped) to 1 (free)."""
    return lambda level, mediator: size * level * (1 - share * (1 - mediator))


def _moderated(size: float, factor: float) -> Response:
    return lambda level, moderator: size * level * (1 + (factor - 1) * moderator)


def _additive(sizes: tuple[float, ...]) -> Response:
    return lambda *levels: sum(size * level for size, level in zip(sizes, levels, strict=True))
