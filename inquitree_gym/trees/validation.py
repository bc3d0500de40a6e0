"""Plain messages for the validation errors of tree files, each with its place in the document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inquitree_gym.errors import Fault, plural
from inquitree_gym.trees import fields
from inquitree_gym.trees.fields import HINT_LEVELS
from inquitree_gym.trees.rules import fault

_ITEMS = {
    "hints": "hint",
    "studies": "study",
    "contraries": "contrary",
    "evidence": "study",
    "procedure": "step",
    "needs": "group",
    "paraphrases": "paraphrase",
    "subtopics": "subtopic",
    "conclusions": "conclusion item",
    "authors": "author",
    "claims": "claim",
    "axes": "axis",
    "poles": "pole",
}
"""Noun for one entry of a list, by field."""
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "an object",
    "dict_type": "an object",
}
_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is an unknown field; remove it",
    "string_too_short": "is empty",
    "string_too_long": "has {length:,} characters, at most {max_length:,} are allowed",
    "literal_error": "needs {expected}, not {described}",
    "greater_than_equal": "is {value}, needs at least {ge}",
    "less_than_equal": "is {value}, needs at most {le}",
}
_FORMATS = {
    fields.ID_PATTERN: "an id: a lower-case letter, then up to 63 of a-z, 0-9, '_', '.' and '-'",
    fields.DOI_PATTERN: "a DOI; write it without resolver, such as 10.1038/s41593-025-02054-6, or leave it empty",
    fields.DATE_PATTERN: "a date; write YYYY-MM-DD",
    fields.SOURCE_PATTERN: "a source id; write S1 to S99",
    fields.FACT_PATTERN: "a fact id; write F, M or B and a number, such as F1",
}


def validation_faults(error: ValidationError, document: Any) -> Iterator[Fault]:
    """Yield every fault. Its node is the place in node ids."""
    for each in error.errors(include_url=False, include_input=False):
        value = _value(document, each["loc"])
        if each["type"] == "not_playable":
            yield from each["ctx"]["list"]
        elif not _only_seems_short(each, value):
            yield fault("T102", _place(each["loc"], document), _path(each["loc"]), _message(each, value))


def legible(name: str) -> str:
    """Return a name from an unchecked file, cut to 80 characters and with unprintable characters escaped."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name[:80])


def _message(error: ErrorDetails, value: Any) -> str:
    kind, limits = error["type"], error.get("ctx", {})
    if kind in _WANTED:
        return f"needs {_WANTED[kind]}, not {_described(value)}"
    if kind == "string_pattern_mismatch":
        return f"'{legible(value)}' is not {_FORMATS[limits['pattern']]}"
    if kind in ("too_short", "too_long"):
        return _wrong_length(_noun(error["loc"]), len(value), limits)
    if kind not in _MESSAGES:
        return error["msg"]
    length = len(value) if isinstance(value, str) else 0
    return _MESSAGES[kind].format(**limits, length=length, value=legible(str(value)), described=_described(value))


def _noun(location: tuple[int | str, ...]) -> str:
    """Return the word for an entry of a list. Lists without a field name are groups of studies, or wordings by key."""
    return _ITEMS.get(str(location[-1]), "wording" if "texts" in location else "study")


def _wrong_length(noun: str, length: int, limits: dict[str, Any]) -> str:
    if noun == "hint":
        return f"has {plural(length, noun)}, needs {HINT_LEVELS}"
    if "min_length" in limits:
        return f"has {plural(length, noun)}, needs at least {limits['min_length']}"
    return f"has {plural(length, noun)}, at most {limits['max_length']:,} are allowed"


def _described(value: Any) -> str:
    """Describe a JSON value: a scalar in full, a list or object by its type."""
    if isinstance(value, str):
        return f"the text '{legible(value)}'"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"the number {legible(str(value))}"


def _only_seems_short(error: ErrorDetails, value: Any) -> bool:
    """Return whether a list seems too short only because its invalid entries, reported already, were not counted."""
    return error["type"] == "too_short" and len(value) >= error["ctx"]["min_length"]


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Name a place by node ids as far as possible: ``s3 › s3a › result``."""
    names: list[str] = []
    for key in location:
        document = _value(document, (key,))
        node = document.get("id") if isinstance(document, dict) else None
        if isinstance(node, str):
            names[-1:] = [legible(node)]
        else:
            names.append(legible(str(key)))
    return " › ".join(names) or "document"


def _path(location: tuple[int | str, ...]) -> str:
    """Write a place by fields and indices: ``subtopics[2].studies[0].result``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{legible(key)}" for key in location).removeprefix(".")


def _value(document: Any, location: tuple[int | str, ...]) -> Any:
    """Return the value at a location, or None if there is none."""
    for key in location:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document
