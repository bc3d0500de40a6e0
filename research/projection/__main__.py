"""Write the page of ProjectionBench: ``python -m research.projection``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from inquitree_gym.cli.output import err, run_app
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees import load_tree
from research.projection.crossval import leave_papers_out
from research.projection.measures import Slice, judge_composed, judge_set, judge_with, sliced
from research.projection.projections import PROJECTIONS, ProjectionSet, load_projections
from research.projection.report import ProjectionEvidence, write_report

DOCS = Path(__file__).parents[2] / "docs"
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def projection(
    projections: Annotated[Path, typer.Option(help="Folder of labelled projections.")] = PROJECTIONS,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for projectionbench.md and its figure.")] = Path(
        __file__
    ).parents[2]
    / "docs",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the slices.")] = 0,
) -> None:
    """Measure the local judge of projections, and write the page of ProjectionBench."""
    sets = load_projections(projections)
    with err.status("measuring") as status:
        found = measure(sets, seed, status.update)
    err.print(f"written: {write_report(found, out_folder)}")


def measure(sets: list[ProjectionSet], seed: int, report: Callable[[str], None]) -> ProjectionEvidence:
    """Return all measurements on the page."""
    tasks = [load_task(each.tree) for each in sets]
    report("labelled projections")
    shipped = [row for each, task in zip(sets, tasks, strict=True) for row in judge_set(each, judge_with(task))]
    judged = leave_papers_out(sets, report)
    report("composed texts")
    composed = list(judge_composed(tasks))
    return ProjectionEvidence(sets, judged, shipped, composed, list(_slices(sets, seed, report)))


def _slices(sets: list[ProjectionSet], seed: int, report: Callable[[str], None]) -> Iterator[Slice]:
    rng = np.random.default_rng(seed)
    for each in sets:
        report(f"slices of {each.tree}")
        yield from sliced(load_tree(each.tree), rng)


if __name__ == "__main__":
    run_app(app)
