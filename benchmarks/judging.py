"""Measure the reward of a new conclusion against embedding its claims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from measure import Row, hand_over, ratios, seconds, spread

from inquitree_gym import load_embedder, load_tree
from inquitree_gym.inquiry.judges.local import LocalJudge, local_judge
from inquitree_gym.inquiry.judges.quality import conclusion_quality
from inquitree_gym.judging.sense import JUDGE_EMBEDDER
from inquitree_gym.trees import Tree

CONCLUSIONS = Path(__file__).parents[1] / "research" / "judge" / "conclusions"
"""Conclusions that were written after inquiries."""
WARM_UP = "The results agree with each other. More of them are needed."
TARGET = 3.0
"""Target: maximum ratio to embedding the claims with the judge's embedder."""


def rewards() -> list[Row]:
    """Judge each conclusion once, so that no claim is in the cache."""
    embedders = [load_embedder(JUDGE_EMBEDDER), load_embedder("all-MiniLM-L6-v2")]
    rounds, claims = [], 0
    for number, (tree, text) in enumerate(written()):
        judge = local_judge(tree)
        found = judge.claims(text)
        claims += len(found)
        for embedder in embedders:
            embedder.embed([WARM_UP])
        reward(judge, tree, WARM_UP)
        tasks = [partial(reward, judge, tree, text), *(partial(each.embed, found) for each in embedders)]
        turned = slice(None, None, -1 if number % 2 else 1)
        rounds.append([seconds(task) for task in tasks[turned]][turned])
    ours, *theirs = zip(*rounds, strict=True)
    what = f"reward of a new conclusion ({claims / len(rounds):.0f} claims)"
    aims = ((f"< {TARGET:g}", TARGET), ("–", None))
    return [
        row(what, embedder.name, ours, base, *aim) for embedder, base, aim in zip(embedders, theirs, aims, strict=True)
    ]


def row(
    what: str, embedder: str, ours: Sequence[float], theirs: Sequence[float], target: str, most: float | None
) -> Row:
    """Return the line of the table for one embedder."""
    ours_shown, theirs_shown = (spread(1e3 * took for took in side).show(".0f", "ms") for side in (ours, theirs))
    ratio = ratios(ours, theirs)
    met = None if most is None else ratio.median < most
    return Row(
        what, ours_shown, f"its claims in one call of `{embedder}` {theirs_shown}", ratio.show(".2f"), target, met
    )


def written() -> Iterator[tuple[Tree, str]]:
    """Yield the conclusions, each with its tree."""
    for file in sorted(CONCLUSIONS.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        for each in content["conclusions"]:
            yield load_tree(content["tree"]), each["text"]


def reward(judge: LocalJudge, tree: Tree, text: str) -> float | None:
    """Return Q with all evidence in hand."""
    return conclusion_quality(tree, 2 ** len(tree.studies) - 1, judge.judge(text))


if __name__ == "__main__":
    hand_over(rewards())
