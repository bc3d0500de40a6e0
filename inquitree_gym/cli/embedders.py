"""Commands that make an embedder from MiniLM or the reader: distill, export-onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.analysis.distillation import TrainingTexts, distil, steps
from inquitree_gym.analysis.proposals import load_proposals, matching_cases
from inquitree_gym.cli.output import JsonOption, err, out, print_json, print_table, progress
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, MiniLMEmbedder, ReaderEmbedder
from inquitree_gym.embeddings.artifacts import SOURCES, Kind, made_folder
from inquitree_gym.embeddings.local import MINILM
from inquitree_gym.embeddings.onnx import COMPARED, LONGEST, export_onnx
from inquitree_gym.embeddings.reader import READER
from inquitree_gym.embeddings.static import scientific_sentences
from inquitree_gym.errors import EmbedderError
from inquitree_gym.runner.study import ALL, expand_all
from inquitree_gym.trees import load_tree

HEADING = ["read by", "right", "nearest alike", "correlation", "read alike"]
LEGEND = (
    "right: right proposals whose nearest candidate is their target. The other columns compare with the teacher over\n"
    "proposals of every kind: the same nearest candidate, correlation of similarities, the same reading at τ.\n"
    "plain: not fitted to texts. new tree: trained without the tree. known tree: trained without its proposals."
)

app = typer.Typer()

EmbedderOption = Annotated[str, typer.Option(help=f"Model to start from: {' or '.join(SOURCES)}.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="CPU threads of the model to start from.")]


@app.command()
def distill(  # noqa: PLR0913  (one parameter per flag)
    trees: Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Trees to train on.")] = None,
    proposals: Annotated[Path | None, typer.Option(help="Folder of labelled proposals about them.")] = None,
    sentences: Annotated[int, typer.Option(min=0, help="Sentences of scientific prose to train on.")] = 2000,
    vocabulary: Annotated[int, typer.Option(help="Word pieces of the model.")] = 30_522,
    embedder: EmbedderOption = DEFAULT_EMBEDDER,
    threads: ThreadsOption = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Distil a local embedder into a static one, over a hundred times as fast, and measure their agreement."""
    teacher, place = _source(embedder, threads), folder or made_folder("static", embedder)
    with err.status("gathering texts"):
        texts = _training_texts(trees or [ALL], proposals, sentences)
    with progress("distilling", steps(texts, vocabulary)) as advance:
        made = distil(texts, teacher, vocabulary, place, advance)
    if as_json:
        print_json(made.manifest.model_dump(mode="json"))
    else:
        rows = [[name, *(f"{value:.3f}" for value in each)] for name, each in made.agreements.items()]
        print_table(f"Agreement with {embedder}", [HEADING, *rows])
        out.print(LEGEND)
        out.print(f"τ = {made.manifest.threshold}")
    _print_place("static", embedder, folder, place)


@app.command("export-onnx")
def export(
    embedder: EmbedderOption = DEFAULT_EMBEDDER,
    threads: ThreadsOption = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
) -> None:
    """Write a local embedder as ONNX, to run it without torch, and compare their vectors."""
    source, place = _source(embedder, threads), folder or made_folder("onnx", embedder)
    with err.status("exporting"):
        lowest = export_onnx(place, source)
    compared = f"{COMPARED} texts of 1 to {LONGEST} words"
    out.print(f"lowest cosine to the vectors of {embedder}, over {compared}: {lowest:.7f}")
    _print_place("onnx", embedder, folder, place)


def _training_texts(names: list[str], folder: Path | None, sentences: int) -> TrainingTexts:
    trees = {tree.id: tree for tree in map(load_tree, expand_all(names))}
    about = [each for each in load_proposals(folder) if each.tree in trees]
    found = matching_cases(about, trees.__getitem__)
    return TrainingTexts(tuple(trees.values()), tuple(found), tuple(scientific_sentences(sentences)))


def _source(name: str, threads: int) -> MiniLMEmbedder:
    """Return the model to start from.

    Raises:
        EmbedderError: nothing can be derived from it.
    """
    made = {READER: ReaderEmbedder, MINILM: MiniLMEmbedder}
    if name not in made:
        raise EmbedderError(f"nothing can be derived from '{name}'; --embedder is one of {', '.join(made)}")
    return made[name](threads=threads)


def _print_place(kind: Kind, model: str, folder: Path | None, place: Path) -> None:
    """Print the folder of the model and its name."""
    err.print(f"written: {place}; its name is {kind}:{model if folder is None else folder}", soft_wrap=True)
