"""Torn logs: their settings, and the comparison of their turns with those of a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inquitree_gym.engine import Rules
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Episode, Header, Turn, has_header, read_episode
from inquitree_gym.matching import SIMILARITY_TOLERANCE
from inquitree_gym.prompts import Prompts

_NOT_COMPARED = {"started", "versions", "log_version"}
"""Fields of a header that may differ when an episode is resumed."""


def former_rules(file: Path | None) -> dict[str, Any]:
    """Return the rules under which a log has to be resumed because it was written before they existed.

    Raises:
        LogError: the file is damaged.
    """
    return Rules.unnamed(read_episode(file).header.rules) if file is not None and has_header(file) else {}


def read_torn(file: Path, header: Header, prompts: Prompts) -> Episode:
    """Return the episode in a file that is to be resumed by one with ``header`` and ``prompts``.

    Raises:
        LogError: the file is damaged, holds a complete episode, or one with other settings.
    """
    torn = read_episode(file)
    if torn.footer is not None:
        raise LogError(f"'{file}' holds a complete episode; choose another file")
    recorded, current = (_without_limits(each.model_dump(exclude=_NOT_COMPARED)) for each in (torn.header, header))
    try:
        recorded["rules"] = Rules.recorded(torn.header.rules).as_dict()
    except OptionError as error:
        raise LogError(f"cannot resume '{file}': {error}; resume with the release that wrote it") from error
    if not header.rules["redo_turn"] and recorded["prompts"] == prompts.digest_without("redo"):
        recorded["prompts"] = current["prompts"]  # written before that template, which only its rule shows
    if differing := [name for name in current if current[name] != recorded[name]]:
        listed = "; ".join(f"{name}: recorded {recorded[name]}, now {current[name]}" for name in differing)
        raise LogError(
            f"Cannot resume '{file}': recorded settings differ ({listed}). Resume with the recorded settings or the "
            "release that wrote the file, or remove it to play the episode anew"
        )
    return torn


def _without_limits(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the lengths of replies; a reply that ends by itself is the same under any of them."""
    kept = {name: value for name, value in settings.items() if name != "max_tokens"}
    return {name: _without_limits(value) if isinstance(value, dict) else value for name, value in kept.items()}


def agree(logged: Turn, replayed: Turn) -> bool:
    """Tell whether a replayed turn matches the log; similarities may differ by `SIMILARITY_TOLERANCE`."""
    exact = {"observation", "action", "event", "reward", "terminated", "truncated"}
    one, other = logged.reading, replayed.reading
    return (
        logged.model_dump(include=exact) == replayed.model_dump(include=exact)
        and (one.candidate, one.decision) == (other.candidate, other.decision)
        and abs(one.similarity - other.similarity) <= SIMILARITY_TOLERANCE
    )
