"""Requests to a chat model that aligns a projection: their contents, and the reading of the replies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inquitree_gym.judging.asking import Scored, code_of, coded_rows, fence_of, plain, score_under, secret_of
from inquitree_gym.llm import Message, strip_thinking
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.disclosure import ProjectionTask

SYSTEM = "projection_judge_system"
ANALOGOUS, EXTRANEOUS = "projection_analogous", "projection_extraneous"
BLIND, MATCHES = "projection_blind", "projection_matches"
RATINGS = "projection_ratings"
ALIGNMENT_TEMPLATES = (SYSTEM, ANALOGOUS, EXTRANEOUS, BLIND, MATCHES, RATINGS)
"""Templates of the messages: the system prompt, the four extractions, and the rating."""

Scale = Literal["steps", "real"]
"""Ratings that are accepted: only -1, 0 and 1, or any number from -1 to 1."""

_NUMBER = re.compile(r"(?:-\s+(?=[-+]))?(?P<sign>[-+])?(?P<number>\d+(?:\.\d+)?|\.\d+)(?!\.?\d|\w|%|/)")
_OR = re.compile(r"[ \t*_`]*(?:[,|]|\bor\b|\bto\b|\band\b)[ \t*_`]*(?:or\b\s*)?[-+]?\.?\d", re.IGNORECASE)
"""Continuation that makes a rating ambiguous, as in a repeated instruction: ``-1, 0 or 1``."""
_NONE = re.compile(
    r"^[\s\"'(\[]*(?:n\s*/\s*a|none|null|not applicable|not available|no claim|-+|—)?[\s.\"')\]]*$", re.I
)
_OPENING = re.compile(r"[\[{]")


@dataclass(frozen=True, slots=True)
class Coded:
    """A claim with its code in one request."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """Two claims to rate against each other, as shown in a request."""

    code: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class AlignmentRequest:
    """One request: a template with its values, which include claims and texts by an unknown author."""

    template: str
    values: dict[str, Any]
    codes: tuple[str, ...] = ()
    """Codes of the items that the reply has to name, in order."""

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the chat messages. Texts are inserted as values, never as templates."""
        return [
            {"role": "system", "content": prompts.render(SYSTEM)},
            {"role": "user", "content": prompts.render(self.template, **self.values)},
        ]


def analogous_request(task: ProjectionTask, projection: str, repeat: int) -> AlignmentRequest:
    """Return the request for the projected claim that is analogous to each true claim."""
    return _coded_request(ANALOGOUS, task, projection, repeat)


def extraneous_request(
    task: ProjectionTask, projection: str, repeat: int, found: Sequence[str], limit: int
) -> AlignmentRequest:
    """Return the request for at most ``limit`` projected claims that are not among those already ``found``."""
    secret = secret_of(task.digest, EXTRANEOUS, repeat, projection, *found)
    values = {"topic": task.disclosure.topic, "projection": projection, "found": list(found), "limit": limit}
    return AlignmentRequest(EXTRANEOUS, {**values, "fence": fence_of(secret)})


def blind_request(task: ProjectionTask, projection: str, repeat: int) -> AlignmentRequest:
    """Return the request for all projected claims, which does not show the true claims."""
    secret = secret_of(task.digest, BLIND, repeat, projection)
    values = {"topic": task.disclosure.topic, "projection": projection, "fence": fence_of(secret)}
    return AlignmentRequest(BLIND, values)


def matches_request(task: ProjectionTask, found: Sequence[str], repeat: int) -> AlignmentRequest:
    """Return the request that matches true claims with projected ones, which are numbered from 1."""
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(found, 1))
    return _coded_request(MATCHES, task, listed, repeat)


def ratings_request(
    task: ProjectionTask, pairs: Sequence[tuple[str, str]], *, swapped: bool, repeat: int, undirected: int
) -> AlignmentRequest:
    """Return the request to rate pairs of a true and a projected claim, which is shown first if ``swapped``."""
    secret = secret_of(task.digest, RATINGS, swapped, repeat, *(text for pair in pairs for text in pair))
    shown = [
        ClaimPair(code_of("P", place, secret), *(pair[::-1] if swapped else pair))
        for place, pair in enumerate(pairs, 1)
    ]
    values = {"topic": task.disclosure.topic, "pairs": shown, "fence": fence_of(secret), "undirected": undirected}
    return AlignmentRequest(RATINGS, values, tuple(pair.code for pair in shown))


def _coded_request(template: str, task: ProjectionTask, projection: str, repeat: int) -> AlignmentRequest:
    secret = secret_of(task.digest, template, repeat, projection)
    coded = [Coded(code_of("C", place, secret), claim.text) for place, claim in enumerate(task.claims, 1)]
    values = {"topic": task.disclosure.topic, "projection": projection, "claims": coded, "fence": fence_of(secret)}
    return AlignmentRequest(template, values, tuple(each.code for each in coded))


def read_by_code(reply: str, codes: Sequence[str]) -> list[Any] | None:
    """Return the values under all codes in the last JSON object that has them, or in a table. None without either."""
    wanted = [_letters(code) for code in codes]
    for found in (found for text in (reply, plain(reply)) for found in reversed(list(_json_values(text)))):
        named = {_letters(str(name)): value for name, value in found.items()} if isinstance(found, dict) else {}
        if set(wanted) <= named.keys():
            return [named[code] for code in wanted]
    table = plain(strip_thinking(reply))
    rows = [[cell for _, cells in coded_rows(table, code) for cell in cells] for code in codes]
    return [cell for (cell,) in rows] if all(len(cells) == 1 for cells in rows) else None


def _letters(code: str) -> str:
    """Return a code without its typography."""
    return re.sub(r"\W", "", code).casefold()


def read_analogous(reply: str, codes: Sequence[str]) -> list[str | None] | None:
    """Return the analogous claim of every true claim, None for "N/A". None if the reply cannot be read."""
    values = read_by_code(reply, codes)
    if values is None or not all(value is None or isinstance(value, str) for value in values):
        return None
    return [None if value is None or _NONE.match(plain(value)) else _tidy(value) for value in values]


def read_claims(reply: str) -> list[str] | None:
    """Return the claims in the last JSON list of texts of a reply, without "N/A". None without such a list."""
    for found in reversed(list(_json_values(reply))):
        if isinstance(found, list) and all(value is None or isinstance(value, str) for value in found):
            return [_tidy(value) for value in found if value is not None and not _NONE.match(plain(value))]
    return None


def read_matches(reply: str, codes: Sequence[str], claims: int) -> list[int | None] | None:
    """Return the index of the projected claim of every true claim, None for "N/A".

    None if the reply cannot be read, names a claim that does not exist, or names one twice.
    """
    values = read_by_code(reply, codes)
    if values is None:
        return None
    numbers = [None if value is None or _NONE.match(plain(str(value))) else _index(value, claims) for value in values]
    named = [number for number in numbers if number is not None]
    return None if -1 in named or len(set(named)) < len(named) else numbers


def read_ratings(reply: str, codes: Sequence[str], scale: Scale) -> list[Scored]:
    """Return rating and reason under every code. The rating is None if it is missing or not on the scale."""
    said = strip_thinking(reply)
    return [score_under(code, "RATING", said, _real if scale == "real" else _step) for code in codes]


def _real(reply: str, place: int) -> float | None:
    found = _NUMBER.match(reply, place)
    if found is None or _OR.match(reply, found.end()):
        return None
    value = float(found["number"]) * (-1 if found["sign"] == "-" else 1)
    return value if abs(value) <= 1 else None


def _step(reply: str, place: int) -> float | None:
    value = _real(reply, place)
    return value if value in (-1.0, 0.0, 1.0) else None


def _index(value: object, claims: int) -> int:
    """Return the index of a numbered claim, -1 for anything else."""
    written = str(value).strip()
    number = int(written) if written.isascii() and written.isdigit() and len(written) < 5 else 0
    return number - 1 if number <= claims else -1


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _json_values(reply: str) -> Iterator[Any]:
    """Yield the JSON objects and lists of a reply, in order of their start. Those inside others are left out."""
    text, place, decoder = strip_thinking(reply), 0, json.JSONDecoder()
    while match := _OPENING.search(text, place):
        try:
            value, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            place = match.start() + 1
        else:
            yield value
