"""Synthetic research trees: from a seed to a valid tree of fiction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from inquitree_gym.fiction.documents import FICTION, TOPIC, Document, RandomStream, check_seed, count_range
from inquitree_gym.inquiry.generator.causal_model import CausalModel, Parents, draw_model
from inquitree_gym.inquiry.generator.difficulty import TOPOLOGIES, Difficulty
from inquitree_gym.inquiry.generator.text import RelationText, relation_texts
from inquitree_gym.trees.earlier_schema import EarlierTree
from inquitree_gym.trees.fields import CANARY, GENERATED

VERSION = 3
"""Version of the generator. A seed identifies a tree only within one version."""
MAX_PARENTS = 3
"""Largest number of prerequisites per subtopic. Questions about more causes are hard to read."""
MAX_CONCLUSIONS = 80
"""Largest number of conclusion items, so that judges read a conclusion that states all of them to the end."""
JOINT_CONCLUSIONS = 0.4
"""Probability that a conclusion item also covers a prerequisite of its subtopic."""
LETTERS = "abcd"
"""Suffixes of study ids."""


@dataclass(frozen=True, slots=True)
class _DraftSubtopic:
    """A subtopic before its question is worded."""

    needs: tuple[int, ...]
    text: RelationText
    studies: tuple[Document, ...]


def synthetic_tree(seed: int, difficulty: Difficulty | Mapping[str, Any] | None = None) -> EarlierTree:
    """Return the synthetic tree of a seed, identical on every platform for one seed and difficulty.

    Args:
        seed: from 0 to 2^63 - 1. Even seeds are for training, odd seeds for testing.
        difficulty: a `Difficulty`, or its settings by name. None takes the defaults.

    Raises:
        OptionError: the seed is out of range, or a setting is unknown or out of range.
    """
    check_seed(seed)
    settings = Difficulty.of(difficulty)
    shape = RandomStream(seed, "shape")
    topology = shape.choice(TOPOLOGIES) if settings.topology == "mixed" else settings.topology
    count = shape.between(*count_range(settings.subtopics))
    parents = draw_prerequisites(count, topology, settings.density_or_default, shape)
    model = draw_model(parents, settings, seed)
    texts = relation_texts(model, RandomStream(seed, "wording"), RandomStream(seed, "numbers"))
    studies = count_range(settings.studies)
    drafts = [
        _DraftSubtopic(needs, text, tuple(text.studies(shape.between(*studies))))
        for needs, text in zip(parents, texts, strict=True)
    ]
    if settings.shuffled:
        drafts = _shuffled(drafts, shape)
    return EarlierTree.model_validate(_document(seed, settings, model, drafts))


def draw_prerequisites(count: int, topology: str, density: float, stream: RandomStream) -> Parents:
    """Return the prerequisites of ``count`` subtopics in topological order, without redundant edges.

    Args:
        count: number of subtopics, at least 1.
        topology: ``independent``, ``chain``, ``dag`` or ``layered``.
        density: for ``dag`` the probability of each of `MAX_PARENTS` attempts to add a prerequisite, for ``layered``
            the probability of each prerequisite after the first. 0 to 1.
        stream: source of the draws.
    """
    if topology == "independent":
        return [()] * count
    if topology == "chain":
        return [(i - 1,) if i else () for i in range(count)]
    return _random_dag(count, density, stream) if topology == "dag" else _layered_dag(count, density, stream)


def _random_dag(count: int, density: float, stream: RandomStream) -> Parents:
    """Draw earlier subtopics as prerequisites, and keep those that no other one implies."""
    parents: Parents = []
    ancestors: list[int] = []
    for i in range(count):
        chosen: set[int] = set()
        for _ in range(MAX_PARENTS if i else 0):
            if stream.chance(density):
                other = stream.below(i)
                if not any(ancestors[other] >> j & 1 or ancestors[j] >> other & 1 for j in chosen):
                    chosen.add(other)
        parents.append(tuple(sorted(chosen)))
        bits = 0
        for j in chosen:
            bits |= ancestors[j] | 1 << j
        ancestors.append(bits)
    return parents


def _layered_dag(count: int, density: float, stream: RandomStream) -> Parents:
    """Draw layers of up to √n + 1 subtopics, whose prerequisites all lie in the layer above."""
    widest = int(count**0.5) + 1
    parents: Parents = []
    above: list[int] = []
    while len(parents) < count:
        layer = range(len(parents), min(count, len(parents) + stream.between(1, widest)))
        for _ in layer:
            order = stream.shuffled(above)[:MAX_PARENTS]
            parents.append(tuple(sorted(j for place, j in enumerate(order) if not place or stream.chance(density))))
        above = list(layer)
    return parents


def _shuffled(drafts: list[_DraftSubtopic], stream: RandomStream) -> list[_DraftSubtopic]:
    """Return the subtopics in random order, with renumbered prerequisites."""
    order = stream.shuffled(range(len(drafts)))
    place = {old: new for new, old in enumerate(order)}
    return [replace(drafts[old], needs=tuple(sorted(place[j] for j in drafts[old].needs))) for old in order]


def _document(seed: int, settings: Difficulty, model: CausalModel, drafts: list[_DraftSubtopic]) -> Document:
    groups = _conclusion_groups([draft.needs for draft in drafts], RandomStream(seed, "items"))
    concluded = {i for group in groups for i in group}
    subtopics = tuple(_subtopic(i, draft, i not in concluded) for i, draft in enumerate(drafts))
    conclusions = tuple(_conclusion(k, [(i, drafts[i]) for i in group]) for k, group in enumerate(groups, 1))
    nodes = [subtopic["id"] for subtopic in subtopics]
    nodes += [study["id"] for subtopic in subtopics for study in subtopic["studies"]]
    nodes += [item["id"] for item in conclusions]
    return {
        "format": "inquitree/1",
        "id": f"synthetic-{seed}-{settings.digest}",
        "version": VERSION,
        "canary": CANARY,
        "paper": FICTION | {"title": f"Synthetic tree {seed}: {model.science.subject} of {model.place}"},
        "topic": TOPIC.format(subject=model.science.subject, scene=model.place),
        "subtopics": subtopics,
        "conclusions": conclusions,
        "provenance": {
            "sources": (_source(seed, settings),),
            "support": tuple({"node": node, "sources": ("S1",), "strength": "unconfirmed"} for node in nodes),
        },
    }


def _source(seed: int, settings: Difficulty) -> Document:
    plain = json.dumps(settings.as_dict())
    return {
        "id": "S1",
        "address": f"{GENERATED}inquitree-gym/synthetic/{VERSION}?seed={seed}&difficulty={plain}",
        "what": "seed and settings from which the whole tree, facts included, was made up",
    }


def _subtopic(index: int, draft: _DraftSubtopic, control: bool) -> Document:
    name = f"s{index + 1}"
    ids = [f"{name}{letter}" for letter in LETTERS[: len(draft.studies)]]
    return draft.text.question() | {
        "id": name,
        "name": draft.text.relation.outcome.short.removeprefix("the ").capitalize()[:60],
        "prerequisites": tuple(f"s{j + 1}" for j in draft.needs),
        "studies": tuple(
            _told(study, [other for other in ids if other != own]) | {"id": own, "control": control}
            for own, study in zip(ids, draft.studies, strict=True)
        ),
    }


def _told(study: Document, others: list[str]) -> Document:
    """Return a study whose fakes are told by the other studies of its subtopic, which all show the true mechanism."""
    return study | {"fakes": tuple(fake | {"told_by": tuple(others)} for fake in study["fakes"])}


def _conclusion_groups(parents: Parents, stream: RandomStream) -> list[tuple[int, ...]]:
    """Return the subtopics covered by each conclusion item: one, or one and a prerequisite. None in two items."""
    groups: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for i in reversed(range(len(parents))):
        if i in taken:
            continue
        free = [j for j in parents[i] if j not in taken]
        groups.append((stream.choice(free), i) if free and stream.chance(JOINT_CONCLUSIONS) else (i,))
        taken.update(groups[-1])
    return sorted(stream.shuffled(groups)[:MAX_CONCLUSIONS])


def _conclusion(number: int, about: list[tuple[int, _DraftSubtopic]]) -> Document:
    """Return a conclusion item. Its k-th false variant follows from the k-th fake results."""
    text, *false_variants = (
        _joint_conclusion([draft for _, draft in about], k) for k in range(1 + len(about[0][1].studies[0]["fakes"]))
    )
    return {
        "id": f"c{number}",
        "text": text,
        "needs": tuple(tuple(f"s{i + 1}{letter}" for letter in LETTERS[: len(draft.studies)]) for i, draft in about),
        "false_variants": tuple(false_variants),
    }


def _joint_conclusion(drafts: list[_DraftSubtopic], alternative: int) -> str:
    texts = (draft.text for draft in drafts)
    first, *rest = (text.conclusion(text.relation.mechanisms[alternative]) for text in texts)
    return "; ".join([first, *(clause[0].lower() + clause[1:] for clause in rest)]) + "."
