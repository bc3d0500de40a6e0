"""Pages of explorations: the measures of their charts and tables by task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.results.report import KindPages
from inquitree_gym.results.score import KindResults, Measure


class ExplorationPages(KindPages):
    """Charts and tables of explorations. See `KindPages` for the members."""

    charts: Mapping[str, tuple[str, str]] = {"score": ("score", "score"), "evidence": ("p", "evidence shown, p")}
    order = "score"

    def maps(self, results: KindResults[Any, Any]) -> Mapping[str, Measure[Any]]:
        """Return the score, by a title of its own."""
        return {"score by task": next(measure for measure in results.measures if measure.name == "score")}


PAGES = ExplorationPages()
