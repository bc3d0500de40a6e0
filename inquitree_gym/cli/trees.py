"""Verbs about trees: list, show, check, schema."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branches

from inquitree_gym.cli.output import (
    FAULTY,
    JsonOption,
    TreeArgument,
    check_svg,
    out,
    plural,
    print_json,
    progress,
    write,
)
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder, tree_vectors
from inquitree_gym.errors import SEVERITIES, TreeError, UnknownTreeError
from inquitree_gym.runner.study import ALL, expand_all
from inquitree_gym.trees import CATALOGUE, Fault, Tree, builtin_ids, load_tree, user_files
from inquitree_gym.trees.drawing import depths, layers, mermaid, svg
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.load import id_faults, is_path

app = typer.Typer()


@app.command("list")
def list_trees(as_json: JsonOption = False) -> None:
    """List all papers of the pool and all user trees."""
    entries = [_describe(name) for name in (*CATALOGUE, *(name for name in user_files() if name not in CATALOGUE))]
    if as_json:
        print_json(entries)
        return
    table = Table("id", "n", "depth", "width", "year", "journal", "title", title="Research trees")
    for entry in entries:
        columns = [entry[name] for name in ("id", "n", "depth", "width", "year", "journal", "title")]
        table.add_row(
            *("" if value is None else str(value) for value in columns), style="" if entry["playable"] else "dim"
        )
    out.print(table)


@app.command()
def show(
    tree: TreeArgument,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the graph as a Mermaid diagram.")] = False,
    svg_file: Annotated[Path | None, typer.Option("--svg", help="Write the graph to this .svg file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole tree as JSON.")] = False,
    spoil: Annotated[bool, typer.Option(help="Include results and conclusions.")] = False,
) -> None:
    """Draw a tree in the terminal, or export it."""
    check_svg("--svg", svg_file)
    found = load_tree(tree)
    if svg_file is not None:
        write(svg_file, svg(found))
    if as_mermaid:
        out.print(mermaid(found), markup=False, highlight=False, soft_wrap=True, end="")
    elif as_json:
        print_json(found.model_dump(mode="json"))
    elif svg_file is None:
        out.print(_branches(found, spoil))


@app.command()
def check(
    trees: Annotated[
        list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Ids or paths; all: every shipped tree.")
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="Embedder for hint ladders, siblings and fakes; none skips these checks.")
    ] = DEFAULT_EMBEDDER,
    as_json: JsonOption = False,
) -> None:
    """Check trees for faults; exit with status 1 if there is an error, with 0 for warnings and notes."""
    names = list(expand_all(trees or [ALL]))
    faults: dict[str, list[Fault]] = {}
    with progress("checking", len(names)) as advance:
        for name in names:
            faults[name] = _faults(name, embedder)
            advance(name)
    if as_json:
        print_json({name: list(map(asdict, found)) for name, found in faults.items()})
    for name, found in {} if as_json else faults.items():
        counts = Counter(fault.severity for fault in found)
        out.print(
            Text(
                f"{name}: " + (", ".join(plural(counts[each], each) for each in SEVERITIES if counts[each]) or "clean")
            )
        )
        for fault in found:
            out.print(Text(f"  {fault.severity} {fault.code} {fault}"))
    raise typer.Exit(FAULTY if any(fault.severity == "error" for found in faults.values() for fault in found) else 0)


@app.command()
def schema() -> None:
    """Print the JSON Schema of tree files, for editors."""
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **Tree.model_json_schema()})


def _faults(name: str, embedder: str) -> list[Fault]:
    """Return the faults of a tree: those of its file, or else those of its id and of its content."""
    try:
        tree = load_tree(name)
    except UnknownTreeError:
        raise
    except TreeError as error:
        return list(error.faults)
    faults = id_faults(tree, Path(name)) if is_path(name) else []
    if embedder == "none":
        return faults + lint_tree(tree)
    vectors = tree_vectors(tree, load_embedder(embedder))
    return faults + lint_tree(tree, lambda texts: vectors.matrix(tuple(texts)))


def _describe(name: str) -> dict[str, Any]:
    entry = CATALOGUE.get(name)
    missing = dict.fromkeys(("depth", "width", "year", "journal", "doi"))
    if name not in builtin_ids() and name not in user_files():
        title = entry.title if entry and entry.title else "(tree may not be distributed)"
        return {"id": name, "n": entry.subtopics if entry else None, "playable": False, "title": title} | missing
    try:
        tree = load_tree(name)
    except TreeError as error:
        title = f"(cannot be played: {plural(len(error.faults), 'fault')}; see inquitree check {error.where})"
        return {"id": name, "n": None, "playable": False, "title": title} | missing
    return {
        "id": name,
        "n": len(tree.subtopics),
        "playable": True,
        "title": tree.paper.title,
        "depth": 1 + max(depths(tree).values()),
        "width": max(map(len, layers(tree))),
        "year": tree.paper.year,
        "journal": tree.paper.journal,
        "doi": tree.paper.doi,
    }


def _branches(tree: Tree, spoil: bool) -> Branches:
    """Draw the graph as a tree: each subtopic is a branch of its deepest prerequisite and names the others."""
    depth = depths(tree)
    root = Branches(Text(f"{tree.id} · {tree.paper.title}", style="bold"))
    root.add(Text(tree.topic, style="italic"))
    places: dict[str, Branches] = {}
    for subtopic in (subtopic for row in layers(tree) for subtopic in row):
        needs = sorted(subtopic.prerequisites, key=lambda name: (-depth[name], name))
        also = f"  (also needs {', '.join(needs[1:])})" if needs[1:] else ""
        label = Text.assemble((f"{subtopic.id} · {subtopic.name}", "bold cyan"), (also, "dim"), f"\n{subtopic.text}")
        place = places[subtopic.id] = (places[needs[0]] if needs else root).add(label)
        for study in subtopic.studies:
            place.add(Text(f"{study.id}  {study.text}" + (f"\n→ {study.result}" if spoil else ""), style="dim"))
    if spoil:
        ending = root.add(Text("Conclusions", style="bold"))
        for item in tree.conclusions:
            ending.add(Text(f"{item.id}  {item.text}"))
    return root
