"""Judge random slices of papers' texts as projections, as in Fig. 2 of ProjectionBench: ``python -m research.slices``.

A slice is a run of consecutive texts of a tree (conclusions, and studies with their true results) that starts anywhere
and goes on from the first text after the last. F1 should grow with the share of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from inquitree_gym.cli import output
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.judging.registry import judge_all, load_judge
from inquitree_gym.kinds import kind
from inquitree_gym.llm import run_sync
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import actual_world, in_world

SHARES = tuple(tenth / 10 for tenth in range(11))
"""Shares of a paper's text."""
AT_ONCE = 8
"""Slices judged at the same time."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Slice(NamedTuple):
    """F1 of the slices of one share of a paper's text."""

    tree: str
    share: float
    f1: tuple[float, ...]
    """Scores of the slices that the judge could score."""
    unscored: int


@app.command()
def judge_slices(
    judge: Annotated[str, typer.Option(help="A judge of projections: llm:MODEL or nli:MODEL.")],
    papers: output.PapersOption = ALL,
    draws: Annotated[int, typer.Option(min=1, help="Slices of each share.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
) -> None:
    """Print a Markdown table of the mean F1 by share, and how many slices the judge left unscored."""
    by = load_judge(judge, task_kind="projection")
    names = kind("projection").tasks.expand(output.split(papers))
    found = [each for name in names for each in sliced(load_tree(name), by, draws, np.random.default_rng(seed))]
    typer.echo(f"judged by {by.name}\n\n| share | F1 | papers | unscored |\n| --: | --: | --: | --: |")
    for share in SHARES:
        of_share = [each for each in found if each.share == share]
        means = [float(np.mean(each.f1)) for each in of_share if each.f1]
        mean = f"{np.mean(means):.3f}" if means else "–"
        typer.echo(f"| {share:.0%} | {mean} | {len(means)} | {sum(each.unscored for each in of_share)} |")


def sliced(tree: Tree, judge: AsyncJudge[Any], draws: int, rng: np.random.Generator) -> Iterator[Slice]:
    """Yield the F1 of random slices of each share of a paper's text."""
    task, texts = load_task(tree), paper_texts(tree)
    for share in SHARES:
        size = round(share * len(texts))
        starts = rng.integers(len(texts), size=draws).tolist()
        slices = [" ".join(texts[(start + k) % len(texts)] for k in range(size)) for start in starts]
        cases = [(task, text) for text in slices]
        judged = [each.payload for each in run_sync(judge_all(judge.judge, cases, AT_ONCE, lambda *_: None))]
        scores = [float(each.score().f1) for each in judged if each is not None and each.complete]
        yield Slice(tree.id, share, tuple(scores), draws - len(scores))


def paper_texts(tree: Tree) -> list[str]:
    """Return a paper's text in pieces: each conclusion, and each study with its true result."""
    told = in_world(tree, actual_world(tree))
    protocols = (study.text.rstrip(".") for study in tree.studies)
    studies = (f"{text}. {study.results[0]}" for text, study in zip(protocols, told.studies, strict=True))
    return [*(item.text for item in told.conclusions), *studies]


if __name__ == "__main__":
    app()
