"""Reading for scripted agents: what a T1 or T4 question says of each record, and what a page says.

It knows the words of questions and pages as a person knows English. It has no task, no gold and no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from inquitree_gym.exploration.building.schemas import databases
from inquitree_gym.exploration.library import NAME, Column, number_text

_NOUNS = {schema.noun: name for name, schema in databases().items()}
_SENTENCE = re.compile(rf"\b({'|'.join(_NOUNS).title()}) ([A-Z]) ((?:[^.]|\.(?=\d))+)\.")
SCOPE = re.compile(r"List every (\w+) that (.+), as a Markdown table with the headers (.+?)\. (.+)\. Give numbers in")
ASKED = re.compile(r"(?:Give the|with its) (\w[\w ]*?)(?: in \S[^.]*?)?(?: of \w+ [A-Z]\.|, as NAME)")
_SOURCE = re.compile(r"(.+?)(?: class)? (?:stands on|follows from) the page of ([^:]+)(?:: (.+))?")
_CLASSES = re.compile(r"low up to (-?[\d.]+ .+?), high from (-?[\d.]+ .+?) on, .*")
_ONE_OF = re.compile(r"one of (.+), or - if none applies")
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_LINK = re.compile(r"(.+) \((\S+)\)")
_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_BEFORE = re.compile(r"^(?:Question: .*|Turn \d+ of \d+\.)$", re.MULTILINE)


def parts_of(observation: str) -> tuple[str, str]:
    """Return the question of an observation, and the outcome of the last action. Empty for what it lacks."""
    asked = _QUESTION.search(observation)
    return asked[1] if asked else "", _BEFORE.split(observation)[-1].strip()


class Wanted(NamedTuple):
    """A record that a question describes."""

    database: str
    tests: tuple[str, ...]
    """Its constraints as tests of a LOOKUP."""
    links: dict[str, str]
    """Letters of the records that its columns lead to."""


class AskedFor(NamedTuple):
    """Place of the values that a question asks for."""

    path: tuple[tuple[str, str], ...]
    """Databases and links that lead there from the record of an answer."""
    column: Column
    rule: str = ""
    """Closed vocabulary in words. Empty for a value as it stands."""


class Question(NamedTuple):
    """A T1 or T4 question."""

    wanted: dict[str, Wanted]
    """Records by letter, that of the answer last. The rows of a table have no letter."""
    sources: tuple[AskedFor, ...]
    """Places of the number that is asked for, or of the columns of a table after its key."""
    headers: tuple[str, ...] = ()
    named: bool = True
    """True if the name is asked for."""


def read_question(text: str) -> Question | None:
    """Return a T1 or T4 question. None for any other text."""
    sentences = _SENTENCE.findall(text)
    wanted = {letter: _wanted(_NOUNS[noun.lower()], claims) for noun, letter, claims in sentences}
    if scope := SCOPE.search(text):
        database = _NOUNS[scope[1]]
        sources = tuple(_source(database, said) for said in re.split(r"\. (?=[A-Z])", scope[4])[1:])
        return Question({**wanted, "": _wanted(database, scope[2])}, sources, tuple(scope[3].split(" | ")))
    asked = ASKED.search(text)
    if not wanted or asked is None:
        return None
    database, named = wanted[next(reversed(wanted))].database, asked[1] == NAME
    sources = () if named else (AskedFor((), _labelled(database, asked[1])),)
    return Question(wanted, sources, named=named or asked[0].startswith("with"))


def _wanted(database: str, claims: str) -> Wanted:
    """Return the tests and links that the claims about a record say."""
    columns, links = databases()[database].columns, dict[str, str]()
    for column in databases()[database].links:
        if match := re.search(rf"\b{column.asks} {databases()[column.to].noun} ([A-Z])\b", claims):
            links[column.name] = match[1]
    return Wanted(database, tuple(test for column in columns for test in _tests(column, claims)), links)


def _tests(column: Column, claims: str) -> Iterator[str]:
    """Yield what the claims say of a column that is no link, in the unit of its database."""
    if column.choices and (match := re.search(rf"\b{column.asks} ({'|'.join(column.choices)})\b", claims)):
        yield f"{column.name} = {match[1]}"
    for unit, factor in column.units or (("", 1.0),):
        ends = rf"{_NUMBER} to {_NUMBER} {re.escape(unit)}(?![\w/])" if unit else rf"between {_NUMBER} and {_NUMBER}"
        if match := re.search(rf"\b{column.asks} {ends}", claims):
            low, high = (number_text(float(end) / factor, column.decimals) for end in match.groups())
            yield f"{column.name} >= {low}"
            yield f"{column.name} <= {high}"


def _labelled(database: str, label: str) -> Column:
    """Return the column with a label, whatever its case."""
    columns = databases()[database].columns
    return next(column for column in columns if label.lower() in (each.lower() for each in column.labels))


def _source(database: str, said: str) -> AskedFor:
    """Return where the values of a column stand, after a sentence such as "X stands on the page of the Y of the Z"."""
    label, page, rule = _SOURCE.findall(said)[0]
    path = []
    for noun in [each.removeprefix("the ") for each in page.split(" of ")][-2::-1]:
        link = next(each for each in databases()[database].links if databases()[each.to].noun == noun)
        database = link.to
        path.append((database, link.name))
    return AskedFor(tuple(path), _labelled(database, label), rule)


class PageRead(NamedTuple):
    """The page of a record."""

    name: str
    values: dict[str, str]
    """Values as written, by column."""

    def key(self, link: str) -> str:
        """Return the key that a link leads to."""
        return self.values[link].rpartition(" (")[2].rstrip(")")

    def cell(self, source: AskedFor) -> str:
        """Return a value as an answer has it: in the unit of its database, or a word of a closed vocabulary."""
        column, text = source.column, self.values[source.column.name]
        if text == "–":
            return ""
        if column.kind == "link":
            return text.rpartition(" (")[0]
        if column.kind == "number":
            value = _amount(text, column)
            if ends := _CLASSES.fullmatch(source.rule):
                low, high = (_amount(end, column) for end in ends.groups())
                return "low" if value <= low else "high" if value >= high else "-"
            return number_text(value, column.decimals)
        one = _ONE_OF.fullmatch(source.rule)
        return text if one is None or text in one[1].split(", ") else "-"


def read_page(database: str, text: str) -> PageRead:
    """Return what the page of a record says."""
    labels = {label: column.name for column in databases()[database].columns for label in column.labels}
    lines = text.strip().splitlines()
    pairs = (line.partition(": ") for line in lines)
    name = next((match[1] for line in lines if (match := _LINK.fullmatch(line))), "")
    return PageRead(name, {labels[label]: value for label, _, value in pairs if label in labels})


def _amount(text: str, column: Column) -> float:
    """Return a number with a unit in the unit of the database."""
    number, _, unit = text.partition(" ")
    return round(float(number) / dict(column.units).get(unit, 1.0), column.decimals)
