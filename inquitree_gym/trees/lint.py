"""What makes a playable tree a good one, as far as a program can tell (DESIGN section 4).

Every rule yields `Fault`s, all at once, each naming its node. Rules about meaning need vectors; pass an ``embed``
function. Without one only the rules about structure and surface run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
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

LEAK_CEILING = 0.10
"""How much nearer a topic, question or low hint may be to the true result than to the nearest fake."""
LOW_HINTS = 2
"""Hints up to this level must not give the result away."""
LAST_HINT_FLOOR = 0.85
"""The last hint names its target: it is at least so similar to it."""
KINSHIP_FLOOR = 0.50
"""A fake less similar to the true result than this speaks of something else."""

_WORD = re.compile(r"[a-z]{3,}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def lint_tree(tree: Tree, embed: Embed | None = None) -> list[Fault]:
    """Return every fault found; an empty list for a clean tree."""
    faults = [*_redundant_edges(tree), *_unused_results(tree), *_unsupported(tree), *_unfair_fakes(tree)]
    faults += _ladder_faults(tree, char_tfidf, "character TF-IDF")
    if embed is not None:
        known = _embedded_once(tree, embed)
        faults += _ladder_faults(tree, known, "the embedder")
        faults += _sibling_faults(tree, known)
        faults += _last_hint_faults(tree, known)
        faults += _leaks(tree, known)
        faults += _stray_fakes(tree, known)
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
    supports = {support.node: support for support in tree.provenance.support}
    for node in (*tree.subtopics, *tree.studies, *tree.conclusions):
        support = supports.get(node.id)
        if support is None:
            yield Fault(node.id, "has no entry in provenance.support; say which sources and facts stand behind it")
        elif not support.sources and support.strength != "unconfirmed":
            yield Fault(node.id, "its entry in provenance.support names no source; name one, or call it unconfirmed")


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
            if _words(fake) in map(_words, (study.result, *study.fakes[: number - 1])):
                yield Fault(study.id, f"fake {number} repeats the true result or an earlier fake; contradict it")


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
            own = float(similarities[index, index])
            if (nearest := int(similarities[index].argmax())) != index:
                yield Fault(node.id, f"its last hint is nearest to {family[nearest].id}; name the target outright")
            elif own < LAST_HINT_FLOOR:
                yield Fault(node.id, f"its last hint ({own:.3f} < {LAST_HINT_FLOOR}) does not name it outright")


def early_texts(tree: Tree, subtopic: Subtopic, study: Study) -> dict[str, str]:
    """Return by name what is read before a study is run: topic, question, and the low hints of both."""
    found = {"the topic": tree.topic, "its question": subtopic.text}
    found |= {f"hint {level} of its subtopic": hint for level, hint in enumerate(subtopic.hints[:LOW_HINTS], 1)}
    return found | {f"its hint {level}": hint for level, hint in enumerate(study.hints[:LOW_HINTS], 1)}


def leads(tree: Tree, embed: Embed) -> Iterator[tuple[str, str, float]]:
    """Yield study, text name, and how much nearer that text is to the true result than to the nearest fake."""
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            early = early_texts(tree, subtopic, study)
            similarities = embed(list(early.values())) @ embed([study.result, *study.fakes]).T
            for name, row in zip(early, similarities, strict=True):
                yield study.id, name, float(row[0] - row[1:].max())


def answer_words(tree: Tree) -> Iterator[set[str]]:
    """Yield for each text read before a study the content words it shares with the true result but with no fake."""
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            answers = _content_words(study.result).difference(*map(_content_words, study.fakes))
            for text in early_texts(tree, subtopic, study).values():
                yield answers & _content_words(text)


def _content_words(text: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {word for word in _WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS}


def _leaks(tree: Tree, embed: Embed) -> Iterator[Fault]:
    for study, name, lead in leads(tree, embed):
        if lead > LEAK_CEILING:
            yield Fault(study, f"{name} leans to the true result by {lead:.3f} > {LEAK_CEILING}; make it neutral")


def _stray_fakes(tree: Tree, embed: Embed) -> Iterator[Fault]:
    """Fakes that cannot contradict the true result, because they speak of something else."""
    for study in tree.studies:
        vectors = embed([study.result, *study.fakes])
        for number, similarity in enumerate(vectors[1:] @ vectors[0], 1):
            if similarity < KINSHIP_FLOOR:
                yield Fault(study.id, f"fake {number} speaks of something else ({similarity:.3f} to the true result)")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
