"""Verbs that make an embedder from the default one: distill, export-onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli.output import JsonOption, err, out, print_json, print_table, progress
from inquitree_gym.embeddings import MiniLMEmbedder, onnx_export
from inquitree_gym.embeddings.artifacts import Kind, made_folder
from inquitree_gym.embeddings.corpus import scientific_sentences
from inquitree_gym.embeddings.local import MINILM
from inquitree_gym.runner.study import ALL
from inquitree_gym.trees import builtin_ids, load_tree
from research.datasets import ProposalSet, load_sets
from research.distillation import Lessons, distil, steps
from research.thresholds import matching_cases

HEADING = ["read by", "right", "nearest alike", "correlation", "read alike"]
LEGEND = (
    "right: right proposals whose nearest candidate is their target. The others compare with the default, over\n"
    "proposals of all kinds: the same nearest candidate, correlation of the similarities, and the same reading at τ.\n"
    "plain: without learning. new tree: the tree was not learned from. known tree: it was, proposals about it were not."
)

app = typer.Typer()

ThreadsOption = Annotated[int, typer.Option(min=1, help="CPU threads of the default model.")]


@app.command()
def distill(
    trees: Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Trees to learn from.")] = None,
    data: Annotated[Path, typer.Option(help="Folder with proposals/ about them.")] = Path("calibration"),
    sentences: Annotated[int, typer.Option(min=0, help="Sentences of scientific prose to learn from.")] = 2000,
    vocabulary: Annotated[int, typer.Option(help="Word pieces that the model knows.")] = 30_522,
    threads: ThreadsOption = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Distil the default embedder into a static one that is a hundred times as fast, and measure how near it comes."""
    place = folder or made_folder("static", MINILM)
    with err.status("gathering texts"):
        lessons = _lessons(trees or [ALL], data, sentences)
    with progress("distilling", steps(lessons, vocabulary)) as advance:
        made = distil(lessons, MiniLMEmbedder(threads=threads), vocabulary, place, advance)
    if as_json:
        print_json(made.manifest.model_dump(mode="json"))
    else:
        rows = [[name, *(f"{value:.3f}" for value in each)] for name, each in made.agreements.items()]
        print_table("Agreement with the default", [HEADING, *rows])
        out.print(LEGEND)
        out.print(f"τ = {made.manifest.threshold}")
    _tell("static", folder, place)


@app.command("export-onnx")
def export(
    threads: ThreadsOption = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
) -> None:
    """Write the default embedder as ONNX, to run it without torch, and compare the vectors of both."""
    place = folder or made_folder("onnx", MINILM)
    with err.status("exporting"):
        lowest = onnx_export.export_onnx(place, MiniLMEmbedder(threads=threads))
    compared = f"{onnx_export.COMPARED} texts of 1 to {onnx_export.LONGEST} words"
    out.print(f"lowest cosine to the default's vectors, over {compared}: {lowest:.7f}")
    _tell("onnx", folder, place)


def _lessons(names: list[str], data: Path, sentences: int) -> Lessons:
    each_name = (name for given in names for name in (builtin_ids() if given == ALL else (given,)))
    trees = {tree.id: tree for tree in map(load_tree, each_name)}
    about = [each for each in load_sets(data / "proposals", ProposalSet) if each.tree in trees]
    found = matching_cases(about, trees.__getitem__)
    return Lessons(tuple(trees.values()), tuple(found), tuple(scientific_sentences(sentences)))


def _tell(kind: Kind, folder: Path | None, place: Path) -> None:
    """Say where the model is and by which name it is found."""
    err.print(f"written: {place}; its name is {kind}:{MINILM if folder is None else folder}", soft_wrap=True)
