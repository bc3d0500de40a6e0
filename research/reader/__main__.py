"""Train the reader, and measure it: ``python -m research.reader train`` and ``crossvalidate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import err, progress
from inquitree_gym.embeddings.local import adapter_file, find_device, minilm_folder
from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.trees import Tree
from research.described import described_trees
from research.proposals import ProposalSet, matching_cases
from research.reader.crossval import cross_validate
from research.reader.crossval import steps as crossval_steps
from research.reader.evidence import EVIDENCE, write_evidence
from research.reader.examples import gather
from research.reader.lora import write_adapter
from research.reader.training import Settings, train
from research.static.proposals import load_proposals

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

DeviceOption = Annotated[Device, typer.Option(help="cpu, cuda, or auto.")]


@app.command("train")
def train_command(
    out_file: Annotated[Path | None, typer.Option("--out", help="File of the adapter.")] = None,
    device: DeviceOption = "auto",
) -> None:
    """Train the adapter on all trees and authors, and write it."""
    trees, sets = _data()
    settings, names = Settings(), [tree.id for tree in trees]
    with progress("training", settings.epochs * len(names)) as advance:
        encoder = train(gather(trees, sets), names, settings, minilm_folder(), find_device(device), lambda: advance(""))
    place = out_file or adapter_file()
    digests = {tree.id: tree.digest for tree in trees}
    err.print(
        f"written: {place}; SHA-256 {write_adapter(place, encoder.adapter(), asdict(settings) | {'trees': digests})}"
    )


@app.command()
def crossvalidate(
    out_file: Annotated[Path, typer.Option("--out", help="File of the results.")] = EVIDENCE,
    device: DeviceOption = "auto",
) -> None:
    """Read every proposal with adapters that have not seen its tree, or not its author, and write the shares."""
    trees, sets = _data()
    data, cases, settings = gather(trees, sets), matching_cases(sets), Settings()
    with progress("cross-validating", crossval_steps(data, cases, settings)) as advance:
        found = cross_validate(data, cases, settings, minilm_folder(), find_device(device), lambda: advance(""))
    write_evidence(out_file, cases, found, asdict(settings))
    err.print(f"written: {out_file}")


def _data() -> tuple[Sequence[Tree], Sequence[ProposalSet]]:
    return described_trees(), load_proposals()


if __name__ == "__main__":
    run_app(app)
