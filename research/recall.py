"""Recall that is planted in a reader and found again by the recall gap: ``python -m research.recall``.

The reader runs random studies, or none, and answers each axis by a draw: a pole with posterior probability p gets the
weight p, the paper's pole p·eᵇ. So the log-odds of the paper's pole are those of the posterior plus b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from inquitree_gym.baselines import CoverAgent
from inquitree_gym.cli import output
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.exam import exam_of, sheet_of_world
from inquitree_gym.inquiry.observer import axis_beliefs, believe, design_of, observe
from inquitree_gym.inquiry.recall import RECALL, RECALL_GAP, Answer, recall_gap
from inquitree_gym.kinds import kind
from inquitree_gym.results import score_episode
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.rollout import play
from inquitree_gym.runs.study import ALL
from inquitree_gym.seeds import hash_text
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import actual_world

PLANTED = (0, 1, 2, 4)
"""Recall of the readers in nats."""
WORLDS = ("actual", "complement")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class PlantedReader(CoverAgent):
    """Answers each axis by a draw from the posterior with ``recall`` nats added to the paper's pole."""

    name = "planted"

    def __init__(self, tree: Tree, recall: float, *, closed_book: bool = False) -> None:
        """Remember the paper of ``tree``. With ``closed_book`` it concludes at once."""
        super().__init__(tree)
        self._paper, self._recall, self._closed = actual_world(tree), recall, closed_book

    @property
    def config(self) -> dict[str, Any]:
        """Name, recall, and whether it runs no study."""
        return {"name": self.name, "recall": self._recall, "closed_book": self._closed}

    def reset(self, seed: int) -> None:
        """Start an episode. Trees share no draws, since they are taken as independent."""
        super().reset(hash_text(f"{self._tree.id}\n{seed}"))

    def drawn(self) -> int:
        """Return the next study. -1 for none."""
        return -1 if self._closed else super().drawn()

    def sheet(self) -> Sheet:
        """Draw the answers."""
        model = observe(design_of(self._tree), self._level)
        weights = axis_beliefs(model, believe(model, self._showings))[0]
        weights[range(len(weights)), self._paper] *= np.exp(self._recall)
        chances = weights / weights.sum(1, keepdims=True)
        world = [int(self.rng.choice(len(each), p=each)) for each in chances]
        return sheet_of_world(exam_of(self._tree), world)


def answered(
    trees: Sequence[Tree], recall: float, level: int, seeds: int, *, closed_book: bool = False, **keywords: Any
) -> Iterator[tuple[str, int, tuple[Answer, ...]]]:
    """Yield tree, seed and answers of planted readers in both worlds. See `recall_gap`."""
    for tree in trees:
        reader = PlantedReader(tree, recall, closed_book=closed_book)
        for world in WORLDS:
            env = InquiryEnv(tree, fake_level=level, world=world, **keywords)
            for seed in range(seeds):
                detail = score_episode(play(env, reader, seed), tree).detail
                yield tree.id, seed, detail.answers


@app.command()
def planted(
    papers: output.PapersOption = ALL,
    level: Annotated[int, typer.Option(min=0, max=10, help="Fake level.")] = 3,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each tree.")] = 5,
) -> None:
    """Print a Markdown table of the recall that is found beside the one that was planted."""
    trees = [load_tree(name) for name in kind("inquiry").tasks.expand(output.split(papers))]
    typer.echo("| planted, nats | studies | recall gap | recall, nats | inside |\n| --: | --- | --: | --: | --- |")
    for recall in PLANTED:
        for closed in (False, True):
            found = recall_gap(answered(trees, recall, level, seeds, closed_book=closed))
            studies, inside = "none" if closed else "random", _holds(found[RECALL], recall)
            typer.echo(f"| {recall} | {studies} | {found[RECALL_GAP]} | {found[RECALL]} | {inside} |")


def _holds(found: Estimate, recall: float) -> str:
    if found.low is None or found.high is None:
        return "–"
    return "yes" if found.low <= recall <= found.high else "no"


if __name__ == "__main__":
    app()
