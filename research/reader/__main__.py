"""Fit the matrix of the reader: ``python -m research.reader``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from inquitree_gym.cli import output, run_app
from inquitree_gym.cli.output import err, progress
from inquitree_gym.embeddings.local import (
    TURN,
    AdaptedMiniLM,
    Adapter,
    adapter_file,
    file_digest,
    parse_adapter,
    torch_threads,
)
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.kinds import kind
from inquitree_gym.trees import builtin_ids, load_tree
from research.proposals import ProposalSet, load_proposals
from research.reader.fitting import Matrix, Settings, fit
from research.reader.lessons import lay_out, make_lessons

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def fit_reader(
    out_file: Annotated[Path | None, typer.Option("--out", help="File of the adapter.")] = None,
    leave_out: Annotated[str, typer.Option(help="Ids or paper numbers of trees to leave out, comma-separated.")] = "",
    authors: Annotated[str, typer.Option(help="Writers whose proposals are used, comma-separated, or all.")] = "all",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
) -> None:
    """Fit the matrix on the shipped trees and the proposals about them, and write it with the changes of the layers."""
    without = kind("inquiry").tasks.expand(output.split(leave_out)) if leave_out else []
    trees = [load_tree(name) for name in builtin_ids() if name not in without]
    chosen = load_proposals() if authors == "all" else by_authors(load_proposals(), output.split(authors))
    lessons, settings, adapter = make_lessons(trees, chosen), Settings(), parse_adapter(adapter_file())
    texts = list(dict.fromkeys(text for lesson in lessons for text in lesson.texts))
    with err.status(f"embedding {len(texts):,} texts"):
        rows = dict(zip(texts, torch.from_numpy(vectors_before(adapter, texts, threads)), strict=True))
    with progress("fitting", settings.epochs * len(trees)) as advance, torch_threads(threads):
        change = fit(lay_out(lessons, rows), settings, lambda: advance(""))
    place = out_file or adapter_file()
    about = asdict(settings) | {"trees": {tree.id: tree.digest for tree in trees}}
    err.print(f"written: {place}; SHA-256 {write_adapter(place, adapter, change, about)}")


def by_authors(sets: Sequence[ProposalSet], authors: Sequence[str]) -> list[ProposalSet]:
    """Return the proposals by some authors."""
    return [
        each.model_copy(update={"proposals": tuple(said for said in each.proposals if said.author in authors)})
        for each in sets
    ]


def vectors_before(adapter: Adapter, texts: Sequence[str], threads: int = 1) -> Vectors:
    """Return the vectors of texts under the changes of the layers alone."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "adapter.safetensors")
        digest = write_adapter(file, adapter, np.zeros_like(adapter.turn, np.float16), {})
        return AdaptedMiniLM(file, digest, threads=threads).embed(texts)


def write_adapter(file: Path, adapter: Adapter, change: Matrix, about: Mapping[str, Any]) -> str:
    """Write an adapter whose matrix is the identity plus ``change``, with a record of its fit. Return its SHA-256."""
    from safetensors.numpy import save_file

    record = {"base": adapter.base, "scale": adapter.scale, **about}
    content = dict(sorted({**adapter.factors, TURN: change}.items()))
    save_file(content, file, {"inquitree": json.dumps(record, sort_keys=True)})
    return file_digest(file)


if __name__ == "__main__":
    run_app(app)
