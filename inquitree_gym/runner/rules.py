"""Rules of a study: a preset, and single rules that override it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from inquitree_gym.engine import Rules
from inquitree_gym.engine.rules import expand_preset
from inquitree_gym.errors import OptionError

PRESET = "preset"
"""Name of the preset among the rules of a study."""


def _by_name(given: Any) -> Any:
    return {PRESET: given} if isinstance(given, str) else given


def _checked(rules: dict[str, Any]) -> dict[str, Any]:
    if own := sorted(rules.keys() & {"fake_level", "max_turns", "threshold"}):
        raise ValueError(f"{', '.join(own)} cannot be among the rules of a study; give each as a setting of its own")
    try:
        Rules().override(expanded(rules))
    except OptionError as error:
        raise ValueError(str(error)) from error
    return {name: value for name, value in rules.items() if (name, value) != (PRESET, "default")}


StudyRules = Annotated[dict[str, bool | int | float | str], BeforeValidator(_by_name), AfterValidator(_checked)]
"""Rules by name, as in `Rules`, and `PRESET`; a string is the name of a preset alone."""


def expanded(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a study by name, those of its preset included.

    Raises:
        OptionError: no preset has the name given.
    """
    return expand_preset(rules, PRESET)
