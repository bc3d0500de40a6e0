"""A report as one HTML page that needs nothing else, with Markdown and CSV beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from inquitree_gym.analysis.aggregate import MEASURES
from inquitree_gym.analysis.compare import PairedDifference
from inquitree_gym.analysis.cutoff import Cutoffs
from inquitree_gym.analysis.load import EpisodeCost, ScoredRun
from inquitree_gym.analysis.memorisation_summary import Memories
from inquitree_gym.report import cutoffs, judging, process, sections, vigilance
from inquitree_gym.report.contents import Contents, Section, contents
from inquitree_gym.report.tables import as_csv, escaped, markdown
from inquitree_gym.report.templating import render, write_text

PAGE = "report.html"
"""Name of the page where only a folder is given."""
_MAKERS = (
    sections.leaderboard, sections.comparison, judging.judges, vigilance.vigilance, vigilance.wearing, cutoffs.cutoffs,
    sections.turns, sections.papers, process.readings, process.spending, process.missing, process.threats,
    sections.settings,
)  # fmt: skip


def write_report(
    runs: Sequence[ScoredRun],
    out: Path,
    differences: Sequence[PairedDifference] = (),
    split: Cutoffs | None = None,
    memories: Memories | None = None,
) -> list[Path]:
    """Write a report of ``runs`` and return its files: the page, Markdown, means as CSV, episodes as CSV.

    Where ``split`` holds any, before and after the cutoff as CSV too; where fakes were shown, vigilance by showing,
    position and context.

    Args:
        runs: what `load_run` found, one or more.
        out: an ``.html`` file, or a folder for a page called `PAGE`; the others go beside the page.
        differences: what `compare` found between two runs.
        split: what `split_by_cutoff` found; None leaves the section without a split.
        memories: closed-book conclusions of the models, as `beside` sets them beside the episodes.

    Raises:
        OptionError: the files cannot be written.
        MissingExtraError: Matplotlib is not installed.
    """
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    report = contents(runs, differences, split, memories)
    parts = [section for make in _MAKERS if (section := make(report)) is not None]
    files = {
        page: _html(report, parts),
        page.with_suffix(".md"): _markdown(report, parts),
        page.with_suffix(".csv"): _means(report),
        page.with_name(f"{page.stem}-episodes.csv"): _episodes(report),
    }
    if split is not None and split.splits:
        files[page.with_name(f"{page.stem}-cutoff.csv")] = cutoffs.as_table(report, split)
    if vigilance.worn(report):
        files[page.with_name(f"{page.stem}-vigilance.csv")] = vigilance.erosion_csv(report)
    for file, text in files.items():
        write_text(file, text)
    return list(files)


def _html(report: Contents, parts: Sequence[Section]) -> str:
    return render(
        "report.html",
        styles=("base.css", "report.css"),
        title=_title(report),
        facts=_facts(report),
        sections=parts,
    )


def _title(report: Contents) -> str:
    return "Report of " + ", ".join(dict.fromkeys(run.folder.name for run in report.runs))


def _facts(report: Contents) -> list[tuple[str, str]]:
    """Say in a few numbers what the report rests on."""
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
        ("judged by", ", ".join(dict.fromkeys(score.judge for score in scores))),
    ]


def _markdown(report: Contents, parts: Iterable[Section]) -> str:
    lines = [f"# {escaped(_title(report))}", ""]
    lines += [f"- {name}: {escaped(value)}" for name, value in _facts(report)]
    for section in parts:
        lines += ["", f"## {section.title}"]
        lines += [line for words in section.words for line in ("", escaped(words))]
        lines += [
            line for table in section.grids for line in ("", f"**{escaped(table.caption)}**", "", markdown(table))
        ]
    return "\n".join(lines) + "\n"


def _means(report: Contents) -> str:
    heads = ("agent", "fake_level", "limit", "reading", "measure", "mean", "low", "high", "trees", "episodes")
    return as_csv(
        heads,
        (
            (row.agent, row.fake_level, row.limit, row.reading, measure, *estimate)
            for row in report.table
            for measure, estimate in row.estimates.items()
        ),
    )


def _episodes(report: Contents) -> str:
    heads = ("tree", "agent", "fake_level", "seed", "limit", "reading", "judge", *MEASURES)
    heads += tuple(field.name for field in fields(EpisodeCost))
    return as_csv(
        heads,
        (
            (
                s.tree, s.agent, s.fake_level, s.seed, s.limit, s.reading, s.judge,
                *(measure(s) for measure in MEASURES.values()), *astuple(facts.cost),
            )
            for facts in report.episodes
            for s in (facts.score,)
        ),
    )  # fmt: skip
