"""Synthetic research trees: from a seed to a valid tree of fiction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from inquitree_gym.fiction.documents import BECAUSE, FICTION, TOPIC, Document, RandomStream, check_seed, count_range
from inquitree_gym.inquiry.generator.causal_model import CausalModel, Parents, draw_model
from inquitree_gym.inquiry.generator.difficulty import TOPOLOGIES, Difficulty
from inquitree_gym.inquiry.generator.text import RelationText, relation_texts
from inquitree_gym.trees.fields import CANARY, GENERATED
from inquitree_gym.trees.schema import Tree

VERSION = 4
"""Version of the generator. A seed identifies a tree only within one version."""
MAX_PARENTS = 3
"""Largest number of prerequisites per subtopic. Questions about more causes are hard to read."""
JOINT_CONCLUSIONS = 0.4
"""Probability that a conclusion item also covers a prerequisite of its subtopic."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""Suffixes of study ids."""


@dataclass(frozen=True, slots=True)
class _DraftStudy:
    """A study, and the subtopic whose relation it measures. None for a control."""

    content: Document
    about: int | None


@dataclass(frozen=True, slots=True)
class _DraftSubtopic:
    """A subtopic before its question is worded."""

    needs: tuple[int, ...]
    text: RelationText
    question: Document
    studies: list[_DraftStudy]

    @property
    def has_axis(self) -> bool:
        return len(self.text.relation.mechanisms) > 1


def synthetic_tree(seed: int, difficulty: Difficulty | Mapping[str, Any] | None = None) -> Tree:
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
    own = count_range(settings.studies)
    drafts = _drafts(parents, texts, [shape.between(*own) for _ in parents])
    if settings.shuffled:
        drafts = _shuffled(drafts, shape)
    return Tree.model_validate(_document(seed, settings, model, drafts))


def _drafts(parents: Parents, texts: Sequence[RelationText], counts: Sequence[int]) -> list[_DraftSubtopic]:
    """Return the subtopics with their own studies, some of relations of others, and here and there a control."""
    drafts = [_DraftSubtopic(needs, text, text.question(), []) for needs, text in zip(parents, texts, strict=True)]
    for i, (draft, count) in enumerate(zip(drafts, counts, strict=True)):
        host = drafts[_host(i, parents)] if draft.has_axis and len(drafts) > 1 else None
        *studies, again = draft.text.studies(count + 1)
        draft.studies[:0] = [_DraftStudy(study, i if draft.has_axis else None) for study in studies]
        if host is not None:
            host.studies.append(_DraftStudy(draft.text.elsewhere(again), i))
    for i in {*range(0, len(drafts), 2), len(drafts) - 1}:
        drafts[i].studies.append(_DraftStudy(drafts[i].text.control(), None))
    return drafts


def _host(subtopic: int, parents: Parents) -> int:
    """Return the subtopic in which a relation is measured again: the first that builds on it, or else a neighbour."""
    after = next((i for i, needs in enumerate(parents) if subtopic in needs), None)
    return after if after is not None else subtopic + 1 if subtopic + 1 < len(parents) else subtopic - 1


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
    """Return the subtopics in random order, with renumbered prerequisites and readers."""
    order = stream.shuffled(range(len(drafts)))
    place = {old: new for new, old in enumerate(order)}
    return [
        _DraftSubtopic(
            tuple(sorted(place[j] for j in drafts[old].needs)),
            drafts[old].text,
            drafts[old].question,
            [replace(each, about=None if each.about is None else place[each.about]) for each in drafts[old].studies],
        )
        for old in order
    ]


def _document(seed: int, settings: Difficulty, model: CausalModel, drafts: list[_DraftSubtopic]) -> Document:
    fate = RandomStream(seed, "axes")
    axes = tuple(_axis(i, draft, fate) for i, draft in enumerate(drafts) if draft.has_axis)
    subtopics = tuple(_subtopic(i, draft, drafts) for i, draft in enumerate(drafts))
    readers: dict[str, list[str]] = {axis["id"]: [] for axis in axes}
    for study in (study for subtopic in subtopics for study in subtopic["studies"]):
        for axis in study["result"]["axes"]:
            readers[axis].append(study["id"])
    groups = _conclusion_groups(drafts, RandomStream(seed, "items"))
    conclusions = tuple(_conclusion(k, group, drafts, readers) for k, group in enumerate(groups, 1))
    nodes = [subtopic["id"] for subtopic in subtopics]
    nodes += [study["id"] for subtopic in subtopics for study in subtopic["studies"]]
    nodes += [item["id"] for item in conclusions]
    return {
        "format": "inquitree/2",
        "id": f"synthetic-{seed}-{settings.digest}",
        "version": VERSION,
        "canary": CANARY,
        "paper": FICTION | {"title": f"Synthetic tree {seed}: {model.science.subject} of {model.place}"},
        "topic": TOPIC.format(subject=model.science.subject, scene=model.place),
        "axes": axes,
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


def _axis(index: int, draft: _DraftSubtopic, stream: RandomStream) -> Document:
    poles = tuple(f"{draft.text.conclusion(mechanism)}." for mechanism in draft.text.relation.mechanisms)
    return {
        "id": f"a{index + 1}", "question": draft.question["text"], "poles": poles, "actual": stream.below(len(poles)),
        "settled_by": "data",
    }  # fmt: skip


def _subtopic(index: int, draft: _DraftSubtopic, drafts: Sequence[_DraftSubtopic]) -> Document:
    name = f"s{index + 1}"
    needs = ((f"s{j + 1}", drafts[j].text.relation.outcome.short) for j in draft.needs)
    return draft.question | {
        "id": name,
        "name": draft.text.relation.outcome.short.removeprefix("the ").capitalize()[:60],
        "prerequisites": tuple({"id": j, "because": BECAUSE.format(outcome=short, id=j)} for j, short in needs),
        "studies": tuple(_study(f"{name}{LETTERS[k]}", study) for k, study in enumerate(draft.studies)),
    }


def _study(name: str, draft: _DraftStudy) -> Document:
    axes = () if draft.about is None else (f"a{draft.about + 1}",)
    content = {part: draft.content[part] for part in ("text", "hints")}
    return content | {"id": name, "result": {"axes": axes, "texts": draft.content["texts"], "support": "recomputed"}}


def _conclusion_groups(drafts: Sequence[_DraftSubtopic], stream: RandomStream) -> list[tuple[int, ...]]:
    """Return the subtopics covered by each conclusion item: one, or one and a prerequisite. None in two items."""
    groups: list[tuple[int, ...]] = []
    taken = {i for i, draft in enumerate(drafts) if not draft.has_axis}
    for i in reversed(range(len(drafts))):
        if i in taken:
            continue
        free = [j for j in drafts[i].needs if j not in taken]
        groups.append((stream.choice(free), i) if free and stream.chance(JOINT_CONCLUSIONS) else (i,))
        taken.update(groups[-1])
    return sorted(groups)


def _conclusion(
    number: int, about: tuple[int, ...], drafts: Sequence[_DraftSubtopic], readers: Mapping[str, Sequence[str]]
) -> Document:
    """Return a conclusion item: a statement for each combination of the poles of its axes."""
    told = [[drafts[i].text.conclusion(mechanism) for mechanism in drafts[i].text.relation.mechanisms] for i in about]
    return {
        "id": f"c{number}",
        "axes": tuple(f"a{i + 1}" for i in about),
        "texts": {
            "".join(map(str, poles)): _joined([clauses[pole] for clauses, pole in zip(told, poles, strict=True)])
            for poles in product(*(range(len(clauses)) for clauses in told))
        },
        "needs": tuple(tuple(readers[f"a{i + 1}"]) for i in about),
    }


def _joined(clauses: Sequence[str]) -> str:
    first, *rest = clauses
    return "; ".join([first, *(clause[0].lower() + clause[1:] for clause in rest)]) + "."
