"""Report as a self-contained HTML page, with its numbers, figures and tables as files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.analysis.aggregate import MEASURES, PairedDifference, Player
from inquitree_gym.analysis.cutoff import CutoffAnalysis
from inquitree_gym.analysis.load import EpisodeCost, ScoredRun
from inquitree_gym.analysis.memorisation import Memorisation
from inquitree_gym.analysis.projections import ProjectionRun
from inquitree_gym.report import comparisons, sections, vigilance
from inquitree_gym.report.latex import latex
from inquitree_gym.report.listing import (
    INQUIRY_COLUMNS,
    Columns,
    ListedEpisode,
    address,
    inquiry_values,
    viewed_page,
    write_list,
)
from inquitree_gym.report.sections import ReportData, Section, report_data
from inquitree_gym.report.tables import Table, as_csv, escaped, markdown, table_csv
from inquitree_gym.report.templating import render, render_markdown, write_bytes, write_text

PAGE = "report.html"
"""Name of the page in a folder."""


def write_report(
    runs: Sequence[ScoredRun],
    out: Path,
    differences: Sequence[PairedDifference] = (),
    split: CutoffAnalysis[Player] | None = None,
    memories: Memorisation | None = None,
) -> list[Path]:
    """Write a report of ``runs``, and return what was written, the page first.

    Beside the page ``X.html`` lie the page of its episodes (``X-episodes.html``), the report as Markdown, the means and
    the episodes as CSV, and two folders: every figure as SVG, PDF and PNG (``X-figures``), every table as CSV, Markdown
    and LaTeX (``X-tables``). A split at training cutoffs adds a CSV file, and so does vigilance if fakes were shown.

    Args:
        runs: results of `load_run`, one or more.
        out: an ``.html`` file, or a folder for a page called `PAGE`; the other files go beside the page.
        differences: result of `compare` for two runs.
        split: result of `split_by_cutoff`.
        memories: closed-book conclusions of the models, from `compare_with_loop`.

    Raises:
        OptionError: the files cannot be written.
        MissingExtraError: Matplotlib is not installed.
    """
    page = page_at(out)
    report = report_data(runs, differences, split, memories)
    parts = [section for make in _SECTIONS if (section := make(report)) is not None]
    csvs = {".csv": _means_csv(report), "-episodes.csv": _episodes_csv(report)}
    if split is not None and split.splits:
        csvs["-cutoff.csv"] = comparisons.cutoffs_csv(report, split)
    if vigilance.vigilance_trends(report):
        csvs["-vigilance.csv"] = vigilance.vigilance_csv(report)
    listed = list(_listed(report, beside(page, "episodes.html")))
    return write_page(page, PageContent(runs_named(report.runs), _facts(report), parts, csvs, listed))


class PageContent(NamedTuple):
    """Content of the page of a report."""

    runs: str
    """Names of the runs."""
    facts: Sequence[tuple[str, str]]
    """Counts and settings, by name."""
    sections: Sequence[Section]
    csvs: Mapping[str, str]
    """CSV files by the end of their name, which follows the stem of the page's name."""
    episodes: Sequence[ListedEpisode]
    columns: Columns = INQUIRY_COLUMNS
    """Headings of the list of episodes."""


def page_at(out: Path) -> Path:
    """Return the path of a report's page: an ``.html`` file as given, or a file in the given folder."""
    return out if out.suffix.lower() in (".html", ".htm") else out / PAGE


def write_page(page: Path, content: PageContent) -> list[Path]:
    """Write the page of a report, with everything beside it, and return what was written, the page first.

    Raises:
        OptionError: a file cannot be written.
        MissingExtraError: Matplotlib is not installed.
    """
    episodes = beside(page, "episodes.html")
    drawn = {chart.name: chart.files() for section in content.sections for chart in section.charts}
    places = {each: address(page, beside(page, each)) for each in ("figures", "tables")}
    places["episodes"] = address(page, episodes)
    values: dict[str, Any] = {
        "title": f"Report of {content.runs}", "facts": content.facts, "sections": content.sections,
    }  # fmt: skip
    files = {
        page: render("report.html", styles=("base.css", "report.css"), drawn=drawn, places=places, **values),
        page.with_suffix(".md"): render_markdown(**values),
        **{page.with_name(f"{page.stem}{end}"): text for end, text in content.csvs.items()},
    }
    for file, text in files.items():
        write_text(file, text)
    folders = write_figures_and_tables(page, content.sections, drawn)
    title = f"Episodes of {content.runs}"
    write_list(episodes, title, content.episodes, columns=content.columns, back=address(episodes, page))
    return [*files, episodes, *folders]


def write_figures_and_tables(
    page: Path, sections: Sequence[Section], drawn: Mapping[str, Mapping[str, bytes]]
) -> list[Path]:
    """Write the figures and tables of a page in every format, and return their folders.

    Args:
        page: the page; the folders go beside it.
        sections: the tables are theirs.
        drawn: the figures by name and format; see `Chart.files`.

    Raises:
        OptionError: a file cannot be written.
    """
    figures, tables = beside(page, "figures"), beside(page, "tables")
    for name, formats in drawn.items():
        for suffix, content in formats.items():
            write_bytes(figures / f"{name}.{suffix}", content)
    _write_tables(tables, sections)
    return [*([figures] if drawn else []), tables]


def beside(page: Path, name: str) -> Path:
    """Return the path beside a page whose name is the page's stem and ``name``."""
    return page.with_name(f"{page.stem}-{name}")


def _write_tables(folder: Path, sections: Sequence[Section]) -> None:
    """Write every table in every format."""
    for section in sections:
        for table in section.tables:
            stem = section.file_of(table)
            texts = {"csv": table_csv(table), "md": _titled(table), "tex": latex(table, stem)}
            for suffix, text in texts.items():
                write_text(folder / f"{stem}.{suffix}", text)


def _titled(table: Table) -> str:
    return f"**{escaped(table.caption)}**\n\n{markdown(table)}\n"


def _listed(report: ReportData, file: Path) -> Iterator[ListedEpisode]:
    """Yield the episodes of the report, with their viewer pages where `view_run` has written them."""
    several = len(report.runs) > 1
    homes = (run for run in report.runs for _ in run.episodes)
    for run, each in zip(homes, report.episodes, strict=True):
        score = each.score
        yield ListedEpisode(
            settings=(score.tree, report.name(score), score.fake_level, score.seed), status="concluded",
            page=viewed_page(file, run.folder, each.file), values=inquiry_values(score), judged_by=score.judged_by,
            run=run.folder.name if several else "",
        )  # fmt: skip


def _settings(report: ReportData) -> Section:
    shown = {"Results": sections.RESULTS, "Steps": sections.STEPS, "Vigilance": vigilance.COLUMNS}
    tables = tuple(report.rows_table(title, report.table, measures) for title, measures in shown.items())
    return Section("settings", "Every setting", (), (), tables, folded=True)


_SECTIONS = (
    sections.leaderboard, comparisons.comparison, comparisons.judges, vigilance.vigilance, vigilance.wearing,
    comparisons.cutoffs, sections.turns, sections.papers, sections.readings, sections.spending, sections.missing,
    sections.threats, _settings,
)  # fmt: skip


def runs_named(runs: Sequence[ScoredRun] | Sequence[ProjectionRun]) -> str:
    """Return the names of runs, each once."""
    return ", ".join(dict.fromkeys(run.folder.name for run in runs))


def _facts(report: ReportData) -> list[tuple[str, str]]:
    """Return counts and settings of the report, by name."""
    scores = [facts.score for facts in report.episodes]
    levels = sorted({score.fake_level for score in scores})
    return [
        ("episodes scored", f"{len(scores):,}"),
        ("not scored", f"{sum(len(run.missing) for run in report.runs):,}"),
        ("agents", f"{len({score.agent for score in scores})}"),
        ("trees", f"{len({score.tree for score in scores})}"),
        ("fake levels", ", ".join(map(str, levels))),
        ("seeds", f"{len({score.seed for score in scores})}"),
        ("turn limit", ", ".join(dict.fromkeys(score.limit for score in scores))),
        ("read by", ", ".join(dict.fromkeys(score.reading for score in scores))),
        ("judged by", report.judged_by),
    ]


def _means_csv(report: ReportData) -> str:
    heads = (
        "agent",
        "fake_level",
        "limit",
        "reading",
        "judged_by",
        "measure",
        "mean",
        "low",
        "high",
        "trees",
        "episodes",
    )
    lines = (
        (row.agent, row.fake_level, row.limit, row.reading, report.judged_by, measure, *estimate)
        for row in report.table
        for measure, estimate in row.estimates.items()
    )
    return as_csv(heads, lines)


def _episodes_csv(report: ReportData) -> str:
    heads = ("tree", "agent", "fake_level", "seed", "limit", "reading", "judge", "judge_version")
    lines = (
        (
            *(getattr(facts.score, name) for name in heads),
            *(measure(facts.score) for measure in MEASURES.values()),
            *astuple(facts.cost),
        )
        for facts in report.episodes
    )
    return as_csv((*heads, *MEASURES, *(field.name for field in fields(EpisodeCost))), lines)
