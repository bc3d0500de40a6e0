"""Verbs for control measurements: probe, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from inquitree_gym.cli.output import (
    FAILED,
    REPLY_TOKENS,
    BaseUrlOption,
    EffortOption,
    JsonOption,
    MaxCostOption,
    MaxTotalTokensOption,
    ReplyTokensOption,
    TreesArgument,
    note,
    out,
    print_json,
    print_table,
    progress,
    reply_limit,
    split,
    whole_numbers,
)
from inquitree_gym.cli.results import load_scored
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry import probe as probing
from inquitree_gym.inquiry.bounds.report import (
    LEGEND,
    TITLES,
    bounds_as_plain,
    bounds_summary,
    bounds_table,
    check_figure,
    draw_bounds,
)
from inquitree_gym.inquiry.bounds.traversal import (
    AGENTS,
    AgentTurns,
    SamplingPlan,
    checked_agents,
    measure_topology,
    measure_tree,
)
from inquitree_gym.inquiry.generator.difficulty import TOPOLOGIES, Difficulty
from inquitree_gym.inquiry.probe import ProbeComparison, ProbeResult
from inquitree_gym.inquiry.vigilance import SENSITIVITY
from inquitree_gym.kinds import kind
from inquitree_gym.llm import Budget, BudgetedChat, ChatModel
from inquitree_gym.results.questions import AskingResult
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import axis_name, in_cell
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree, load_tree

SIZES = "4,7,10,15,20"
"""Numbers of subtopics of synthetic trees, by default."""
SYNTHETIC_TREES = 20
"""Synthetic trees per topology and n."""
PROBE_TITLES = {"context": "Results with their study alone", "bare": "Bare statements (the control)"}
PROBE_LEGEND = (
    "hits: fakes called INVALID. false alarms: true results called INVALID. Means over trees; [low, high] is the 95 %\n"
    "interval, t over tree means, from five trees on. d′: sensitivity to fakes; c: below 0 if most results are doubted."
)

app = typer.Typer()


@app.command("probe")
def probe_results(  # noqa: PLR0913  (one parameter per flag)
    model: Annotated[str, typer.Option(help="litellm's name of the model: provider/name.")],
    papers: Annotated[
        str | None,
        typer.Option(help="all, or ids, paper numbers and paths, comma-separated; those of --run by default."),
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="Show the statement alone, as the paper's control does.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Questions about each result.")] = 1,
    base_url: BaseUrlOption = None,
    reasoning_effort: EffortOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Questions asked at the same time.")] = 8,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the answers.")] = Path("probes"),
    run_folder: Annotated[
        Path | None, typer.Option("--run", help="Compare with the agents of these logs, on the same results.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a model whether results are valid, outside an inquiry. Run again to ask only what is missing."""
    asked = ChatModel(model, base_url=base_url, reasoning_effort=reasoning_effort, max_tokens=reply_limit(reply_tokens))
    chat = BudgetedChat(asked, Budget(max_cost, max_total_tokens))
    mode: probing.ProbeMode = "bare" if bare else "context"
    runs = [] if run_folder is None else load_scored([run_folder], env="inquiry")
    scores = [score for run in runs for score in run.scores]
    trees = [tree for run in runs for tree in run.tasks.values()] if papers is None else load_trees(split(papers))
    trees = trees or load_trees((ALL,))
    total = repeats * sum(len(probing.probe_items(tree)) for tree in trees)
    with progress(f"asking {model}", total) as advance:
        answers = probing.probe(chat, trees, out_folder, repeats, max_concurrency, lambda: advance(""), mode)
        found = asyncio.run(answers)
    pairs = probing.compare_with_probe(found.doubts, scores)
    if as_json:
        print_json(_probe_as_plain(model, found, pairs))
    else:
        _print_probe(model, found, pairs)
    note_answers("answers", found.asked, f"; answers without a verdict: {found.unread}" if found.unread else "")
    if found.asked.failed or found.asked.left:
        raise typer.Exit(FAILED)


def _print_probe(model: str, found: ProbeResult, pairs: Sequence[ProbeComparison]) -> None:
    print_table(f"{PROBE_TITLES[found.mode]}, by {model}", _probe_rows(found))
    for pair in pairs:
        print_table(f"{', '.join(pair.player)}: {pair.items} results in common", _pair_rows(pair))
    out.print(Text(PROBE_LEGEND))


@app.command()
def bounds(  # noqa: PLR0913  (one parameter per flag)
    trees: TreesArgument = None,
    agent: Annotated[str, typer.Option(help="Agents, comma-separated.")] = ",".join(AGENTS),
    episodes: Annotated[
        int, typer.Option(min=100, help="Episodes per tree, or per topology and n, without an exact distribution.")
    ] = 1000,
    topology: Annotated[
        str | None, typer.Option(help=f"Synthetic trees: all, or of {', '.join(TOPOLOGIES)}, comma-separated.")
    ] = None,
    n: Annotated[
        str | None, typer.Option("--n", help=f"Numbers of subtopics of synthetic trees; {SIZES} by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes and of synthetic trees.")] = 0,
    embedder: Annotated[str, typer.Option(help="Embedder that reads the menu texts of trees.")] = DEFAULT_EMBEDDER,
    figure: Annotated[Path | None, typer.Option(help="Write a figure to this file, an SVG or PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how many turns random agents take for a full traversal without a limit, against [3n, n(2H+3)]."""
    agents, shapes = checked_agents(split(agent)), _shapes(topology, n)
    if figure is not None:
        check_figure(figure)
    loaded = load_trees(trees or [ALL] * (topology is None))
    reader = load_embedder(embedder)
    by_tree: list[AgentTurns] = []
    by_shape: list[AgentTurns] = []
    with progress("measuring", len(loaded) + len(shapes)) as advance:
        for tree in loaded:
            by_tree += measure_tree(tree, reader, agents, SamplingPlan(episodes, seed))
            advance(tree.id)
        for shape, size in shapes:
            plan = SamplingPlan(episodes // SYNTHETIC_TREES, seed)
            by_shape += measure_topology(shape, size, SYNTHETIC_TREES, agents, plan)
            advance(f"{shape} {size}")
    if figure is not None:
        draw_bounds(figure, by_tree, by_shape)
        note(f"written: {figure}")
    if as_json:
        print_json([bounds_as_plain(each) for each in by_tree + by_shape])
        return
    for found, where in ((by_tree, "by tree"), (by_shape, "by topology")):
        for name in dict.fromkeys(each.agent for each in found):
            print_table(f"{TITLES[name]}, {where}", bounds_table(name, found))
    if by_tree[1:]:
        print_table("Over trees", bounds_summary(by_tree))
    out.print(Text(LEGEND))


def load_trees(names: Iterable[str]) -> list[Tree]:
    """Return the trees with the given names, each once."""
    return list({tree.digest: tree for tree in map(load_tree, kind("inquiry").tasks.expand(list(names)))}.values())


def note_answers(name: str, asked: AskingResult, more: str = "") -> None:
    """Print on the error stream the number of answers, their cost, and the questions left open."""
    paid = asked.paid
    price = f"${paid.cost or 0:.4f}" + (f" and {paid.unpriced} of unknown price" if paid.unpriced else "")
    note(f"{name}: {asked.answered} now ({paid.tokens} tokens, {price}), {asked.found} from before{more}")
    if asked.failed:
        note(f"{name}: {len(asked.failed)} without an answer, the last error: {asked.failed[-1]}")
    if asked.left:
        note(f"{name}: {asked.left}")


def _probe_rows(found: ProbeResult) -> Iterator[list[str]]:
    yield ["results", "without a verdict", *map(axis_name, SENSITIVITY)]
    yield [f"{found.items}", f"{found.items - len(found.doubts)}", *_cells(found.estimates)]


def _pair_rows(each: ProbeComparison) -> Iterator[list[str]]:
    yield ["", *map(axis_name, SENSITIVITY)]
    for name, estimates in (("in the loop", each.loop), ("probe", each.alone), ("difference", each.difference)):
        yield [name, *_cells(estimates)]


def _cells(estimates: dict[str, Estimate]) -> list[str]:
    return [in_cell(estimates[name]) for name in SENSITIVITY]


def _probe_as_plain(model: str, found: ProbeResult, pairs: Sequence[ProbeComparison]) -> dict[str, Any]:
    return {
        "model": model,
        "mode": found.mode,
        "results": found.items,
        "asked": found.asked,
        "unread": found.unread,
        "estimates": found.estimates,
        "pairs": [
            {
                "player": list(each.player),
                "results": each.items,
                "loop": each.loop,
                "alone": each.alone,
                "difference": each.difference,
            }
            for each in pairs
        ],
        "items": [{**item._asdict(), "doubted": doubt} for item, doubt in found.doubts.items()],
    }


def _shapes(topology: str | None, n: str | None) -> list[tuple[str, int]]:
    """Return every topology in the options with every number of subtopics, after checking them."""
    if topology is None:
        if n is not None:
            raise OptionError("--n is the size of synthetic trees; name their --topology too, or leave --n out")
        return []
    names = TOPOLOGIES if topology == ALL else split(topology)
    sizes = whole_numbers("--n", SIZES if n is None else n)
    if not names or not sizes:
        raise OptionError(f"--topology is all or of {', '.join(TOPOLOGIES)}, and --n one number or more")
    shapes = list(product(dict.fromkeys(names), sorted(set(sizes))))
    for name, size in shapes:
        Difficulty.of({"topology": name, "subtopics": size})
    return shapes
