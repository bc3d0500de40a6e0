"""Checks of the results of a research tree: surface of fakes and rewordings, and the ways to tell a fake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from inquitree_gym.errors import Fault
from inquitree_gym.trees.rules import (
    CENTRAL_SHARE,
    LENGTH_RATIO,
    MAX_NUMBER_DIFFERENCE,
    MIN_CENTRAL_STUDIES,
    MIN_TELLABLE_SHARE,
    fault,
)
from inquitree_gym.trees.schema import Study, Tree

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(r"[a-z0-9.]+")

Terms = set[str | tuple[str, str]]


def result_faults(tree: Tree) -> Iterator[Fault]:
    """Yield the faults of true results, their rewordings and their fakes that need no vectors."""
    for study in tree.studies:
        yield from _fake_faults(tree, study)
        yield from _rewording_faults(tree, study)
    yield from _guessed_fakes(tree)
    yield from _missing_rewordings(tree)
    yield from _centrality(tree)


def centrality(study: Study) -> float:
    """Return 1 if no fake has more words in common with the other results than the true one has, else 0.

    The measure is the Jaccard index of words and pairs of adjacent words, summed over the other results. Where k
    results tie, each has 1/k.
    """
    terms = [_terms(text) for text in study.results]
    shared = [round(sum(_jaccard(one, other) for other in terms), 9) for one in terms]
    return 1 / shared.count(max(shared)) if shared[0] == max(shared) else 0.0


def _fake_faults(tree: Tree, study: Study) -> Iterator[Fault]:
    for k, fake in enumerate(study.results[1:], 1):
        path = f"{tree.paths[study.id]}.fakes[{k - 1}]"
        for code, message, value, bound in _differences(f"fake {k}", fake, study.result):
            yield fault(code, study.id, path, message, value, bound)
        if _words(fake) in map(_words, study.results[:k]):
            message = f"fake {k} repeats the true result or an earlier fake; contradict it"
            yield fault("T403", study.id, path, message)


def _rewording_faults(tree: Tree, study: Study) -> Iterator[Fault]:
    for k, text in enumerate(study.rewordings, 1):
        path = f"{tree.paths[study.id]}.rewordings[{k - 1}]"
        for _, message, value, bound in _differences(f"rewording {k}", text, study.result):
            yield fault("T406", study.id, path, message, value, bound)
        if _words(text) in map(_words, study.wordings[:k]):
            message = f"rewording {k} repeats the true result or an earlier rewording; use other words"
            yield fault("T406", study.id, path, message)


def _differences(name: str, text: str, result: str) -> Iterator[tuple[str, str, float, float]]:
    """Yield code, message, value and bound of each difference in length and in numbers from the true result."""
    shortest, longest = LENGTH_RATIO
    ratio = len(text.split()) / len(result.split())
    if not shortest <= ratio <= longest:
        message = f"{name} has {ratio:.2f} times as many words as the true result, needs {shortest} to {longest}"
        yield "T401", message, ratio, shortest if ratio < shortest else longest
    count, numbers = (len(_NUMBER.findall(each)) for each in (text, result))
    if abs(count - numbers) > MAX_NUMBER_DIFFERENCE:
        message = f"{name} has {count} numbers, the true result {numbers}; the difference is at most"
        yield "T402", f"{message} {MAX_NUMBER_DIFFERENCE}", abs(count - numbers), MAX_NUMBER_DIFFERENCE


def _guessed_fakes(tree: Tree) -> Iterator[Fault]:
    tellable = [fake.can_be_told for study in tree.studies for fake in study.fakes]
    share = sum(tellable) / len(tellable)
    if share < MIN_TELLABLE_SHARE:
        message = f"{sum(tellable)} of {len(tellable)} fakes can be told by a result or a principle, needs two thirds"
        yield fault("T405", "", "subtopics", f"{message}; the others are luck", share, MIN_TELLABLE_SHARE)


def _missing_rewordings(tree: Tree) -> Iterator[Fault]:
    if lacking := sum(not study.rewordings for study in tree.studies):
        message = f"{lacking} of {len(tree.studies)} true results have no rewording; replications repeat them"
        yield fault("T407", "", "subtopics", f"{message} word for word", lacking, 0)


def _centrality(tree: Tree) -> Iterator[Fault]:
    low, high = CENTRAL_SHARE
    count, studies = sum(map(centrality, tree.studies)), len(tree.studies)
    share = count / studies
    if studies >= MIN_CENTRAL_STUDIES and not low <= share <= high:
        message = f"the true result has most words in common with the fakes in {count:.3g} of {studies} studies"
        message = f"{message} ({share:.2f}), needs {low} to {high}; word some fakes after one another"
        yield fault("T408", "", "subtopics", message, share, low if share < low else high)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _terms(text: str) -> Terms:
    words = _TOKEN.findall(text.lower())
    return {*words, *pairwise(words)}


def _jaccard(one: Terms, other: Terms) -> float:
    return len(one & other) / max(1, len(one | other))
