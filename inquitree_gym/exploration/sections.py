"""Sections of reports on explorations: the paper's Tables 3, 4 and 6, and failures. Scores are times 100."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from inquitree_gym.exploration.failures import Failure, Shown, contradicted, failures, invented, unchecked
from inquitree_gym.exploration.graders import Grade
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.results import ExplorationDetail
from inquitree_gym.exploration.scores import scores
from inquitree_gym.results.report import Report, Section
from inquitree_gym.results.score import Score
from inquitree_gym.results.tables import TableCell, make_table

ExplorationReport = Report[ExplorationDetail]
Played = Sequence[Score[ExplorationDetail]]
SYSTEM = ("system", "category")
CATEGORIES = {"none": "no search", "search": "search", "all": "research agent"}
"""The paper's three groups of systems, by the tools of the agent."""
TABLES: Mapping[str, Mapping[str, str]] = {
    "Scores by type": {
        "T1": "t1", "T2": "t2", "T3": "t3", "T4 item": "r_item", "T4 row": "r_row", "Overall": "overall",
    },
    "Format and keys of T4": {"Format_Acc": "format_accuracy", "PK recall": "key_recall"},
    "Precision and F1 of T4": {
        "item precision": "item_precision", "item F1": "item_f1", "row precision": "row_precision", "row F1": "row_f1",
    },
}  # fmt: skip
"""Score of each column by table: of `scores.Scores`, or of its T4."""


def by_system(report: ExplorationReport) -> dict[tuple[str, str], Played]:
    """Return the scores that have a grade by agent and category, those with the fewest tools first."""
    found: dict[tuple[str, str], list[Score[ExplorationDetail]]] = {}
    for tools, category in CATEGORIES.items():
        for score in report.scores:
            if score.cell["tools"] == tools and score.detail.grade is not None:
                found.setdefault((report.name(score), category), []).append(score)
    return dict(found)


def by_type(report: ExplorationReport) -> Section:
    """Return the scores by type of task, as in the paper's Tables 3 and 4, and what the recalls of T4 hide."""
    lines: dict[str, list[list[object]]] = {caption: [] for caption in TABLES}
    for system, played in by_system(report).items():
        found = scores(_grades(played)).model_dump()
        found |= found["t4"] or {}
        for caption, columns in TABLES.items():
            lines[caption].append([*system, *(percent(found.get(name)) for name in columns.values())])
    tables = [make_table(caption, (*SYSTEM, *TABLES[caption]), rows, labels=2) for caption, rows in lines.items()]
    return Section("types", "Scores by type", report.words("types"), (), tuple(tables))


def by_hops(report: ExplorationReport) -> Section | None:
    """Return the accuracy of T1 by the number of records, as in the paper's Table 6. None without T1."""
    tasks = {each.task: each.detail.hops for each in report.scores if each.group == "T1"}
    sizes = sorted(Counter(tasks.values()).items())
    lines = [
        [*system, *(percent(scores(_grades(played, hops)).t1) for hops, _ in sizes)]
        for system, played in by_system(report).items()
    ]
    heads = (*SYSTEM, *(f"{hops} records (n = {count})" for hops, count in sizes))
    table = make_table("Accuracy of T1 by records", heads, lines, labels=2)
    return Section("hops", "T1 by number of records", report.words("hops"), (), (table,)) if tasks else None


def failed(report: ExplorationReport) -> Section | None:
    """Return how often each failure occurs. None if nothing failed in a library of this package."""
    names, lines = get_args(Failure), []
    for system, played in by_system(report).items():
        if found := list(_failures(report, played)):
            shares = (percent(sum(name in each for each in found) / len(found)) for name in names)
            lines.append([*system, len(found), *shares])
    heads = (*SYSTEM, "episodes", *(name.replace("_", " ") for name in names))
    table = make_table("Failures", heads, lines, labels=2)
    return Section("failures", "Failures", report.words("failures"), (), (table,)) if lines else None


def _failures(report: ExplorationReport, played: Played) -> Iterator[tuple[Failure, ...]]:
    """Yield the failures of every episode below 1. Without the library nobody knows what its pages said."""
    tasks = {name: task for run in report.runs for (_, name), task in run.tasks.items()}
    for score in played:
        detail, task = score.detail, tasks.get(score.task)
        if detail.grade is None or task is None or detail.grade.score == 1 or detail.provider != task.library.name:
            continue
        library = local_library(task.library).library
        pages = tuple(library.documents[name].pages[page - 1] for name, page in detail.shown)
        shown = Shown(
            max_turns=detail.max_turns,
            searches=detail.searches,
            pages=pages,
            unchecked=unchecked(detail, task, library),
            invented=invented(detail, task, library),
            contradicted=contradicted(detail, task, library),
        )
        yield failures(detail.answer, detail.grade, shown)


def _grades(played: Played, hops: int | None = None) -> list[Grade]:
    """Return the grades, or those of the tasks with a number of records."""
    of_hops = [score.detail for score in played if hops in (None, score.detail.hops)]
    return [detail.grade for detail in of_hops if detail.grade is not None]


def percent(share: float | None) -> TableCell | None:
    """Return the cell of a share, times 100."""
    return None if share is None else TableCell(f"{100 * share:.2f}", value=100 * share)
