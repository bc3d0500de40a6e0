"""Linter for disclosures: the rules of docs/trees-format.md from T801 to T807."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from inquitree_gym.errors import Fault
from inquitree_gym.trees.disclosure import LEVELS, Disclosure, ProjectionTask
from inquitree_gym.trees.rules import (
    MAX_CLAIM_SIMILARITY,
    MAX_LEAK,
    MAX_QUESTION_WORDS,
    MAX_RELATION_WORDS,
    MAX_TOPIC_WORDS,
    fault,
)
from inquitree_gym.trees.schema import Embed

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
