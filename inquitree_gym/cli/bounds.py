"""The verb bounds: how long chance takes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from inquitree_gym.analysis.bounds.figure import check_figure, draw_bounds
from inquitree_gym.analysis.bounds.measure import (
    AGENTS,
    Bounds,
    Sampling,
    checked_agents,
    measure_topology,
    measure_tree,
)
from inquitree_gym.analysis.bounds.report import LEGEND, TITLES, as_plain, lines, summary
from inquitree_gym.cli.output import as_table, err, out, print_json, progress, split
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError
from inquitree_gym.runner.study import ALL
from inquitree_gym.trees import Tree, builtin_ids, generator, load_tree
from inquitree_gym.trees.generator.difficulty import TOPOLOGIES

SIZES = "4,7,10,15,20"
"""Subtopics of synthetic trees, without --n."""
SYNTHETIC = 20
"""Synthetic trees per topology and n."""

app = typer.Typer()


@app.command()
def bounds(  # noqa: PLR0913  (one parameter per flag)
    trees: Annotated[list[str] | None, typer.Argument(metavar="[all|TREE…]", help="Ids or paths.")] = None,
    agent: Annotated[str, typer.Option(help="Agents, comma-separated.")] = ",".join(AGENTS),
    episodes: Annotated[
        int, typer.Option(min=100, help="Episodes per tree, or per topology and n, where no exact law is at hand.")
    ] = 1000,
    topology: Annotated[
        str | None, typer.Option(help=f"Synthetic trees: all, or of {', '.join(TOPOLOGIES)}, comma-separated.")
    ] = None,
    n: Annotated[str | None, typer.Option("--n", help=f"Subtopics of synthetic trees; without it {SIZES}.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes and of synthetic trees.")] = 0,
    embedder: Annotated[str, typer.Option(help="Embedder that reads the menu texts of trees.")] = DEFAULT_EMBEDDER,
    figure: Annotated[Path | None, typer.Option(help="Draw it to this file, an SVG or PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how long the random agents take for a full traversal, against [3n, n(2H+3)], without a turn limit."""
    agents, shapes = checked_agents(split(agent)), _shapes(topology, n)
    if figure is not None:
        check_figure(figure)
    loaded = _load(trees or [ALL] * (topology is None))
    reader = load_embedder(embedder)
    by_tree: list[Bounds] = []
    by_shape: list[Bounds] = []
    with progress("measuring", len(loaded) + len(shapes)) as advance:
        for tree in loaded:
            by_tree += measure_tree(tree, reader, agents, Sampling(episodes, seed))
            advance(tree.id)
        for shape, size in shapes:
            by_shape += measure_topology(shape, size, SYNTHETIC, agents, Sampling(episodes // SYNTHETIC, seed))
            advance(f"{shape} {size}")
    if figure is not None:
        draw_bounds(figure, by_tree, by_shape)
        err.print(f"written: {figure}")
    if as_json:
        print_json([as_plain(each) for each in by_tree + by_shape])
        return
    for found, where in ((by_tree, "by tree"), (by_shape, "by topology")):
        for name in dict.fromkeys(each.agent for each in found):
            out.print(as_table(f"{TITLES[name]}, {where}", lines(name, found)))
    if by_tree[1:]:
        out.print(as_table("Over trees", summary(by_tree)))
    out.print(Text(LEGEND))


def _load(names: list[str]) -> tuple[Tree, ...]:
    each_name = (name for given in names for name in (builtin_ids() if given == ALL else (given,)))
    return tuple(dict.fromkeys(load_tree(name) for name in each_name))


def _shapes(topology: str | None, n: str | None) -> list[tuple[str, int]]:
    """Return every topology with every number of subtopics that is asked for; all faults are found here."""
    if topology is None:
        if n is not None:
            raise OptionError("--n is the size of synthetic trees; name their --topology too, or leave --n out")
        return []
    names = TOPOLOGIES if topology == ALL else split(topology)
    sizes = [_size(part) for part in split(SIZES if n is None else n)]
    if not names or not sizes:
        raise OptionError(f"--topology is all or of {', '.join(TOPOLOGIES)}, and --n one number or more")
    shapes = list(product(dict.fromkeys(names), sorted(set(sizes))))
    for name, size in shapes:
        generator.Difficulty.of({"topology": name, "subtopics": size})
    return shapes


def _size(part: str) -> int:
    try:
        return int(part)
    except ValueError as error:
        raise OptionError(f"--n takes whole numbers, comma-separated, not '{part}'") from error
