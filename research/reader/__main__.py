"""Train the reader: ``python -m research.reader``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli import output, run_app
from inquitree_gym.cli.output import err, progress
from inquitree_gym.embeddings.local import adapter_file, find_device, minilm_folder, parse_adapter
from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.kinds import kind
from inquitree_gym.trees import builtin_ids, load_tree
from research.proposals import load_proposals
from research.reader.examples import gather
from research.reader.lora import write_adapter
from research.reader.training import Settings, train

START = Path(__file__).parent / "inquitree-reader-1.safetensors"
"""The adapter that the training starts from. It was trained on earlier texts of the trees."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def train_reader(
    out_file: Annotated[Path | None, typer.Option("--out", help="File of the adapter.")] = None,
    leave_out: Annotated[str, typer.Option(help="Ids or paper numbers of trees to leave out, comma-separated.")] = "",
    device: Annotated[Device, typer.Option(help="cpu, cuda, or auto.")] = "auto",
) -> None:
    """Train the adapter on the shipped trees and the proposals about them, and write it."""
    without = kind("inquiry").tasks.expand(output.split(leave_out)) if leave_out else []
    trees = [load_tree(name) for name in builtin_ids() if name not in without]
    settings, names, data = Settings(), [tree.id for tree in trees], gather(trees, load_proposals())
    with progress("training", settings.epochs * len(names)) as advance:
        start = parse_adapter(START)
        encoder = train(data, names, settings, minilm_folder(), find_device(device), lambda: advance(""), start)
    place = out_file or adapter_file()
    about = asdict(settings) | {"trees": {tree.id: tree.digest for tree in trees}}
    err.print(f"written: {place}; SHA-256 {write_adapter(place, encoder.adapter(), about)}")


if __name__ == "__main__":
    run_app(app)
