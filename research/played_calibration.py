"""Judges beside the labels of conclusions of inquiries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.judges.quality import Verdict
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge, Judgement, judge_label, version_of
from inquitree_gym.judging.registry import judge_all
from inquitree_gym.llm import Usage
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees import Tree, load_tree
from research.agreement import Agreement, agreement
from research.judge.conclusions import SCORES, LabelledConclusion, LabelledVerdict, PlayedConclusions
from research.judge.crossval import verdict_name
from research.kappa import cohen_kappa

Group = Literal["tree", "author", "style"]


class PlayedItem(NamedTuple):
    """One conclusion item of one played conclusion, as labelled and as judged."""

    tree: str
    author: str
    style: str
    conclusion: int
    """Number of the conclusion, different for each."""
    label: LabelledVerdict
    score: float | None
    """S by the judge. None for an unscored item."""
    verdict: LabelledVerdict | None
    """None for a judge that gives S alone, without telling a wrong claim from no claim."""


@dataclass(frozen=True, slots=True)
class LabelFit:
    """Fit of a judge to the labels, over the scored items."""

    error: Estimate
    """Mean absolute difference of S per item, over trees."""
    grades: Agreement
    """Agreement on the grades 1, 0.6 and 0."""
    verdict_kappa: float | None
    """Cohen's κ on full, part, wrong and nothing. None without verdicts, or if all are one and the same."""
    rank_order: float | None
    """Spearman's ρ of the conclusions' mean S. None if judge or labels give all the same mean."""
    judged: float | None
    """Mean S by the judge."""
    labelled: float | None
    """Mean S by the labels."""


@dataclass(frozen=True, slots=True)
class PlayedCalibration:
    """Verdicts of one judge on the played conclusions."""

    judge: str
    """Name and version."""
    conclusions: int
    items: list[PlayedItem]
    usage: Usage
    unread: int

    def fits(self, by: Group | None = None) -> dict[str, LabelFit]:
        """Return the fit over all items, then that of each tree, author or style."""
        values = dict.fromkeys(getattr(each, by) for each in self.items) if by else ()
        groups = {value: [each for each in self.items if getattr(each, str(by)) == value] for value in values}
        return {name: fit(items) for name, items in ({"all": self.items} | groups).items()}


async def judge_played(
    sets: Sequence[PlayedConclusions], judge: AsyncJudge[Tree], max_concurrency: int, progress: Callable[[str], None]
) -> PlayedCalibration:
    """Judge the played conclusions of all trees.

    Args:
        sets: one per tree.
        judge: the judge.
        max_concurrency: conclusions judged at the same time.
        progress: called with tree and author of each conclusion once it is judged.

    Raises:
        OptionError: the labels are not about the items of the tree.
        ServiceError: the judge's service answers no request at all.
    """
    cases = [(load_tree(each.tree), conclusion) for each in sets for conclusion in each.conclusions]
    for tree, conclusion in cases:
        _check(tree, conclusion)
    texts = [(tree, conclusion.text) for tree, conclusion in cases]
    names = [f"{tree.id} {conclusion.author}" for tree, conclusion in cases]
    judgements = await judge_all(judge.judge, texts, max_concurrency, lambda index, _: progress(names[index]))
    items = [
        item
        for number, (case, judgement) in enumerate(zip(cases, judgements, strict=True))
        for item in _items(number, *case, judgement, judge.name == LOCAL)
    ]
    usage = sum((judgement.usage for judgement in judgements), Usage())
    label = judge_label(judge.name, version_of(judge.config))
    return PlayedCalibration(label, len(cases), items, usage, sum(each.unread for each in judgements))


def fit(items: Sequence[PlayedItem]) -> LabelFit:
    """Compare a judge with the labels."""
    scored = [(each, each.score, SCORES[each.label]) for each in items if each.score is not None]
    return LabelFit(
        error=clustered_mean((each.tree, abs(score - label)) for each, score, label in scored),
        grades=agreement((each.tree, each.score, SCORES[each.label]) for each in items),
        verdict_kappa=cohen_kappa((each.verdict, each.label) for each in items if each.verdict is not None),
        rank_order=_rank_order((each.conclusion, score, label) for each, score, label in scored),
        judged=fmean(score for _, score, _ in scored) if scored else None,
        labelled=fmean(label for *_, label in scored) if scored else None,
    )


def _items(
    number: int,
    tree: Tree,
    labelled: LabelledConclusion,
    judgement: Judgement[tuple[Verdict, ...]],
    names_verdicts: bool,
) -> Iterable[PlayedItem]:
    about = tree.id, labelled.author, labelled.style, number
    for item, verdict in zip(tree.conclusions, judgement.payload, strict=True):
        named = verdict_name(verdict) if names_verdicts else None
        yield PlayedItem(*about, labelled.items[item.id], verdict.score, named)


def _check(tree: Tree, labelled: LabelledConclusion) -> None:
    if set(labelled.items) != {item.id for item in tree.conclusions}:
        raise OptionError(
            f"a conclusion of {labelled.author} about {tree.id} has labels on {', '.join(labelled.items)}, not on "
            f"every item of the tree ({', '.join(item.id for item in tree.conclusions)}); fix the file"
        )


def _rank_order(scored: Iterable[tuple[int, float, float]]) -> float | None:
    from scipy.stats import spearmanr

    by_conclusion: dict[int, list[tuple[float, float]]] = {}
    for conclusion, score, label in scored:
        by_conclusion.setdefault(conclusion, []).append((score, label))
    # Rounded, because equal means of different numbers of items may differ in the last bit.
    judged, labelled = (
        [round(fmean(pair[side] for pair in pairs), 9) for pairs in by_conclusion.values()] for side in (0, 1)
    )
    if len(set(judged)) < 2 or len(set(labelled)) < 2:
        return None
    return float(spearmanr(judged, labelled).statistic)
