"""Play baselines under both presets of rules, and print what differs: ``python -m research.presets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from inquitree_gym.cli import output
from inquitree_gym.inquiry.engine.rules import Preset
from inquitree_gym.inquiry.results import RESULTS
from inquitree_gym.results.comparison import PairedDifference, compare
from inquitree_gym.results.load import load_run
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.summary import SettingSummary, cell_text, format_estimate, summarise
from inquitree_gym.runner import make_study, run_study
from inquitree_gym.runs.study import ALL

AGENTS = "random,random-menu,retrieval,random-redo,worst-case,oracle"
LIMIT = "11n"
"""Turn limit under both presets, n(2H + 3), so that only the other choices differ."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def compare_presets(
    out: Annotated[Path, typer.Option(help="Folder of the two runs; what is there is not played again.")],
    agent: Annotated[str, typer.Option(help="Baselines, comma-separated.")] = AGENTS,
    papers: output.PapersOption = ALL,
    fake_level: Annotated[str, typer.Option(help="Fake levels, comma-separated.")] = "0,3,6",
    seeds: Annotated[int, typer.Option(help="Episodes per agent, tree and level.")] = 5,
) -> None:
    """Print a Markdown table of the numbers that differ between the presets, paired by tree and seed."""
    scores = []
    for preset in get_args(Preset):
        study = make_study(
            agents=output.split(agent),
            trees=output.split(papers),
            fake_level=output.whole_numbers("--fake-level", fake_level),
            seeds=seeds,
            rules=preset,
            max_turns=LIMIT,
        )
        run_study(study, out / preset)
        scores.append(load_run(out / preset).scores)
    first, second = scores
    for line in differing(summarise(first), summarise(second), compare(first, second)):
        typer.echo(f"| {' | '.join(line)} |")


def differing(
    default: Sequence[SettingSummary], paper: Sequence[SettingSummary], differences: Sequence[PairedDifference]
) -> Iterator[list[str]]:
    """Yield the rows of a Markdown table, headings first: every measure of an agent and level that differs."""
    yield ["agent", "fakes", "measure", "`default`", "`paper`", "`paper` − `default`"]
    yield ["---"] * 6
    means = [{(each.agent, each.place): each.estimates for each in run} for run in (default, paper)]
    for each in differences:
        for measure in RESULTS.compared:
            agent = each.name.partition(", ")[0]  # the rest tells the rules of the two runs
            if each.estimates[measure].mean:
                pair = [in_line(run[agent, cell_text(each.cell)][measure]) for run in means]
                name = RESULTS.heading(measure).replace("|", "\\|")
                yield [f"`{agent}`", cell_text(each.cell), name, *pair, in_line(each.estimates[measure])]


def in_line(estimate: Estimate) -> str:
    """Return an estimate with its interval on one line."""
    return " ".join(filter(None, format_estimate(estimate)))


if __name__ == "__main__":
    app()
