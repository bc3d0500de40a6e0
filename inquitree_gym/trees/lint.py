"""What makes a playable tree a good one, as far as a program can tell (DESIGN section 4).

Every rule yields `Fault`s, all at once, each naming its node. Rules about meaning need vectors; pass an ``embed``
function. Without one only the rules about structure and surface run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.trees.schema import Fault, Study, Subtopic, Tree

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to an array of shape (n, dim) with rows of unit length."""

SIBLING_CEILING = 0.80
"""No two subtopics, and no two studies of one subtopic, may be more similar than this."""
LENGTH_RATIO = (0.75, 1.34)
"""Range of a fake result's length over the true one's, in words."""
NUMBER_SLACK = 2
"""How many numbers more or fewer than the true result a fake one may hold."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def lint_tree(tree: Tree, embed: Embed | None = None) -> list[Fault]:
    """Return every fault found; an empty list for a clean tree."""
    faults = [*_redundant_edges(tree), *_unused_results(tree), *_unsupported(tree), *_unfair_fakes(tree)]
    faults += _ladder_faults(tree, char_tfidf, "character TF-IDF")
    if embed is not None:
        faults += _ladder_faults(tree, embed, "the embedder")
        faults += _sibling_faults(tree, embed)
        faults += _last_hint_faults(tree, embed)
    return faults


def char_tfidf(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return TF-IDF vectors of character 3- to 5-grams within words, fitted on the texts themselves."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return np.asarray(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)).fit_transform(texts).toarray(), np.float32
    )


def ladders(tree: Tree) -> Iterator[tuple[Subtopic | Study, tuple[str, ...]]]:
    """Yield every hint target with its ladder, level 1 first."""
    for subtopic in tree.subtopics:
        yield subtopic, subtopic.hints
        for study in subtopic.studies:
            yield study, study.hints


def _redundant_edges(tree: Tree) -> Iterator[Fault]:
    parents = {subtopic.id: set(subtopic.prerequisites) for subtopic in tree.subtopics}

    def ancestors(node: str) -> set[str]:
        return parents[node].union(*map(ancestors, parents[node])) if parents[node] else set()

    for node, direct in parents.items():
        for name in sorted(direct):
            if any(name in ancestors(other) for other in direct - {name}):
                yield Fault(node, f"prerequisite '{name}' is already implied by another one; remove it")


def _unused_results(tree: Tree) -> Iterator[Fault]:
    needed = {name for item in tree.conclusions for group in item.needs for name in group}
    for study in tree.studies:
        if study.id not in needed and not study.control:
            yield Fault(study.id, "its result serves no conclusion item; let one need it, or mark it as a control")
    groups = {study.id: subtopic for subtopic in tree.subtopics for study in subtopic.studies}
    for item in tree.conclusions:
        for group in item.needs:
            siblings = {study.id for study in groups[group[0]].studies if not study.control}
            if set(group) != siblings:
                yield Fault(
                    item.id, f"needs {list(group)}; the studies of one subtopic share one group: {sorted(siblings)}"
                )


def _unsupported(tree: Tree) -> Iterator[Fault]:
    supported = {support.node for support in tree.provenance.support}
    for node in (*tree.subtopics, *tree.studies, *tree.conclusions):
        if node.id not in supported:
            yield Fault(node.id, "has no entry in provenance.support; say which sources and facts stand behind it")


def _unfair_fakes(tree: Tree) -> Iterator[Fault]:
    for study in tree.studies:
        for number, fake in enumerate(study.fakes, 1):
            ratio = len(fake.split()) / len(study.result.split())
            if not LENGTH_RATIO[0] <= ratio <= LENGTH_RATIO[1]:
                yield Fault(
                    study.id, f"fake {number} has {ratio:.2f} times the words of the true result; want {LENGTH_RATIO}"
                )
            more = len(_NUMBER.findall(fake)) - len(_NUMBER.findall(study.result))
            if abs(more) > NUMBER_SLACK:
                yield Fault(
                    study.id,
                    f"fake {number} holds {more:+d} numbers against the true result; keep within {NUMBER_SLACK}",
                )


def _ladder_faults(tree: Tree, embed: Embed, under: str) -> Iterator[Fault]:
    pairs = list(ladders(tree))
    texts = [text for node, hints in pairs for text in (*hints, node.text)]
    vectors = embed(texts)
    size = len(pairs[0][1]) + 1
    for index, (node, _) in enumerate(pairs):
        rows = vectors[index * size : (index + 1) * size]
        climb = rows[:-1] @ rows[-1]
        for level, (low, high) in enumerate(pairwise(climb), 1):
            if not high > low:
                yield Fault(
                    node.id, f"hint {level + 1} ({high:.3f}) is no nearer than hint {level} ({low:.3f}) under {under}"
                )


def _sibling_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    families: list[Sequence[Subtopic | Study]] = [tree.subtopics, *(subtopic.studies for subtopic in tree.subtopics)]
    for family in families:
        vectors = embed([node.text for node in family])
        for (i, one), (j, other) in combinations(enumerate(family), 2):
            if (similarity := float(vectors[i] @ vectors[j])) > SIBLING_CEILING:
                yield Fault(one.id, f"is too near its sibling {other.id}: {similarity:.3f} > {SIBLING_CEILING}")


def _last_hint_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    families: list[Sequence[Subtopic | Study]] = [tree.subtopics, *(subtopic.studies for subtopic in tree.subtopics)]
    for family in families:
        similarities = embed([node.hints[-1] for node in family]) @ embed([node.text for node in family]).T
        for index, node in enumerate(family):
            if (nearest := int(similarities[index].argmax())) != index:
                yield Fault(node.id, f"its last hint is nearest to {family[nearest].id}; name the target outright")
