"""Calibration of judges: conclusions whose scores are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from inquitree_gym.inquiry.judges.quality import Judge
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.judging.registry import judge_all
from inquitree_gym.llm import Usage
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.trees import Tree, load_tree
from research.agreement import Agreement, agreement, item_pairs
from research.datasets import CONCLUSION_KINDS, ConclusionSet, Scores


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Scores of the calibration conclusions of one tree, by kind."""

    tree: str
    scores: Mapping[str, Scores]
    expected: Mapping[str, Scores]
    """Scores that a fair reader gives."""

    @property
    def means(self) -> dict[str, float | None]:
        """Mean score by kind, in [0, 1], over the scored items. None without any."""
        return {kind: _mean(scores) for kind, scores in self.scores.items()}

    @property
    def error(self) -> float | None:
        """Mean absolute difference to the expected scores, over the scored items of all kinds."""
        pairs = [pair for kind in self.scores for pair in zip(self.scores[kind], self.expected[kind], strict=True)]
        return _mean([None if mine is None or fair is None else abs(mine - fair) for mine, fair in pairs])

    @property
    def unscored(self) -> int:
        """Number of unscored items of all kinds."""
        return sum(score is None for scores in self.scores.values() for score in scores)

    @property
    def holds(self) -> bool:
        """True if every item is scored, perfect > partial > contradicting, padded ≤ perfect and injected ≤ empty."""
        means = {kind: mean for kind, mean in self.means.items() if mean is not None}
        if self.unscored or len(means) < len(self.scores):
            return False
        ordered = means["perfect"] > means["partial"] > means["contradicting"]
        return ordered and means["padded"] <= means["perfect"] and means["injected"] <= means["empty"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scores that one judge gives the calibration conclusions of all trees."""

    judge: str
    judged: list[JudgedSet]
    usage: Usage
    unread: int

    @property
    def with_expected(self) -> Agreement:
        """Agreement with the expected scores, over the items of all conclusions but the empty ones."""
        fair = {(each.tree, kind): scores for each in self.judged for kind, scores in each.expected.items()}
        return agreement(item_pairs(self.by_conclusion, fair))

    @property
    def by_conclusion(self) -> dict[tuple[str, str], Scores]:
        """The scores by (tree id, kind), without those of the empty conclusions."""
        return {
            (each.tree, kind): scores for each in self.judged for kind, scores in each.scores.items() if kind != "empty"
        }


def judge_set(conclusions: ConclusionSet, make_judge: Callable[[Tree], Judge]) -> JudgedSet:
    """Judge the conclusions of one tree."""
    tree = load_tree(conclusions.tree)
    judge = make_judge(tree)
    expected = conclusions.expected(tree)
    texts = {each.kind: each.text for each in conclusions.conclusions}
    scores = {str(kind): tuple(verdict.score for verdict in judge.judge(texts[kind])) for kind in CONCLUSION_KINDS}
    return JudgedSet(tree.id, scores, expected)


async def calibrate(
    sets: Sequence[ConclusionSet],
    judge: AsyncJudge[Tree],
    max_concurrency: int,
    progress: Callable[[str], None],
) -> Calibration:
    """Judge the conclusions of all trees.

    Args:
        sets: one per tree.
        judge: the judge.
        max_concurrency: conclusions judged at the same time.
        progress: called with the name of each conclusion once it is judged.

    Raises:
        OptionError: a set is invalid.
        ServiceError: the judge's service answers no request at all.
    """
    trees = {each.tree: load_tree(each.tree) for each in sets}
    expected = {each.tree: each.expected(trees[each.tree]) for each in sets}
    keys = [(each.tree, conclusion.kind) for each in sets for conclusion in each.conclusions]
    cases = [(trees[each.tree], conclusion.text) for each in sets for conclusion in each.conclusions]
    judgements = await judge_all(judge.judge, cases, max_concurrency, lambda index, _: progress(" ".join(keys[index])))
    found = {
        key: tuple(verdict.score for verdict in judgement.payload)
        for key, judgement in zip(keys, judgements, strict=True)
    }
    judged = [
        JudgedSet(tree, {str(kind): found[tree, kind] for kind in CONCLUSION_KINDS}, expected[tree]) for tree in trees
    ]
    usage = sum((judgement.usage for judgement in judgements), Usage())
    return Calibration(judge.name, judged, usage, sum(judgement.unread for judgement in judgements))


def kind_means(judged: Sequence[JudgedSet]) -> dict[str, float | None]:
    """Return the mean score over trees by kind of conclusion."""
    return {kind: clustered_mean((each.tree, each.means[kind]) for each in judged).mean for kind in CONCLUSION_KINDS}


def expected_means(judged: Sequence[JudgedSet]) -> dict[str, float | None]:
    """Return the mean expected score over trees by kind of conclusion."""
    return {
        kind: clustered_mean((each.tree, score) for each in judged for score in each.expected[kind]).mean
        for kind in CONCLUSION_KINDS
    }


def two_digits(value: float | None) -> str:
    """Format a mean for a table."""
    return "–" if value is None else f"{value:.2f}"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
