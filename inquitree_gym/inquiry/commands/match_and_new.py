"""Verbs that read actions and write trees: match, new."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli.output import JsonOption, ThresholdOption, TreeArgument, out, print_json, print_table, write
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.matching import MatchState, match

app = typer.Typer()


@app.command("match")
def match_text(
    tree: TreeArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The action.")],
    subtopic: Annotated[str | None, typer.Option(help="Read a design for this subtopic.")] = None,
    at_result: Annotated[bool, typer.Option("--result", help="Read a reply to a result.")] = False,
    embedder: Annotated[str, typer.Option(help="Embedder that reads the text.")] = DEFAULT_EMBEDDER,
    threshold: ThresholdOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how an action is read: decision, nearest nodes and their similarities."""
    if at_result and subtopic is not None:
        raise OptionError("--result and --subtopic exclude each other; give one of them")
    state: MatchState = "topic"
    if at_result:
        state = "result"
    elif subtopic is not None:
        state = "subtopic"
    read = match(tree, text, state, subtopic, embedder=embedder, threshold=threshold)
    if as_json:
        print_json(read)
        return
    if read.decision:
        out.print(f"decision: {read.decision}")
    if read.nearest:
        similarity = f"{read.nearest[0].similarity:.3f} {'≥' if read.accepted else '<'} τ = {read.threshold}"
        verdict = f"read as {read.nearest[0].id}" if read.accepted else "not accepted"
        locked = read.accepted and read.prerequisites
        needs = f"; entered only after {', '.join(read.prerequisites)}" if locked else ""
        out.print(f"{verdict} ({similarity}){needs}")
        rows = [[node.id, f"{node.similarity:.3f}", node.text] for node in read.nearest]
        print_table("Nearest", [["id", "similarity", "text"], *rows])
    elif not read.decision:
        out.print("not accepted: the text holds nothing that could be read")


@app.command()
def new(
    tree_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tree.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="File to write; ID.json by default.")] = None,
    subtopics: Annotated[int, typer.Option(help="Number of subtopics.")] = 2,
    studies: Annotated[int, typer.Option(help="Number of studies of each subtopic.")] = 2,
) -> None:
    """Write a tree to fill in, whose texts say TODO and what to write."""
    from inquitree_gym.trees.lint import todo_faults
    from inquitree_gym.trees.load import dump_tree, new_tree

    tree_id = tree_id.removesuffix(".json")
    tree, file = new_tree(tree_id, subtopics, studies), out_file or Path(f"{tree_id}.json")
    if file.exists():
        raise OptionError(f"'{file}' exists already; choose another id, or another folder with --out")
    write(file, dump_tree(tree))
    places = Counter(re.sub(r"\[\d+\]", "[…]", fault.path) for fault in todo_faults(tree))
    print_table("To fill in", [["place", "texts"], *([place, str(count)] for place, count in places.items())])
