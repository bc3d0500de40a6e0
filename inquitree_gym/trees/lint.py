"""Linter for research trees: checks of structure, hint ladders, siblings and fakes (docs/trees-format.md).

Every check yields `Fault`s that name their node. Checks of meaning need an ``embed`` function; without one, only those
of structure and surface run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.trees.schema import Fault, Study, Subtopic, Tree, families

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Function from n texts to an array of shape (n, dim) with rows of unit length."""

MAX_SIBLING_SIMILARITY = 0.80
"""Maximum similarity between two subtopics, and between two studies of one subtopic."""
LENGTH_RATIO = (0.75, 1.34)
"""Range of the length of a fake result relative to the true one, in words."""
MAX_NUMBER_DIFFERENCE = 2
"""Maximum difference between the counts of numbers in a fake and in the true result."""
MAX_LEAK = 0.10
"""Maximum lead of the true result over the nearest fake in similarity to a topic, question or low hint."""
LOW_HINTS = 2
"""Highest level of the hints that must not reveal the result."""
MIN_LAST_HINT_SIMILARITY = 0.85
"""Minimum similarity of the last hint to its target, which it names."""
MIN_FAKE_SIMILARITY = 0.50
"""Minimum similarity of a fake to the true result; less means another subject."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def lint_tree(tree: Tree, embed: Embed | None = None) -> list[Fault]:
    """Return all faults; an empty list for a clean tree."""
    faults = [*_redundant_edges(tree), *_unused_results(tree), *_unsupported(tree), *_unfair_fakes(tree)]
    faults += _ladder_faults(tree, char_tfidf, "character TF-IDF")
    if embed is not None:
        known = _embedded_once(tree, embed)
        faults += _ladder_faults(tree, known, "the embedder")
        faults += _sibling_faults(tree, known)
        faults += _last_hint_faults(tree, known)
        faults += _leaks(tree, known)
        faults += _off_topic_fakes(tree, known)
    return faults


def char_tfidf(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return TF-IDF vectors of character 3- to 5-grams within words, fitted on the given texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
    return np.asarray(vectorizer.fit_transform(texts).toarray(), np.float32)


def ladders(tree: Tree) -> Iterator[tuple[Subtopic | Study, tuple[str, ...]]]:
    """Yield every hint target with its ladder, level 1 first."""
    for subtopic in tree.subtopics:
        yield subtopic, subtopic.hints
        for study in subtopic.studies:
            yield study, study.hints


def _embedded_once(tree: Tree, embed: Embed) -> Embed:
    texts = list(dict.fromkeys(tree.texts().values()))
    rows = dict(zip(texts, embed(texts), strict=True))
    return lambda wanted: np.stack([rows[text] for text in wanted])


def _redundant_edges(tree: Tree) -> Iterator[Fault]:
    parents = {subtopic.id: set(subtopic.prerequisites) for subtopic in tree.subtopics}
    ancestors: dict[str, set[str]] = {}
    for node in TopologicalSorter(parents).static_order():
        ancestors[node] = parents[node].union(*(ancestors[name] for name in parents[node]))
    for node, direct in parents.items():
        implied = set().union(*(ancestors[name] for name in direct))
        for name in sorted(direct & implied):
            yield Fault(node, f"prerequisite '{name}' is already implied by another one; remove it")


def _unused_results(tree: Tree) -> Iterator[Fault]:
    needed = {name for item in tree.conclusions for group in item.needs for name in group}
    for study in tree.studies:
        if study.id not in needed and not study.control:
            yield Fault(study.id, "no conclusion item needs its result; let one need it, or mark it as a control")
    groups = {study.id: subtopic for subtopic in tree.subtopics for study in subtopic.studies}
    for item in tree.conclusions:
        for group in item.needs:
            siblings = {study.id for study in groups[group[0]].studies if not study.control}
            if set(group) != siblings:
                wanted = f"a group consists of all studies of one subtopic: {sorted(siblings)}"
                yield Fault(item.id, f"needs {list(group)}; {wanted}")


def _unsupported(tree: Tree) -> Iterator[Fault]:
    supports = {support.node: support for support in tree.provenance.support}
    for node in (*tree.subtopics, *tree.studies, *tree.conclusions):
        support = supports.get(node.id)
        if support is None:
            yield Fault(node.id, "has no entry in provenance.support; add one with its sources and facts")
        elif not support.sources and support.strength != "unconfirmed":
            yield Fault(node.id, "its entry in provenance.support names no source; add one, or call it unconfirmed")


def _unfair_fakes(tree: Tree) -> Iterator[Fault]:
    shortest, longest = LENGTH_RATIO
    for study in tree.studies:
        numbers = len(_NUMBER.findall(study.result))
        for k, fake in enumerate(study.fakes, 1):
            ratio = len(fake.split()) / len(study.result.split())
            if not shortest <= ratio <= longest:
                message = f"fake {k} has {ratio:.2f} times as many words as the true result"
                yield Fault(study.id, f"{message}, needs {shortest} to {longest}")
            if abs((count := len(_NUMBER.findall(fake))) - numbers) > MAX_NUMBER_DIFFERENCE:
                message = f"fake {k} has {count} numbers, the true result {numbers}"
                yield Fault(study.id, f"{message}; the difference is at most {MAX_NUMBER_DIFFERENCE}")
            if _words(fake) in map(_words, (study.result, *study.fakes[: k - 1])):
                yield Fault(study.id, f"fake {k} repeats the true result or an earlier fake; contradict it")


def _ladder_faults(tree: Tree, embed: Embed, space: str) -> Iterator[Fault]:
    pairs = list(ladders(tree))
    texts = [text for node, hints in pairs for text in (*hints, node.text)]
    vectors = embed(texts)
    size = len(pairs[0][1]) + 1
    for index, (node, _) in enumerate(pairs):
        rows = vectors[index * size : (index + 1) * size]
        similarities = rows[:-1] @ rows[-1]
        for level, (low, high) in enumerate(pairwise(similarities), 1):
            if not high > low:
                message = f"hint {level + 1} ({high:.3f}) is no closer to its target than hint {level} ({low:.3f})"
                yield Fault(node.id, f"{message} under {space}")


def _sibling_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    for family in families(tree):
        vectors = embed([node.text for node in family])
        for (i, one), (j, other) in combinations(enumerate(family), 2):
            if (similarity := float(vectors[i] @ vectors[j])) > MAX_SIBLING_SIMILARITY:
                message = f"is too similar to its sibling {other.id}: {similarity:.3f} > {MAX_SIBLING_SIMILARITY}"
                yield Fault(one.id, message)


def _last_hint_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    for family in families(tree):
        similarities = embed([node.hints[-1] for node in family]) @ embed([node.text for node in family]).T
        for index, node in enumerate(family):
            own = float(similarities[index, index])
            if (nearest := int(similarities[index].argmax())) != index:
                yield Fault(node.id, f"its last hint is nearest to {family[nearest].id}; name the target outright")
            elif own < MIN_LAST_HINT_SIMILARITY:
                message = f"its last hint ({own:.3f} < {MIN_LAST_HINT_SIMILARITY}) does not name the target outright"
                yield Fault(node.id, message)


def early_texts(tree: Tree, subtopic: Subtopic, study: Study) -> dict[str, str]:
    """Return, by name, the texts shown before a study: topic, question, and the low hints of subtopic and study."""
    found = {"the topic": tree.topic, "its question": subtopic.text}
    found |= {f"hint {level} of its subtopic": hint for level, hint in enumerate(subtopic.hints[:LOW_HINTS], 1)}
    return found | {f"its hint {level}": hint for level, hint in enumerate(study.hints[:LOW_HINTS], 1)}


def result_leaks(tree: Tree, embed: Embed) -> Iterator[tuple[str, str, float]]:
    """Yield study id, text name, and the lead of the true result over the nearest fake in similarity to that text."""
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            early = early_texts(tree, subtopic, study)
            similarities = embed(list(early.values())) @ embed([study.result, *study.fakes]).T
            for name, row in zip(early, similarities, strict=True):
                yield study.id, name, float(row[0] - row[1:].max())


def _leaks(tree: Tree, embed: Embed) -> Iterator[Fault]:
    for study, name, lead in result_leaks(tree, embed):
        if lead > MAX_LEAK:
            message = f"{name} is more similar to the true result than to any fake, by {lead:.3f} > {MAX_LEAK}"
            yield Fault(study, f"{message}; make it neutral")


def _off_topic_fakes(tree: Tree, embed: Embed) -> Iterator[Fault]:
    for study in tree.studies:
        vectors = embed([study.result, *study.fakes])
        for k, similarity in enumerate(vectors[1:] @ vectors[0], 1):
            if similarity < MIN_FAKE_SIMILARITY:
                message = f"fake {k} is off topic (similarity {similarity:.3f} to the true result"
                yield Fault(study.id, f"{message}, needs {MIN_FAKE_SIMILARITY})")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
