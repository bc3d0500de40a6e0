"""Ways to reject a statement, or to leave it open: forms that the judge's adapter is trained on, or tested on alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

REJECTIONS = (
    "It is a myth that {p}.",
    "We reject the idea that {p}.",
    "It is not the case that {p}.",
    "The claim that {p} is wrong.",
    "Our data refute the view that {p}.",
    "There is no evidence that {p}.",
    "Contrary to expectation, it turned out to be false that {p}.",
    "Nothing here supports the notion that {p}.",
    "{P}: this was not confirmed.",
    "We found the opposite of the following: {p}.",
)
"""Forms that deny ``p``."""
OPEN = (
    "It is unclear whether {p}.",
    "Whether {p} remains an open question.",
    "Future work should test whether {p}.",
    "We cannot tell whether {p} or whether {c}.",
    "Some say {p}; others say {c}.",
    "Either {p}, or {c}.",
    "It may be that {p}, but equally that {c}.",
    "One hypothesis is that {p}; another is that {c}.",
    "We asked whether {p}.",
    "It would be interesting to know if {p}.",
)
"""Forms that assert neither ``p`` nor its contrary ``c``."""
ASSERTIONS = (
    "We conclude that {p}.",
    "The evidence suggests that {p}.",
    "Taken together, {p}.",
    "In this data set, {p}.",
    "It is not {c}; rather, {p}.",
    "{P}, although the effect may be smaller than it seems.",
    "Our results support the view that {p}.",
    "Probably {p}.",
)
"""Forms that assert ``p``, hedged or not."""
UNSEEN = {
    "reject": ("The belief that {p} has to be given up.", "People think that {p}, but they are mistaken."),
    "open": ("Opinions differ on whether {p}.", "{P}? Or rather: {c}? Who knows."),
    "assert": ("All in all we found that {p}.", "What our studies show is that {p}."),
}
"""Forms that no training sees."""


def fill(form: str, text: str, contrary: str) -> str:
    """Put a statement and its contrary into a form."""
    return form.format(p=_inside(text), P=text.rstrip("."), c=_inside(contrary), C=contrary.rstrip("."))


def shuffled(text: str, draws: np.random.Generator) -> str:
    """Return the words of a text in random order."""
    return " ".join(draws.permutation(text.rstrip(".").split()).tolist())


def keywords(texts: Sequence[str], draws: np.random.Generator) -> str:
    """Return the long words of several texts in random order, with commas."""
    words = sorted({word.strip(".,;:()").lower() for text in texts for word in text.split() if len(word) > 5})
    return ", ".join(draws.permutation(words)[:25].tolist())


def _inside(text: str) -> str:
    """Return a sentence as it stands inside another one."""
    first = text.split(" ", 1)[0]
    lower = text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text
    return lower.rstrip(".")
