"""Sections of reports on explorations: the paper's Tables 3, 4, 6 and 7, its Figs. 3, 4, 6 and 7, and failures.

Scores in tables are times 100. Intervals treat each library as one observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import get_args

from inquitree_gym.exploration.building.schemas import database_of
from inquitree_gym.exploration.failures import Failure, Shown, contradicted, failures, invented, unchecked
from inquitree_gym.exploration.library import PAPERS, LibrarySpec
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.results import ExplorationDetail
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.scores import WEIGHTS, over_libraries, task_value, variance
from inquitree_gym.results.figures import Curves, dots, levels
from inquitree_gym.results.report import Report, Section
from inquitree_gym.results.score import Score
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.results.tables import TableCell, cell, make_table

ExplorationReport = Report[ExplorationDetail]
Played = Sequence[Score[ExplorationDetail]]
SYSTEM = ("system", "category")
CATEGORIES = {"none": "no search", "search": "search", "all": "research agent"}
"""The paper's three groups of systems, by the tools of the agent."""
TOOLS = ("search", "lookup", "open", "find")
"""Tools beside ANSWER."""
SINGLE = ("t1", "t2", "t3", "r_item")
"""Scores that the overall score weighs."""
FEWEST_PAIRS = 3
"""Fewest pairs for which a rank correlation is given."""
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
        for caption, columns in TABLES.items():
            lines[caption].append([*system, *(percent(_estimate(played, name)) for name in columns.values())])
    tables = [make_table(caption, (*SYSTEM, *TABLES[caption]), rows, labels=2) for caption, rows in lines.items()]
    live = sum(not score.detail.repeatable for score in report.scores)
    return Section("types", "Scores by type", report.words("types", live=live), (), tuple(tables))


def by_hops(report: ExplorationReport) -> Section | None:
    """Return the accuracy of T1 by the number of records, as in the paper's Table 6 and Fig. 4. None without T1."""
    tasks = {each.task: each.detail.hops for each in report.scores if each.group == "T1"}
    sizes = sorted(Counter(tasks.values()).items())
    found = {
        system: [(float(hops), _mean(_of_hops(played, hops), lambda each: each.detail.score)) for hops, _ in sizes]
        for system, played in by_system(report).items()
    }
    heads = (*SYSTEM, *(f"{hops} records (n = {count})" for hops, count in sizes))
    lines = [[*system, *(percent(each) for _, each in points)] for system, points in found.items()]
    table = make_table("Accuracy of T1 by records", heads, lines, labels=2)
    chart = levels("hops", ("records", "accuracy of T1"), _labelled(found))
    return Section("hops", "T1 by number of records", report.words("hops"), (chart,), (table,)) if tasks else None


def effort(report: ExplorationReport) -> Section:
    """Return the searches per question by type, as in the paper's Fig. 3, and the calls of every tool."""
    systems, curves, lines = by_system(report), dict[tuple[str, str], list[tuple[float, Estimate]]](), []
    types = sorted({score.group for played in systems.values() for score in played})
    pairs = []
    for system, played in systems.items():
        for place, group in enumerate(types):
            if of_type := [score for score in played if score.group == group]:
                searches = _mean(of_type, lambda each: each.detail.searches)
                curves.setdefault(system, []).append((float(place), searches))
                calls = (fmean(each.detail.calls.get(tool, 0) for each in of_type) for tool in TOOLS)
                lines.append([*system, group, searches, *calls])
                pairs.append((searches.mean or 0.0, fmean(each.detail.score or 0.0 for each in of_type)))
    chart = levels(
        "searches", ("type", "searches per question"), _labelled(curves), share=False, names=types, joined=False
    )
    heads = (*SYSTEM, "type", "searches", *map(str.upper, TOOLS))
    table = make_table("Calls per question", heads, lines, labels=3)
    words = report.words("effort", rho=_rank_correlation(pairs), pairs=len(pairs))
    return Section("effort", "Searches and other calls", words, (chart,), (table,))


def repeated(report: ExplorationReport) -> Section | None:
    """Return mean and variance of the scores over repeats, as in the paper's Table 7. None if nothing was repeated.

    Each seed is a repeat. One that lacks a task of its system is left out.
    """
    columns = TABLES["Scores by type"]
    means, variances = [], list[list[object]]()
    for system, played in by_system(report).items():
        tasks = {score.task for score in played}
        by_seed = [[each for each in played if each.seed == seed] for seed in sorted({each.seed for each in played})]
        whole = [repeat for repeat in by_seed if {each.task for each in repeat} == tasks]
        if len(whole) > 1:
            found = [[_estimate(repeat, name).mean for repeat in whole] for name in columns.values()]
            points = [[100 * value for value in values if value is not None] for values in found]
            means.append([*system, len(whole), *(fmean(each) if each else None for each in points)])
            variances.append([*system, len(whole), *map(variance, points)])
    rows = [[each for each in column if isinstance(each, float)] for column in list(zip(*variances, strict=True))[3:]]
    variances.append(["mean over systems", "", None, *(fmean(each) if each else None for each in rows)])
    tables = tuple(
        make_table(f"{name} over repeats", (*SYSTEM, "repeats", *columns), lines, labels=2)
        for name, lines in (("Mean", means), ("Variance", variances))
    )
    return Section("repeats", "Repeats", report.words("repeats"), (), tables) if means else None


def sources(report: ExplorationReport) -> Section | None:
    """Return databases and fields of the tasks, as in the paper's Figs. 6 and 7, and the pages opened of each database.

    None without a task whose library this package builds.
    """
    tasks = {score.task: task for score in report.scores if (task := _task(report, score))}
    counts = Counter(task.kind for task in tasks.values())
    shares: dict[str, dict[str, dict[str, float]]] = {"databases": {}, "fields": {}}
    for task in sorted(tasks.values(), key=_library_first):
        places = dict.fromkeys(each.document for each in task.evidence)
        papers = [each for each in places if database_of(each) == PAPERS]
        known = local_library(task.library).library.papers if papers else {}
        asked = {"databases": {*map(database_of, places)}, "fields": {known[each].science for each in papers}}
        for name, found in asked.items():
            for each in found:
                row = shares[name].setdefault(each, {})
                row[task.kind] = row.get(task.kind, 0.0) + 1 / counts[task.kind]
    charts = tuple(
        dots(
            name, f"share of the tasks of a type with gold in these {name}", dict(sorted(rows.items())), sorted(counts)
        )
        for name, rows in shares.items()
        if rows
    )
    opened = {
        system: [score.detail.shown for score in played if _task(report, score)]
        for system, played in by_system(report).items()
    }
    pages = {
        system: Counter(database_of(name) for shown in found for name, _ in shown)
        for system, found in opened.items()
        if found
    }
    names = sorted(set().union(*pages.values()))
    lines = [[*system, *(found[name] / len(opened[system]) for name in names)] for system, found in pages.items()]
    table = make_table("Pages opened per question", (*SYSTEM, *names), lines, labels=2)
    return Section("sources", "Databases and fields", report.words("sources"), charts, (table,)) if tasks else None


def failed(report: ExplorationReport) -> Section | None:
    """Return how often each failure occurs. None if nothing failed in a library of this package."""
    names, lines = get_args(Failure), []
    for system, found in _failures(report).items():
        shares = (
            percent(over_libraries([(1.0, [(library, float(name in each)) for library, each in found])]))
            for name in names
        )
        lines.append([*system, len(found), *shares])
    heads = (*SYSTEM, "episodes", *(name.replace("_", " ") for name in names))
    table = make_table("Failures", heads, lines, labels=2)
    return Section("failures", "Failures", report.words("failures"), (), (table,)) if lines else None


def _task(report: ExplorationReport, score: Score[ExplorationDetail]) -> ExplorationTask | None:
    """Return the task of an episode in a fictional library. None for another source, which has not the same facts."""
    found = (run.tasks.get((report.kind, score.task)) for run in report.runs)
    task: ExplorationTask | None = next(filter(None, found), None)
    own = task is not None and type(task.library) is LibrarySpec and score.detail.provider == task.library.name
    return task if own else None


def _library_first(task: ExplorationTask) -> tuple[str, str]:
    """Return the key of an order in which every library is built once."""
    return task.library.name, task.id


def _failures(report: ExplorationReport) -> dict[tuple[str, str], list[tuple[str, tuple[Failure, ...]]]]:
    """Return library and failures of every episode below 1 whose pages are known, by agent and category."""
    episodes = [
        (system, score.detail, given, task)
        for system, played in by_system(report).items()
        for score in played
        if (given := score.detail.grade) is not None and given.score != 1 and (task := _task(report, score))
    ]
    named = {}
    for place, (_, detail, given, task) in sorted(enumerate(episodes), key=lambda each: _library_first(each[1][3])):
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
        named[place] = failures(detail.answer, given, shown)
    found: dict[tuple[str, str], list[tuple[str, tuple[Failure, ...]]]] = {}
    for place, (system, detail, *_) in enumerate(episodes):
        found.setdefault(system, []).append((detail.library, named[place]))
    return found


def _of_hops(played: Played, hops: int) -> Played:
    return [score for score in played if score.group == "T1" and score.detail.hops == hops]


def _mean(played: Played, of: Callable[[Score[ExplorationDetail]], float | None]) -> Estimate:
    """Return the mean of what episodes have, with an interval over libraries."""
    values = ((each.detail.library, of(each)) for each in played)
    return over_libraries([(1.0, [(library, value) for library, value in values if value is not None])])


def _estimate(played: Played, name: str) -> Estimate:
    """Return a score of a system: of `scores.Scores` or of its T4, as a share."""
    terms = zip(WEIGHTS["eq8"], SINGLE, strict=True) if name == "overall" else [(1.0, name)]
    return over_libraries([
        (weight, [(each.detail.library, value) for each in played if each.detail.grade is not None
                  and (value := task_value(each.detail.grade, term)) is not None])
        for weight, term in terms
    ])  # fmt: skip


def _labelled(found: Mapping[tuple[str, str], Sequence[tuple[float, Estimate]]]) -> Curves:
    """Return curves by agent, with the category where the report has several."""
    several = len({category for _, category in found}) > 1
    return {f"{agent}, {category}" if several else agent: points for (agent, category), points in found.items()}


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's ρ. None for fewer than three pairs, or where one side does not vary."""
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    if len(pairs) < FEWEST_PAIRS or any(len(set(side)) == 1 for side in sides):
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(sides[0], sides[1]).statistic)


def percent(found: Estimate) -> TableCell:
    """Return the cell of a share and its interval, times 100."""
    mean, low, high = (None if each is None else 100 * each for each in found[:3])
    if mean is None:
        return cell(None)
    interval = "" if low is None or high is None else f"[{low:z.1f}, {high:z.1f}]"
    return TableCell(f"{mean:z.2f}", interval, value=found._replace(mean=mean, low=low, high=high))
