"""Report of projections as a page: the tables and figures of ProjectionBench (arXiv:2605.30284), and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from inquitree_gym.analysis.cutoff_models import ModelDates
from inquitree_gym.analysis.projection_summary import AUC, PAPER, Metric, PairedProjections, projection_player
from inquitree_gym.analysis.projections import ProjectionRun
from inquitree_gym.report.listing import ListedEpisode, viewed_page
from inquitree_gym.report.pages import PageContent, beside, page_at, runs_named, write_page
from inquitree_gym.report.projection_data import ProjectionReport, projection_data
from inquitree_gym.report.projection_sections import SECTIONS
from inquitree_gym.report.projection_view import PROJECTION_COLUMNS, projection_values
from inquitree_gym.report.tables import as_csv
from inquitree_gym.scoring.projection import VARIANTS


def write_projection_report(
    runs: Sequence[ProjectionRun],
    out: Path,
    *,
    metric: Metric = PAPER,
    differences: Sequence[PairedProjections] = (),
    models: Sequence[ModelDates] = (),
    example: str | None = None,
) -> list[Path]:
    """Write a report of projections, and return what was written, the page first.

    Its files are those of `write_report`.

    Args:
        runs: results of `load_projections`, one or more.
        out: an ``.html`` file, or a folder; see `write_report`.
        metric: formulas of F1 and of its aggregate.
        differences: result of `compare_projections`.
        models: models with their training cutoffs; see `load_models`.
        example: id of the paper whose projections are shown in full; the first one if absent.

    Raises:
        OptionError: the files cannot be written, or no episode is about the example.
        MissingExtraError: Matplotlib is not installed.
    """
    page = page_at(out)
    report = projection_data(runs, metric, differences, models, example)
    parts = [section for make in SECTIONS if (section := make(report)) is not None]
    csvs = {".csv": _means_csv(report), "-episodes.csv": _episodes_csv(report)}
    listed = list(_listed(report, beside(page, "episodes.html")))
    content = PageContent(runs_named(report.runs), _facts(report), parts, csvs, listed, PROJECTION_COLUMNS)
    return write_page(page, content)


def _listed(report: ProjectionReport, file: Path) -> Iterator[ListedEpisode]:
    """Yield the episodes of the report, with their viewer pages where `view_run` has written them."""
    several = len(report.runs) > 1
    for run in report.runs:
        for facts in run.episodes:
            score = facts.score
            yield ListedEpisode(
                settings=(score.task, report.names[projection_player(score)], score.seed), status="concluded",
                page=viewed_page(file, run.folder, facts.file), values=projection_values(score, report.metric),
                judged_by=score.judged_by, run=run.folder.name if several else "",
            )  # fmt: skip


def _facts(report: ProjectionReport) -> list[tuple[str, str]]:
    """Return counts and settings of the report, by name."""
    scores = [facts.score for facts in report.episodes]
    return [
        ("episodes scored", f"{len(scores):,}"),
        ("not scored", f"{sum(len(run.missing) for run in report.runs):,}"),
        ("projections unscored", f"{sum(score.unscored for score in scores):,}"),
        ("agents", f"{len({score.agent for score in scores})}"),
        ("papers", f"{len({score.task for score in scores})}"),
        ("seeds", f"{len({score.seed for score in scores})}"),
        ("projected as", "; ".join(dict.fromkeys(score.rules for score in scores))),
        ("score", report.metric.words or "as the paper has it"),
        ("judged by", report.judged_by),
    ]


def _means_csv(report: ProjectionReport) -> str:
    heads = (
        "agent", "rules", "judged_by", "variant", "auc", "papers", "measure", "mean", "low", "high", "n_papers",
        "episodes", "std",
    )  # fmt: skip
    lines = (
        (*row.player, *report.metric, row.group, measure, *estimate[:5], std)
        for row in report.table
        for measure, estimate, std in (
            *((f"F1, {level}", found, row.std[level]) for level, found in row.f1.items()),
            *((f"normalised F1, {level}", found, None) for level, found in row.normalised.items()),
            (AUC, row.auc, None),
        )
    )
    return as_csv(heads, lines)


def _episodes_csv(report: ProjectionReport) -> str:
    heads = ("task", "domain", "agent", "rules", "seed", "published", "judge", "judge_version")
    lines = (
        (
            *(getattr(facts.score, name) for name in heads),
            *(facts.score.f1_at(level, variant) for variant in VARIANTS for level in report.levels),
            report.metric.area(facts.score), facts.score.unscored, facts.cost.dollars,
        )
        for facts in report.episodes
    )  # fmt: skip
    columns = (f"F1, {level} ({variant})" for variant in VARIANTS for level in report.levels)
    return as_csv((*heads, *columns, AUC, "unscored", "dollars"), lines)
