"""Distil MiniLM or the reader into a static model: ``python -m research.static [all|TREE…]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import JsonOption, err, out, print_json, print_table, progress
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.embeddings.derived import SOURCES, made_folder
from inquitree_gym.kinds import kind
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import load_tree
from research.proposals import WRITTEN, load_proposals, matching_cases
from research.sealing import load_source
from research.static.corpus import scientific_sentences
from research.static.distillation import TrainingTexts, distil, steps

HEADING = ["read by", "right", "nearest alike", "correlation", "read alike"]
LEGEND = (
    "right: right proposals whose nearest candidate is their target. The other columns compare with the teacher over\n"
    "proposals of every kind: the same nearest candidate, correlation of similarities, the same reading at τ.\n"
    "plain: not fitted to texts. new tree: trained without the tree. known tree: trained without its proposals."
)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

EmbedderOption = Annotated[str, typer.Option(help=f"Model to start from: {' or '.join(SOURCES)}.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="CPU threads of the model to start from.")]


@app.command()
def distill(  # noqa: PLR0913  (one parameter per flag)
    trees: Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Trees to train on.")] = None,
    proposals: Annotated[Path, typer.Option(help="Folder of labelled proposals about them.")] = WRITTEN,
    sentences: Annotated[int, typer.Option(min=0, help="Sentences of scientific prose to train on.")] = 2000,
    vocabulary: Annotated[int, typer.Option(help="Word pieces of the model.")] = 30_522,
    embedder: EmbedderOption = DEFAULT_EMBEDDER,
    threads: ThreadsOption = 1,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the model.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Distil a local embedder into a static one, over a hundred times as fast, and measure their agreement."""
    teacher, place = load_source(embedder, threads), folder or made_folder("static", embedder)
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
    name = embedder if folder is None else folder
    err.print(f"written: {place}; its name is static:{name}", soft_wrap=True)


def _training_texts(names: list[str], folder: Path, sentences: int) -> TrainingTexts:
    trees = {tree.id: tree for tree in map(load_tree, kind("inquiry").tasks.expand(names))}
    about = [each for each in load_proposals(folder) if each.tree in trees]
    found = matching_cases(about, trees.__getitem__)
    return TrainingTexts(tuple(trees.values()), tuple(found), tuple(scientific_sentences(sentences)))


if __name__ == "__main__":
    run_app(app)
