"""Conclusion text to claims, and what a claim's words say without an embedder."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from inquitree_gym.matching import readable

MIN_CLAIM_WORDS = 3
"""Shorter pieces are headings or numbers, not claims."""
TURNED_PLACES = 8
"""Places at which a "not" is put into an item's text, spread evenly over it."""
COPIED = 0.9
"""Share of an item's words from which a claim is a copy of it, so that the other polarity contradicts it."""
ADDED_WORDS = 8
"""Words that a copy may have beyond those of its item, such as "there is no evidence that"."""
STEM_LETTERS = 5
"""Words that begin with the same so many letters are taken for the same word."""

_REMEMBERED = 1_024
"""Texts whose words and negations are kept in memory."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|nowhere|neither|nor|cannot|without|hardly|barely|scarcely|rarely|seldom"
    r"|unable|absent|absence|fail\w*|lack\w*|instead|rather than"
    r"|false|untrue|wrong\w*|refut\w+|disprov\w+)\b|n['’]t\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    # "X, or Y" with nothing listed before it joins two clauses; "A, B, or C" is a list.
    r"^[^,;]*[,;] or\b"
    r"|[,;] or (?:it|they|there|each)\b"
    r"|\bor (?:else|possibly|perhaps|maybe|alternatively)\b"
    r"|\b(?:equally|just as) (?:possible|likely)\b"
    r"|\b(?:may|might|could) (?:it )?(?:equally|instead|(?:just )?as well)\b"
    r"|\bthe other way (?:a)?round\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"^[^\S\n]*(?:\(?\d{1,3}[.):]|[-*•–])[^\S\n]+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def split_claims(conclusion: str) -> list[str]:
    """Split a conclusion into claims: the sentences before its first number or bullet, then its items.

    A question claims nothing and is left out.
    """
    text = readable(conclusion)
    before, *items = _MARK.split(text)
    pieces = (*_SENTENCE_END.split(before), *items)
    claims = (" ".join(piece.split()) for piece in pieces)
    return [claim for claim in claims if len(claim.split()) >= MIN_CLAIM_WORDS and not claim.endswith("?")]


def turn(text: str) -> tuple[str, ...]:
    """Return ``text`` with a "not" put in, once at each of up to `TURNED_PLACES` places between its words.

    >>> turn("Bread rises slowly")
    ('Bread not rises slowly', 'Bread rises not slowly')
    """
    words = text.split()
    last = max(1, len(words) - 1)
    places = sorted({round(place) for place in np.linspace(1, last, TURNED_PLACES)})
    return tuple(" ".join((*words[:place], "not", *words[place:])) for place in places)


@lru_cache(maxsize=_REMEMBERED)
def is_open(claim: str) -> bool:
    """Tell whether a claim leaves open which of two things holds, and so claims neither.

    >>> is_open("The dough rises by yeast, or it may be the steam.")
    True
    >>> is_open("Yeast may make the dough rise, with sugar, warmth, or time.")
    False
    """
    return _OPEN.search(claim) is not None


@lru_cache(maxsize=_REMEMBERED)
def is_negated(text: str) -> bool:
    """Tell whether ``text`` holds an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1


def is_copy(claim: str, text: str) -> bool:
    """Tell whether nearly all words of ``text`` stand in ``claim``, and few others."""
    words, said = _words(text), _words(claim)
    found = sum(word in said for word in words)
    return bool(words) and found >= COPIED * len(words) and len(said) <= len(words) + ADDED_WORDS


@lru_cache(maxsize=_REMEMBERED)
def stems(text: str) -> frozenset[str]:
    """Return the first `STEM_LETTERS` letters of every word of ``text``, in lower case."""
    return frozenset(word[:STEM_LETTERS] for word in _words(text))


@lru_cache(maxsize=_REMEMBERED)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))
