"""Draws a hidden causal model: variables for the subtopics, and what might hold between them."""

from __future__ import annotations

from itertools import cycle

from inquitree_gym.trees.generator.naming import Names
from inquitree_gym.trees.generator.rng import Lots
from inquitree_gym.trees.generator.settings import Difficulty
from inquitree_gym.trees.generator.topology import Parents
from inquitree_gym.trees.generator.vocabulary import FIELDS, Field
from inquitree_gym.trees.generator.world import (
    DOSES,
    GATES,
    SHARES,
    STRENGTHS,
    Gate,
    Mechanism,
    Pull,
    Relation,
    Route,
    Slope,
    Step,
    Variable,
    World,
)

KINDS: tuple[tuple[str, ...], ...] = (("slope", "step"), ("slope", "step", "route"), ("gate", "pull"), ("pull",))
"""Kinds of question by the number of subtopics that it builds on."""


def draw_world(parents: Parents, settings: Difficulty, seed: int) -> World:
    """Return the world behind a tree: what a subtopic asks about is made of what its prerequisites established.

    A question without prerequisites is about a factor from outside. One with a prerequisite takes the variable that
    was established there as the cause, or as the mediator of a new factor; one with several takes all of theirs.
    """
    names, lots, fate = Names(Lots(seed, "names")), Lots(seed, "world"), Lots(seed, "mechanisms")
    field = FIELDS[lots.pick(settings.fields)]
    place = _named(field.scene, names.new())
    casting = _Casting(field, names, lots)
    relations: list[Relation] = []
    for own in parents:
        near = bool(relations) and lots.chance(settings.nearness)
        outcome = casting.outcome(near)
        kind = lots.pick(KINDS[len(own)])
        if near and relations[-1].kind in KINDS[len(own)]:
            kind = relations[-1].kind
        causes = tuple(relations[j].outcome for j in own)
        if kind == "route" or not causes:
            causes = (casting.factor(), *causes)
        mechanisms = _mechanisms(kind, len(causes), settings, fate)
        relations.append(Relation(kind, causes, outcome, mechanisms, settings.effect, settings.noise, near))
    return World(field, place, tuple(relations))


class _Casting:
    """Gives the variables their parts: no quantity, kind of thing or factor comes again before all have been used."""

    def __init__(self, field: Field, names: Names, lots: Lots) -> None:
        self._names = names
        self._lots = lots
        self._quantities = cycle(lots.shuffled(field.quantities))
        self._things = cycle(lots.shuffled(field.things))
        self._factors = cycle(lots.shuffled(field.factors))
        self._quantity = next(self._quantities)
        self._thing = next(self._things)

    def outcome(self, near: bool) -> Variable:
        """Return what the next subtopic reads: of the last one's parts where it is near, else of new ones."""
        if not near:
            self._quantity, self._thing = next(self._quantities), next(self._things)
        quantity, thing = self._quantity, _named(self._thing.form, self._names.new())
        return Variable(
            full=f"the {quantity.phrase} of {thing}",
            short=f"the {quantity.noun} of {thing}",
            noun=quantity.noun,
            thing=thing,
            units=self._thing.units,
            unit=quantity.unit,
            base=self._lots.between(quantity.low, quantity.high),
        )

    def factor(self) -> Variable:
        """Return a factor that no subtopic has asked about."""
        factor, name = next(self._factors), self._names.new()
        short = _named(factor.short, name)
        return Variable(_named(factor.form, name), short, short, "", "", factor.unit, factor.top)


def _named(form: str, name: str) -> str:
    return form.format(name, N=name.capitalize())


def _mechanisms(kind: str, causes: int, settings: Difficulty, lots: Lots) -> tuple[Mechanism, ...]:
    """Draw what might be true: one mechanism more than there are fakes, in an order of which each is equally likely."""
    effects, null = _possible(kind, causes, settings.effect, lots)
    count = settings.fakes + 1
    has_null = lots.chance(settings.null_share * count)
    return tuple(lots.shuffled([*lots.shuffled(effects)[: count - has_null], *[null] * has_null]))


def _possible(kind: str, causes: int, large: float, lots: Lots) -> tuple[list[Mechanism], Mechanism]:
    """Return every mechanism of one kind with an effect, and the one without."""
    if kind == "slope":
        sizes = {f"{way}{k}": s * share for way, s in _ways(large) for k, share in STRENGTHS.items()}
        return [Slope(name, size) for name, size in sizes.items()], Slope("null", 0.0)
    if kind == "step":
        steps = [Step(f"{way}{at}", size, at) for way, size in _ways(large) for at in range(2, DOSES)]
        return [*steps], Step("null", 0.0, DOSES)
    if kind == "pull":
        return _pulls(causes, large)
    size = lots.pick(_ways(large))[1]
    if kind == "route":
        return [Route(name, size, share) for name, share in SHARES.items()], Route("null", size, 0.0)
    return [Gate(name, size, factor) for name, factor in GATES.items()], Gate("null", size, 1.0)


def _pulls(causes: int, large: float) -> tuple[list[Mechanism], Mechanism]:
    pulls: list[Mechanism] = []
    for way, size in _ways(large):
        pulls += [Pull(f"{way}{j}", tuple(size * (i == j) for i in range(causes))) for j in range(causes)]
        pulls.append(Pull(f"{way}all", (size / 2,) * causes))
    return pulls, Pull("null", (0.0,) * causes)


def _ways(large: float) -> tuple[tuple[str, float], ...]:
    return ("up", large), ("down", -large)
