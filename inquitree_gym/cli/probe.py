"""The verb probe: can fakes be told from true results when each stands alone?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from inquitree_gym.analysis import probe as probing
from inquitree_gym.analysis.aggregate import as_plain, in_cell
from inquitree_gym.analysis.probe import ProbeComparison, ProbeResult
from inquitree_gym.cli.output import FAILED, as_table, err, out, print_json, progress, split
from inquitree_gym.cli.pages import gather_run
from inquitree_gym.cli.trees import JsonOption
from inquitree_gym.llm import Budget, BudgetedChat, ChatModel
from inquitree_gym.runner.folder import read_manifest
from inquitree_gym.runner.study import ALL
from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.vigilance import SENSITIVITY
from inquitree_gym.trees import Tree, builtin_ids, load_tree

LEGEND = (
    "hits: fakes called INVALID. false alarms: true results called INVALID. Means over trees; [low, high] is the 95 %\n"
    "interval, t over tree means, from five trees on. d′: how well fakes are told; c: below 0 where most is doubted."
)

app = typer.Typer()


@app.command("probe")
def probe_results(  # noqa: PLR0913  (one parameter per flag)
    model: Annotated[str, typer.Option(help="litellm's name of the model, provider/name.")],
    papers: Annotated[
        str | None, typer.Option(help="all, or ids, paper numbers and paths, comma-separated; default those of --run.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Times that each result is asked about.")] = 1,
    base_url: Annotated[str | None, typer.Option(help="Address of the server; without it the provider's.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="The provider's word, such as low or high.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="US dollars at which no more is asked.")] = None,
    max_total_tokens: Annotated[int | None, typer.Option(help="Tokens at which no more is asked.")] = None,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Questions asked at the same time.")] = 8,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the answers.")] = Path("probes"),
    run_folder: Annotated[
        Path | None, typer.Option("--run", help="Set the agents of this run beside it, on the same results.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a model of every true and fake result, alone, whether it is valid; the same again asks what is missing."""
    chat = BudgetedChat(
        ChatModel(model, base_url=base_url, reasoning_effort=reasoning_effort), Budget(max_cost, max_total_tokens)
    )
    trees = _trees(papers, run_folder)
    facts = [] if run_folder is None else gather_run(run_folder).episodes
    total = repeats * sum(len(probing.probe_items(tree)) for tree in trees)
    with progress(f"asking {model}", total) as advance:
        found = asyncio.run(probing.probe(chat, trees, out_folder, repeats, max_concurrency, lambda: advance("")))
    pairs = probing.compare_with_probe(found.doubts, facts)
    if as_json:
        print_json(_as_plain(model, found, pairs))
    else:
        out.print(as_table(f"Results alone, by {model}", _alone(found)))
        for each in pairs:
            out.print(as_table(f"{', '.join(each.player)}: {each.items} results that both have", _beside(each)))
        out.print(Text(LEGEND))
    _tell(found)
    if found.asked.failed or found.asked.left:
        raise typer.Exit(FAILED)


def _trees(papers: str | None, run: Path | None) -> list[Tree]:
    """Return the trees that are named, each once: those of the run, or all, where none is."""
    if papers is None:
        names: Sequence[str] = builtin_ids() if run is None else read_manifest(run).trees
    else:
        names = [name for part in split(papers) for name in (builtin_ids() if part == ALL else (part,))]
    return list({tree.digest: tree for tree in map(load_tree, names)}.values())


def _alone(found: ProbeResult) -> Iterator[list[str]]:
    yield ["results", "without a verdict", *SENSITIVITY]
    yield [f"{found.items}", f"{found.items - len(found.doubts)}", *_cells(found.estimates)]


def _beside(each: ProbeComparison) -> Iterator[list[str]]:
    yield ["", *SENSITIVITY]
    for name, estimates in (("in the loop", each.loop), ("alone", each.alone), ("difference", each.difference)):
        yield [name, *_cells(estimates)]


def _cells(estimates: dict[str, Estimate]) -> list[str]:
    return [in_cell(estimates[name]) for name in SENSITIVITY]


def _tell(found: ProbeResult) -> None:
    """Say on the error stream what was asked, what it took, and what is missing."""
    asked, paid = found.asked, found.asked.paid
    price = f"${paid.dollars:.4f}" + (f" and {paid.unpriced} of unknown price" if paid.unpriced else "")
    said = [f"answers: {asked.answered} now ({paid.tokens} tokens, {price}), {asked.found} from before"]
    said += [f"answers without a verdict: {found.unread}"] * bool(found.unread)
    err.print(Text("; ".join(said)), soft_wrap=True)
    if asked.failed:
        last = asked.failed[-1]
        err.print(Text(f"{len(asked.failed)} questions without an answer, the last for: {last}"), soft_wrap=True)
    if asked.left:
        err.print(Text(asked.left), soft_wrap=True)


def _as_plain(model: str, found: ProbeResult, pairs: Sequence[ProbeComparison]) -> dict[str, Any]:
    items = [{**item._asdict(), "doubted": doubt} for item, doubt in found.doubts.items()]
    return {
        "model": model,
        "results": found.items,
        "asked": as_plain(found.asked),
        "unread": found.unread,
        "estimates": as_plain(found.estimates),
        "pairs": [
            {
                "player": list(each.player),
                "results": each.items,
                **{side: as_plain(getattr(each, side)) for side in ("loop", "alone", "difference")},
            }
            for each in pairs
        ],
        "items": items,
    }
