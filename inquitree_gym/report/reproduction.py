"""Pages of the paper's tables and figures: by the paper's definitions, and with differences and intervals beside."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inquitree_gym.analysis.reproduction import (
    PRESET,
    STUDIES,
    Target,
    departures,
)
from inquitree_gym.report.pages import write_figures_and_tables
from inquitree_gym.report.paper_figures import SECTIONS, Reproduction
from inquitree_gym.report.sections import Section
from inquitree_gym.report.templating import paragraphs, render, render_markdown, write_text
from inquitree_gym.trees.catalogue import RESTRICTED

TITLES_OF: dict[Target, str] = {
    "table2": "Table 2: coverage and conclusions",
    "fig3": "Figure 3: fake results",
    "fig4": "Figure 4: papers from before and after the training cutoff",
    "table3": "Table 3: training cutoffs",
    "bounds": "Appendix B: bounds on the number of turns",
}
"""Title of the page of each target."""


def write_reproduction(found: Reproduction, folder: Path) -> list[Path]:
    """Write a page, its Markdown, and its figures and tables in every format, and return them, the page first.

    Raises:
        OptionError: a file cannot be written.
        MissingExtraError: Matplotlib is not installed.
    """
    parts = [_with_source(part, found) for part in (*SECTIONS[found.target](found), _limits(found))]
    values: dict[str, Any] = {"title": TITLES_OF[found.target], "facts": _facts(found), "sections": parts}
    drawn = {chart.name: chart.files() for part in parts for chart in part.charts}
    page = folder / f"{found.target}.html"
    files = {
        page: render("reproduction.html", styles=("base.css", "report.css", "reproduction.css"), drawn=drawn, **values),
        page.with_suffix(".md"): render_markdown(**values),
    }
    for file, text in files.items():
        write_text(file, text)
    return [*files, *write_figures_and_tables(page, parts, drawn)]


def _limits(found: Reproduction) -> Section:
    """Return the section on figures of the paper that cannot be compared."""
    name = STUDIES.get(found.target)
    changed = departures(found.study, name) if found.study is not None and name is not None else []
    absent = [] if found.run is None else [each.name for each in found.run.missing]
    words = paragraphs(
        "reproduction_limits", target=found.target, restricted=len(RESTRICTED), changed=changed, missing=len(absent),
        embedder=found.study and found.study.embedder, models=bool(found.study and found.study.models),
        judge=_judge(found),
    )  # fmt: skip
    return Section("limits", "What cannot be compared with the paper, and why", words)


def _facts(found: Reproduction) -> list[tuple[str, str]]:
    """Return the settings behind a page, by name."""
    facts = [("package", f"inquitree-gym {version('inquitree-gym')}")]
    if found.study is None or found.run is None:
        return facts
    scores = found.run.scores
    return [
        ("agents", ", ".join(dict.fromkeys(score.agent for score in scores))),
        ("papers", ", ".join(found.study.trees)),
        ("fake levels", ", ".join(map(str, found.study.fake_levels))),
        ("runs of each", str(found.study.seeds)),
        ("episodes scored", f"{len(scores):,}"),
        ("missing", f"{len(found.run.missing):,}"),
        ("conclusions not judged", f"{sum(score.quality is None for score in scores):,}"),
        ("rules", PRESET),
        ("read by", ", ".join(dict.fromkeys(score.reading for score in scores))),
        ("judged by", _judge(found)),
        *facts,
    ]


def _judge(found: Reproduction) -> str:
    return ", ".join(dict.fromkeys(score.judged_by for score in found.run.scores)) if found.run else ""


def _with_source(part: Section, found: Reproduction) -> Section:
    """Return a section whose captions name judge, preset and version."""
    judge = f", judged by {_judge(found)}" if found.run else ""
    source = f"{judge}{f'; rules: {PRESET}' if found.run else ''}; inquitree-gym {version('inquitree-gym')}"
    charts = tuple(replace(each, caption=each.caption.removesuffix(judge) + source) for each in part.charts)
    tables = tuple(replace(each, caption=each.caption.removesuffix(judge) + source) for each in part.tables)
    return replace(part, charts=charts, tables=tables)
