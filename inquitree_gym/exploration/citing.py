"""Works named by citations: first the work, then its authors, venue and year (SciExplore, A.5.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from inquitree_gym.exploration.answers import Citation
from inquitree_gym.exploration.gold import CitationGold, Slot, Work
from inquitree_gym.exploration.library import JOIN, NAME, PAPERS, Library, Record
from inquitree_gym.exploration.quantities import comparable, plain

Attributes = Literal["strict", "lenient"]
"""Strict: authors, venue and year must agree once the work is named. Lenient: the work suffices."""

LONGEST_CITATION = 2_000
"""Characters of a citation that are read."""
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
_DASH = re.compile(r"(?<=[^\W\d])[-'](?=\w)|(?<=\w)[-'](?=[^\W\d])")
_ADDRESS = re.compile(r"\bhttps?://\S+|\b(?:doi[: ]\s?)?10\.\d{4,9}/\S+", re.I)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d[a-z]?")
_JOINTS = frozenset("-/")
"""Marks that make a number a part of a range or of an address, so that it is no year."""
_MARKS = 4
"""Most marks between two words of a title."""


class Cited:
    """A citation cut into words and marks, in which works are looked for."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(plain(_ADDRESS.sub(" ", text[:LONGEST_CITATION])))

    def names(self, works: Sequence[Work]) -> int | None:
        """Return the place of the work that this is: by title, else by first author and year where they are unique.

        Of two titles of which one begins the other, it is the longer one.
        """
        titled = [place for place, work in enumerate(works) if self._title(work)]
        dated = (place for place, work in enumerate(works) if work.unique and self._surname(work) and self._year(work))
        return max(titled, key=lambda place: len(works[place].title)) if titled else next(dated, None)

    def agrees(self, work: Work) -> bool:
        """Return True if the first author, the venue and the year that the work has stand in the citation."""
        place = self._title(work)
        return self._surname(work, place) and self._year(work, place) and self._venue(work, place)

    def _title(self, work: Work) -> tuple[int, int] | None:
        """Return the place of the work's title."""
        return self._find(_words(work.title), 0)

    def _find(self, words: Sequence[str], start: int) -> tuple[int, int] | None:
        """Return the first place from ``start`` on where the words stand between marks."""
        for place in range(start, len(self.tokens)):
            if (place == 0 or _is_mark(self.tokens[place - 1])) and (end := self._ends(words, place)) is not None:
                return place, end
        return None

    def _ends(self, words: Sequence[str], place: int) -> int | None:
        """Return the end of the words from a place on, a few marks left out. None if they do not stand there."""
        for number, word in enumerate(words):
            skipped = 0
            while number and skipped < _MARKS and place < len(self.tokens) and not self.tokens[place].isalnum():
                place, skipped = place + 1, skipped + 1
            if place == len(self.tokens) or self.tokens[place] != word:
                return None
            place += 1
        return place if place == len(self.tokens) or _is_mark(self.tokens[place]) else None

    def _surname(self, work: Work, place: tuple[int, int] | None = None) -> bool:
        """Return True if the first author named before the title has the surname of the work's first author."""
        before = self.tokens if place is None else self.tokens[: place[0]]
        end = next((number for number in range(len(before)) if _ends_name(before, number)), len(before))
        return _holds(before[:end], _words(surname_of(work.authors[0])))

    def _year(self, work: Work, place: tuple[int, int] | None = None) -> bool:
        """Return True if the only year outside the title is the work's."""
        if work.year is None:
            return True
        outside = self.tokens if place is None else [*self.tokens[: place[0]], ".", *self.tokens[place[1] :]]
        padded = [".", *outside, "."]
        return {
            int(token[:4])
            for before, token, after in zip(padded, padded[1:], padded[2:], strict=False)
            if _YEAR.fullmatch(token) and before not in _JOINTS and after not in _JOINTS
        } == {work.year}

    def _venue(self, work: Work, place: tuple[int, int] | None = None) -> bool:
        """Return True if the work's venue stands after its title."""
        if not work.venue:
            return True
        start = 0 if place is None else place[1]
        return self._find(_words(work.venue), start) is not None


def work_of(name: str, library: Library) -> Work:
    """Return a paper of a library as the work that a text cites."""
    papers = library.facts[PAPERS]
    record = papers[name]
    alike = sum(_dated(each) == _dated(record) for each in papers.values())
    return Work(
        authors=tuple(str(record["authors"]).split(JOIN)),
        title=str(record[NAME]),
        venue=str(record["venue"]),
        year=int(record["year"] or 0),
        unique=alike == 1,
    )


def _dated(record: Record) -> tuple[str, object]:
    """Return surname of the first author and year."""
    return surname_of(str(record["first_author"])), record["year"]


def surname_of(author: str) -> str:
    """Return the surname of a name such as "Ada Osk" or "Osk, A."."""
    return author.partition(",")[0] if "," in author else author.split()[-1]


def graded_slots(
    gold: CitationGold, cited: Sequence[Citation], attributes: Attributes = "strict"
) -> list[tuple[int, int, int]]:
    """Return the correct, the cited and the gold works of every slot. The same work twice in a slot counts once."""
    return [_graded(slot, [one.text for one in cited if one.slot == slot.number], attributes) for slot in gold.slots]


def _graded(slot: Slot, texts: Sequence[str], attributes: Attributes) -> tuple[int, int, int]:
    """Return the correct, the cited and the gold works of a slot. Of one work's citations the first counts."""
    seen: dict[int | str, bool] = {}
    for text in dict.fromkeys(texts):
        cited = Cited(text)
        number = cited.names(slot.works)
        if number is None:
            seen.setdefault(comparable(text), False)
        else:
            seen.setdefault(number, attributes == "lenient" or cited.agrees(slot.works[number]))
    return sum(seen.values()), len(seen), len(slot.works)


def _tokens(text: str) -> list[str]:
    """Return the words and the marks of a text, hyphens within words left out."""
    return _TOKEN.findall(_DASH.sub(" ", text.casefold().replace("&", " and ")))


def _words(text: str) -> list[str]:
    """Return the words of a title, a venue or a name."""
    return [token for token in _tokens(plain(text)) if token.isalnum()]


def _ends_name(tokens: Sequence[str], place: int) -> bool:
    """Return True for the token that ends the first of several names. A full stop after an initial does not."""
    token = tokens[place]
    stop = token == "." and place > 0 and len(tokens[place - 1]) > 1
    return stop or token in {",", ";", "(", "and", "et"} or token.isdigit()


def _is_mark(token: str) -> bool:
    """Return True for a token that parts the fields of a citation: no word, or a number."""
    return not token.isalnum() or token.isdigit() or token == "in"


def _holds(tokens: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if the words stand in the tokens one after the other."""
    return any(list(tokens[place : place + len(words)]) == list(words) for place in range(len(tokens)))
