"""The page of ProjectionBench: Markdown and a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from inquitree_gym.errors import require
from inquitree_gym.projection.judges.alignment import projection_score
from inquitree_gym.projection.judges.local import PROJECTION_SETTINGS
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.results.cutoff import load_models, parse_date, side_of
from inquitree_gym.results.statistics import clustered_mean
from research.agreement import two_digits
from research.kappa import cohen_kappa
from research.projection.crossval import kappa
from research.projection.measures import SHARES, Composed, Judged, Slice
from research.projection.projections import WRITTEN_KINDS, ProjectionSet

TEMPLATE = Path(__file__).parents[1] / "templates" / "projectionbench.md"
RATINGS = (1, 0, -1)
LEAST_NAMED = 0.5
"""Smallest F1 of a composed text at which the page names its paper."""


PERFECT_AT_LEAST = 0.85
_AT_MOST = {"reversed": 0.10, "hedged": 0.10}
ORDERED_PAPERS = 17
LEAST_KAPPA = 0.65
LEAST_CORRELATION = 0.95
WHOLE_AT_LEAST = 0.8
COMPOSED_BOUNDS = (
    ("claims, oracle", 1.0, 1.0), ("claims, reversed", 0.0, 0.0), ("empty", 0.0, 0.0), ("outcome", 0.9, 1.0),
    ("other-paper", 0.0, 0.05), ("question", 0.0, 0.05), ("injected", 0.0, 0.05),
)  # fmt: skip
"""Kind of a composed text, and the bounds of its mean F1."""


class ProjectionEvidence(NamedTuple):
    """All measurements on the page."""

    sets: list[ProjectionSet]
    judged: list[Judged]
    """Labelled projections, judged with thresholds and weights chosen on the other papers."""
    shipped: list[Judged]
    """The same projections, judged with the shipped settings."""
    composed: list[Composed]
    slices: list[Slice]


def write_report(found: ProjectionEvidence, folder: Path) -> Path:
    """Write ``projectionbench.md`` and its figure into ``folder``. Return the page.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    from jinja2 import Environment, StrictUndefined

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    _draw_slices(found.slices, folder / "figures" / "projection-slices.svg")
    # Markdown, not HTML, from our own template: nothing to escape.
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = folder / "projectionbench.md"
    page.write_text(template.render(_values(found)) + "\n", encoding="utf-8")
    return page


def _values(found: ProjectionEvidence) -> dict[str, Any]:
    written = [row for row in found.judged if row.projection.kind in WRITTEN_KINDS]
    played = [row for row in found.judged if row.projection.kind == "played"]
    twice = list(_second_labels(found.sets))
    return {
        "kappa": two_digits(kappa(found.judged)),
        "kappa_shipped": two_digits(kappa(found.shipped)),
        "kappa_written": two_digits(kappa(written)),
        "kappa_played": two_digits(kappa(played)),
        "ordered": ordered_papers(found.judged),
        "papers": len(found.sets),
        "projections": len(found.judged),
        "kind_table": _table(["projections", "n", "F1", "F1, shipped", "F1 of the labels"], _kind_rows(found)),
        "confusion_table": _table(["label", "rated same", "rated 0", "rated opposed"], _confusion(found.judged)),
        "composed_table": _table(["text", "F1", "lowest", "highest", "papers at 0.5 or more"], _composed(found)),
        "share_table": _table(
            [f"{share:.0%}" for share in SHARES], [[f"{mean:.3f}" for mean in slice_means(found.slices)]]
        ),
        "spearman": f"{slice_correlation(found.slices):.3f}",
        "cutoff_table": _table(["papers before it", "models, with their cutoffs"], _cutoffs(found.sets)),
        "targets": list(_targets(found)),
        "labelled_twice": len(twice),
        "second_kappa": two_digits(cohen_kappa(twice)),
        "settings": ", ".join(f"{name} {value:g}" for name, value in PROJECTION_SETTINGS._asdict().items()),
    }


def _targets(found: ProjectionEvidence) -> Iterator[tuple[str, str, bool]]:
    """Yield every target, the value that was measured, and whether it reaches the target."""
    f1 = {kind: fmean(row.f1 for row in found.judged if row.projection.kind == kind) for kind in ("perfect", *_AT_MOST)}
    yield f"perfect ≥ {PERFECT_AT_LEAST:.2f}", f"{f1['perfect']:.3f}", f1["perfect"] >= PERFECT_AT_LEAST
    for kind, bound in _AT_MOST.items():
        yield f"{kind} ≤ {bound:.2f}", f"{f1[kind]:.3f}", f1[kind] <= bound
    ordered = ordered_papers(found.judged)
    yield f"perfect > half > reversed on ≥ {ORDERED_PAPERS} papers", str(ordered), ordered >= ORDERED_PAPERS
    agreement = kappa(found.judged) or 0.0
    yield f"κ ≥ {LEAST_KAPPA:.2f}", f"{agreement:.2f}", agreement >= LEAST_KAPPA
    correlation, (*_, whole) = slice_correlation(found.slices), slice_means(found.slices)
    yield f"slices: Spearman ≥ {LEAST_CORRELATION:.2f}", f"{correlation:.3f}", correlation >= LEAST_CORRELATION
    yield f"slices: ≥ {WHOLE_AT_LEAST:.1f} at the whole text", f"{whole:.3f}", whole >= WHOLE_AT_LEAST
    for kind, low, high in COMPOSED_BOUNDS:
        value = fmean(each.f1 for each in found.composed if each.kind == kind)
        told = f"≥ {low:.2f}" if low else f"≤ {high:.2f}"
        yield f"{kind} {told}", f"{value:.3f}", low <= value <= high


def ordered_papers(rows: Sequence[Judged]) -> int:
    """Return the number of papers on which F1 falls from the perfect to the half to the reversed projection."""
    f1 = {(row.tree, row.projection.kind): row.f1 for row in rows}
    papers = dict.fromkeys(row.tree for row in rows)
    return sum(f1[name, "perfect"] > f1[name, "half"] > f1[name, "reversed"] for name in papers)


def slice_correlation(slices: Sequence[Slice]) -> float:
    """Return Spearman's correlation of the share of a text with the mean F1 over papers."""
    from scipy.stats import spearmanr

    return float(spearmanr(SHARES, slice_means(slices)).statistic)


def slice_means(slices: Sequence[Slice]) -> list[float]:
    """Return the mean F1 over papers by share."""
    return [fmean(each.f1 for each in slices if each.share == share) for share in SHARES]


def _kind_rows(found: ProjectionEvidence) -> Iterator[list[object]]:
    for group in dict.fromkeys(row.projection.group for row in found.judged):
        rows = [row for row in found.judged if row.projection.group == group]
        shipped = fmean(row.f1 for row in found.shipped if row.projection.group == group)
        mean = clustered_mean((row.tree, row.f1) for row in rows)
        yield [group, len(rows), mean, f"{shipped:.3f}", f"{fmean(map(_label_f1, rows)):.3f}"]


def _label_f1(row: Judged) -> float:
    """Return the F1 of the labels, without extraneous claims."""
    return float(projection_score(np.array(row.labels, float), np.zeros(0)).f1)


def _confusion(rows: Sequence[Judged]) -> Iterator[list[object]]:
    counts = Counter(pair for row in rows for pair in zip(row.labels, row.ratings, strict=True))
    for label, name in zip(RATINGS, ("same", "other or none", "opposed"), strict=True):
        yield [name, *(counts[label, rating] for rating in RATINGS)]


def _composed(found: ProjectionEvidence) -> Iterator[list[object]]:
    for kind in dict.fromkeys(each.kind for each in found.composed):
        rows = [each for each in found.composed if each.kind == kind]
        values = [each.f1 for each in rows]
        high = [each.tree for each in rows if each.f1 >= LEAST_NAMED]
        named = f"{len(high)} of {len(rows)}" if len(high) > len(rows) / 2 else ", ".join(high) or "none"
        yield [kind, *(f"{value:.3f}" for value in (fmean(values), min(values), max(values))), named]


def _cutoffs(sets: Sequence[ProjectionSet]) -> Iterator[list[object]]:
    published = [parse_date(load_task(labelled.tree).paper.published.date) for labelled in sets]
    models: dict[int, list[str]] = {}
    for model in load_models():
        before = sum(side_of(date, model.window) == "before" for date in published)
        models.setdefault(before, []).append(f"{model.name} ({model.written_cutoff})")
    for before in sorted(models):
        yield [f"{before} of {len(published)}", ", ".join(models[before])]


def _second_labels(sets: Sequence[ProjectionSet]) -> Iterator[tuple[str, str]]:
    """Yield both labels of every claim that has two, with "other" and "none" as one."""
    same = {"none": "other"}
    for each in sets:
        for projection in each.projections:
            for claim, second in projection.second.items():
                first = projection.labels[claim]
                yield same.get(first, first), same.get(second, second)


def _draw_slices(slices: Sequence[Slice], file: Path) -> None:
    """Draw F1 against the share of the text. Equal content gives equal bytes."""
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": file.name}):
        canvas = require("matplotlib.figure", "plots").Figure(figsize=(7, 4.2), layout="constrained")
        axes = canvas.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        for name in dict.fromkeys(each.tree for each in slices):
            axes.plot(SHARES, [each.f1 for each in slices if each.tree == name], color="#2b6cb0", alpha=0.25)
        axes.plot(SHARES, slice_means(slices), color="black", linewidth=2.5, marker="o", label="mean over papers")
        axes.set(xlabel="share of the paper's text", ylabel="F1", ylim=(-0.03, 1.03))
        axes.legend(frameon=False)
        canvas.savefig(file, facecolor="white", metadata={"Date": None})


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])
