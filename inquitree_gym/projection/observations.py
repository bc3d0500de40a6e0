"""Templates of projections, and the observations rendered from them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import MAX_OBSERVATION
from inquitree_gym.trees.disclosure import Level, ProjectionTask

PACKAGE = "inquitree_gym.projection"
TEMPLATE_NAMES = ("projection", "projection_end")
AGENT_TEMPLATE_NAMES = ("projection_system", "projection_correction", "llm_dropped")


def projection_prompts(chosen: str | os.PathLike[str] | None = None, names: Sequence[str] = TEMPLATE_NAMES) -> Prompts:
    """Return the templates with these names: ``"default"``, or overridden by a folder. See `Prompts`."""
    return Prompts(chosen, names, PACKAGE)


_OPENING, _END = "projection", "projection_end"


class ProjectionRenderer:
    """Renderer of the observation texts of one task. Each text is rendered once."""

    def __init__(self, task: ProjectionTask, prompts: Prompts, rules: ProjectionRules) -> None:
        self._task, self._prompts, self._rules = task, prompts, rules
        self._rendered: list[str | None] = [None] * (len(rules.levels) + 1)

    def render(self, turn: int) -> str:
        """Return the text after ``turn`` turns: everything disclosed so far, or that the task is over.

        The text does not depend on the projections, so it tells nothing about the score. Raise `OptionError` for a
        template that produces more than `MAX_OBSERVATION` characters.
        """
        text = self._rendered[turn]
        if text is None:
            text = self._rendered[turn] = self._render(
                tuple(self._rules.levels[: turn + 1]), turn == len(self._rules.levels)
            )
        return text

    def _render(self, disclosed: tuple[Level, ...], over: bool) -> str:
        name = _END if over else _OPENING
        text = self._prompts.render(name, **({} if over else self._values(disclosed)))
        if len(text) > MAX_OBSERVATION:
            fit = f"at most {MAX_OBSERVATION:,} fit into an observation; shorten the template"
            raise OptionError(f"template '{name}.md' makes {len(text):,} characters; {fit}")
        return text

    def _values(self, disclosed: tuple[Level, ...]) -> dict[str, object]:
        """Return the values of the template. Values of levels that are not disclosed yet are None."""
        told = self._task.disclosure
        asked, hypothesised, planned = (level in disclosed for level in ("question", "null", "procedure"))
        return {
            "topic": told.topic if asked else None,
            "question": told.question if asked else None,
            "null_hypothesis": told.null_hypothesis if hypothesised else None,
            "procedure": told.procedure if planned else None,
            "form": self._rules.form,
        }
