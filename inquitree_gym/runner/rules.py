"""Rules of a study: a preset, and single rules that override it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from inquitree_gym.engine.rules import expand_preset

PRESET = "preset"
"""Name of the preset among the rules of a study."""


def _by_name(given: Any) -> Any:
    return {PRESET: given} if isinstance(given, str) else given


StudyRules = Annotated[dict[str, bool | int | float | str | tuple[str, ...]], BeforeValidator(_by_name)]
"""Rules by name, as in `Rules` or `ProjectionRules`, and `PRESET`; a string is the name of a preset alone."""


def expanded(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a study by name, those of its preset included.

    Raises:
        OptionError: no preset has the name given.
    """
    return expand_preset(rules, PRESET)
