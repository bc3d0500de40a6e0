"""Verbs that read actions and write trees: match, new."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli.output import JsonOption, ThresholdOption, TreeArgument, out, print_json, print_table, write
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import OptionError, plural
from inquitree_gym.inquiry.matching import Match, MatchState, match
from inquitree_gym.results.summary import as_plain

app = typer.Typer()


@app.command("match")
def match_text(
    tree: TreeArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The action; by default each line of standard input is one.")
    ] = None,
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
    read = partial(match, state=state, subtopic=subtopic, embedder=embedder, threshold=threshold)
    if text is None:
        texts = _lines()
        found = [read(tree, each) for each in texts]
        if as_json:
            print_json([{"text": each} | as_plain(one) for each, one in zip(texts, found, strict=True)])
        else:
            _print_all(texts, found)
    elif as_json:
        print_json(read(tree, text))
    else:
        _print(read(tree, text))


def _lines() -> list[str]:
    """Return the actions on the standard input."""
    if sys.stdin.isatty():
        raise OptionError("match must be given an action, got none; name one after the tree, or redirect a file to it")
    return [line.strip() for line in sys.stdin if line.strip()]


def _print(read: Match) -> None:
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


def _print_all(texts: Sequence[str], found: Sequence[Match]) -> None:
    """Print a row per action."""
    rows = [["read as", "nearest", "similarity", "text"]]
    for text, read in zip(texts, found, strict=True):
        nearest = [read.nearest[0].id, f"{read.nearest[0].similarity:.3f}"] if read.nearest else ["", ""]
        rows.append([read.decision or (nearest[0] if read.accepted else "–"), *nearest, text])
    taken = sum(read.accepted or read.decision is not None for read in found)
    print_table(f"{taken} of {plural(len(texts), 'action')} read", rows)


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
