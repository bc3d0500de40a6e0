"""Linter for research trees: the rules of docs/trees-format.md from T201 on.

Every check yields `Fault`s that name their rule and node. Checks of meaning need an ``embed`` function. Without one,
only those of structure and surface run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from graphlib import TopologicalSorter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import LEVELS, Disclosure, ProjectionTask
from inquitree_gym.trees.earlier_schema import EarlierStudy, EarlierTree
from inquitree_gym.trees.fields import GENERATED
from inquitree_gym.trees.meaning import embedded_once, ladder_faults, meaning_faults, targets, words_of
from inquitree_gym.trees.rules import (
    CENTRAL_SHARE,
    LENGTH_RATIO,
    MAX_CLAIM_SIMILARITY,
    MAX_LEAK,
    MAX_NUMBER_DIFFERENCE,
    MAX_QUESTION_WORDS,
    MAX_RELATION_WORDS,
    MAX_TOPIC_WORDS,
    MIN_CENTRAL_STUDIES,
    MIN_FIRST_HINT_WORDS,
    MIN_TELLABLE_SHARE,
    fault,
)
from inquitree_gym.trees.schema import Embed, Structure, Tree

_CONDITIONAL = re.compile(r"(?:If|When) .+, then .+\.$", re.DOTALL)
_NO_EFFECT = re.compile(r"\b(?:no|not|same|unchanged|equal|equally|neither|independent)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
_OUTCOME_START = "This study finds "
_PATH = "disclosure"


def lint_task(task: ProjectionTask, embed: Embed | None = None) -> list[Fault]:
    """Return all faults of a projection task, an empty list for a clean one."""
    return list(disclosure_faults(task.disclosure, embed))


def disclosure_faults(disclosure: Disclosure, embed: Embed | None = None) -> Iterator[Fault]:
    """Yield the faults of a disclosure, those of meaning only with ``embed``."""
    yield from _lengths(disclosure)
    yield from _forms(disclosure)
    yield from _repeated_contraries(disclosure)
    if embed is not None:
        yield from _claims_alike(disclosure, embed)
        yield from _leaks(disclosure, embed)


def _lengths(disclosure: Disclosure) -> Iterator[Fault]:
    bounded = [("topic", disclosure.topic, MAX_TOPIC_WORDS), ("question", disclosure.question, MAX_QUESTION_WORDS)]
    for name, text, bound in bounded:
        if (words := len(text.split())) > bound:
            yield fault("T801", _PATH, f"{_PATH}.{name}", f"{name} has {words} words, at most {bound}", words, bound)
    for i, claim in enumerate(disclosure.claims):
        if (words := len(claim.relation.split())) > MAX_RELATION_WORDS:
            message = f"its relation has {words} words, at most {MAX_RELATION_WORDS}"
            yield fault("T802", claim.id, f"{_PATH}.claims[{i}].relation", message, words, MAX_RELATION_WORDS)


def _forms(disclosure: Disclosure) -> Iterator[Fault]:
    if not disclosure.question.endswith("?"):
        yield fault("T801", _PATH, f"{_PATH}.question", "the question does not end with a question mark")
    for name in ("hypothesis", "null_hypothesis"):
        if not _CONDITIONAL.match(getattr(disclosure, name)):
            message = f"the {name.replace('_', ' ')} is not of the form 'If …, then ….' or 'When …, then ….'"
            yield fault("T803", _PATH, f"{_PATH}.{name}", message)
    if not _NO_EFFECT.search(disclosure.null_hypothesis):
        message = "the null hypothesis does not say that nothing changes; write 'no change' or 'the same'"
        yield fault("T803", _PATH, f"{_PATH}.null_hypothesis", message)
    one_sentence = len(_SENTENCE_END.findall(disclosure.outcome)) == 1
    if not (disclosure.outcome.startswith(_OUTCOME_START) and one_sentence):
        yield fault("T804", _PATH, f"{_PATH}.outcome", "the outcome is not one sentence that starts 'This study finds'")


def _repeated_contraries(disclosure: Disclosure) -> Iterator[Fault]:
    for i, claim in enumerate(disclosure.claims):
        seen = {claim.text.casefold()}
        for k, text in enumerate(claim.contraries):
            if text.casefold() in seen:
                message = f"contrary {k + 1} repeats the claim or an earlier contrary"
                yield fault("T805", claim.id, f"{_PATH}.claims[{i}].contraries[{k}]", message)
            seen.add(text.casefold())


def _claims_alike(disclosure: Disclosure, embed: Embed) -> Iterator[Fault]:
    vectors = embed([claim.text for claim in disclosure.claims])
    for (i, one), (k, other) in combinations(enumerate(disclosure.claims), 2):
        if (similarity := float(vectors[i] @ vectors[k])) > MAX_CLAIM_SIMILARITY:
            message = f"says almost the same as {one.id}: {similarity:.3f} > {MAX_CLAIM_SIMILARITY}; join or part them"
            yield fault("T806", other.id, f"{_PATH}.claims[{k}]", message, similarity, MAX_CLAIM_SIMILARITY)


def _leaks(disclosure: Disclosure, embed: Embed) -> Iterator[Fault]:
    shown = [text for level in LEVELS for text in disclosure.texts_of(level)]
    vectors = embed(shown)
    for i, claim in enumerate(disclosure.claims):
        similarities = vectors @ embed([claim.text, *claim.contraries]).T
        for text, row in zip(shown, similarities.tolist(), strict=True):
            if (lead := row[0] - max(row[1:])) > MAX_LEAK:
                message = f"'{text:.60}' is nearer to the claim than to any contrary, by {lead:.3f} > {MAX_LEAK}"
                yield fault("T807", claim.id, f"{_PATH}.claims[{i}]", f"{message}; make it neutral", lead, MAX_LEAK)


_TODO = re.compile(r"\bTODO\b")
_OR = re.compile(r"(?<!with )(?<!more )\bor\b(?! not\b)", re.IGNORECASE)
_WHETHER = re.compile(r"\bwhether\b[^;.]*", re.IGNORECASE)
"""Alternatives that make no difference."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
"""A figure in a text."""
_TOKEN = re.compile(r"[a-z0-9.]+")

Terms = set[str | tuple[str, str]]


def lint_tree(tree: EarlierTree, embed: Embed | None = None) -> list[Fault]:
    """Return all faults, an empty list for a clean tree. The wording of a tree with TODO texts is not checked."""
    controls = {study.id for study in tree.studies if study.control}
    faults = [*redundant_edges(tree.structure), *_evidence_faults(tree), *support_faults(tree.structure, controls)]
    if unfinished := list(todo_faults(tree)):
        return faults + unfinished
    known = embed and embedded_once(tree, embed)
    faults += [*_joined_findings(tree), *target_faults(tree, known), *result_faults(tree)]
    if tree.disclosure is not None:
        faults += disclosure_faults(tree.disclosure, embed)
    return faults if known is None else [*faults, *meaning_faults(tree, known)]


def char_tfidf(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return TF-IDF vectors of character 3- to 5-grams within words, fitted on the given texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
    return np.asarray(vectorizer.fit_transform(texts).toarray(), np.float32)


def redundant_edges(tree: Structure) -> Iterator[Fault]:
    """Yield the prerequisites that another one implies already."""
    parents = {subtopic: set(prerequisites) for subtopic, prerequisites in tree.graph}
    ancestors: dict[str, set[str]] = {}
    for node in TopologicalSorter(parents).static_order():
        ancestors[node] = parents[node].union(*(ancestors[name] for name in parents[node]))
    for subtopic, prerequisites in tree.graph:
        implied = set().union(*(ancestors[name] for name in prerequisites))
        for name in sorted(parents[subtopic] & implied):
            path = f"{tree.paths[subtopic]}.prerequisites[{prerequisites.index(name)}]"
            message = f"prerequisite '{name}' is already implied by another one; remove it"
            yield fault("T201", subtopic, path, message)


def _evidence_faults(tree: EarlierTree) -> Iterator[Fault]:
    needed = {name for item in tree.conclusions for group in item.needs for name in group}
    for study in tree.studies:
        if study.id not in needed and not study.control:
            message = "no conclusion item needs its result; let one need it, or mark it as a control"
            yield fault("T202", study.id, tree.paths[study.id], message)
    controls = {study.id for study in tree.studies if study.control}
    owners = {study.id: subtopic.id for subtopic in tree.subtopics for study in subtopic.studies}
    for item in tree.conclusions:
        for i, group in enumerate(item.needs):
            path = f"{tree.paths[item.id]}.needs[{i}]"
            for name in sorted(controls.intersection(group)):
                yield fault(
                    "T203", item.id, path, f"needs {name}, which is a control; remove it from needs, or unmark it"
                )
            if len({owners[name] for name in group}) > 1:
                message = f"one of {', '.join(group)} is enough for group {i + 1}, but they ask different questions"
                yield fault("T204", item.id, path, f"{message}; give each finding a group of its own")


def support_faults(tree: Structure, controls: Set[str]) -> Iterator[Fault]:
    """Yield the nodes without support, or with too weak a one for what they decide. Controls decide nothing."""
    supports = {support.node: (i, support) for i, support in enumerate(tree.provenance.support)}
    invented = all(source.address.startswith(GENERATED) for source in tree.provenance.sources)
    studies = {study.id for family in tree.families[1:] for study in family}
    items = [item for item, _ in tree.needs]
    scored = (studies | set(items)) - controls
    for node in (*(node.id for family in tree.families for node in family), *items):
        if node not in supports:
            message = "has no entry in provenance.support; add one with its sources and facts"
            yield fault("T205", node, "provenance.support", message)
            continue
        i, support = supports[node]
        if not support.sources and support.strength != "unconfirmed":
            message = "its entry in provenance.support names no source; add one, or call it unconfirmed"
            yield fault("T206", node, f"provenance.support[{i}].sources", message)
        if support.strength == "unconfirmed" and node in scored and not invented:
            message = "is scored but unconfirmed; say what a source supports, or mark the study as a control"
            yield fault("T207", node, f"provenance.support[{i}].strength", message)
    if tree.provenance.tier is None:
        yield fault("T208", "provenance", "provenance.tier", "has no evidence tier; state A, B or C")


def todo_faults(tree: Tree) -> Iterator[Fault]:
    """Yield the texts that are still to be written."""
    for path, text in _texts(tree.model_dump(mode="json")):
        if _TODO.search(text):
            within = [name for name, place in tree.paths.items() if f"{path}.".startswith(f"{place}.")]
            node = max(within, key=lambda name: len(tree.paths[name]), default="")
            yield fault("T301", node, path, f"says '{text:.60}'; write the text")


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a document with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{index}]")


def _joined_findings(tree: EarlierTree) -> Iterator[Fault]:
    for item in tree.conclusions:
        if any(len(group) > 1 for group in item.needs) and _OR.search(_WHETHER.sub("", item.text)):
            message = "states two findings joined by “or”, so either one earns it; split it"
            yield fault("T303", item.id, f"{tree.paths[item.id]}.text", message)


def target_faults(tree: Tree, embed: Embed | None = None) -> Iterator[Fault]:
    """Yield the faults of hints and paraphrases, by characters alone without ``embed``."""
    nodes = targets(tree)
    for node in nodes:
        if (words := len(node.hints[0].split())) < MIN_FIRST_HINT_WORDS:
            message = f"hint 1 has {words} words, needs at least {MIN_FIRST_HINT_WORDS} to tell where to look"
            yield fault("T302", node.id, f"{tree.paths[node.id]}.hints[0]", message, words, MIN_FIRST_HINT_WORDS)
    if lacking := sum(not node.paraphrases for node in nodes):
        message = f"{lacking} of {len(nodes)} subtopics and studies have no paraphrases; 5 to 8 each help the matcher"
        yield fault("T305", "", "subtopics", message, lacking, 0)
    spaces = {"T501": char_tfidf, "T502": embed}
    yield from ladder_faults(tree, {code: space for code, space in spaces.items() if space})


def result_faults(tree: EarlierTree) -> Iterator[Fault]:
    """Yield the faults of true results, of fakes and of the rewordings of both that need no vectors."""
    for study in tree.studies:
        yield from _fake_faults(tree, study)
        yield from _rewording_faults(tree, study)
    yield from _guessed_fakes(tree)
    yield from _missing_rewordings(tree)
    yield from _centrality(tree)


def centrality(study: EarlierStudy) -> float:
    """Return 1 if no fake has more words in common with the other results than the true one has, else 0.

    The measure is the Jaccard index of words and pairs of adjacent words, summed over the other results. Where k
    results tie, each has 1/k.
    """
    terms = [_terms(text) for text in study.results]
    shared = [round(sum(_jaccard(one, other) for other in terms), 9) for one in terms]
    return 1 / shared.count(max(shared)) if shared[0] == max(shared) else 0.0


def _fake_faults(tree: EarlierTree, study: EarlierStudy) -> Iterator[Fault]:
    for k, fake in enumerate(study.results[1:], 1):
        path = f"{tree.paths[study.id]}.fakes[{k - 1}]"
        for code, message, value, bound in _differences(f"fake {k}", fake, study.result):
            yield fault(code, study.id, path, message, value, bound)
        if words_of(fake) in map(words_of, study.results[:k]):
            message = f"fake {k} repeats the true result or an earlier fake; contradict it"
            yield fault("T403", study.id, path, message)


def _rewording_faults(tree: EarlierTree, study: EarlierStudy) -> Iterator[Fault]:
    seen = [words_of(text) for text in study.results]
    for i, (_, *rewordings) in enumerate(study.wordings):
        place, of = (f".fakes[{i - 1}]", f" of fake {i}") if i else ("", "")
        for k, text in enumerate(rewordings, 1):
            path = f"{tree.paths[study.id]}{place}.rewordings[{k - 1}]"
            for _, message, value, bound in _differences(f"rewording {k}{of}", text, study.result):
                yield fault("T406", study.id, path, message, value, bound)
            if words_of(text) in seen:
                message = f"rewording {k}{of} repeats a result or an earlier rewording; use other words"
                yield fault("T406", study.id, path, message)
            seen.append(words_of(text))


def _differences(name: str, text: str, result: str) -> Iterator[tuple[str, str, float, float]]:
    """Yield code, message, value and bound of each difference in length and in numbers from the true result."""
    shortest, longest = LENGTH_RATIO
    ratio = len(text.split()) / len(result.split())
    if not shortest <= ratio <= longest:
        message = f"{name} has {ratio:.2f} times as many words as the true result, needs {shortest} to {longest}"
        yield "T401", message, ratio, shortest if ratio < shortest else longest
    count, numbers = (len(NUMBER.findall(each)) for each in (text, result))
    if abs(count - numbers) > MAX_NUMBER_DIFFERENCE:
        message = f"{name} has {count} numbers, the true result {numbers}; the difference is at most"
        yield "T402", f"{message} {MAX_NUMBER_DIFFERENCE}", abs(count - numbers), MAX_NUMBER_DIFFERENCE


def _guessed_fakes(tree: EarlierTree) -> Iterator[Fault]:
    tellable = [fake.can_be_told for study in tree.studies for fake in study.fakes]
    share = sum(tellable) / len(tellable)
    if share < MIN_TELLABLE_SHARE:
        message = (
            f"only {sum(tellable)} of {len(tellable)} fakes can be recognised as fake; at least two thirds must be"
        )
        yield fault("T405", "", "subtopics", f"{message}, by told_by or a principle", share, MIN_TELLABLE_SHARE)


def _missing_rewordings(tree: EarlierTree) -> Iterator[Fault]:
    if lacking := sum(min(map(len, study.wordings)) == 1 for study in tree.studies):
        message = f"{lacking} of {len(tree.studies)} studies have a result or a fake without a rewording; replications"
        yield fault("T407", "", "subtopics", f"{message} repeat it and the others word for word", lacking, 0)


def _centrality(tree: EarlierTree) -> Iterator[Fault]:
    low, high = CENTRAL_SHARE
    count, studies = sum(map(centrality, tree.studies)), len(tree.studies)
    share = count / studies
    if studies >= MIN_CENTRAL_STUDIES and not low <= share <= high:
        message = f"the true result has most words in common with the fakes in {count:.3g} of {studies} studies"
        message = f"{message} ({share:.2f}), needs {low} to {high}; word some fakes after one another"
        yield fault("T408", "", "subtopics", message, share, low if share < low else high)


def _terms(text: str) -> Terms:
    words = _TOKEN.findall(text.lower())
    return {*words, *pairwise(words)}


def _jaccard(one: Terms, other: Terms) -> float:
    return len(one & other) / max(1, len(one | other))
