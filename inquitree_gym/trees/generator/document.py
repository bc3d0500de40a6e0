"""The document of a synthetic tree: its nodes, its conclusion items, and what it says of where it comes from."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from inquitree_gym.trees.generator.rng import Lots
from inquitree_gym.trees.generator.settings import Difficulty
from inquitree_gym.trees.generator.topology import Parents
from inquitree_gym.trees.generator.wording import Account, Studied, topic
from inquitree_gym.trees.generator.world import World
from inquitree_gym.trees.schema import CANARY

VERSION = 1
"""Version of the generator; one seed gives one tree under one version."""
MOST_ITEMS = 80
"""Conclusion items of one tree at most, so that a conclusion that states them all is still read whole."""
JOINING = 0.4
"""Chance that a conclusion item takes in a prerequisite of its subtopic as well."""

LETTERS = "abcd"
"""Ends of study ids, in order."""

Document = dict[str, Any]


class Part(NamedTuple):
    """What was drawn for one subtopic."""

    needs: tuple[int, ...]
    account: Account
    studies: tuple[Studied, ...]

    @property
    def name(self) -> str:
        """A short name for drawings."""
        return self.account.relation.outcome.short.removeprefix("the ").capitalize()[:60]


def document(seed: int, settings: Difficulty, world: World, parts: list[Part]) -> Document:
    """Return the tree as plain values, ready to be validated."""
    items = _items([part.needs for part in parts], Lots(seed, "items"))
    concluded = {i for item in items for i in item}
    subtopics = tuple(_subtopic(i, part, i not in concluded) for i, part in enumerate(parts))
    conclusions = tuple(_conclusion(k, [(i, parts[i]) for i in item]) for k, item in enumerate(items, 1))
    nodes = [subtopic["id"] for subtopic in subtopics]
    nodes += [study["id"] for subtopic in subtopics for study in subtopic["studies"]]
    nodes += [item["id"] for item in conclusions]
    return {
        "format": "inquitree/1",
        "id": f"synthetic-{seed}-{settings.digest}",
        "version": VERSION,
        "canary": CANARY,
        "paper": _PAPER | {"title": f"Synthetic tree {seed}: {world.field.subject} of {world.place}"},
        "topic": topic(world),
        "subtopics": subtopics,
        "conclusions": conclusions,
        "provenance": {
            "sources": (_source(seed, settings),),
            "support": tuple({"node": node, "sources": ("S1",), "strength": "unconfirmed"} for node in nodes),
        },
    }


_PAPER: Document = {
    "authors": ("the generator of inquitree-gym",),
    "journal": "none: generated fiction, true of no world but its own",
    "year": 2026,
    "published": {"date": "2026-01-01", "precision": "year"},
    "doi": "",
    "licence": "Apache-2.0, as the generator",
}
"""A paper that there is not; its date is the year of this version of the generator."""


def _source(seed: int, settings: Difficulty) -> Document:
    """Name the call that makes this tree again."""
    plain = json.dumps(settings.as_dict())
    return {
        "id": "S1",
        "address": f"generated:inquitree-gym/synthetic/{VERSION}?seed={seed}&difficulty={plain}",
        "what": "seed and settings from which the whole tree, facts included, was made up",
    }


def _subtopic(index: int, part: Part, control: bool) -> Document:
    name, asked = f"s{index + 1}", part.account.question()
    return {
        "id": name,
        "text": asked.text,
        "name": part.name,
        "prerequisites": tuple(f"s{j + 1}" for j in part.needs),
        "hints": asked.hints,
        "studies": tuple(
            {
                "id": f"{name}{letter}",
                "text": study.asked.text,
                "hints": study.asked.hints,
                "result": study.results[0],
                "fakes": study.results[1:],
                "control": control,
            }
            for letter, study in zip(LETTERS, part.studies, strict=False)
        ),
    }


def _items(parents: Parents, lots: Lots) -> list[tuple[int, ...]]:
    """Return what each conclusion item speaks of: one subtopic, or one with a prerequisite; none in two items."""
    items: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for i in reversed(range(len(parents))):
        if i in taken:
            continue
        free = [j for j in parents[i] if j not in taken]
        items.append((lots.pick(free), i) if free and lots.chance(JOINING) else (i,))
        taken.update(items[-1])
    return sorted(lots.shuffled(items)[:MOST_ITEMS])


def _conclusion(number: int, about: list[tuple[int, Part]]) -> Document:
    """Return an item; each of its false variants says what would follow were the fakes of one number true."""
    variants = [_claim([part for _, part in about], world) for world in range(len(about[0][1].studies[0].results))]
    return {
        "id": f"c{number}",
        "text": variants[0],
        "needs": tuple(tuple(f"s{i + 1}{letter}" for letter in LETTERS[: len(part.studies)]) for i, part in about),
        "false_variants": tuple(variants[1:]),
    }


def _claim(parts: list[Part], world: int) -> str:
    first, *rest = (part.account.claim(part.account.relation.mechanisms[world]) for part in parts)
    return "; ".join([first, *(text[0].lower() + text[1:] for text in rest)]) + "."
