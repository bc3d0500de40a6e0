"""Templates of projections, and the observations rendered from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.settings import ProjectionRules
from inquitree_gym.projection.sheets import statements
from inquitree_gym.prompts import Prompts
from inquitree_gym.sheets import Layout, lettered
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
    """Renderer of the observation texts of one task."""

    def __init__(self, task: ProjectionTask, prompts: Prompts, rules: ProjectionRules) -> None:
        self._task, self._prompts, self._rules = task, prompts, rules
        self._rendered: dict[int, str] = {}

    def render(self, disclosed: int) -> str:
        """Return the text that asks for a projection when so many levels are disclosed, or after all that it is over.

        The text does not depend on the projections, so it tells nothing about the score. Raise `OptionError` for a
        template that produces more than `MAX_OBSERVATION` characters.
        """
        if disclosed not in self._rendered:
            levels = self._rules.levels
            over = disclosed > len(levels)
            values = {} if over else self._values(levels[:disclosed])
            self._rendered[disclosed] = self._render(_END if over else _OPENING, values)
        return self._rendered[disclosed]

    def render_sheet(self, disclosed: int, layout: Layout, *, again: bool) -> str:
        """Return the text of a sheet. ``again``: the reply before had no readable answer."""
        items = [
            lettered((statements(claim)[option] for option in order), number)
            for number, (claim, order) in enumerate(zip(self._task.claims, layout, strict=True), 1)
        ]
        values = self._values(self._rules.levels[:disclosed]) | {"items": items, "again": again}
        return self._render(_OPENING, values)

    def _render(self, name: str, values: Mapping[str, object]) -> str:
        text = self._prompts.render(name, **values)
        if len(text) > MAX_OBSERVATION:
            fit = f"at most {MAX_OBSERVATION:,} fit into an observation; shorten the template"
            raise OptionError(f"template '{name}.md' makes {len(text):,} characters; {fit}")
        return text

    def _values(self, disclosed: Sequence[Level]) -> dict[str, object]:
        """Return the values of the template. Values of levels that are not disclosed yet are None."""
        told = self._task.disclosure
        asked, hypothesised, planned = (level in disclosed for level in ("question", "null", "procedure"))
        return {
            "topic": told.topic if asked else None,
            "question": told.question if asked else None,
            "null_hypothesis": told.null_hypothesis if hypothesised else None,
            "procedure": told.procedure if planned else None,
            "form": self._rules.form,
            "items": None,
            "again": False,
        }
