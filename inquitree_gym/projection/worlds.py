"""Synthetic worlds: projection tasks about signed causal links between fictional variables.

A study manipulates one factor and measures several quantities. The factor acts on each of them through a mediator, so
the sign of a claim is the product of the signs of two links. The procedure states the first link of every route as
earlier work, and the second link of a *deducible* claim. The sign of the second link of any other claim is a fair coin,
and no disclosed text depends on it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.fiction.documents import (
    FICTION,
    SCIENCES,
    WORLD,
    Count,
    Document,
    Pair,
    RandomStream,
    Science,
    Variable,
    VariablePool,
    check_seed,
    checked_count,
    checked_number,
    count_range,
    listed,
)
from inquitree_gym.seeds import Hashes, hash_words
from inquitree_gym.trees.disclosure import MAX_CLAIMS, ProjectionTask
from inquitree_gym.trees.fields import CANARY, GENERATED

WORLD_VERSION = 2
"""Version of the generator of worlds. A seed identifies a world only within one version."""
_COUNT, _REMAINDER, _SIGNS, _RANKS = 1, 2, 3, 16
"""Words that extend a world's hash, by the quantity that is drawn. Ranks take one word per claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """Settings of synthetic worlds."""

    claims: Count = 5
    """Number of claims M, or a range from which each world draws it. 1 to `MAX_CLAIMS`."""
    deducible: float = 1.0
    """Share of the claims whose sign follows from what the procedure states. 0 to 1. If share · M is not a whole
    number, it is rounded down or up at random, so that the mean over worlds is the share."""

    def __post_init__(self) -> None:
        """Validate the settings.

        Raises:
            OptionError: a setting is out of range.
        """
        object.__setattr__(self, "claims", checked_count("claims", self.claims, MAX_CLAIMS))
        object.__setattr__(self, "deducible", checked_number("deducible", self.deducible, 0, 1))

    @property
    def most_claims(self) -> int:
        """Largest number of claims of a world."""
        return count_range(self.claims)[1]

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that identify the settings."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:8]


class WorldNumbers(NamedTuple):
    """Claims of N worlds in numbers, in as many columns as the settings allow claims."""

    claims: NDArray[np.int64]
    """Shape (N,): number of claims M."""
    signs: NDArray[np.int8]
    """Shape (N, columns): 1 if the quantity rises with the factor, -1 if it falls, 0 behind the last claim."""
    deducible: NDArray[np.bool_]
    """Shape (N, columns): True if the sign follows from what the procedure states."""


def world_numbers(seeds: Hashes, settings: WorldSettings) -> WorldNumbers:
    """Return the claims of the worlds of ``seeds``, shape (N,). They equal those of `synthetic_task` for each seed."""
    fewest, most = count_range(settings.claims)
    columns = np.arange(most)
    roots = hash_words(np.full(len(seeds), WORLD_VERSION, np.uint64), seeds)
    claims = fewest + (_draw(roots, _COUNT) % np.uint64(most - fewest + 1)).astype(np.int64)
    is_claim = columns < claims[:, None]
    rises = _draw(roots, _SIGNS)[:, None] >> columns.astype(np.uint64) & np.uint64(1)
    signs = np.where(is_claim, 2 * rises.astype(np.int8) - 1, 0).astype(np.int8)
    remainder = (_draw(roots, _REMAINDER) >> np.uint64(11)) * 2.0**-53
    deducible = _ranks(roots, is_claim) + remainder[:, None] < settings.deducible * claims[:, None]
    return WorldNumbers(claims, signs, deducible & is_claim)


def _draw(roots: Hashes, word: int) -> Hashes:
    return hash_words(roots, np.array(word, np.uint64))


def _ranks(roots: Hashes, is_claim: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the place of every claim in a random order of its world's claims."""
    words = np.arange(_RANKS, _RANKS + is_claim.shape[1], dtype=np.uint64)
    keys = hash_words(np.repeat(roots[:, None], len(words), axis=1), words)
    keys[~is_claim] = np.iinfo(np.uint64).max
    return keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")


class Link(NamedTuple):
    """A causal link between two variables."""

    cause: str
    effect: str
    sign: int
    """1 if the effect rises with the cause, -1 if it falls."""
    is_stated: bool
    """True if the procedure states the sign."""


@dataclass(frozen=True, slots=True)
class World:
    """A factor, the quantities that it acts on, and the links between them."""

    seed: int
    settings: WorldSettings
    science: Science
    field: str
    scene: str
    factor: Variable
    outcomes: tuple[Variable, ...]
    signs: tuple[int, ...]
    """Sign of the whole effect of the factor on each outcome."""
    links: tuple[Link, ...]

    def task(self) -> ProjectionTask:
        """Return the projection task of the world."""
        return ProjectionTask.model_validate(_document(self))


def synthetic_task(seed: int, settings: WorldSettings | None = None) -> ProjectionTask:
    """Return the projection task of a seed's world, identical on every platform for one seed and settings.

    Args:
        seed: from 0 to 2^63 - 1. Even seeds are for training, odd seeds for testing. See `tree_seed`.
        settings: None takes the defaults.

    Raises:
        OptionError: the seed is out of range.
    """
    return synthetic_world(seed, settings or WorldSettings()).task()


def synthetic_world(seed: int, settings: WorldSettings) -> World:
    """Return the world of a seed. Raise `OptionError` for a seed out of range."""
    check_seed(seed)
    numbers = world_numbers(np.array([seed], np.uint64), settings)
    count = int(numbers.claims[0])
    signs = tuple(numbers.signs[0, :count].tolist())
    stream = RandomStream(seed, "world")
    field = stream.choice(tuple(SCIENCES))
    pool = VariablePool(SCIENCES[field], RandomStream(seed, "names"), stream)
    scene, factor = pool.named(SCIENCES[field].scene), pool.factor()
    outcomes = tuple(pool.outcome(near=False) for _ in range(count))
    links = _links(factor, outcomes, signs, numbers.deducible[0].tolist(), pool, RandomStream(seed, "mechanisms"))
    return World(seed, settings, SCIENCES[field], field, scene, factor, outcomes, signs, links)


def _links(
    factor: Variable,
    outcomes: tuple[Variable, ...],
    signs: tuple[int, ...],
    deducible: list[bool],
    pool: VariablePool,
    stream: RandomStream,
) -> tuple[Link, ...]:
    """Draw a mediator for every outcome, new or that of the outcome before, and the signs of both links."""
    links: list[Link] = []
    for outcome, sign, is_deducible in zip(outcomes, signs, deducible, strict=False):
        if not links or stream.chance(0.5):
            first = Link(factor.short, pool.outcome(near=False).short, stream.choice((1, -1)), True)
            links.append(first)
        links.append(Link(first.effect, outcome.short, sign * first.sign, is_deducible))
    return tuple(links)


def _document(world: World) -> Document:
    names = [f"s{number}" for number in range(1, len(world.outcomes) + 1)]
    support = tuple({"node": name, "sources": ("S1",), "strength": "unconfirmed"} for name in names)
    return {
        "format": "projection/1",
        "id": f"world-{world.seed}-{world.settings.digest}",
        "version": WORLD_VERSION,
        "canary": CANARY,
        "paper": FICTION | {"title": f"Synthetic world {world.seed}: {world.science.subject} of {world.scene}"},
        "disclosure": _disclosure(world, names),
        "provenance": {"sources": (_source(world),), "support": support},
    }


def _source(world: World) -> Document:
    plain = json.dumps(world.settings.as_dict())
    return {
        "id": "S1",
        "address": f"{GENERATED}inquitree-gym/world/{WORLD_VERSION}?seed={world.seed}&settings={plain}",
        "what": "seed and settings from which the whole world, facts included, was made up",
    }


def _disclosure(world: World, names: list[str]) -> Document:
    x, ys = world.factor.short, [each.short for each in world.outcomes]
    claims = tuple(_claim(world, i, name) for i, name in enumerate(names))
    changes = [_worded(WORLD.change, sign).format(y=y) for sign, y in zip(world.signs, ys, strict=True)]
    findings = [f"that {claim['independent']} {claim['relation']} {claim['dependent']}" for claim in claims]
    return {
        "topic": WORLD.topic.format(science=world.field),
        "domain": f"synthetic {world.field}",
        "question": WORLD.question.format(x=x),
        "hypothesis": WORLD.hypothesis.format(x=x, changes=listed(changes)),
        "null_hypothesis": WORLD.null.format(x=x, ys=listed(ys)),
        "procedure": _procedure(world, listed(ys)),
        "outcome": WORLD.outcome.format(findings=listed(findings)),
        "claims": claims,
    }


def _claim(world: World, i: int, name: str) -> Document:
    independent, dependent = WORLD.independent.format(x=world.factor.short), world.outcomes[i].short
    relation, opposite = (_worded(WORLD.relation, sign) for sign in (world.signs[i], -world.signs[i]))
    return {
        "id": f"p{i + 1}",
        "independent": independent,
        "relation": relation,
        "dependent": dependent,
        "contraries": (f"{independent[0].upper()}{independent[1:]} {opposite} {dependent}.",),
        "evidence": (name,),
    }


def _procedure(world: World, ys: str) -> tuple[str, ...]:
    """Return the trial, what earlier work says about the links in random order, and the measurement."""
    stream = RandomStream(world.seed, "wording")
    x, groups, tool = world.factor.short, stream.between(4, 9), stream.choice(world.science.tools)
    known = [_known(link, stream) for link in world.links]
    return (
        WORLD.trial.format(scene=world.scene, k=groups, x=x),
        *stream.shuffled(known),
        WORLD.measurement.format(ys=ys, tool=tool),
    )


def _known(link: Link, stream: RandomStream) -> str:
    """Return the step that states what earlier work says about a link."""
    fact = stream.choice(WORLD.facts)
    if not link.is_stated:
        return WORLD.open.format(a=link.cause, b=link.effect)
    return fact.text.format(a=link.cause, b=link.effect, verb=_worded(fact.verb, link.sign))


def _worded(pair: Pair, sign: int) -> str:
    return pair[sign < 0]
