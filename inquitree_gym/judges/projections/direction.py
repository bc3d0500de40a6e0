"""Direction of a claim as its words tell it: up or down, no change, a change without a direction, or left open."""

from __future__ import annotations

import re
from functools import lru_cache

from inquitree_gym.judges.claims import is_negated, is_open, stems
from inquitree_gym.trees.disclosure import OutcomeClaim

_CACHED_TEXTS = 4_096

_UP = (
    r"increas\w*|rais(?:es?|ed|ing)|ris(?:es?|en|ing)|rose|grow(?:s|n|ing|th)?|grew|strength\w*|stronger|strongest"
    r"|enhanc\w*|improv\w*|boost\w*|elevat\w*|height(?:en\w*)|lengthen\w*|prolong\w*|extend\w*|accelerat\w*|amplif\w*"
    r"|facilitat\w*|expand\w*|exceed\w*|surpass\w*|outperform\w*|above|gain(?:s|ed)?|widen\w*|broaden\w*|deepen\w*"
    r"|sharpen\w*|promot(?:es?|ed|ing)|higher|highest|greater|greatest|larger|largest|bigger|more|most|longer|longest"
    r"|faster|fastest|quicker|better|best|richer|wider|broader|earlier|sooner|positive(?:ly)?|enabl\w*|permit\w*"
    r"|allow\w*|support\w*|potentiat\w*|escalat\w*|multipl(?:y|ies|ied)|doubl\w*|upward\w*|up|nearer|closer"
    r"|preced\w*|before|lead(?:s|ing)?|ahead|beyond|speed\w* up|augment\w*|intensif\w*|stabili\w*|sooner|easier"
)
_DOWN = (
    r"decreas\w*|reduc\w*|lower\w*|lowest|fall(?:s|en|ing)?|fell|drop\w*|declin\w*|diminish\w*|weaken\w*|weaker|weakest"
    r"|impair\w*|worse\w*|worst|shorten\w*|shorter|shortest|attenuat\w*|suppress\w*|dampen\w*|shrink\w*|shrank|slow\w*"
    r"|smaller|smallest|less|least|fewer|fewest|poorer|poorest|negative(?:ly)?|inverse(?:ly)?|below|abolish\w*"
    r"|block(?:s|ed|ing|ade)?|prevent\w*|los(?:es?|t|s|ing)|degrad\w*|disrupt\w*|blunt\w*|curtail\w*|narrow\w*"
    r"|hinder\w*|hamper\w*|cut(?:s|ting)?|decay\w*|delay\w*|later|silenc\w*|depress\w*|minimi\w*|eliminat\w*"
    r"|remov\w*|inhibit\w*|quench\w*|halv\w*|downward\w*|down|follow(?:s|ed)?|after|behind|destabili\w*|curb\w*"
    r"|limit\w*|restrict\w*|lag\w*|underperform\w*|farther|harder|deteriorat\w*|undermin\w*"
)
_BAD = r"errors?|mistakes?|inaccura\w*|imprecis\w*|instabilit\w*|unstable|difficult\w*|deficits?"
"""Nouns and adjectives of a quantity that falls where its opposite rises."""
_CHANGE_STEMS = (
    r"chang\w*|alter\w*|affect\w*|effects?|influenc\w*|impact\w*|modif\w*|modulat\w*|differ\w*|shift\w*|depend\w*"
    r"|relat(?:es?|ed|ion\w*)|associat\w*|link\w*|correlat\w*|var(?:y|ies|ied|iation)|determin\w*|shap(?:es?|ed)"
    r"|matter\w*|role"
)
_NULL = re.compile(
    rf"\b(?:no|not|n['’]t|neither|nor|never|without|little|hardly|lack of|absence of|nothing)\b"
    rf"(?:\s+(?:\w+[- ]){{0,3}}?)?(?:{_CHANGE_STEMS})\b"
    r"|\b(?:unchanged|unaffected|unaltered|unrelated|uncorrelated|(?:independent(?:ly)?|regardless|irrespective) of)\b"
    r"|\b(?:remain\w*|stay\w*|leav\w*|left|keep\w*|kept|held|holds?)\b[^,;]{0,60}?\b(?:the same|constant|intact|stable"
    r"|similar|equal|alike|as (?:it|they) (?:is|are|was|were)|at chance)\b"
    r"|\b(?:preserv\w*|persist\w*|maintain\w*|conserv\w*|invariant)\b"
    r"|\b(?:ha(?:s|ve)|is|are|shows?|reach(?:es)?|takes?|prefers?|gives?|yields?) (?:the same|no)\b|\bthe same \w+ as\b"
    r"|\b(?:equal|equally|identical|comparable|similar|indistinguishable|no more|no less|no better|no worse)\b"
    r"|\b(?:as \w+ (?:\w+ )?as)\b",
    re.IGNORECASE,
)
_UNDIRECTED = re.compile(rf"\b(?:{_CHANGE_STEMS}|different(?:ly)?|another|interact\w*|tied)\b", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:may|might|could|can|perhaps|possibly|maybe|potentially|conceivabl[ey]|whether|uncertain|unclear|unknown"
    r"|hard to (?:say|tell|predict))\b"
    r"|\beither\b.*\bor\b|\bor (?:not|decreas\w*|reduc\w*|increas\w*|lower\w*|rais\w*|the (?:reverse|opposite))\b",
    re.IGNORECASE,
)
_HOW = re.compile(r"\bhow\b.*", re.IGNORECASE)
_SIGNS = re.compile(rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}|{_BAD}))\b", re.IGNORECASE)


@lru_cache(maxsize=_CACHED_TEXTS)
def is_hedged(claim: str) -> bool:
    """Return whether a claim leaves open what will be found.

    >>> is_hedged("Yeast may or may not raise the dough."), is_hedged("Yeast raises the dough.")
    (True, False)
    """
    return _HEDGE.search(claim) is not None or is_open(claim)


@lru_cache(maxsize=_CACHED_TEXTS)
def is_null(claim: str) -> bool:
    """Return whether a claim says that nothing changes.

    >>> is_null("Salt does not change the rise of the dough."), is_null("Salt slows the rise of the dough.")
    (True, False)
    """
    return _NULL.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_undirected(claim: str, variables: frozenset[str] = frozenset()) -> bool:
    """Return whether a claim names a change or a relation and no direction.

    A direction that is part of a variable, whose `stems` are given, or of how something is, is none of the change.

    >>> is_undirected("Salt affects the dough."), is_undirected("Salt affects the dough by slowing it.")
    (True, False)
    >>> is_undirected("Salt changes how fast dough rises."), is_undirected("More salt changes it.", stems("more salt"))
    (True, True)
    """
    told = _HOW.sub("", claim)
    signs = (match.group() for match in _SIGNS.finditer(told))
    return _UNDIRECTED.search(told) is not None and all(stems(sign) <= variables for sign in signs)


@lru_cache(maxsize=_CACHED_TEXTS)
def polarity(claim: str) -> int:
    """Return the product of the directions of a claim's words, −1 or 1, turned by a negation; 0 without any.

    Two claims that say the same in other words have the same: the warmer the faster, the colder the slower.

    >>> polarity("More yeast raises the dough."), polarity("Less yeast lowers the dough.")
    (1, 1)
    >>> polarity("More yeast lowers the dough."), polarity("Yeast is alive.")
    (-1, 0)
    """
    found = [match.lastgroup for match in _SIGNS.finditer(claim)]
    if not found:
        return 0
    odd = (found.count("down") + is_negated(claim)) % 2
    return -1 if odd else 1


def claim_direction(claim: OutcomeClaim, text: str) -> int:
    """Return the direction that a claim or one of its contraries states besides its variables: 1, −1, or 0 for none."""
    variables = set(f"{claim.independent} {claim.dependent}".lower().split())
    said = " ".join(word for word in text.rstrip(".").lower().split() if word not in variables)
    return 0 if is_null(said) else polarity(said)
