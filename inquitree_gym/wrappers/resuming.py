"""Torn logs: their settings, and the comparison of their turns with those of a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inquitree_gym.envs.recorded import EpisodeRecords
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Episode, Header, ReadingRecord, Turn, has_header, read_episode
from inquitree_gym.matching import SIMILARITY_TOLERANCE

_NOT_COMPARED = {"started", "versions", "log_version"}
"""Fields of a header that may differ when an episode is resumed."""


def former_options(file: Path | None, records: EpisodeRecords) -> dict[str, Any]:
    """Return the `reset` options under which a log has to be resumed because it is older than this release.

    Raises:
        LogError: the file is damaged.
    """
    if file is None or not has_header(file):
        return {}
    return records.former_options(read_episode(file).header)


def read_torn(file: Path, header: Header, records: EpisodeRecords) -> Episode:
    """Return the episode in a file that is to be resumed by one with ``header`` and ``records``.

    Raises:
        LogError: the file is damaged, or holds a complete episode or one with other settings.
    """
    torn = read_episode(file)
    if torn.footer is not None:
        raise LogError(f"'{file}' holds a complete episode; choose another file")
    try:
        written = records.in_current_form(torn.header)
    except OptionError as error:
        raise LogError(f"cannot resume '{file}': {error}; resume with the release that wrote it") from error
    recorded, current = (_without_limits(each.model_dump(exclude=_NOT_COMPARED)) for each in (written, header))
    if differing := [name for name in current if current[name] != recorded.get(name)]:
        listed = "; ".join(f"{name}: recorded {recorded.get(name)}, now {current[name]}" for name in differing)
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
    same = logged.model_dump(include=exact) == replayed.model_dump(include=exact)
    return same and _same_reading(logged.reading, replayed.reading)


def _same_reading(one: ReadingRecord | None, other: ReadingRecord | None) -> bool:
    if one is None or other is None:
        return one is other
    near = abs(one.similarity - other.similarity) <= SIMILARITY_TOLERANCE
    return near and (one.candidate, one.decision) == (other.candidate, other.decision)
