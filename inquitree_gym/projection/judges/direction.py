"""Direction that the words of a claim state: up or down, no change, a change without a direction, or left open."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Literal, NamedTuple

from inquitree_gym.judging.claims import STEM_LETTERS, is_open
from inquitree_gym.projection.judges.lexicon import FALLING, NO_DIRECTION, RISING, TURNING, UNWANTED
from inquitree_gym.trees.disclosure import OutcomeClaim

_CACHED_TEXTS = 4_096
_NEAR = 6
"""A word for a direction at most this many words after "affects" states the direction of the effect."""

_CHANGE_STEMS = (
    r"chang\w*|alter\w*|affect\w*|effects?|influenc\w*|impact\w*|modif\w*|modulat\w*|differ\w*|depend\w*"
    r"|relat(?:es?|ed|ion\w*)|associat\w*|link\w*|correlat\w*|var(?:y|ies|ied|iation)|matter\w*|role|bearing"
)
_DENIAL = re.compile(
    rf"\b(?:no|not|n['’]t|neither|nor|never|without|little|hardly|lack of|absence of|nothing)\b"
    rf"(?:\s+\w+){{0,3}}?\s+(?:(?:{_CHANGE_STEMS})|(?:than|beyond|above) chance)\b"
    r"|\b(?:unchanged|unaffected|unaltered|unrelated|uncorrelated|(?:independent(?:ly)?|regardless|irrespective) of)\b"
    r"|\b(?:remain\w*|stay\w*|leav\w*|left|keep\w*|kept)\b[^,;]{0,60}?\b(?:the same|constant|equal|at chance"
    r"|as (?:it|they) (?:is|are|was|were))\b",
    re.IGNORECASE,
)
_SAME = re.compile(
    r"\b(?:preserv\w*|persist\w*|maintain\w*|conserv\w*|invariant|intact|stable)\b"
    r"|\b(?:ha(?:s|ve)|is|are|shows?|reach(?:es)?|takes?|prefers?|gives?|yields?) (?:the same|no)\b|\bthe same \w+ as\b"
    r"|\b(?:equal|equally|identical|comparable|similar|indistinguishable|no more|no less|no better|no worse)\b"
    r"|\b(?:as (?!well|soon|far|long|much)\w+ (?:\w+ )?as)\b",
    re.IGNORECASE,
)
_NOUN = r"(?:effects?|bearing|influence|impact|relation(?:ship)?|connection|link|difference)"
_VAGUE = re.compile(
    r"(?<!\bthe )(?<!\ba )(?<!\bof )(?<!\bin )(?<!\bthis )(?<!\bno )\b(?:affects?|affected|influences?|influenced"
    r"|impacts?|alters?|altered|chang(?:e|es|ed|ing)|modif(?:y|ies|ied)|modulates?|modulated|shapes?|shaped by"
    r"|governs?|governed by|determines?|determined by|regulates?|regulated by|goes along with|go along with|accompan\w+"
    r"|(?:is|are|be|been|being) (?:(?!not\b)\w+ )?(?:related|linked|connected|associated|tied|coupled|correlated"
    r"|dependent)\b(?! positively| negatively)"
    rf"|(?:has|have|having|makes?|stands?) (?:in )?(?:some|an?|any) (?:\w+ )?{_NOUN}|bears? on"
    r"|var(?:y|ies) (?:with|as|by|across|between)|depends?|differs?|matters?|interacts?|something to do with)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|no|nor|neither|hardly|never)\b|n['’]t\b", re.IGNORECASE)
_MANNER = re.compile(r"\bhow\b.*|\bin (?:\w+ )?(?:way|degree)\b.*|\bto a different degree", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:may|might|will|would|can|do|does|is|are) or (?:may |might |will |would |can|do |does |is |are )?not\b"
    r"|\b(?:may|might) or\b|\b(?:whether|perhaps|possibly|maybe|potentially|conceivabl[ey]|uncertain|unclear|unknown"
    r"|hard to (?:say|tell|predict)|remains to be|or not|or (?:the same|no|the (?:reverse|opposite)))\b"
    r"|\beither\b.*\bor\b"
    r"|\b(?:ask|test|stud|examin|investigat|explor|check)\w*(?: \w+)? (?:if|(?:the )?(?:idea|hypothesis|claim|notion"
    r"|prediction|possibility) (?:that|of))\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"\b(\w+),? or (\w+)\b", re.IGNORECASE)
_LEVEL = re.compile(r"same|equal(?:ly)?|neither|spares?|stays?|remains?|level|unchanged|leaves?", re.IGNORECASE)
_MARKS = re.compile(
    rf"\b(?:(?P<none>{NO_DIRECTION})|(?P<turn>{TURNING})|(?P<up>{RISING})|(?P<down>{FALLING})|(?P<bad>{UNWANTED}))(?!\w)",
    re.IGNORECASE,
)

Direction = Literal[-1, 0, 1]


class Mark(NamedTuple):
    """A word that states a direction."""

    kind: str
    """``up``, ``down``, ``bad`` for a quantity that is better low, or ``turn``."""
    stem: str


@lru_cache(maxsize=_CACHED_TEXTS)
def is_hedged(claim: str) -> bool:
    """Return whether a claim leaves open what will be found.

    >>> is_hedged("Yeast may or may not raise the dough."), is_hedged("Yeast may raise the dough.")
    (True, False)
    >>> is_hedged("Salt slows or speeds it."), is_hedged("Salt slows it in bread or cake.")
    (True, False)
    """
    return _HEDGE.search(claim) is not None or is_open(claim) or any(map(_is_choice, _CHOICE.finditer(claim)))


@lru_cache(maxsize=_CACHED_TEXTS)
def denies_change(claim: str) -> bool:
    """Return whether a claim says that nothing changes, or that two things are unrelated.

    >>> denies_change("Salt does not change the rise of the dough."), denies_change("The crust is similar.")
    (True, False)
    """
    return _DENIAL.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_null(claim: str) -> bool:
    """Return whether a claim says that nothing changes, or that something stays as it is.

    >>> is_null("Salt preserves the crust."), is_null("Salt slows the rise of the dough.")
    (True, False)
    """
    return denies_change(claim) or _SAME.search(claim) is not None


@lru_cache(maxsize=_CACHED_TEXTS)
def is_undirected(claim: str) -> bool:
    """Return whether a claim names a change or a relation without its direction.

    >>> is_undirected("Salt affects the dough."), is_undirected("Salt affects the dough by slowing it.")
    (True, False)
    >>> is_undirected("More salt changes how fast dough rises."), is_undirected("Salt does not affect it.")
    (True, False)
    """
    found = _VAGUE.search(claim)
    if found is None or _NOT.search(claim[: found.end()]):
        return False
    behind = _MANNER.sub("", claim[found.end() :]).split()[:_NEAR]
    before = claim[: found.start()].split()[-1:]
    return not any(mark.kind != "bad" for mark in (*_marks(" ".join(behind)), *_marks(" ".join(before))))


@lru_cache(maxsize=_CACHED_TEXTS)
def polarity(claim: str) -> Direction:
    """Return the product of the directions of a claim's words, −1 or 1, or 0 without such a word.

    Claims that say the same from opposite sides have equal products: the warmer the faster, the colder the slower.

    >>> polarity("More yeast raises the dough."), polarity("Less yeast lowers the dough.")
    (1, 1)
    >>> polarity("More yeast lowers the dough."), polarity("Yeast is alive.")
    (-1, 0)
    """
    marks = _marks(claim)
    return _product(Counter(marks)) if marks else 0


def claim_direction(claim: OutcomeClaim, text: str) -> int:
    """Return the direction that a claim or one of its contraries states besides its variables: 1, −1, or 0 for none."""
    variables = set(f"{claim.independent} {claim.dependent}".lower().split())
    said = " ".join(word for word in text.rstrip(".").lower().split() if word not in variables)
    return 0 if is_null(said) else polarity(said)


@lru_cache(maxsize=_CACHED_TEXTS)
def agreement(claim: str, true: str) -> Direction:
    """Return 1 if the words of two claims state the same direction, −1 if they do not, 0 if one states none.

    Words that occur in both texts belong to their subject and are not counted.

    >>> agreement("Slower kneading makes a denser crumb.", "Slow kneading thickens and enlarges the crumb.")
    1
    >>> agreement("Errors fall with practice.", "Practice raises the number of mistakes.")
    -1
    """
    one, other = Counter(_marks(claim)), Counter(_marks(true))
    return _product((one - other) + (other - one)) if one and other else 0


@lru_cache(maxsize=_CACHED_TEXTS)
def _marks(text: str) -> tuple[Mark, ...]:
    """Return the words of a text that state a direction. If a bad quantity is named, "worse" means a rise."""
    found = (
        Mark(match.lastgroup or "", match.group().lower()[:STEM_LETTERS])
        for match in _MARKS.finditer(text)
        if match.lastgroup != "none"
    )
    marks = tuple(found)
    return tuple(map(_of_bad, marks)) if any(mark.kind == "bad" for mark in marks) else marks


def _of_bad(mark: Mark) -> Mark:
    turned = {"wors": "up", "bett": "down"}
    return Mark(turned.get(mark.stem[:4], mark.kind), mark.stem)


def _product(marks: Counter[Mark]) -> Direction:
    odd = sum(count for mark, count in marks.items() if mark.kind != "up") % 2
    return -1 if odd else 1


def _is_choice(match: re.Match[str]) -> bool:
    """Return whether "A or B" names two directions."""
    one, other = map(_direction_of, match.groups())
    return bool(one and other) and one != other


def _direction_of(word: str) -> str:
    marks = _marks(word)
    return marks[0].kind if marks else "level" if _LEVEL.fullmatch(word) else ""
