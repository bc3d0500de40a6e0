"""Rules of explorations, and the settings of a study of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field

from inquitree_gym.errors import OptionError
from inquitree_gym.kind_settings import KindSettings, as_tuple
from inquitree_gym.ruleset import RuleSet

Tools = Literal["all", "search", "none"]
"""Tools beside ANSWER: all of them, SEARCH and OPEN, or none."""
USUAL_LIMIT = "60 turns, T4 120"
"""Turn limits of the types of tasks in words. See `schema.TURNS`."""
MOST_TURNS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationRules(RuleSet):
    """Rules of an exploration."""

    max_turns: int | None = None
    """Actions before the agent has to answer, which takes one more. None for the number of the task's type."""
    tools: Tools = "all"
    """Tools of the agent."""

    def __post_init__(self) -> None:
        """Validate every rule.

        Raises:
            OptionError: a rule is out of range.
        """
        turns = self.max_turns
        if turns is not None and (
            isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_TURNS
        ):
            raise OptionError(
                f"max_turns must be a whole number from 1 to {MOST_TURNS:,}, got {turns!r:.80}. Choose one."
            )
        if self.tools not in get_args(Tools):
            raise OptionError(f"tools must be one of {', '.join(get_args(Tools))}, got {self.tools!r:.80}. Choose one.")


class ExplorationSettings(KindSettings):
    """Settings of a study of explorations. See `KindSettings` for the methods."""

    grid: ClassVar[tuple[str, ...]] = ("tools",)

    max_turns: int | None = Field(
        default=None, ge=1, le=MOST_TURNS, description="Actions before an answer is due: 60, of T4 120 by default."
    )
    tools: Annotated[tuple[Tools, ...], BeforeValidator(as_tuple)] = Field(
        default=("all",), min_length=1, description="Tools of the agent: all, search for SEARCH and OPEN, or none."
    )

    def all_rules(self) -> dict[str, Any]:
        """Return the rules, without the value of a cell."""
        return {"max_turns": self.max_turns, "tools": "all"}

    @property
    def limit(self) -> str:
        """Turn limit in words."""
        return USUAL_LIMIT if self.max_turns is None else f"{self.max_turns} turns"


SETTINGS = ExplorationSettings
