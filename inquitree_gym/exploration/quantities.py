"""Numbers in answers with units that convert without doubt, and names made comparable (SciExplore, A.9)."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

ROUNDING = 1e-12
"""Relative difference of two equal values that comes from their computation."""

_PREFIXES = {"n": 1e-9, "µ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_PREFIXED = {
    "m": ("length", 1.0), "g": ("mass", 1.0), "s": ("time", 1.0), "L": ("volume", 1.0), "l": ("volume", 1.0),
    "mol": ("amount", 1.0), "M": ("molarity", 1.0), "Pa": ("pressure", 1.0), "bar": ("pressure", 1e5),
    "J": ("energy", 1.0), "eV": ("energy of particles", 1.0), "V": ("voltage", 1.0), "A": ("current", 1.0),
    "W": ("power", 1.0), "Hz": ("frequency", 1.0), "Da": ("molecular mass", 1.0), "bp": ("base pairs", 1.0),
    "b": ("base pairs", 1.0), "N": ("force", 1.0), "T": ("field", 1.0), "Ω": ("resistance", 1.0),
}  # fmt: skip
_PLAIN = {
    "%": ("", 1e-2), "ppm": ("", 1e-6), "Å": ("length", 1e-10), "aa": ("residues", 1.0), "min": ("time", 60.0),
    "h": ("time", 3600.0), "d": ("time", 86400.0), "K": ("temperature", 1.0), "°C": ("temperature", 1.0),
}  # fmt: skip
_UNITS = {p + u: (kind, size * factor) for u, (kind, size) in _PREFIXED.items() for p, factor in _PREFIXES.items()}
_UNITS |= _PLAIN
_WORDS = {
    "percent": "%", "per cent": "%", "hours": "h", "hour": "h", "days": "d", "day": "d", "minutes": "min",
    "minute": "min", "seconds": "s", "second": "s", "amino acids": "aa", "residues": "aa", "base pairs": "bp",
}  # fmt: skip
_CELSIUS = 273.15
_NUMBER = re.compile(
    r"(?<![\w.])(?<![^\W\d]-)(?P<value>(?:(?<!\w)[+-])?(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+|(?=\.\d))(?:\.\d+)?)"
    r"(?:\s?[x*]\s?10\^?(?P<power>[+-]?\d{1,3})|e(?P<exponent>[+-]?\d{1,3}))?(?:\s?/\s?(?P<divisor>\d+(?:\.\d+)?))?"
    r"(?![\d']|\.\d)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s?([%°Å]?[^\W\d_]*(?:[/·*^][-\w]+)*)(?:\s(\w+))?")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_LETTERS = str.maketrans("‐‑‒–—−×⁄’‘′“”μ", "------x/'''\"\"µ")
_DROPPED = re.compile(r"'(?![-\w])|(?<!\d)'|[^\w<>=≤≥+'%.\-/\s]|(?<!\d)\.|\.(?!\d)|(?<=\S)-|-(?!\d)|_")


class Amount(NamedTuple):
    """A number in a text with its unit."""

    value: float
    unit: str
    """Unit as `convert` reads it. Empty without one."""
    start: int
    end: int


def plain(text: str) -> str:
    """Return the text with one form of dashes, quotes, digits and signs. Powers are written with ``^``."""
    text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match[0]), text)
    return unicodedata.normalize("NFKC", text).translate(_LETTERS)


def comparable(text: str) -> str:
    """Return a name in the form that is compared: without case, trivial punctuation and white space.

    >>> comparable(' "Velorin  Kinase-2." '), comparable("2'-Deoxycytidine"), comparable("> 2.50")
    ('velorin kinase 2', "2' deoxycytidine", '> 2.50')
    """
    text = plain(text).casefold().replace("^", "").replace("&", " and ")
    return " ".join(_DROPPED.sub(" ", text).replace("/", " / ").split())


@lru_cache(maxsize=1024)
def _measure(unit: str) -> tuple[str, float] | None:
    """Return the kind of a unit and its size. None for an unknown unit."""
    if "/" not in unit:
        return _UNITS.get(unit)
    above, _, below = unit.partition("/")
    upper, lower = _UNITS.get(above), _UNITS.get(below)
    return (f"{upper[0]}/{lower[0]}", upper[1] / lower[1]) if upper and lower else None


def is_unit(text: str) -> bool:
    """Return True for a unit that `convert` knows."""
    return text in _WORDS or _measure(plain(text)) is not None


def convert(value: float, unit: str, to: str) -> float | None:
    """Return a value in another unit. None if the units are in conflict or one is unknown."""
    unit, to = _WORDS.get(unit, plain(unit)), _WORDS.get(to, plain(to))
    if unit.casefold() == to.casefold() and (unit == to or _measure(unit) is None):
        return value
    if "°C" in (unit, to) and "K" in (unit, to):
        return value + (_CELSIUS if to == "K" else -_CELSIUS)
    one, other = (("", 1.0) if not name else _measure(name) for name in (unit, to))
    return value * one[1] / other[1] if one and other and one[0] == other[0] else None


def near(value: float, gold: float, tolerance: float) -> bool:
    """Return True if two values in one unit differ by no more than a tolerance."""
    return abs(value - gold) <= tolerance + ROUNDING * max(abs(value), abs(gold))


def quantities(text: str, known: str = "") -> list[Amount]:
    """Return the numbers of a text in `plain` form. A word after a number is its unit if it is one, or ``known``."""
    found = []
    for match in _NUMBER.finditer(text):
        unit, end = _unit_after(text, match.end(), known)
        if end is None or (value := _value(match)) is None:
            continue
        found.append(Amount(value, unit, match.start(), end))
    return found


def quantity(text: str, known: str = "") -> Amount | None:
    """Return the number that a whole text is, with its unit. None if the text says anything else."""
    text = plain(text).strip(" *`\"'")
    match = _NUMBER.match(text)
    if match is None or (value := _value(match)) is None:
        return None
    unit = " ".join(text[match.end() :].split())
    unit = _WORDS.get(unit, unit)
    fits = not unit or _measure(unit) is not None or (known and unit == plain(known))
    return Amount(value, unit, 0, len(text)) if fits else None


def _value(match: re.Match[str]) -> float | None:
    """Return the value of a match. None for a division by 0 and for what no float holds."""
    divisor = float(match["divisor"] or 1)
    power = match["power"] or match["exponent"] or "0"
    if not divisor:
        return None
    value = float(f"{match['value'].replace(',', '')}e{power}") / divisor
    return value if abs(value) < float("inf") else None


def _unit_after(text: str, start: int, known: str) -> tuple[str, int | None]:
    """Return the unit at a place and its end. The end is None if letters that are no unit belong to the number."""
    match = _UNIT.match(text[start : start + 80])  # no unit is longer
    if match is None:
        return "", start
    both, first = f"{match[1]} {match[2]}".strip(), match[1]
    for words, end in ((both, match.end()), (first, match.end(1))):
        if words and (is_unit(words) or words.casefold() == plain(known).casefold()):
            return _WORDS.get(words, words), start + end
    attached = text[start : start + 1].isalpha()
    return "", None if attached else start
