"""Answer sheets: items with lettered options, and the reading of which letter a reply gives to which item.

An answer is an item's number and one letter: ``1 B``, ``1: b``, ``Item 1 – B (80 %)``, one or many a line. It is read
at the start of a line, after a colon, semicolon or bar, after words such as "my answers are", or after another answer.
Inside a sentence nothing is read, so "a 3 B" or "1. A study of" is no answer. Time is linear in the reply's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from inquitree_gym.text_limits import strip_thinking

LETTERS = "ABCDEFGHI"
"""Letters of the options of an item."""

Layout = tuple[tuple[int, ...], ...]
"""Options of each item, numbered in file order, in the order of their letters."""


def lettered(statements: Iterable[str], number: int | None = None) -> str:
    """Return the lines of an item: its statements with their letters, behind its number if it has one.

    Templates get whole items, since their loops are slow.
    """
    head, rest = ("", "") if number is None else (f"{number}. ", "   ")
    lines = (f"{letter}. {text}" for letter, text in zip(LETTERS, statements, strict=False))
    return head + f"\n{rest}".join(lines)


_STATEMENT = re.compile(r"^(?:([0-9]+)\. )? *([A-I])\. (.+)$", re.MULTILINE)


def lettered_items(text: str) -> list[tuple[str, list[str]]]:
    """Return the items that `lettered` wrote into a text: the number of each, empty without one, and its statements."""
    items: list[tuple[str, list[str]]] = []
    for number, letter, statement in _STATEMENT.findall(text):
        if letter == LETTERS[0]:
            items.append((number, []))
        if items and letter == LETTERS[len(items[-1][1]) : len(items[-1][1]) + 1]:
            items[-1][1].append(statement)
    return [(number, statements) for number, statements in items if len(statements) > 1]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Answers to all items."""

    choices: tuple[int | None, ...]
    """Option of each item in file order. None for an item that was left out."""
    probabilities: tuple[float | None, ...] = ()
    """Probability given to each choice, in [0, 1]. None where none was given, empty for none at all."""

    @property
    def is_empty(self) -> bool:
        """True if no item was answered."""
        return all(choice is None for choice in self.choices)


_TOKEN = re.compile(
    r"(?P<number>0,[0-9]+|[0-9]+(?:\.[0-9]+)?|(?<!\w)\.[0-9]+)|(?P<word>[^\W\d_]+)|(?P<line>[\n;])|(?P<mark>\S)"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEADS = _words("answer answers choice choices choose pick sheet")
_BEFORE_NUMBER = _LEADS | _words("item items question q c conclusion statement no number my final so and for to are is")
_BEFORE_LETTER = _LEADS | _words("my the final option letter statement item is i d would say select go with")
_BLANKS = _words("none nothing skip skipped blank unknown unsure")
"""Words in the place of a letter that leave an item out."""
_OF_PROBABILITY = _words("p prob probability confidence")
_BEFORE_PROBABILITY = _OF_PROBABILITY | _words("with at of a")
_NOT_A_NUMBER = _words("nan inf infinity")
_AFTER_LETTER = _NOT_A_NUMBER | _words("because since with at and or is for")
_AFTER_PROBABILITY = _AFTER_LETTER | _OF_PROBABILITY | _words("sure certain likely item")
_BETWEEN = frozenset(":.,)(][}{\"'`“”‘’«»*_-−–—=<>→|#/~")
"""Marks that may stand between the parts of an answer."""
_INSIDE_WORDS = frozenset("-'’_+")
_OR = frozenset(("/", "&", "and", "or"))
_MOST_DIGITS = 6
"""Digits of the largest number that can name an item."""
_MOST_NAMED = 3
"""Unknown items that a note names."""
_FORM = 'Write one answer per line, such as "1 B" or "1 B 0.8".'


class SheetNote(NamedTuple):
    """Something in a reply that could not be read as it stands."""

    place: str
    """Place in the reply, such as ``item 3``."""
    problem: str
    """Expected value and the one that came."""
    remedy: str
    """Next step."""

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}. {self.remedy}"


class SheetReading(NamedTuple):
    """Sheet that a reply hands in."""

    sheet: Sheet
    notes: tuple[SheetNote, ...]
    """At most one per item and problem, however long the reply."""


class _Token(NamedTuple):
    kind: str
    text: str
    """Lower case."""
    attached: bool
    """True if nothing stands between it and the token before."""


class _Answer(NamedTuple):
    item: str
    letters: tuple[str, ...]
    """Different letters. None for an item that is left out in so many words."""
    probability: str
    """Number as written, with ``%``. Empty for none."""


def read_sheet(reply: str, layout: Layout) -> SheetReading:
    """Read the answers in a reply. The last answer to an item counts.

    What cannot be read changes nothing and is noted: unknown items and letters, two letters at once, a probability
    outside [0, 1].

    Args:
        reply: any text.
        layout: order of the options under their letters, item by item. Items are numbered from 1.
    """
    choices: list[int | None] = [None] * len(layout)
    probabilities: list[float | None] = [None] * len(layout)
    notes: dict[tuple[int, str], SheetNote] = {}
    unknown: list[str] = []
    for answer in _answers(_tokens(strip_thinking(reply))):
        if not answer.letters:
            continue
        item = int(answer.item) - 1 if answer.item.isdigit() and len(answer.item) <= _MOST_DIGITS else -1
        if not 0 <= item < len(layout):
            unknown.append(answer.item)
            continue
        letters = LETTERS[: len(layout[item])]
        if fault := _letter_fault(answer.letters, letters):
            notes[item, "letter"] = SheetNote(f"item {item + 1}", *fault)
            continue
        option = layout[item][letters.index(answer.letters[0])]
        if choices[item] not in (None, option):
            notes[item, "again"] = _changed(item, answer.letters[0])
        choices[item] = option
        probabilities[item] = _value(answer.probability)
        if answer.probability and probabilities[item] is None:
            notes[item, "probability"] = _improbable(item, answer.probability)
    sheet = Sheet(tuple(choices), tuple(probabilities))
    return SheetReading(
        sheet, tuple(_general_notes(reply, sheet, unknown)) + tuple(notes[key] for key in sorted(notes))
    )


def write_sheet(sheet: Sheet, layout: Layout) -> str:
    """Return the reply that hands in a sheet, one answer per line. Probabilities have four digits."""
    lines = []
    for item, choice in enumerate(sheet.choices):
        if choice is not None:
            probability = sheet.probabilities[item] if sheet.probabilities else None
            letter = LETTERS[layout[item].index(choice)]
            lines.append(f"{item + 1} {letter}" + ("" if probability is None else f" {probability:.4f}"))
    return "\n".join(lines)


def _letter_fault(given: tuple[str, ...], letters: str) -> tuple[str, str] | None:
    names = f"one of the letters {letters[0]} to {letters[-1]}"
    if len(given) > 1:
        return f"an answer must be one letter, got {' and '.join(given)}", "Name one letter, or leave the item out."
    if given[0] not in letters:
        return f"an answer must be {names}, got {given[0]}", "Name one of these letters, or leave the item out."
    return None


def _changed(item: int, letter: str) -> SheetNote:
    problem = f"an item must have one answer, got different ones, of which the last, {letter}, counts"
    return SheetNote(f"item {item + 1}", problem, "Name each item once.")


def _improbable(item: int, given: str) -> SheetNote:
    problem = f"a probability must be a number from 0 to 1, got {given:.40}"
    return SheetNote(f"item {item + 1}", problem, "The letter counts. Give its probability as in 0.8, or none.")


def _general_notes(reply: str, sheet: Sheet, unknown: list[str]) -> Iterator[SheetNote]:
    items = len(sheet.choices)
    if unknown:
        named = ", ".join(f"{name:.12}" for name in unknown[:_MOST_NAMED])
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        yield SheetNote("reply", f"items must be numbered from 1 to {items}, got {named}{more}", "Use these numbers.")
    if sheet.is_empty:
        yield SheetNote("reply", f"an answer must be an item's number and a letter, got {reply.strip()[:60]!r}", _FORM)


def _value(given: str) -> float | None:
    """Return a probability as a number, or None if it is none."""
    if not given or given in _NOT_A_NUMBER:
        return None
    value = float(given.rstrip("%").replace(",", ".")) / (100 if given.endswith("%") else 1)
    return value if 0 <= value <= 1 else None


def _tokens(text: str) -> list[_Token]:
    tokens, end = [], -1
    for match in _TOKEN.finditer(text):
        tokens.append(_Token(match.lastgroup or "", match[0].lower(), match.start() == end))
        end = match.end()
    return [*tokens, *[_Token("line", "\n", False)] * 3]


def _closings(tokens: list[_Token]) -> list[int]:
    """Return for each token the place after the next closing bracket on its line, or 0 for none."""
    after, closings = 0, [0] * len(tokens)
    for at in range(len(tokens) - 1, -1, -1):
        after = 0 if tokens[at].kind == "line" else at + 1 if tokens[at].text == ")" else after
        closings[at] = after
    return closings


def _answers(tokens: list[_Token]) -> Iterator[_Answer]:
    """Yield the answers. While the text is open, a number can begin one."""
    closings = _closings(tokens)
    at, is_open = 0, True
    while at < len(tokens):
        token, answer = tokens[at], None
        at += 1
        if is_open and token.kind == "number":
            answer, at = _answer_at(tokens, closings, at)
            if answer is not None:
                yield answer
            is_open = answer is not None
        elif is_open and token.text == "(" and tokens[at].kind != "number":
            at = max(at, closings[at])
        else:
            is_open = _opens(token, is_open)


def _opens(token: _Token, is_open: bool) -> bool:
    if token.kind == "line" or token.text in (":", "|") or token.text in _LEADS:
        return True
    return is_open and (token.kind == "mark" or token.text in _BEFORE_NUMBER)


def _answer_at(tokens: list[_Token], closings: list[int], start: int) -> tuple[_Answer | None, int]:
    """Read the answer whose number stands before ``start``. Return it, or None, and the place to go on from."""
    at = start
    while at < len(tokens) and not _is_letter(tokens, at):
        token = tokens[at]
        if token.text in _BLANKS:
            return _Answer(tokens[start - 1].text, (), ""), at + 1
        if token.text == "(" and not _is_letter(tokens, at + 1) and closings[at]:
            at = closings[at]
        elif token.text in _BETWEEN or token.text == "\n" or token.text in _BEFORE_LETTER:
            at += 1
        else:
            return None, start
    if at == len(tokens):
        return None, start
    is_below = any(token.kind == "line" for token in tokens[start:at])
    letters, at = _letters_at(tokens, at)
    probability, at = _probability_at(tokens, at)
    if is_below and not _ends_line(tokens, at):  # below its number, a letter before a text heads a list of options
        return None, start
    return _Answer(tokens[start - 1].text, letters, probability), at


def _ends_line(tokens: list[_Token], at: int) -> bool:
    while tokens[at].text in _BETWEEN:
        at += 1
    return tokens[at].kind == "line"


def _is_letter(tokens: list[_Token], at: int) -> bool:
    """Return True for a single letter that is no word of a sentence and no part of a longer name."""
    token = tokens[at]
    if token.kind != "word" or len(token.text) > 1 or not token.text.isascii():
        return False
    after, second, third = tokens[at + 1 : at + 4]
    if after.attached and (after.kind == "number" or (after.text in _INSIDE_WORDS and second.kind == "word")):
        return not second.attached and after.kind != "number"
    if after.kind != "word" or after.text in _AFTER_LETTER:
        return True
    return (third if second.kind == "mark" else second).kind == "number" and (
        after.text in _OF_PROBABILITY or after.text in _BEFORE_NUMBER
    )


def _letters_at(tokens: list[_Token], at: int) -> tuple[tuple[str, ...], int]:
    """Return the different letters from a place on, joined by "or", a slash or a comma, and the place after them."""
    letters = [tokens[at].text.upper()]
    at += 1
    while (letter := tokens[at + 1].text.upper()) and len(letter) == 1 and letter in LETTERS:
        if not (tokens[at].text in _OR or (tokens[at].text == "," and _is_letter(tokens, at + 1))):
            break
        letters.append(letter)
        at += 2
    return tuple(dict.fromkeys(letters)), at


def _probability_at(tokens: list[_Token], start: int) -> tuple[str, int]:
    """Return the probability after a letter as written, or an empty text, and the place after it."""
    at = start
    while tokens[at].text in _BETWEEN or tokens[at].text in _BEFORE_PROBABILITY:
        at += 1
    token, after = tokens[at], tokens[at + 1 : at + 2]
    if token.text in _NOT_A_NUMBER:
        return token.text, at + 1
    if token.kind != "number" or _is_item(tokens, at):
        return "", start
    dash = tokens[at - 1]
    is_negative = at > start and dash.text in ("-", "−") and token.attached and not dash.attached
    is_percent = after[0].text in ("%", "percent")
    end = at + 1 + is_percent
    follows = tokens[end]
    if follows.text == "of" or (at > start and follows.kind == "word" and follows.text not in _AFTER_PROBABILITY):
        return "", start
    return "-" * is_negative + token.text + "%" * is_percent, end


def _is_item(tokens: list[_Token], at: int) -> bool:
    """Return True if a number is followed by an answer of its own."""
    number, at = tokens[at].text, at + 1
    while tokens[at].text in _BETWEEN:
        at += 1
    return number.isdigit() and (_is_letter(tokens, at) or tokens[at].text in _BLANKS)
