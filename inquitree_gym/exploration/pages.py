"""Pages of explorations: the measures of their charts and tables by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inquitree_gym.exploration.sections import by_hops, by_type, effort, failed, repeated, sources
from inquitree_gym.results.report import FurtherResult, KindPages, Report
from inquitree_gym.results.score import KindResults, Measure


class ExplorationPages(KindPages):
    """Charts and tables of explorations. See `KindPages` for the members."""

    charts: Mapping[str, tuple[str, str]] = {"score": ("score", "score"), "evidence": ("p", "evidence shown, p")}
    order = "score"
    sections = (by_type, by_hops, repeated, effort, sources, failed)

    def maps(self, results: KindResults[Any, Any]) -> Mapping[str, Measure[Any]]:
        """Return the score, by a title of its own."""
        return {"score by task": next(measure for measure in results.measures if measure.name == "score")}

    def further_results(self, report: Report[Any]) -> Iterator[FurtherResult]:
        """Yield the scores by type of task."""
        for table in by_type(report).tables:
            rows = [list(table.heads), *([cell.text for cell in line] for line in table.lines)]
            records = [dict(zip(table.heads, row, strict=True)) for row in rows[1:]]
            yield FurtherResult(table.name.replace("-", "_"), table.caption, records, rows)


PAGES = ExplorationPages()
