"""Write the validity report: ``python -m research.validity``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli.output import err, run_app
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from research.datasets import CONCLUSIONS, load_conclusions
from research.static.proposals import PROPOSALS, load_proposals
from research.validity_measures import measure
from research.validity_report import write_report

DOCS = Path(__file__).parents[1] / "docs"
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def validity(
    proposals: Annotated[Path, typer.Option(help="Folder of labelled proposals.")] = PROPOSALS,
    conclusions: Annotated[Path, typer.Option(help="Folder of labelled conclusions.")] = CONCLUSIONS,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for validity.md and its figures.")] = DOCS,
    embedder: Annotated[str, typer.Option(help="Embedder to measure.")] = DEFAULT_EMBEDDER,
) -> None:
    """Measure the trees, the matcher and the local judge, and write the validity report."""
    data = load_proposals(proposals), load_conclusions(conclusions)
    with err.status("measuring") as status:
        found = measure(*data, load_embedder(embedder), status.update)
    err.print(f"written: {write_report(found, out_folder)}")


if __name__ == "__main__":
    run_app(app)
