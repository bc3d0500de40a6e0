"""Reports as self-contained HTML pages, with their numbers, figures and tables as files beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from inquitree_gym.errors import OptionError, plural_of
from inquitree_gym.protocols import UNREVIEWED
from inquitree_gym.results.listing import Columns, ListedEpisode, address, listed_values, viewed_page, write_list
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.report import USUAL, Report, ReportOptions, Section, build_reports
from inquitree_gym.results.score import EpisodeCost
from inquitree_gym.results.sections import all_sections, cutoffs_csv
from inquitree_gym.results.summary import axis_name, value_of
from inquitree_gym.results.tables import Table, as_csv, escaped, latex, markdown, table_csv
from inquitree_gym.results.templating import render, render_markdown, write_bytes, write_text

PAGE = "report.html"
FORMATS = {"figures": (("svg", "SVG"), ("pdf", "PDF"), ("png", "PNG")),
           "tables": (("csv", "CSV"), ("md", "Markdown"), ("tex", "LaTeX"))}  # fmt: skip
"""Suffixes and names of the formats of the files beside a page."""
_FILES = (".md", ".csv", ".tex", ".json", ".pdf", ".svg", ".png", ".txt")
"""Suffixes of files that a report is asked for by mistake."""


def write_report(runs: Sequence[ScoredRun], out: Path, options: ReportOptions = USUAL) -> list[Path]:
    """Write a report of runs, and return what was written, the pages first.

    Beside the page ``X.html`` lie the page of its episodes (``X-episodes.html``), the report as Markdown, the means and
    the episodes as CSV, and two folders: every figure as SVG, PDF and PNG (``X-figures``), every table as CSV, Markdown
    and LaTeX (``X-tables``). A split at training cutoffs adds a CSV file. Runs of several kinds of environments have a
    page each, ``X-KIND.html``.

    Args:
        runs: results of `load_run`, one or more.
        out: an ``.html`` file, or a folder for a page called `PAGE`. The other files go beside the page. A folder that
            is named like another file has to exist.
        options: what the report compares and shows.

    Raises:
        OptionError: the files cannot be written, or an option does not fit the runs.
        MissingExtraError: Matplotlib is not installed.
    """
    return write_reports(build_reports(runs, options), out)


def write_reports(reports: Sequence[Report[Any]], out: Path) -> list[Path]:
    """Write a page for each report. See `write_report`."""
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    if out.suffix.lower() in _FILES and not out.is_dir():
        raise OptionError(
            f"a report is several files, and '{out.name}' would be a folder; name an .html file, beside which the "
            "Markdown and CSV files go, or a folder"
        )
    pages = {
        report.kind: page if len(reports) == 1 else beside(page, f"{report.kind}{page.suffix}") for report in reports
    }
    written = [_write_page(report, pages) for report in reports]
    return [files[0] for files in written] + [file for files in written for file in files[1:]]


def _write_page(report: Report[Any], pages: Mapping[str, Path]) -> list[Path]:
    """Write the page of a report with everything beside it, the page first."""
    page, sections = pages[report.kind], all_sections(report)
    episodes, runs = (
        beside(page, "episodes.html"),
        ", ".join(dict.fromkeys(run.folder.resolve().name for run in report.runs)),
    )
    links = {"All episodes": address(page, episodes)}
    links |= {f"Report of {name}": address(page, other) for name, other in pages.items() if name != report.kind}
    values = {"title": f"Report of {runs}", "facts": _facts(report), "sections": sections}
    footer = (
        "Every number comes from the episode logs; the CSV files beside this page hold them. A number leads to its "
        "episodes."
    )
    files = write_sections(page, links=links, episodes=address(page, episodes), footer=footer, **values)
    csvs = {".csv": _means_csv(report), "-episodes.csv": _episodes_csv(report), **report.pages.csvs(report)}
    if report.cutoffs.splits:
        csvs["-cutoff.csv"] = cutoffs_csv(report)
    texts = {page.with_name(f"{page.stem}{end}"): text for end, text in csvs.items()}
    for file, text in texts.items():
        write_text(file, text)
    columns = Columns.of_kind(report.kind, report.results, any(score.unscored for score in report.scores))
    write_list(episodes, f"Episodes of {runs}", list(_listed(report, episodes)), columns, back=address(episodes, page))
    return [*files[:2], *texts, episodes, *files[2:]]


def write_sections(page: Path, **values: Any) -> list[Path]:
    """Write sections as a page and as Markdown, with their figures and tables in every format, and return the files.

    Everything goes beside ``page``. The values are ``title``, ``facts`` (names and values), ``sections``, ``links``
    (addresses by text), ``episodes`` (the address of the list of episodes, empty for none) and ``footer``.
    """
    sections: Sequence[Section] = values["sections"]
    drawn = {chart.name: chart.files() for section in sections for chart in section.charts}
    places = {name: address(page, beside(page, name)) for name in FORMATS}
    styles = ("base.css", "report.css")
    html = render("report.html", styles=styles, drawn=drawn, places=places, formats=FORMATS, **values)
    files = {page: html, page.with_suffix(".md"): render_markdown(**values)}
    for file, text in files.items():
        write_text(file, text)
    figures, tables = beside(page, "figures"), beside(page, "tables")
    for name, formats in drawn.items():
        for suffix, content in formats.items():
            write_bytes(figures / f"{name}.{suffix}", content)
    for section in sections:
        for table in section.tables:
            _write_table(tables, section.file_of(table), table)
    return [*files, *([figures] if drawn else []), tables]


def beside(page: Path, name: str) -> Path:
    """Return the path beside a page whose name is the page's stem and ``name``."""
    return page.with_name(f"{page.stem}-{name}")


def _write_table(folder: Path, stem: str, table: Table) -> None:
    titled = f"**{escaped(table.caption)}**\n\n{markdown(table)}\n"
    for suffix, text in {"csv": table_csv(table), "md": titled, "tex": latex(table, stem)}.items():
        write_text(folder / f"{stem}.{suffix}", text)


def _listed(report: Report[Any], file: Path) -> Iterator[ListedEpisode]:
    """Yield the episodes of the report, with their viewer pages where `view_run` has written them."""
    several = len(report.runs) > 1
    for run in report.runs:
        for score in run.scores:
            yield ListedEpisode(
                kind=report.kind, task=score.task, agent=report.name(score), cell=score.cell, seed=score.seed,
                status="concluded", page=viewed_page(file, run.folder, score.file),
                values=listed_values(score, report.results), judged_by=score.judged_by,
                run=run.folder.resolve().name if several else "",
            )  # fmt: skip


def _facts(report: Report[Any]) -> list[tuple[str, str]]:
    """Return counts and settings of the report, by name."""
    scores = report.scores
    cells = {
        name: sorted({str(score.cell[name]) for score in scores}, key=lambda text: (len(text), text))
        for name in report.grid
    }
    words = {
        "turn limit": dict.fromkeys(score.limit for score in scores),
        "played with": dict.fromkeys(score.rules for score in scores),
        "formulas": [report.results.formulas],
        "judged by": [report.judged_by],
        UNREVIEWED: report.unreviewed,
    }
    return [
        ("episodes scored", f"{len(scores):,}"),
        ("not scored", f"{len(report.missing):,}"),
        ("texts not scored", f"{sum(score.unscored for score in scores):,}"),
        ("agents", f"{len({score.agent for score in scores})}"),
        (report.clusters, f"{len({score.task for score in scores})}"),
        # The shortest first, so that numbers are in order.
        *(
            (plural_of(axis_name(name)), ", ".join(sorted(cells[name], key=lambda text: (len(text), text))))
            for name in cells
        ),
        ("seeds", f"{len({score.seed for score in scores})}"),
        *((name, text) for name, values in words.items() if (text := ", ".join(filter(None, values)))),
    ]


def _means_csv(report: Report[Any]) -> str:
    heads = ("agent", *report.grid, "limit", "rules", "judged_by", "formulas", "group", "measure", "mean",
             "low", "high", report.clusters, "episodes", "std")  # fmt: skip
    lines = (
        (row.agent, *(row.cell[name] for name in report.grid), row.limit, row.rules, row.judged_by,
         report.results.formulas, row.group, measure, *estimate[:5], row.deviations.get(measure))
        for row in report.table
        for measure, estimate in row.estimates.items()
    )  # fmt: skip
    return as_csv(heads, lines)


def _episodes_csv(report: Report[Any]) -> str:
    settings = ("task", "group", "agent", "seed", "published", "limit", "rules", "judge", "judge_version")
    measures = report.results.measures
    lines = (
        (
            *(getattr(score, name) for name in settings), *(score.cell[name] for name in report.grid),
            report.results.formulas, *(value_of(measure, score) for measure in measures), score.unscored,
            *astuple(score.cost),
        )
        for score in report.scores
    )  # fmt: skip
    names = (measure.name for measure in measures)
    costs = (field.name for field in fields(EpisodeCost))
    return as_csv((*settings, *report.grid, "formulas", *names, "unscored", *costs), lines)
