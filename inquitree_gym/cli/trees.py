"""Verbs about trees: list, show, check, match, new, schema."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branches

from inquitree_gym.analysis.readings import KINDS_TAKEN, measure_file
from inquitree_gym.cli.output import (
    FAULTY,
    JsonOption,
    ThresholdOption,
    TreeArgument,
    check_svg,
    out,
    plural,
    print_json,
    print_table,
    progress,
    write,
)
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder, tree_vectors
from inquitree_gym.errors import SEVERITIES, OptionError, TreeError, UnknownTreeError
from inquitree_gym.matching import MatchState, match
from inquitree_gym.runner.study import ALL, expand_all
from inquitree_gym.scoring import Estimate
from inquitree_gym.trees import CATALOGUE, Fault, ProjectionTask, Tree, builtin_ids, dump_tree, load_tree, user_files
from inquitree_gym.trees.drawing import depths, layers, mermaid, svg
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.lint_disclosure import lint_task
from inquitree_gym.trees.load import id_faults, is_path, new_tree
from inquitree_gym.trees.tasks import TaskKind, is_task_file, load_task

MANY = 6
"""Number of trees from which they are checked in several processes."""
COLUMNS = ("id", "n", "depth", "width", "tier", "year", "journal", "title")
MEASURES = ("nearest_subtopic", "nearest_study", "understood", "misread", "refused", *KINDS_TAKEN)
"""Shares of labelled proposals that are printed."""

app = typer.Typer()


@app.command("list")
def list_trees(as_json: JsonOption = False) -> None:
    """List all papers of the pool and all user trees."""
    entries = [_describe(name) for name in (*CATALOGUE, *(name for name in user_files() if name not in CATALOGUE))]
    if as_json:
        print_json(entries)
        return
    table = Table(*COLUMNS, title="Research trees", caption="dim: a tree that may not be distributed, or has faults")
    for entry in entries:
        columns = [entry[name] for name in COLUMNS]
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
    proposals: Annotated[
        Path | None, typer.Option(help="Measure how this file of labelled proposals is read, instead of checking.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check trees for faults; exit with status 1 if there is an error, with 0 for warnings and notes."""
    names = list(expand_all(trees or [ALL]))
    if proposals is not None:
        _measure(names, proposals, embedder, as_json)
        return
    faults: dict[str, list[Fault]] = {}
    with progress("checking", len(names)) as advance, _workers(names, embedder) as apply:
        for name, found in zip(names, apply(_faults, names, repeat(embedder)), strict=True):
            faults[name] = found
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
    state: MatchState = "subtopic" if subtopic is not None else "topic"
    if at_result and subtopic is not None:
        raise OptionError("--result and --subtopic exclude each other; give one of them")
    found = match(tree, text, "result" if at_result else state, subtopic, embedder=embedder, threshold=threshold)
    if as_json:
        print_json(found)
        return
    if found.decision:
        out.print(f"decision: {found.decision}")
    if found.nearest:
        similarity = f"{found.nearest[0].similarity:.3f} {'≥' if found.accepted else '<'} τ = {found.threshold}"
        verdict = f"read as {found.nearest[0].id}" if found.accepted else "not accepted"
        locked = found.accepted and found.prerequisites
        needs = f"; entered only after {', '.join(found.prerequisites)}" if locked else ""
        out.print(f"{verdict} ({similarity}){needs}")
        rows = [[each.id, f"{each.similarity:.3f}", each.text] for each in found.nearest]
        print_table("Nearest", [["id", "similarity", "text"], *rows])
    elif not found.decision:
        out.print("not accepted: the text holds nothing that could be read")


@app.command()
def new(
    tree_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tree.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="File to write; ID.json by default.")] = None,
) -> None:
    """Write a small tree to fill in, whose texts say TODO and what to write."""
    document, file = dump_tree(new_tree(tree_id)), out_file or Path(f"{tree_id}.json")
    if file.exists():
        raise OptionError(f"'{file}' exists already; give another file with --out")
    write(file, document)


@app.command()
def schema(
    env: Annotated[TaskKind, typer.Option(help="Kind of file: trees of inquiries, or projection tasks.")] = "inquiry",
) -> None:
    """Print the JSON Schema of tree files, or of projection task files, for use in editors."""
    model = Tree if env == "inquiry" else ProjectionTask
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()})


def _measure(names: list[str], file: Path, embedder: str, as_json: bool) -> None:
    """Print how labelled proposals about one tree are read, and those that are not read as they are meant."""
    if len(names) != 1 or embedder == "none":
        raise OptionError("--proposals measures one tree with an embedder; name both")
    tree, reader = load_tree(names[0]), load_embedder(embedder)
    if reader.threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{embedder}'; take another one")
    found = measure_file(file, tree, reader, reader.threshold)
    if as_json:
        print_json(found)
        return
    title = f"Proposals about {tree.id}, read by {embedder} at τ = {reader.threshold}"
    groups = found.shares.values()
    rows = [[name.replace("_", " "), *_cells(getattr(each, name) for each in groups)] for name in MEASURES]
    print_table(title, [["share", *found.shares], *rows])
    wrong = [
        [each.text, ", ".join(each.meant) or each.kind, each.read or "refused", f"{each.similarity:.3f}"]
        for each in found.wrong
    ]
    print_table("Not read as meant", [["proposal", "means", "read as", "similarity"], *wrong])


def _cells(estimates: Iterable[Estimate]) -> Iterator[str]:
    return ("–" if each.mean is None else f"{each.mean:.3f} (n = {each.episodes})" for each in estimates)


@contextmanager
def _workers(names: list[str], embedder: str) -> Iterator[Callable[..., Iterator[list[Fault]]]]:
    """Yield a ``map`` for checks: over processes for many trees, since a local embedder uses one thread."""
    if len(names) < MANY or embedder == "none" or embedder.startswith("litellm:"):
        yield map
        return
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(names)), get_context("spawn")) as pool:
        yield pool.map


def _faults(name: str, embedder: str) -> list[Fault]:
    """Return the faults of a tree or task file: those of its form; if it has none, those of its id and content."""
    if (path := _task_path(name)) is not None:
        return _task_faults(path, embedder)
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


def _task_path(name: str) -> str | None:
    """Return the path of a projection task file that is named by path or id; None for anything else."""
    path = name if is_path(name) or name in builtin_ids() else str(user_files().get(name, name))
    return path if is_task_file(path) else None


def _task_faults(path: str, embedder: str) -> list[Fault]:
    try:
        task = load_task(path)
    except TreeError as error:
        return list(error.faults)
    return lint_task(task, None if embedder == "none" else load_embedder(embedder).embed)


def _describe(name: str) -> dict[str, Any]:
    entry = CATALOGUE.get(name)
    missing = dict.fromkeys(("depth", "width", "tier", "year", "journal", "doi"))
    if entry is not None and name not in builtin_ids() and name not in user_files():
        known = {"n": entry.subtopics, "playable": False, "title": entry.title}
        return {"id": name, **known} | missing | {"journal": entry.journal}
    if _task_path(name) is not None:
        title = f"(a projection task alone, without a tree; it is played as ProjectionBench-{name}-v0)"
        return {"id": name, "n": None, "playable": False, "title": title} | missing
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
        "tier": tree.provenance.tier,
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
