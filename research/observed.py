"""Figures of the exact observer and of simulated players: ``python -m research.observed VERB``."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from inquitree_gym.cli import output
from inquitree_gym.inquiry.courses import CHOICES, play_courses, replay
from inquitree_gym.inquiry.observer import axis_beliefs, design_of, expected_scores, observe
from inquitree_gym.inquiry.players import answer_exactly, compare_players, figure, mark
from inquitree_gym.kinds import kind
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.runs.study import ALL
from inquitree_gym.trees import Tree, load_tree

LIMITS = (2, 3, 5)
"""Turns per subtopic."""
MOST_LEVEL = 10

EpisodesOption = Annotated[int, typer.Option(min=2, help="Episodes of each row, over all trees.")]
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _trees(papers: str) -> list[Tree]:
    return [load_tree(name) for name in kind("inquiry").tasks.expand(output.split(papers))]


@app.command()
def expected(papers: output.PapersOption = ALL, episodes: EpisodesOption = 2000, turns: int = 3) -> None:
    """Print the exam that the observer expects of random studies beside the one that it gets, by fake level.

    Worlds are drawn from all, and every tree has the same number of episodes.
    """
    trees = _trees(papers)
    typer.echo("| level | episodes | expected | realised | realised − expected |\n| --: | --: | --: | --: | --: |")
    for level in range(MOST_LEVEL + 1):
        pairs = [expected_and_realised(tree, level, turns, -(-episodes // len(trees))) for tree in trees]
        hoped, got = (np.concatenate(side) for side in zip(*pairs, strict=True))
        typer.echo(f"| {level} | {len(got)} | {hoped.mean():.3f} | {got.mean():.3f} | {figure(got - hoped)} |")


def expected_and_realised(tree: Tree, level: int, turns: int, episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected exam of the observer after random studies and the one that it gets, shape (E,) each."""
    design = design_of(tree)
    model, limit = observe(design, level), turns * len(tree.subtopics)
    course = play_courses(design, level, limit, CHOICES["cover"], model=model, episodes=episodes, seed=level)
    hoped = expected_scores(model, axis_beliefs(model, replay(model, course)[0])).mean(1)
    return hoped, mark(design, course, answer_exactly(model, course)).score


@app.command()
def cover(papers: output.PapersOption = ALL, episodes: EpisodesOption = 1000, level: int = 0) -> None:
    """Print the exam of random choice as a share of the best choice among greedy, bayes and the best fixed course."""
    rows: dict[int, list[tuple[str, float]]] = {turns: [] for turns in LIMITS}
    heads = [f"{turns}n" for turns in LIMITS]
    typer.echo(f"| tree | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for tree in _trees(papers):
        for turns, found in rows.items():
            players = compare_players(design_of(tree), level, turns * len(tree.subtopics), episodes=episodes)
            best = max(each.score.mean for name, each in players.items() if name != "cover")
            found.append((tree.id, players["cover"].score.mean / best))
        typer.echo(f"| {tree.id} | {' | '.join(f'{found[-1][1]:.2f}' for found in rows.values())} |")
    typer.echo(f"| mean | {' | '.join(str(clustered_mean(found)) for found in rows.values())} |")


@app.command()
def repeats(papers: output.PapersOption = ALL, episodes: EpisodesOption = 400, level: int = 3) -> None:
    """Print the share of the showings that bayes spends on repetitions: means over trees."""
    for turns in LIMITS:
        shares = [(tree.id, _repeated(tree, level, turns, episodes)) for tree in _trees(papers)]
        typer.echo(f"{turns}n: {clustered_mean(shares)}, at most {max(share for _, share in shares):.3f}")


def _repeated(tree: Tree, level: int, turns: int, episodes: int) -> float:
    design = design_of(tree)
    limit, model = turns * len(tree.subtopics), observe(design, level)
    course = play_courses(design, level, limit, CHOICES["bayes"], model=model, episodes=episodes, seed=0)
    return float((course.run > 0).sum() / (course.study >= 0).sum())


if __name__ == "__main__":
    app()
