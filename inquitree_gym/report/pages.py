"""Report as a self-contained HTML page, with its numbers, figures and tables as files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from inquitree_gym.analysis.aggregate import MEASURES, PairedDifference
from inquitree_gym.analysis.cutoff import CutoffAnalysis
from inquitree_gym.analysis.load import EpisodeCost, ScoredRun
from inquitree_gym.analysis.memorisation import Memorisation
from inquitree_gym.report import comparisons, sections, vigilance
from inquitree_gym.report.latex import latex
from inquitree_gym.report.listing import ListedEpisode, address, episode_page, write_list
from inquitree_gym.report.sections import ReportData, Section, report_data
from inquitree_gym.report.tables import Table, as_csv, escaped, markdown, table_csv
from inquitree_gym.report.templating import render, render_markdown, write_bytes, write_text

PAGE = "report.html"
"""Name of the page in a folder."""


def write_report(
    runs: Sequence[ScoredRun],
    out: Path,
    differences: Sequence[PairedDifference] = (),
    split: CutoffAnalysis | None = None,
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
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    report = report_data(runs, differences, split, memories)
    parts = [section for make in _SECTIONS if (section := make(report)) is not None]
    values: dict[str, Any] = {"title": _title(report), "facts": _facts(report), "sections": parts}
    figures, tables, episodes = (_beside(page, each) for each in ("figures", "tables", "episodes.html"))
    drawn = {chart.name: chart.files() for section in parts for chart in section.charts}
    places = {"figures": address(page, figures), "tables": address(page, tables), "episodes": address(page, episodes)}
    files = {
        page: render("report.html", styles=("base.css", "report.css"), drawn=drawn, places=places, **values),
        page.with_suffix(".md"): render_markdown(**values),
        page.with_suffix(".csv"): _means_csv(report),
        episodes.with_suffix(".csv"): _episodes_csv(report),
    }
    if split is not None and split.splits:
        files[_beside(page, "cutoff.csv")] = comparisons.cutoffs_csv(report, split)
    if vigilance.vigilance_trends(report):
        files[_beside(page, "vigilance.csv")] = vigilance.vigilance_csv(report)
    for file, text in files.items():
        write_text(file, text)
    beside = write_figures_and_tables(page, parts, drawn)
    write_list(episodes, f"Episodes of {_named(report)}", list(_listed(report, episodes)), back=address(episodes, page))
    return [*files, episodes, *beside]


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
    figures, tables = _beside(page, "figures"), _beside(page, "tables")
    for name, formats in drawn.items():
        for suffix, content in formats.items():
            write_bytes(figures / f"{name}.{suffix}", content)
    _write_tables(tables, sections)
    return [*([figures] if drawn else []), tables]


def _beside(page: Path, name: str) -> Path:
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
        score, page = each.score, None if each.file is None else episode_page(run.folder, each.file)
        yield ListedEpisode(
            run=run.folder.name if several else "", tree=score.tree, agent=report.name(score),
            fake_level=score.fake_level, seed=score.seed, status="concluded",
            page=address(file, page) if page is not None and page.is_file() else "", score=score,
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


def _title(report: ReportData) -> str:
    return f"Report of {_named(report)}"


def _named(report: ReportData) -> str:
    return ", ".join(dict.fromkeys(run.folder.name for run in report.runs))


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
