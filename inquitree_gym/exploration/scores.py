"""Scores of a benchmark of tasks, in the paper's letters (SciExplore, 4.1, 5.2, A.5 and A.6).

Every score is a share; tables print it times 100. Accuracy, "tasks", "eq8" and items with their key are the readings
that hold unless another is asked for. `f_em` is no symmetric F: an omission costs half an error.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from inquitree_gym.exploration.gold import Frozen
from inquitree_gym.exploration.graders import AnswerGrade, CitationGrade, Grade, Items, TableGrade
from inquitree_gym.results.statistics import FEWEST_TREES, Estimate, quantile

Single = Literal["accuracy", "f_em"]
"""Score of T1 and T2."""
Mean = Literal["tasks", "slots"]
"""Units over which F of T3 is averaged."""
Weights = Literal["eq8", "table"]
"""Weights of the overall score: those of SciExplore's Eq. 8, or those that its Table 3 follows, which sum to 1.2."""
WEIGHTS: dict[Weights, tuple[float, float, float, float]] = {"eq8": (0.2, 0.2, 0.3, 0.3), "table": (0.2, 0.2, 0.4, 0.4)}


class Readings(Frozen):
    """Choices where the paper can be read in two ways."""

    single: Single = "accuracy"
    mean: Mean = "tasks"
    items: Items = "all"
    weights: Weights = "eq8"


class TableScores(Frozen):
    """Means over the T4 tasks. Recalls are the paper's scores, the others show what they hide."""

    r_item: float
    r_row: float
    key_recall: float
    format_accuracy: float
    item_precision: float
    item_f1: float
    row_precision: float
    row_f1: float


class Scores(Frozen):
    """Scores of a system. None for kinds that were not played."""

    t1: float | None
    t2: float | None
    t3: float | None
    t4: TableScores | None
    overall: float | None
    """Weighted sum of the kinds, T4 by item. None unless all four were played; it is never renormalised."""


def accuracy(correct: int, incorrect: int, not_attempted: int) -> float:
    """Return C / (C + I + N)."""
    total = correct + incorrect + not_attempted
    return correct / total if total else 0.0


def f_em(correct: int, incorrect: int, not_attempted: int) -> float:
    """Return 2C / (2C + 2I + N), the F of SimpleQA.

    >>> f_em(9, 0, 30)
    0.375
    """
    total = 2 * correct + 2 * incorrect + not_attempted
    return 2 * correct / total if total else 0.0


def f_cite(grades: Sequence[CitationGrade], mean: Mean = "tasks") -> float:
    """Return the mean F of slots: over the slots of a task and then over tasks, or over all slots."""
    if mean == "tasks":
        return statistics.fmean(grade.score for grade in grades)
    return statistics.fmean(slot.f1 for grade in grades for slot in grade.slots)


TABLE_VALUES: Mapping[str, Callable[[TableGrade, Items], float]] = {
    "r_item": lambda grade, items: grade.items(items).recall,
    "r_row": lambda grade, _: grade.rows.recall,
    "key_recall": lambda grade, _: grade.keys.recall,
    "format_accuracy": lambda grade, _: float(grade.format),
    "item_precision": lambda grade, items: grade.items(items).precision,
    "item_f1": lambda grade, items: grade.items(items).f1,
    "row_precision": lambda grade, _: grade.rows.precision,
    "row_f1": lambda grade, _: grade.rows.f1,
}
"""Value of one T4 task by field of `TableScores`."""


def table_scores(grades: Sequence[TableGrade], items: Items = "all") -> TableScores:
    """Return the means over T4 tasks."""
    means = {name: statistics.fmean(of(grade, items) for grade in grades) for name, of in TABLE_VALUES.items()}
    return TableScores(**means)


def task_value(given: Grade, name: str) -> float | None:
    """Return what one task adds to a score: "t1", "t2", "t3" or a field of `TableScores`. None if it adds nothing."""
    if isinstance(given, TableGrade):
        return TABLE_VALUES[name](given, "all") if name in TABLE_VALUES else None
    return given.score if given.kind.lower() == name else None


def over_libraries(terms: Sequence[tuple[float, Sequence[tuple[str, float]]]]) -> Estimate:
    """Return a weighted sum of means over tasks, with an interval that treats each library as one observation.

    Each term is a weight with (library, value) pairs. The interval is ± t √(G / (G − 1) Σ e²) with G − 1 degrees of
    freedom, where e is the weighted sum of the deviations of one of the G libraries, each divided by the number of
    values of its term. There is none below `FEWEST_TREES` libraries, and no mean if a term has no value.
    """
    libraries: dict[str, float] = defaultdict(float)
    mean = 0.0
    for weight, pairs in terms:
        if not pairs:
            return Estimate(None, None, None, 0, 0)
        middle = statistics.fmean(value for _, value in pairs)
        mean += weight * middle
        for library, value in pairs:
            libraries[library] += weight * (value - middle) / len(pairs)
    episodes, count = sum(len(pairs) for _, pairs in terms), len(libraries)
    if count < FEWEST_TREES:
        return Estimate(mean, None, None, count, episodes)
    half = quantile(count - 1) * math.sqrt(count / (count - 1) * sum(each**2 for each in libraries.values()))
    return Estimate(mean, mean - half, mean + half, count, episodes)


def overall(kinds: Sequence[float | None], weights: Weights = "eq8") -> float | None:
    """Return the weighted sum of the scores of T1 to T4. None if one of them is."""
    pairs = zip(WEIGHTS[weights], kinds, strict=True)
    terms = [weight * score for weight, score in pairs if score is not None]
    return sum(terms) if len(terms) == len(kinds) else None


def variance(repeats: Sequence[float]) -> float | None:
    """Return the variance of a score over repeats of the benchmark, by n − 1. None for fewer than two."""
    return statistics.variance(repeats) if len(repeats) > 1 else None


def scores(grades: Iterable[Grade], readings: Readings | None = None) -> Scores:
    """Return the scores of a system from the grades of its tasks. Leave out tasks that have none."""
    readings = readings or Readings()
    every = list(grades)
    t1, t2 = (_single([one for one in every if one.kind == kind], readings.single) for kind in ("T1", "T2"))
    cited = [one for one in every if isinstance(one, CitationGrade)]
    tables = [one for one in every if isinstance(one, TableGrade)]
    t3 = f_cite(cited, readings.mean) if cited else None
    t4 = table_scores(tables, readings.items) if tables else None
    total = overall((t1, t2, t3, t4.r_item if t4 else None), readings.weights)
    return Scores(t1=t1, t2=t2, t3=t3, t4=t4, overall=total)


def _single(grades: Sequence[Grade], single: Single) -> float | None:
    """Return the score of T1 or T2. None without a task."""
    counts = Counter(one.verdict for one in grades if isinstance(one, AnswerGrade))
    score = accuracy if single == "accuracy" else f_em
    return score(counts["correct"], counts["incorrect"], counts["not_attempted"]) if counts else None
