"""Verbs about tasks of every kind of environment: list, show, check, schema."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Branches

from inquitree_gym.cli.output import (
    FAULTY,
    JsonOption,
    TaskArgument,
    TaskKindOption,
    check_svg,
    note,
    out,
    print_json,
    print_table,
    progress,
    write,
)
from inquitree_gym.cluster import map_here
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import SEVERITIES, Fault, LogError, OptionError, TreeError, UnknownTreeError, plural
from inquitree_gym.files import MAX_TASK, open_input
from inquitree_gym.kinds import DEFAULT_KIND, Kind, kind, kinds
from inquitree_gym.protocols import UNREVIEWED, Outline
from inquitree_gym.trees.catalogue import builtin_ids, is_path, user_files

MANY = 6
"""Number of tasks from which they are checked in several processes."""
HEAD = 200
"""Bytes of a file in which its format stands."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"

Checked = tuple[list[Fault], Mapping[str, Sequence[list[str]]]]
"""Faults of a task, and tables for its author."""

app = typer.Typer()


@app.command("list")
def list_tasks(env: TaskKindOption = None, as_json: JsonOption = False) -> None:
    """List all papers of the pool, and the user's tasks."""
    tasks = kind(env or DEFAULT_KIND).tasks
    entries = list(tasks.entries())
    if as_json:
        print_json(entries)
        return
    caption = f"dim: a {tasks.noun} that may not be distributed, or has faults"
    table = Table(*tasks.columns, title=f"Known {tasks.noun}s", caption=caption)
    for entry in entries:
        values = [entry[name] for name in tasks.columns]
        cells = ["" if value is None else str(value) for value in values]
        cells[-1] += "" if entry.get("reviewed") is not False else f" ({UNREVIEWED})"
        table.add_row(*cells, style="" if entry["playable"] else "dim")
    out.print(table)
    if tasks.drawn:
        out.print(tasks.drawn)


@app.command()
def show(
    task: TaskArgument,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the graph as a Mermaid diagram.")] = False,
    svg_file: Annotated[Path | None, typer.Option("--svg", help="Write the graph to this .svg file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole task as JSON.")] = False,
    spoil: Annotated[bool, typer.Option(help="Include what an agent has to find out.")] = False,
    env: TaskKindOption = None,
) -> None:
    """Draw a task in the terminal, or export it."""
    check_svg("--svg", svg_file)
    of_kind = kind_of_task(task, env)
    loaded = of_kind.tasks.load(task)
    if svg_file is not None:
        write(svg_file, _diagram(of_kind, "svg")(loaded))
    if as_mermaid:
        text = _diagram(of_kind, "mermaid")(loaded)
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
    elif as_json:
        print_json(loaded.model_dump(mode="json"))
    elif svg_file is None:
        out.print(_branches(of_kind.tasks.outline(loaded, spoil)))
        if not of_kind.tasks.is_reviewed(loaded):
            out.print(UNREVIEWED)


@app.command()
def check(
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="[all|TASK…]", help="Ids or paths; all: every shipped task.")
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="Embedder for the checks of meaning; none skips these checks.")
    ] = DEFAULT_EMBEDDER,
    env: TaskKindOption = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="First mend the files: canonical form, stubs, implied prerequisites.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check tasks for faults. Exit with status 1 if there is an error, with 0 for warnings and notes.

    Of a single task, print the tables that help its author as well.
    """
    names = list(kind(env or DEFAULT_KIND).tasks.expand(tasks or ["all"]))
    for name in names if fix else ():
        _mend(name, env)
    faults: dict[str, list[Fault]] = {}
    aids: Mapping[str, Sequence[list[str]]] = {}
    check = partial(_checked, embedder=embedder, env=env, alone=len(names) == 1 and not as_json)
    # A local embedder uses one thread; without one, a process would cost more than the checks.
    apply = map if embedder == "none" or embedder.startswith("litellm:") else partial(map_here, many=MANY)
    with progress("checking", len(names)) as advance:
        for name, checked in zip(names, apply(check, names), strict=True):
            faults[name], aids = checked
            advance(name)
    if as_json:
        print_json({name: list(map(asdict, found)) for name, found in faults.items()})
    else:
        _print_faults(faults)
        for title, rows in aids.items():
            print_table(title, rows)
    has_error = any(fault.severity == "error" for found in faults.values() for fault in found)
    raise typer.Exit(FAULTY if has_error else 0)


def _mend(name: str, env: str | None) -> None:
    """Mend a file, and print on the error stream what changed. What keeps it from loading is left to the check."""
    from inquitree_gym.trees.reading import read_document

    if not is_path(name):
        raise OptionError(f"--fix must be given files, got '{name}'. Name files, or leave out --fix.")
    content = read_document(name)
    try:
        mended, changes = kind_of_task(name, env).tasks.mend(content, name)
    except TreeError:
        return
    if mended != content:
        write(Path(name).expanduser(), mended.decode())
        for change in changes or ("written in canonical form",):
            note(f"{name}: {change}")


@app.command()
def schema(env: TaskKindOption = None) -> None:
    """Print the JSON Schema of the files of a kind, for use in editors."""
    from inquitree_gym.trees.descriptions import described_schema

    print_json({"$schema": DRAFT, **described_schema(kind(env or DEFAULT_KIND).tasks.schema)})


def kind_of_task(name: str, env: str | None) -> Kind:
    """Return a kind by name, or else the kind whose format a file has. An id belongs to the default kind."""
    if env is not None:
        return kind(env)
    path = name if is_path(name) or name in builtin_ids() else str(user_files().get(name, name))
    head = _head(path) if is_path(path) else b""
    named = (each for each in kinds() if any(form.encode() in head for form in _formats(each)))
    return next(named, kind(DEFAULT_KIND))


def _head(path: str) -> bytes:
    """Return the beginning of a file. Empty if it cannot be read, which loading reports."""
    try:
        with open_input(os.path.expanduser(path), limit=MAX_TASK, error=LogError) as stream:
            return stream.read(HEAD)
    except LogError:
        return b""


def _formats(of_kind: Kind) -> tuple[str, ...]:
    """Return the names of the format of a kind's files, with the quotes around them."""
    schema = of_kind.tasks.schema
    fields = [each.model_fields.get("format") for each in get_args(schema) or (schema,)]
    return tuple(f'"{name}"' for field in fields if field is not None for name in get_args(field.annotation))


def _diagram(of_kind: Kind, name: str) -> Callable[[object], str]:
    if name not in of_kind.tasks.diagrams:
        raise OptionError(f"a {of_kind.tasks.noun} of the kind '{of_kind.name}' has no picture; leave out --{name}")
    return of_kind.tasks.diagrams[name]


def _branches(outline: Outline) -> Branches:
    """Return an outline as rich draws it: headings of what has a text or parts stand out."""
    style = "bold" if outline.text or outline.parts else ""
    label = Text.assemble((outline.heading, style), f"\n{outline.text}" if outline.text else "")
    branches = Branches(label)
    branches.children.extend(map(_branches, outline.parts))
    return branches


def _print_faults(faults: dict[str, list[Fault]]) -> None:
    for name, found in faults.items():
        counts = Counter(fault.severity for fault in found)
        words = [plural(counts[severity], severity) for severity in SEVERITIES if counts[severity]]
        out.print(Text(f"{name}: {', '.join(words) or 'clean'}"), soft_wrap=True)
        for fault in found:
            out.print(Text(f"  {fault.severity} {fault.code} {fault}"))


def _checked(name: str, embedder: str, env: str | None, alone: bool) -> Checked:
    """Return the faults of a task: those of its form, or else of its id and content. One alone comes with its aids."""
    from inquitree_gym.embeddings import load_embedder
    from inquitree_gym.trees.load import id_faults

    tasks = kind_of_task(name, env).tasks
    try:
        task = tasks.load(name)
    except UnknownTreeError:
        raise
    except TreeError as error:
        return list(error.faults), {}
    faults = id_faults(task, Path(name)) if is_path(name) else []
    loaded = None if embedder == "none" else load_embedder(embedder)
    return [*faults, *tasks.lint(task, loaded)], tasks.aids(task, loaded) if alone else {}
