"""Claims of a conclusion or a projection, as text: how it is split, and what a sentence denies or leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from inquitree_gym.text_limits import readable

MAX_WORDS = 600
"""Only the claims that start within this many words of a conclusion count, on a tree of few items."""
WORDS_PER_ITEM = 60
"""Words per conclusion item within which claims count, if that is more, so that all items can be stated."""
MIN_CLAIM_WORDS = 3
"""Shorter pieces are headings or numbers, not claims."""
STEM_LETTERS = 5
"""Words with the same first letters, this many, count as the same word."""
COPIED = 0.9
"""Share of a text's words that makes a claim a copy of it."""
QUOTED = 0.75
"""Share of the pairs of neighbouring words that makes a claim a quote. Claim or text counts, whichever has fewer."""
ADDED_WORDS = 8
"""Maximum of additional words in a copy."""
BOTH = 0.75
"""A claim states two texts if it has this share of the words that set each apart from the other."""

Side = Literal["true", "false", "both"]

_CACHED_TEXTS = 1_024
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|cannot|without|hardly|barely|scarcely|rarely|seldom"
    r"|unable|absent|absence|fail\w*|lack\w*|instead|rather than"
    r"|false|untrue|wrong\w*|refut\w+|disprov\w+)\b|n['’]t\b",
    re.IGNORECASE,
)
_REJECTION = re.compile(
    r"\b(?:myth|(?:we|i) reject\w*|not the case|wrong|refut\w+|disprov\w+|false(?:ly)?|untrue|mistaken"
    r"|not (?:confirmed|supported|borne out)|(?:no|little) (?:evidence|support|sign|indication)"
    r"|nothing\b[^,.]{0,20}\bsupports?|given up|the opposite of|contradict\w*)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    # "X, or Y" with nothing listed before it joins two clauses; "A, B, or C" is a list.
    r"^[^,;]*[,;] or\b"
    r"|[,;] or (?:it|they|there|each)\b"
    r"|\bor (?:else|possibly|perhaps|maybe|alternatively)\b"
    r"|\b(?:equally|just as) (?:possible|likely)\b"
    r"|\b(?:may|might|could) (?:it )?(?:equally|instead|(?:just )?as well)\b"
    r"|\bthe other way (?:a)?round\b"
    r"|\b(?:un(?:clear|certain|known|decided) (?:if|whether)|cannot (?:tell|say) (?:if|whether)|who knows"
    r"|opinions differ|open question|remains? (?:open|unclear)|interesting to (?:know|see)|future work|should test)\b"
    r"|\bsome (?:say|argue|hold|claim)\b|^(?:either|we asked|one hypothesis)\b|\?",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"\b(?:rather|instead|not)\b", re.IGNORECASE)
_WORD_OR_NUMBER = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"^[^\S\n]*(?:\(?\d{1,3}[.):]|[-*•–])[^\S\n]+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def counted_claims(conclusion: str, items: int) -> list[str]:
    """Return the claims of a conclusion that count about a tree with this many conclusion items.

    They are those that start within its first `MAX_WORDS` words, or `WORDS_PER_ITEM` per item if that is more.
    """
    counted, words, limit = [], 0, max(MAX_WORDS, WORDS_PER_ITEM * items)
    for claim in split_claims(conclusion):
        if words >= limit:
            break
        counted.append(claim)
        words += len(claim.split())
    return counted


def split_claims(conclusion: str) -> list[str]:
    """Split a conclusion into claims: the sentences before its first number or bullet, then its list items.

    Questions are left out.
    """
    text = readable(conclusion)
    before, *items = _MARK.split(text)
    pieces = (*_SENTENCE_END.split(before), *items)
    claims = (" ".join(piece.split()) for piece in pieces)
    return [claim for claim in claims if len(claim.split()) >= MIN_CLAIM_WORDS and not claim.endswith("?")]


@lru_cache(maxsize=_CACHED_TEXTS)
def is_open(claim: str) -> bool:
    """Return whether a claim leaves open what holds.

    >>> is_open("It is unclear whether yeast makes the dough rise.")
    True
    >>> is_open("Yeast makes the dough rise.")
    False
    """
    return _OPEN.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_rejection(claim: str) -> bool:
    """Return whether a claim rejects the statement that it quotes.

    >>> is_rejection("It is a myth that yeast makes the dough rise.")
    True
    """
    return _REJECTION.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_negated(text: str) -> bool:
    """Return whether ``text`` has an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1


def is_copy(claim: str, text: str) -> bool:
    """Return whether ``claim`` has nearly all words of ``text`` and few others."""
    words, said = _words(text), _words(claim)
    found = sum(word in said for word in words)
    return bool(words) and found >= COPIED * len(words) and len(said) <= len(words) + ADDED_WORDS


def states_both(claim: str, true: Sequence[str], false: Sequence[str]) -> bool:
    """Return whether a claim has the words of a true and of a false text, and does not set one against the other.

    >>> true, false = ["Dough rises at night."], ["Dough falls by day."]
    >>> states_both("Dough rises at night, and dough falls by day.", true, false)
    True
    >>> states_both("Dough does not fall by day but rises at night.", true, false)
    False
    """
    said = stems(claim)
    return not _CONTRAST.search(claim) and any(
        _has(said, stems(one) - stems(other)) and _has(said, stems(other) - stems(one))
        for one in true
        for other in false
    )


def quoted_side(claim: str, true: Sequence[str], false: Sequence[str]) -> Side | None:
    """Return the side whose words a claim repeats: true, false, or both alike.

    None for a claim in words of its own, and for one that quotes both to set one against the other.

    >>> true, false = ["Dough rises at night. Bread is sold at dawn."], ["Dough falls at night. Bread is sold at dawn."]
    >>> quoted_side("The dough falls at night.", true, false)
    'false'
    >>> quoted_side("Bread is sold at dawn.", true, false)
    'both'
    """
    said = _word_pairs(claim)
    in_true, in_false = (max(_quoted_share(said, _word_pairs(text)) for text in side) for side in (true, false))
    sets_apart = min(in_true, in_false) >= QUOTED and _CONTRAST.search(claim)
    if max(in_true, in_false) < QUOTED or sets_apart:
        return None
    return "both" if in_true == in_false else "true" if in_true > in_false else "false"


def wording(claim: str, true: str, false: Sequence[str]) -> float:
    """Return the words shared with the true text alone minus those with a false text alone, at the worst false text."""
    said, own = stems(claim), stems(true)
    return float(min(len(said & own - other) - len(said & other - own) for other in map(stems, false)))


@lru_cache(maxsize=_CACHED_TEXTS)
def stems(text: str) -> frozenset[str]:
    """Return the first `STEM_LETTERS` letters of every word of ``text``, in lower case."""
    return frozenset(word[:STEM_LETTERS] for word in _words(text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _word_pairs(text: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of neighbouring words or numbers of ``text``, in lower case."""
    return frozenset(pairwise(_WORD_OR_NUMBER.findall(text.lower())))


def _quoted_share(said: frozenset[tuple[str, str]], text: frozenset[tuple[str, str]]) -> float:
    return len(said & text) / max(1, min(len(said), len(text)))


def _has(said: frozenset[str], words: frozenset[str]) -> bool:
    return bool(words) and len(said & words) >= BOTH * len(words)


@lru_cache(maxsize=_CACHED_TEXTS)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))
