"""Tables about the local judge on the validity page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from inquitree_gym.results.statistics import Estimate, clustered_mean
from research.judge.conclusions import SCORES, PlayedConclusions
from research.judge.crossval import JudgedItem, Sense
from research.judge.gaming import BOUNDS
from research.judge_calibration import two_digits
from research.kappa import cohen_kappa

Gaming = Mapping[tuple[str, str], float]


class Fit(NamedTuple):
    """Fit of verdicts to labels."""

    items: int
    error: Estimate
    """Mean absolute difference of S per item, over trees."""
    kappa: float | None
    """Cohen's κ on full, part, wrong and nothing. None if all labels are the same."""
    judged: float
    """Mean S by the judge."""
    labelled: float
    """Mean S by the labels."""


def fit(items: Sequence[JudgedItem]) -> Fit:
    """Compare verdicts with labels."""
    differences = ((each.tree, abs(SCORES[each.verdict] - SCORES[each.label])) for each in items)
    return Fit(
        items=len(items),
        error=clustered_mean(differences),
        kappa=cohen_kappa((each.verdict, each.label) for each in items),
        judged=fmean(SCORES[each.verdict] for each in items),
        labelled=fmean(SCORES[each.label] for each in items),
    )


def fit_rows(items: Sequence[JudgedItem]) -> list[list[str]]:
    """Return a row for all items, those without doubt, and those of each kind of author, style and tree."""
    groups = [
        ("all", items),
        ("label sure", [each for each in items if each.sure]),
        ("players' own conclusions", [each for each in items if each.style == "own"]),
        ("other authors", [each for each in items if each.style != "own"]),
    ]
    for field in ("style", "author", "tree"):
        values = dict.fromkeys(getattr(each, field) for each in items)
        groups += [(f"{field} {value}", [each for each in items if getattr(each, field) == value]) for value in values]
    return [[name, *_fit_cells(chosen)] for name, chosen in groups]


def label_fit(sets: Iterable[PlayedConclusions]) -> tuple[int, float, float | None]:
    """Return the number of items with two labels, the share of equal ones, and Cohen's κ."""
    pairs = [
        (label, conclusion.second[item])
        for each in sets
        for conclusion in each.conclusions
        if conclusion.second
        for item, label in conclusion.items.items()
    ]
    return len(pairs), fmean(one == other for one, other in pairs), cohen_kappa(pairs)


def sense_auc(senses: Sequence[Sense]) -> float:
    """Return the AUC with which the sense tells right claims from wrong ones."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score([each.right for each in senses], [each.sense for each in senses]))


def gaming_rows(left_out: Gaming, shipped: Gaming) -> Iterator[list[str]]:
    """Yield rows of strategies: kind, names, bound, mean S with and without the tree in the training of the adapter.

    Strategies of one kind with the same figures share a row.
    """
    names: dict[tuple[str, str, str], list[str]] = {}
    for (kind, name), seen in shipped.items():
        unseen = left_out.get((kind, name))
        place = kind, "–" if unseen is None else f"{unseen:.3f}", f"{seen:.3f}"
        names.setdefault(place, []).append(name)
    for (kind, *figures), same in names.items():
        low, high = BOUNDS.get(kind, (0.0, 1.0))
        bound = {(0.0, 1.0): "–"}.get((low, high), f"≥ {low:.2f}" if low else f"≤ {high:.2f}")
        yield [kind, " · ".join(same), bound, *figures]


def _fit_cells(items: Sequence[JudgedItem]) -> list[str]:
    found = fit(items)
    return [str(found.items), str(found.error), *map(two_digits, (found.kappa, found.judged, found.labelled))]
