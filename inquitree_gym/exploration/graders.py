"""Grades of answers by program: exact for T1 and T2, by slot for T3, by cell for T4 (SciExplore, A.5 and A.9).

The lenient rules of cells hold for T4 alone. A T1 or T2 answer must have every part within the task's own tolerance,
and none extra.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field

from inquitree_gym.exploration.answers import LISTED, citations, final_answer, is_broken, items, last_table, refuses
from inquitree_gym.exploration.citing import Attributes, graded_slots
from inquitree_gym.exploration.gold import AnswerGold, CitationGold, Frozen, Gold, Part, TableGold
from inquitree_gym.exploration.quantities import Amount, comparable, convert, near, plain, quantities
from inquitree_gym.exploration.tabling import graded_table

_LIMIT = re.compile(r"(?:\b(?:not|than|below|above|under|over|least|most|up to)|[<>≤≥])\s*$", re.I)

Verdict = Literal["correct", "incorrect", "not_attempted"]
Items = Literal["all", "attributes"]
"""Cells that count as items of T4: all, the key included (Eq. 6), or attributes alone (A.9)."""


class Tally(Frozen):
    """Right, given and gold elements of one kind."""

    right: int
    given: int
    gold: int

    @property
    def recall(self) -> float:
        """Right elements / gold elements. 0 without gold."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def precision(self) -> float:
        """Right elements / given elements. 0 where nothing was given."""
        return self.right / self.given if self.given else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 2c / (given + gold). 0 where nothing is right."""
        return 2 * self.right / (self.given + self.gold) if self.right else 0.0


class AnswerGrade(Frozen):
    """Grade of a T1 or T2 answer."""

    kind: Literal["T1", "T2"]
    verdict: Verdict

    @property
    def score(self) -> float:
        """1 for a correct answer, else 0."""
        return float(self.verdict == "correct")


class CitationGrade(Frozen):
    """Grade of a T3 answer."""

    kind: Literal["T3"] = "T3"
    slots: tuple[Tally, ...]
    """Works of every slot, in the order of gold: correct, cited and gold ones."""
    unknown: tuple[int, ...] = ()
    """Slots that the answer fills and the text does not have. They are ignored."""
    format: bool
    """True if at least one line could be read."""

    @property
    def score(self) -> float:
        """Mean F over the slots."""
        return fmean(slot.f1 for slot in self.slots)


class TableGrade(Frozen):
    """Grade of a T4 answer."""

    kind: Literal["T4"] = "T4"
    keys: Tally
    attributes: Tally
    """Cells beside the key that are not empty."""
    rows: Tally
    """Rows that are right in their key and every attribute."""
    format: bool
    """True if the answer has a table with exactly the asked headers."""

    def items(self, items: Items = "all") -> Tally:
        """Return the counts of items."""
        keys, cells = self.keys, self.attributes
        if items == "attributes":
            return cells
        return Tally(right=keys.right + cells.right, given=keys.given + cells.given, gold=keys.gold + cells.gold)

    @property
    def score(self) -> float:
        """R_item: keys found and right attributes / gold cells (Eq. 6)."""
        return self.items().recall


Grade = Annotated[AnswerGrade | CitationGrade | TableGrade, Field(discriminator="kind")]
"""Grade of an answer of any kind."""


def grade(gold: Gold, answer: str | None, attributes: Attributes = "strict") -> Grade:
    """Grade an answer. None stands for an episode that ended without one.

    Args:
        gold: Gold of the task.
        answer: Text of the answer.
        attributes: "lenient" accepts a work of T3 whose authors, venue or year are wrong.
    """
    text = answer or ""
    if isinstance(gold, AnswerGold):
        return AnswerGrade(kind=gold.kind, verdict=_verdict(gold, text))
    if isinstance(gold, CitationGold):
        return _citation_grade(gold, text, attributes)
    return _table_grade(gold, text)


def _citation_grade(gold: CitationGold, text: str, attributes: Attributes) -> CitationGrade:
    """Grade the lines of a T3 answer."""
    cited = citations(text)
    known = {slot.number for slot in gold.slots}
    counts = graded_slots(gold, cited, attributes)
    slots = tuple(Tally(right=right, given=given, gold=wanted) for right, given, wanted in counts)
    unknown = tuple(sorted({one.slot for one in cited} - known))
    return CitationGrade(slots=slots, unknown=unknown, format=bool(cited))


def _table_grade(gold: TableGold, text: str) -> TableGrade:
    """Grade the last table of a T4 answer."""
    found = graded_table(gold, last_table(text))
    attributes = sum(bool(cell) for row in gold.rows for cell in row[1:])
    return TableGrade(
        keys=Tally(right=found.keys, given=found.given_keys, gold=len(gold.rows)),
        attributes=Tally(right=found.attributes, given=found.given_attributes, gold=attributes),
        rows=Tally(right=found.rows, given=found.given_rows, gold=len(gold.rows)),
        format=found.format,
    )


def _verdict(gold: AnswerGold, text: str) -> Verdict:
    """Return the verdict on a T1 or T2 answer. Validity comes first.

    A name that reads like a refusal, such as a title that begins with "No evidence", is right where gold has it.
    """
    if is_broken(text):
        return "not_attempted"
    final = final_answer(text)
    if len(gold.parts) == 1 and not (gold.parts[0].entity and gold.parts[0].number is not None):
        right = _single(gold.parts[0], final)
    else:
        right = any(_all_parts(gold.parts, listed) for listed in items(final))
    if refuses(text) and comparable(final_answer(text)) not in {comparable(name) for name in gold.parts[0].names}:
        return "not_attempted"
    return "correct" if right else "incorrect"


def _single(part: Part, final: str) -> bool:
    """Return True if a final answer gives the only part, an entity or a number."""
    return _is_entity(part, final) if part.entity else _is_number(part, final)


def _all_parts(parts: Sequence[Part], listed: Sequence[str]) -> bool:
    """Return True if every item gives a part of its own and every part is given."""
    if len(listed) != len(parts):
        return False
    left = list(parts)
    for item in listed:
        match = next((part for part in left if _is_part(part, item)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _is_part(part: Part, item: str) -> bool:
    """Return True if an item of a list gives a part."""
    if not part.entity or part.number is None:
        return _single(part, item)
    text = plain(item)
    return any(
        _is_value(part, one) and _is_entity(part, f"{text[: one.start]} {text[one.end :]}".strip(" ()=:-"))
        for one in quantities(text, part.unit)
    )


def _is_entity(part: Part, text: str) -> bool:
    """Return True if a text is a name of the entity, alone, in a short sentence or with a gloss in brackets."""
    names = {comparable(name) for name in part.names}
    return any(comparable(reading) in names for reading in _readings(plain(text).strip()))


def _readings(text: str) -> list[str]:
    """Return the readings of a final answer: all of it, without its gloss, and what follows "is"."""
    found = [text]
    bare = text.rstrip(" .*_`\"'")
    opened = bare.rfind(" (")
    if bare.endswith(")") and opened > 0 and not bare[opened + 2 :].casefold().startswith("or "):
        found.append(bare[:opened])
    for reading in tuple(found):
        after = [reading.rpartition(mark)[2] for mark in (" is ", " are ", " was ", ": ", " = ") if mark in reading]
        found += after
    return found


def _is_number(part: Part, final: str) -> bool:
    """Return True if a final answer gives the number and no other value."""
    text = plain(LISTED.sub("", final, count=1)).partition("±")[0]
    found = quantities(text, part.unit)
    if len(found) > 1 and not all(_is_value(part, one) for one in found):
        places = [text.rfind(mark) for mark in (" is ", " are ", " was ", ": ", "= ")]
        found = [one for one in found if one.start > max(places)] if max(places) >= 0 else found
    return bool(found) and all(_is_value(part, one) for one in found) and not _is_bounds(text, found)


def _is_bounds(text: str, found: Sequence[Amount]) -> bool:
    """Return True if the numbers of a text are the ends of a range, a limit, or denied."""
    denied = any(_LIMIT.search(text[max(0, one.start - 20) : one.start]) for one in found)
    return denied or any(
        one.value != other.value and text[one.end : other.start].strip() in {"-", "to", "or"}
        for one, other in pairwise(found)
    )


def _is_value(part: Part, given: Amount) -> bool:
    """Return True if a number is the part's, within its tolerance. A missing unit is accepted, a wrong one is not."""
    if part.number is None:
        return False
    values = [given.value] if not given.unit else []
    if (converted := convert(given.value, given.unit, part.unit)) is not None:
        values.append(converted)
    return any(near(value, part.number, part.tolerance) for value in values)
