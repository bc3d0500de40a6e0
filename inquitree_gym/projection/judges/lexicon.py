"""Words that state a direction, in all their forms: general English, not the terms of any study."""

from __future__ import annotations

import re

_ADVERBS = {"y": "(?:y|ier|iest|ily)", "e": "(?:e|er|est|ely)"}
_VERBS = {"y": "(?:y|ies|ied|ying)", "e": "(?:e|es|ed|ing)"}
_FINITE = {"y": "(?:y|ies|ied)", "e": "(?:e|es|ed)"}
_SHORT = re.compile(r"[^aeiou][aeiou][bdgmnpt]$")
"""A short word that doubles its last letter before an ending."""

_RISING_ADJECTIVES = """
strong large big long fast quick high great rich wide broad steep deep tight close common frequent precise accurate
powerful faithful reliable dense vigorous loud efficient robust forgiving extensive correct
"""
_RISING_VERBS = """
increase raise rise grow strengthen enhance improve boost elevate heighten lengthen prolong accelerate amplify
facilitate expand exceed surpass outperform widen broaden deepen sharpen promote potentiate escalate multiply augment
intensify stabilise stabilize quicken hasten climb surge enrich enlarge tighten outnumber outlast
"""
_RISING_FINITE = """
speed lift beat gain enable permit restore restart resume succeed reproduce recreate reinstate fuel magnify help
benefit aid soar reappear preserve recover
"""
_FALLING_ADJECTIVES = """
weak small short slow low few little poor narrow rare brief sparse quiet shallow faint loose coarse infrequent scarce
dim
"""
_FALLING_VERBS = """
decrease reduce lower drop decline diminish weaken impair worsen shorten attenuate dampen shrink slow abolish lose
degrade disrupt blunt curtail hinder hamper minimise minimize eliminate quench halve destabilise destabilize curb lag
underperform deteriorate undermine vanish fade disappear abate subside ease lighten erase dwindle plummet dull
dissolve collapse deplete soften relieve erode
"""
_FALLING_FINITE = """
fall prevent block remove inhibit silence depress suppress narrow cut stop halt hurt harm fail spoil damage stall
relax avoid bypass deprive withdraw lack restrain
"""


def _forms(words: str, endings: dict[str, str], suffixes: str) -> str:
    """Return a pattern of the words in all forms: endings of words on "y" and "e", and suffixes of the others."""
    return "|".join(_form(word, endings, suffixes) for word in words.split())


def _form(word: str, endings: dict[str, str], suffixes: str) -> str:
    last = word[-1]
    if last in endings and not (last == "y" and word[-2] in "aeiou"):
        return word[:-1] + endings[last]
    doubled = f"{last}?" if _SHORT.search(word) and len(word) <= 5 else ""
    return f"{word}(?:{doubled}(?:{suffixes}))?"


def _adjectives(words: str) -> str:
    return _forms(words, _ADVERBS, "er|est|ly|s")


def _verbs(words: str) -> str:
    return _forms(words, _VERBS, "s|es|ed|ing")


def _finite(words: str) -> str:
    """Return a pattern of the words without "-ing", a form that usually names the manipulation and not the effect."""
    return _forms(words, _FINITE, "s|es|ed|ting")


RISING = "|".join(
    (
        _adjectives(_RISING_ADJECTIVES),
        _verbs(_RISING_VERBS),
        _finite(_RISING_FINITE),
        r"risen|rose|grew|grown|growth|more|most|better|best|furthers?|farther|upwards?|upregulat\w*|positive(?:ly)?"
        r"|above|(?:go(?:es)?|went|mov(?:e|es|ed)) up|additional|extra|many|numerous|tolerance",
    )
)
FALLING = "|".join(
    (
        _adjectives(_FALLING_ADJECTIVES),
        _verbs(_FALLING_VERBS),
        _finite(_FALLING_FINITE),
        r"lesser|confin(?:e|es|ed)|limited to|fell|fallen|lost|loss(?:es)?|worse|worst|less|least|fewer|fewest"
        r"|downwards?|downregulat\w*|negative(?:ly)?|inverse(?:ly)?|below|behind"
        r"|(?:go(?:es)?|went|cuts?|slows?|brings?|damps?|tones?|mov(?:e|es)) down",
    )
)
UNWANTED = (
    r"errors?|mistakes?|inaccura\w*|sloppi\w*|sloppy|instabilit\w*|unstable|deficits?|wander\w*|drift of|despair\w*"
    r"|anhedoni\w*|depress(?:ion|ive)\w*|mismatch\w*|discord\w*|disagree\w*|uncertain\w*|unsure|improbab\w*|unlikely"
    r"|unpredict\w*|surpris\w*|unexpected\w*|oppos(?:e|ed|ition)|distant|far"
)
"""Bad quantities, which are better low: "worse" means that they rise."""
TURNING = r"not|n['’]t|neither|nor|cannot|hardly|scarcely|barely|unable|nothing|opposite|other direction|impossible"
"""Words that reverse the direction of the other words."""
NO_DIRECTION = (
    r"fall(?:s|ing|en)? (?:asleep|in|into|within|on)|not (?:only|just|merely|yet)|(?:and|but|,|though|although) not"
    r"|no more than|more or less|at (?:least|most)|slow[- ]wave|rather than|(?:long|short)[- ]term"
    r"|(?:low|high)[- ]level|high[- ]gamma|(?:low|high)[- ]frequency|higher?[- ]order|top[- ]down|bottom[- ]up"
    r"|so far|as (?:far|long)|how (?:well|long|far|fast|often|much|many)|mostly|closely related|lower limit"
    r"|short of|or no|with no|out of"
    r"|higher (?:visual|auditory|cortical|cortex|areas?|regions?)"
)
"""Phrases whose words state no direction of an effect."""
