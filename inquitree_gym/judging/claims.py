"""Claims of a conclusion or a projection, as text."""

from __future__ import annotations

import re

from inquitree_gym.text_limits import readable

MAX_WORDS = 600
"""Only the claims that start within this many words of a conclusion count, on a tree of few items."""
WORDS_PER_ITEM = 60
"""Words per conclusion item within which claims count, if that is more, so that all items can be stated."""
MIN_CLAIM_WORDS = 3
"""Shorter pieces are headings or numbers, not claims."""
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
