"""Messages about invalid settings of a study."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is an unknown setting; remove it",
    "too_short": "needs at least one entry",
    "string_too_long": "has more than {max_length} characters",
    "finite_number": "needs a finite number",
    "greater_than": "needs more than {gt:g}",
    "greater_than_equal": "needs at least {ge:g}",
    "less_than_equal": "needs at most {le:g}",
    "literal_error": "needs {expected}",
}
"""Messages by pydantic's type of an error."""
_WANTED = {
    "bool": "true or false",
    "dict": "a table",
    "float": "a number",
    "int": "a whole number",
    "model": "a table",
    "string": "text",
    "tuple": "a list",
}
"""Values needed, by the first word of the type of an error."""


def faults(error: ValidationError) -> Iterator[str]:
    """Yield the faults of each place, but not the input, which may be a misplaced API key."""
    found: dict[str, list[str]] = {}
    for fault in error.errors(include_input=False, include_url=False):
        # The other parts of a location name the members of a union.
        place = ".".join(str(part) for part in fault["loc"] if isinstance(part, int) or part.isidentifier())
        if fault["type"] != "too_short" or not any(other.startswith(f"{place}.") for other in found):
            found.setdefault(place, []).append(_message(fault))
    for place, messages in found.items():
        yield f"{place}: {', or '.join(messages)}" if place else "; ".join(messages)


def _message(fault: ErrorDetails) -> str:
    kind = fault["type"]
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(**fault.get("ctx", {}))
    family, _, problem = kind.partition("_")
    if family in _WANTED and problem in ("type", "parsing", "from_float"):
        return f"needs {_WANTED[family]}"
    return fault["msg"].removeprefix("Value error, ")
