"""Measure how the reader reads proposals by authors who had no part in it, and rules that might read them better.

``python -m research.blind`` prints shares by author and tree and over thresholds, the agreement of the two labellers,
and rules that are fitted on all trees but one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from inquitree_gym.cli import output, run_app
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.local import MINILM_THRESHOLD, READER_THRESHOLD, AdaptedMiniLM, file_digest
from inquitree_gym.kinds import kind
from inquitree_gym.runs.study import ALL
from research.blind.labels import label_agreement
from research.blind.readings import SECOND_LABELS, SHARES, Reading, blind_sets, read_blind, shares
from research.blind.rules import (
    TriedRule,
    balances,
    by_margin,
    by_outside_class,
    by_similarity,
    gain,
    separation,
    try_rule,
)

PLAIN = "all-MiniLM-L6-v2"
SHIPPED = {DEFAULT_EMBEDDER: READER_THRESHOLD, PLAIN: MINILM_THRESHOLD}
"""Thresholds of the package."""
THRESHOLDS = (0.45, 0.50, 0.55, 0.60, 0.65, 0.70)
TRIED = ("understood", "misread", "foreign idea taken", "design understood", "design misread", "foreign design taken")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def measure(
    adapter: Annotated[
        Path | None, typer.Option(help="File of an adapter that python -m research.reader wrote.")
    ] = None,
    papers: Annotated[str, typer.Option(help="all, or ids and paper numbers, comma-separated.")] = ALL,
) -> None:
    """Print all tables."""
    readers = {name: load_embedder(name) for name in SHIPPED}
    if adapter is not None:
        readers[DEFAULT_EMBEDDER] = AdaptedMiniLM(adapter, file_digest(adapter))
    about = kind("inquiry").tasks.expand(output.split(papers))
    for title, rows in tables({name: read_blind(embedder, about) for name, embedder in readers.items()}):
        output.print_table(title, rows)


def tables(readings: Mapping[str, Sequence[Reading]]) -> Iterator[tuple[str, Iterable[list[str]]]]:
    """Return titles and rows of all tables, from the readings by the shipped reader and by others."""
    shipped = readings[DEFAULT_EMBEDDER]
    yield "Agreement of the labellers", _agreement_rows()
    yield f"Read by {DEFAULT_EMBEDDER} at τ = {READER_THRESHOLD}", _group_rows(shipped)
    yield f"Read by {DEFAULT_EMBEDDER} over thresholds", _threshold_rows(shipped)
    yield "Rules fitted on the other trees", _rule_rows(readings)
    yield f"Misread at τ = {READER_THRESHOLD}", _misread_rows(shipped)


def _agreement_rows() -> Iterator[list[str]]:
    yield ["texts", "n", "equal", "κ"]
    for name, found in label_agreement(blind_sets(), SECOND_LABELS).items():
        yield [name, str(found.texts), f"{found.same:.3f}", f"{found.kappa:.3f}"]


def _group_rows(readings: Sequence[Reading]) -> Iterator[list[str]]:
    yield ["proposals", "n", *(share.name for share in SHARES)]
    groups: dict[str, list[Reading]] = {"all": [*readings], "label sure": [r for r in readings if r.found.sure]}
    for name in ("origin", "author", "tree"):
        for each in readings:
            value = getattr(each.found, name)
            groups.setdefault(f"author {value}" if name == "author" else value, []).append(each)
    for name, group in groups.items():
        yield [name, str(len(group)), *_cells(group, _above(group, READER_THRESHOLD))]


def _threshold_rows(readings: Sequence[Reading]) -> Iterator[list[str]]:
    yield ["τ", *(share.name for share in SHARES)]
    for threshold in THRESHOLDS:
        yield [f"{threshold:.2f}", *_cells(readings, _above(readings, threshold))]


def _rule_rows(readings: Mapping[str, Sequence[Reading]]) -> Iterator[list[str]]:
    yield ["reader", "rule", "τ", *TRIED, "gain at the topic", "gain at a study", "AUC topic", "AUC study"]
    shipped = readings[DEFAULT_EMBEDDER]
    than = [balances(shipped, _above(shipped, READER_THRESHOLD), is_study=place) for place in (False, True)]
    for reader, rows in readings.items():
        for name, rule in _rules(rows, SHIPPED[reader]).items():
            cells = dict(zip([share.name for share in SHARES], _cells(rows, rule.accepted), strict=True))
            gains = [gain(balances(rows, rule.accepted, is_study=place), than[place]) for place in (False, True)]
            areas = [separation(rows, rule.scores, is_study=place) for place in (False, True)]
            bounds = ", ".join(f"{place} {low:.3f}–{high:.3f}" for place, (low, high) in rule.thresholds.items())
            shown = [*(cells[share] for share in TRIED), *map(str, gains), *(f"{area:.3f}" for area in areas)]
            yield [reader, name, bounds, *shown]


def _rules(readings: Sequence[Reading], threshold: float) -> dict[str, TriedRule]:
    similarities = [each.found.similarity for each in readings]
    return {
        "shipped τ": TriedRule(_above(readings, threshold), {"both": (threshold, threshold)}, similarities),
        "one τ": try_rule(readings, by_similarity, "both"),
        "a τ for topics, a τ for studies": try_rule(readings, by_similarity, "topic", "study"),
        "similarity and margin": try_rule(readings, by_margin, "topic", "study"),
        "outside class": try_rule(readings, by_outside_class, "topic", "study"),
    }


def _misread_rows(readings: Sequence[Reading]) -> Iterator[list[str]]:
    yield ["tree", "read as", "means", "similarity", "text"]
    for found in (each.found for each in readings):
        if found.kind == "right" and not found.right_node and found.similarity >= READER_THRESHOLD:
            yield [found.tree, found.nearest, found.target, f"{found.similarity:.3f}", found.text]


def _above(readings: Sequence[Reading], threshold: float) -> list[bool]:
    return [each.found.similarity >= threshold for each in readings]


def _cells(readings: Sequence[Reading], accepted: Sequence[bool]) -> list[str]:
    return [str(share) for share in shares(zip((each.found for each in readings), accepted, strict=True))]


if __name__ == "__main__":
    run_app(app)
