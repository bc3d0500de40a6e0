"""How well a judge judges: conclusions of known worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from inquitree_gym.errors import OptionError
from inquitree_gym.judges import Judge, Panelist, Spent, rule_all
from inquitree_gym.scoring.agreement import Agreement, agreement, item_pairs
from inquitree_gym.trees import Tree, load_tree
from research.validity.sets import CalibrationSet

Kind = Literal["perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty"]
KINDS: tuple[Kind, ...] = ("perfect", "partial", "contradicting", "padded", "hedged", "injected", "empty")

Scores = tuple[float | None, ...]
"""S per conclusion item, in tree order; None where it is unscored."""


class Conclusion(BaseModel):
    """A conclusion and the scores that a fair reader gives its items."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    text: str
    expected: dict[str, float]
    """S per conclusion item: 1, 0.6 or 0."""


class ConclusionSet(CalibrationSet):
    """The calibration conclusions of one tree, one of each kind."""

    conclusions: tuple[Conclusion, ...]

    def expected(self, tree: Tree) -> dict[str, Scores]:
        """Return the scores that a fair reader gives, by kind.

        Raises:
            OptionError: a kind is missing, or the items are not those of ``tree``.
        """
        found = {each.kind: each.expected for each in self.conclusions}
        ids = {item.id for item in tree.conclusions}
        if set(found) != set(KINDS) or any(set(scores) != ids for scores in found.values()):
            raise OptionError(
                f"the calibration conclusions of {tree.id} are not one of each kind ({', '.join(KINDS)}) with a score "
                "for every conclusion item; mend the file"
            )
        return {kind: tuple(found[kind][item.id] for item in tree.conclusions) for kind in KINDS}


class Judged(NamedTuple):
    """What a judge made of the conclusions of one tree."""

    tree: str
    scores: Mapping[str, Scores]
    """By kind."""
    expected: Mapping[str, Scores]
    """What a fair reader gives, by kind."""

    @property
    def means(self) -> dict[str, float | None]:
        """Mean score by kind, in [0, 1], over the scored items; None where none was."""
        return {kind: _mean(scores) for kind, scores in self.scores.items()}

    @property
    def error(self) -> float | None:
        """Mean absolute difference to the expected scores, over the scored items of all kinds."""
        pairs = [pair for kind in self.scores for pair in zip(self.scores[kind], self.expected[kind], strict=True)]
        return _mean([None if mine is None or fair is None else abs(mine - fair) for mine, fair in pairs])

    @property
    def unscored(self) -> int:
        """Items of all kinds that were left unscored."""
        return sum(score is None for scores in self.scores.values() for score in scores)

    @property
    def holds(self) -> bool:
        """Whether perfect > partial > contradicting, padded ≤ perfect and injected ≤ empty, with every item scored."""
        means = {kind: mean for kind, mean in self.means.items() if mean is not None}
        if self.unscored or len(means) < len(self.scores):
            return False
        ordered = means["perfect"] > means["partial"] > means["contradicting"]
        return ordered and means["padded"] <= means["perfect"] and means["injected"] <= means["empty"]


class Calibration(NamedTuple):
    """What a judge made of the conclusions of all trees."""

    judge: str
    judged: list[Judged]
    spent: Spent

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


def judge_set(conclusions: ConclusionSet, make_judge: Callable[[Tree], Judge]) -> Judged:
    """Put one tree's conclusions before a judge."""
    tree = load_tree(conclusions.tree)
    judge = make_judge(tree)
    expected = conclusions.expected(tree)
    texts = {each.kind: each.text for each in conclusions.conclusions}
    scores = {str(kind): tuple(verdict.score for verdict in judge.judge(texts[kind])) for kind in KINDS}
    return Judged(tree.id, scores, expected)


async def calibrate(
    sets: Sequence[ConclusionSet],
    panelist: Panelist,
    max_concurrency: int,
    progress: Callable[[str], None],
) -> Calibration:
    """Put the conclusions of all sets before a judge.

    Args:
        sets: one per tree.
        panelist: the judge.
        max_concurrency: conclusions that are judged at the same time.
        progress: told each conclusion once it is judged.

    Raises:
        OptionError: a set is at fault.
        ServiceError: the judge's service will answer no question.
    """
    trees = {each.tree: load_tree(each.tree) for each in sets}
    expected = {each.tree: each.expected(trees[each.tree]) for each in sets}
    keys = [(each.tree, conclusion.kind) for each in sets for conclusion in each.conclusions]
    cases = [(trees[each.tree], conclusion.text) for each in sets for conclusion in each.conclusions]
    rulings = await rule_all(panelist, cases, max_concurrency, lambda index, _: progress(" ".join(keys[index])))
    found = {
        key: tuple(verdict.score for verdict in ruling.verdicts) for key, ruling in zip(keys, rulings, strict=True)
    }
    judged = [Judged(tree, {str(kind): found[tree, kind] for kind in KINDS}, expected[tree]) for tree in trees]
    return Calibration(panelist.name, judged, sum((ruling.spent for ruling in rulings), Spent()))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
