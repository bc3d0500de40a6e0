"""Play baselines under both presets of rules, and print what differs: ``python -m research.presets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from inquitree_gym.analysis import PairedDifference, SettingSummary, compare, load_run, summarise
from inquitree_gym.analysis.aggregate import SHOWN, format_estimate
from inquitree_gym.cli import output
from inquitree_gym.engine.rules import Preset
from inquitree_gym.runner import run_study
from inquitree_gym.runner.study import ALL, make_study
from inquitree_gym.scoring import Estimate

AGENTS = "random,random-menu,retrieval,random-redo,worst-case,oracle"

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
            fake_levels=output.whole_numbers("--fake-level", fake_level),
            seeds=seeds,
            rules=preset,
        )
        run_study(study, out / preset)
        scores.append([episode.score for episode in load_run(out / preset).episodes])
    default, paper = map(summarise, scores)
    for line in differing(default, paper, compare(*scores)):
        typer.echo(f"| {' | '.join(line)} |")


def differing(
    default: Sequence[SettingSummary], paper: Sequence[SettingSummary], differences: Sequence[PairedDifference]
) -> Iterator[list[str]]:
    """Yield the rows of a Markdown table, headings first: every measure of an agent and level that differs."""
    yield ["agent", "fakes", "measure", "`default`", "`paper`", "`paper` − `default`"]
    yield ["---"] * 6
    means = [{(each.agent, each.fake_level): each.estimates for each in run} for run in (default, paper)]
    for each in differences:
        for measure in SHOWN:
            agent = each.name.partition(", ")[0]  # the rest tells the rules of the two runs
            if each.estimates[measure].mean:
                pair = [in_line(run[agent, each.fake_level][measure]) for run in means]
                name = measure.replace("|", "\\|")
                yield [f"`{agent}`", str(each.fake_level), name, *pair, in_line(each.estimates[measure])]


def in_line(estimate: Estimate) -> str:
    """Return an estimate with its interval on one line."""
    return " ".join(filter(None, format_estimate(estimate)))


if __name__ == "__main__":
    app()
