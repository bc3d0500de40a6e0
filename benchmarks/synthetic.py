"""Measure the generation of synthetic trees, and with ``--quality TREES`` the quality of that many trees.

``python benchmarks/synthetic.py --quality 200 [--subtopics 7] [--nearness 0]`` embeds every text with the default
embedder; it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from measure import Row, alternate, as_table, hand_over, ratios, spread

from inquitree_gym import load_embedder
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.trees import Difficulty, Tree, synthetic_tree, tree_seed
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.meaning import targets
from inquitree_gym.trees.schema import Embed

SIZES = (7, 50, 500)
ROUNDS = 15
SUBTOPICS_A_ROUND = 500
RATE_TARGET = 200
"""Target: minimum trees of 7 subtopics per second."""
GROWTH_TARGET = 1.2
"""Target: maximum ratio of the time per subtopic between the largest and the smallest trees."""


def making() -> list[Row]:
    """Generate trees of several sizes, each only once."""
    tasks = [maker(size) for size in SIZES]
    alternate(tasks, 1)
    per_subtopic = alternate(tasks, ROUNDS)
    rows = []
    for size, each in zip(SIZES, per_subtopic, strict=True):
        rates = spread(1 / (took * size) for took in each)
        first = size == SIZES[0]
        growth = ratios(each, per_subtopic[0])
        rows.append(
            Row(
                f"synthetic trees of {size} subtopics, validated, CPU time",
                rates.show(",.0f" if first else ",.1f", "/s"),
                "–" if first else f"time per subtopic of {SIZES[0]}",
                "–" if first else growth.show(".2f"),
                f"≥ {RATE_TARGET}/s" if first else f"≤ {GROWTH_TARGET}",
                rates.median >= RATE_TARGET if first else growth.median <= GROWTH_TARGET,
            )
        )
    return rows


def maker(size: int) -> Callable[[], float]:
    """Return a function that generates about `SUBTOPICS_A_ROUND` subtopics and returns CPU seconds per subtopic."""
    difficulty, seeds, trees = Difficulty(subtopics=size), count(), round(SUBTOPICS_A_ROUND / size)

    def make() -> float:
        begun = time.process_time()
        for _ in range(trees):
            synthetic_tree(next(seeds), difficulty)
        return (time.process_time() - begun) / (trees * size)

    return make


class Quality(NamedTuple):
    """Measured quality of one tree."""

    ladders: int
    rising: int
    faults: int
    siblings: float
    """Highest similarity of two subtopics."""


def quality(trees: Sequence[Tree], embedder: Embedder) -> list[Row]:
    """Check trees."""
    found = []
    for tree in trees:
        own = list(dict.fromkeys(tree.texts().values()))
        known = dict(zip(own, embedder.embed(own), strict=True))
        found.append(checked(tree, lambda wanted, known=known: np.stack([known[text] for text in wanted])))
    return shares(found)


def checked(tree: Tree, embed: Embed) -> Quality:
    """Lint one tree."""
    faults = [fault for fault in lint_tree(tree, embed) if fault.severity == "error"]
    flat = {fault.node for fault in faults if fault.code in ("T501", "T502")}
    subtopics = embed([subtopic.text for subtopic in tree.subtopics])
    between = subtopics @ subtopics.T - 2 * np.eye(len(subtopics))
    ladders = len(targets(tree))
    return Quality(ladders, ladders - len(flat), len(faults), float(between.max()))


def shares(found: Sequence[Quality]) -> list[Row]:
    """Return pass rates over all trees."""
    targets, rising = (sum(getattr(each, name) for each in found) for name in ("ladders", "rising"))
    clean = sum(not each.faults for each in found)
    nearest = [each.siblings for each in found]
    return [
        Row("hint ladders that rise strictly", f"{rising:,} of {targets:,} ({rising / targets:.1%})", target="≥ 95 %"),
        Row("trees without a fault", f"{clean} of {len(found)} ({clean / len(found):.1%})", target="≥ 90 %"),
        Row("nearest two subtopics of a tree, cosine", spread(nearest).show(".3f"), against=f"most {max(nearest):.3f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quality", type=int, metavar="TREES", help="check so many trees instead")
    parser.add_argument("--subtopics", type=int, default=7)
    parser.add_argument("--nearness", type=float, default=0.0)
    options = parser.parse_args()
    if options.quality is None:
        hand_over(making())
        return
    difficulty = Difficulty(subtopics=options.subtopics, nearness=options.nearness)
    trees = [synthetic_tree(tree_seed(number, "train"), difficulty) for number in range(options.quality)]
    print(as_table(quality(trees, load_embedder(DEFAULT_EMBEDDER))))


if __name__ == "__main__":
    main()
