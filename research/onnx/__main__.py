"""Write MiniLM or the reader as ONNX: ``python -m research.onnx``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import err, out
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.embeddings.derived import SOURCES, made_folder
from research.onnx.graph import COMPARED, LONGEST, export_onnx
from research.sealing import load_source

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def export(
    embedder: Annotated[str, typer.Option(help=f"Model to start from: {' or '.join(SOURCES)}.")] = DEFAULT_EMBEDDER,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of the model to start from.")] = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
) -> None:
    """Write a local embedder as ONNX, to run it without torch, and compare their vectors."""
    source, place = load_source(embedder, threads), folder or made_folder("onnx", embedder)
    with err.status("exporting"):
        lowest = export_onnx(place, source)
    compared = f"{COMPARED} texts of 1 to {LONGEST} words"
    out.print(f"lowest cosine to the vectors of {embedder}, over {compared}: {lowest:.7f}")
    name = embedder if folder is None else folder
    err.print(f"written: {place}; its name is onnx:{name}", soft_wrap=True)


if __name__ == "__main__":
    run_app(app)
