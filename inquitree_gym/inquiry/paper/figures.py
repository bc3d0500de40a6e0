"""Pages of the paper's tables and figures: by the paper's definitions, and with differences and intervals beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.bounds.report import TITLES, bounds_summary, bounds_table, draw_trees
from inquitree_gym.inquiry.bounds.traversal import AgentTurns
from inquitree_gym.inquiry.paper.studies import (
    PRESET,
    PRINTED_CUTOFFS,
    STUDIES,
    Control,
    LevelFigures,
    Target,
    departures,
    level_figures,
    printed_models,
    splits,
)
from inquitree_gym.inquiry.results import CHANGE, LEVEL, MEASURES, EpisodeScore, InquiryDetail
from inquitree_gym.inquiry.vigilance import D_PRIME, FALSE_ALARMS, HITS, SENSITIVITY
from inquitree_gym.results.cutoff import CutoffSplit, ModelDates, find_model, parse_date, player_label, side_of
from inquitree_gym.results.figures import Chart, Curves, bars, levels
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.pages import write_sections
from inquitree_gym.results.report import Report, Section, build_report
from inquitree_gym.results.sections import curve_of
from inquitree_gym.results.statistics import Estimate, paired_difference
from inquitree_gym.results.summary import axis_name, grouped, player_of
from inquitree_gym.results.tables import Table, make_table
from inquitree_gym.results.templating import paragraphs
from inquitree_gym.runs.study import StudyConfig
from inquitree_gym.trees import Tree
from inquitree_gym.trees.catalogue import RESTRICTED

InquiryReport = Report[InquiryDetail]
OURS = ("coverage", "unaided_coverage", "coverage_at_3n", "Q/|C|")
"""Measures of Table 2 with intervals."""
_HEADINGS = {name: axis_name(name) for name in (*OURS, *SENSITIVITY)}
PRINTED = ("coverage", "Q/|C|")
"""Measures of the paper's Table 2 and Figure 4."""
CHARTS = ("coverage", "conclusion")
"""Names of their charts."""
UNDEFINED = "undefined"
"""Relative change of an agent that redid nothing at level 0."""
LEVEL_CHARTS = {
    "redo-change": (CHANGE, "redo frequency − level 0"),
    "hits": (HITS, "fake results redone"),
    "false-alarms": (FALSE_ALARMS, "true results redone"),
}
"""Charts of Figure 3 with intervals: measure and axis by name."""
_AT_LEVELS = ("redo_rate", CHANGE, HITS, FALSE_ALARMS, D_PRIME)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Everything that one page shows."""

    target: Target
    study: StudyConfig | None = None
    """Study behind the page. None for a target that plays nothing."""
    run: ScoredRun | None = None
    models: Sequence[ModelDates] = ()
    """Models with the cutoffs that the package has found."""
    controls: Sequence[Control] = ()
    turns: Sequence[AgentTurns] = ()
    trees: Sequence[Tree] = ()
    """Trees that Table 3 counts on both sides of the cutoffs."""


def _table2(found: Reproduction) -> list[Section]:
    report = _report(found)
    printed = [
        [report.name(row), row.episodes, row.tasks, *(row.estimates[name].mean for name in PRINTED)]
        for row in report.base
    ]
    charts = tuple(
        bars(name, measure, {report.name(row): (row.estimates[measure],) for row in report.base})
        for name, measure in zip(CHARTS, PRINTED, strict=True)
    )
    pairs = list(_differences(report))
    tables = [report.rows_table("Means over trees with intervals", report.base, OURS)]
    if pairs:
        tables.append(make_table("Differences, paired by tree and seed", ("agents", *OURS), pairs, headings=_HEADINGS))
    heads = ("agent", "episodes", "trees", "coverage", "conclusion Q/|C|")
    return [
        Section("printed", "As the paper defines it", words_of("table2_printed"), (),
                (make_table("Means over papers and runs", heads, printed),)),
        Section("ours", "With intervals and differences", words_of("table2_ours"), charts, tuple(tables)),
    ]  # fmt: skip


def _fig3(found: Reproduction) -> list[Section]:
    report = _report(found)
    figures = level_figures(report.scores)
    printed = [
        [
            report.names[each.player], str(each.level), int(each.counts.results), each.counts.redo_rate,
            _percent(each.change, bool(each.level and each.baseline.results)), int(each.counts.fakes),
            each.counts.hit_rate,
        ]
        for each in figures
    ]  # fmt: skip
    charts = tuple(
        levels(name, ("fake level", axis), _by_level(report, measure), share=measure != CHANGE)
        for name, (measure, axis) in LEVEL_CHARTS.items()
    )
    heads = ("agent", "fake level", "results", "redo frequency", "3b: change to level 0", "fakes", "3c: fakes detected")
    return [
        Section("printed", "As the paper defines it", words_of("fig3_printed"), _printed_charts(report, figures),
                (make_table("Redo frequency and detection", heads, printed, labels=2), *_control_printed(found))),
        Section("ours", "With intervals and differences", words_of("fig3_ours"), charts,
                (report.rows_table("By fake level", report.pooled, _AT_LEVELS), *_control_ours(found))),
    ]  # fmt: skip


def _printed_charts(report: InquiryReport, figures: Sequence[LevelFigures]) -> tuple[Chart, Chart]:
    """Return Figures 3b and 3c."""
    changes: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    detected: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    for each in figures:
        if each.level:
            name, level = report.names[each.player], float(each.level)
            changes[name].append((level, Estimate(each.change, None, None, 0, 0)))
            detected[name].append((level, Estimate(each.counts.hit_rate, None, None, 0, 0)))
    return (
        levels("relative-change", ("fake level", "change of the redo frequency, %"), changes, share=False),
        levels("detected", ("fake level", "fraction of fakes detected"), detected),
    )


def _control_printed(found: Reproduction) -> Iterator[Table]:
    lines = [[each.model, each.fakes, each.detected] for each in found.controls]
    if lines:
        yield make_table("Control: bare statements", ("model", "fakes", "called invalid"), lines)


def _control_ours(found: Reproduction) -> Iterator[Table]:
    lines = [[each.model, each.alone.items, *map(each.alone.estimates.get, SENSITIVITY)] for each in found.controls]
    pairs = [
        [pair.player.agent, pair.items, *map(pair.difference.get, SENSITIVITY)]
        for each in found.controls
        for pair in each.compared
    ]
    if lines:
        yield make_table(
            "Control: true and fake statements", ("model", "results", *SENSITIVITY), lines, headings=_HEADINGS
        )
    if pairs:
        heads = ("agent", "results", *SENSITIVITY)
        yield make_table("In the inquiry − alone, on the same results", heads, pairs, headings=_HEADINGS)


def _fig4(found: Reproduction) -> list[Section]:
    report = _report(found)
    scores = report.scores
    since = [each for each in found.models if each.name in PRINTED_CUTOFFS or _is_asked(each, scores)]
    printed, ours = (
        splits(scores, sorted(models, key=lambda each: each.written_cutoff)) for models in (printed_models(), since)
    )
    lines = [
        [_player(report, each), each.cutoff, measure, each.before[measure].mean, each.before[measure].trees,
         each.after[measure].mean, each.after[measure].trees]
        for each in printed for measure in PRINTED
    ]  # fmt: skip
    welch = [
        [_player(report, each), each.cutoff, measure, each.before[measure], each.before[measure].trees,
         each.after[measure], each.after[measure].trees, each.difference[measure], each.unclear]
        for each in ours for measure in OURS if measure in each.before
    ]  # fmt: skip
    shown = {f"{report.names[each.player]} {each.cutoff}": each for each in printed}
    charts = tuple(
        bars(name, axis, {label: (each.before[axis], each.after[axis]) for label, each in shown.items()},
             ("before the cutoff", "after it"))
        for name, axis in zip(CHARTS, PRINTED, strict=True) if shown
    )  # fmt: skip
    heads = ("agent", "cutoff", "measure", "before", "trees", "after", "trees")
    more = (*heads, "before − after", "unclear trees")
    unnamed = sorted({each.model for each in scores if each.model and find_model(found.models, each.model) is None})
    return [
        Section("printed", "As the paper defines it", words_of("fig4_printed"), charts,
                (make_table("Split at the cutoffs printed in Table 3", heads, lines, labels=3),)),
        Section("ours", "At the cutoffs found since, with intervals", words_of("fig4_ours", unnamed=unnamed), (),
                (make_table("Split at the cutoffs of the package", more, welch, labels=3),)),
    ]  # fmt: skip


def _table3(found: Reproduction) -> list[Section]:
    since = {model.name: model for model in reversed(found.models)}
    printed = printed_models()
    lines = [[each.name, each.cutoff.date, *_sides(found.trees, each)] for each in printed]
    now = [since[each.name] for each in printed]
    ours = [[each.name, each.written_cutoff, *_sides(found.trees, each)] for each in now]
    heads = ("model", "training cutoff", "trees before", "trees after", "unclear")
    return [
        Section("printed", "As the paper prints it", words_of("table3_printed"), (),
                (make_table("Cutoffs printed in the paper", heads, lines, labels=2),)),
        Section("ours", "As found since", words_of("table3_ours"), (),
                (make_table("Cutoffs of the package's list", heads, ours, labels=2),)),
    ]  # fmt: skip


def _bounds(found: Reproduction) -> list[Section]:
    agents = list(dict.fromkeys(each.agent for each in found.turns))
    sizes = {each.n: each for each in found.turns}
    printed = [[n, sizes[n].fewest_turns, sizes[n].most_turns] for n in sorted(sizes)]
    tables = [_plain_table(TITLES[agent], bounds_table(agent, found.turns)) for agent in agents]
    over = _plain_table("Over trees", bounds_summary(found.turns))
    trees = len({each.subject for each in found.turns})
    chart = Chart("turns", "turns L of random agents by tree, beside their bounds",
                  partial(draw_trees, found=found.turns, columns=2), max(3.0, 1.4 + 0.42 * trees))  # fmt: skip
    return [
        Section("printed", "As the paper defines it", words_of("bounds_printed"), (),
                (make_table("Bounds on L", ("subtopics n", "3n", "n(2H + 3)"), printed, labels=0),)),
        Section("ours", "Random agents between the bounds", words_of("bounds_ours"), (chart,), (*tables, over)),
    ]  # fmt: skip


def words_of(block: str, **values: Any) -> tuple[str, ...]:
    """Return a block of the prose of these pages."""
    return paragraphs(block, package="inquitree_gym.inquiry", **values)


def _report(found: Reproduction) -> InquiryReport:
    if found.run is None:
        raise OptionError(f"{found.target} has no episodes; name the agents to play with --agent")
    return build_report([found.run])


def _by_level(report: InquiryReport, measure: str) -> Curves:
    """Return the points of a measure over the fake levels above 0."""
    curves = curve_of(report, LEVEL, measure)
    return {name: [(level, estimate) for level, estimate in points if level] for name, points in curves.items()}


def _differences(report: InquiryReport) -> Iterator[list[object]]:
    """Yield a row for every two players, the better one first."""
    groups = grouped(report.scores, player_of)
    for one, other in combinations([row.setting.player for row in report.base], 2):
        pairs = ((_values(groups[one], name), _values(groups[other], name)) for name in OURS)
        yield [f"{report.names[one]} − {report.names[other]}", *(paired_difference(*pair) for pair in pairs)]


def _values(scores: Iterable[EpisodeScore], name: str) -> dict[tuple[str, int], float | None]:
    measure = next(each for each in MEASURES if each.name == name)
    return {(score.task, score.seed): measure.of(score.detail) for score in scores}


def _player(report: InquiryReport, split: CutoffSplit) -> str:
    return player_label(split, report.names[split.player])


def _is_asked(model: ModelDates, scores: Iterable[EpisodeScore]) -> bool:
    return any(name is not None and model.fits(name) for name in {score.model for score in scores})


def _sides(trees: Iterable[Tree], model: ModelDates) -> list[int]:
    """Return the numbers of trees before, after and on neither side of the cutoff of a model."""
    found = Counter(side_of(parse_date(tree.paper.published.written), model.window) for tree in trees)
    return [found[side] for side in ("before", "after", "unclear")]


def _percent(change: float | None, expected: bool) -> str | None:
    """Return a relative change as text, None if none is ``expected``: at level 0, or without it."""
    return (UNDEFINED if change is None else f"{change:+.1f} %") if expected else None


def _plain_table(caption: str, rows: Iterable[list[str]]) -> Table:
    heads, *lines = rows
    return make_table(caption, heads, lines)


SECTIONS = {"table2": _table2, "fig3": _fig3, "fig4": _fig4, "table3": _table3, "bounds": _bounds}
"""Sections of each target: by the paper's definition, then ours."""


TITLES_OF: dict[Target, str] = {
    "table2": "Table 2: coverage and conclusions",
    "fig3": "Figure 3: fake results",
    "fig4": "Figure 4: papers from before and after the training cutoff",
    "table3": "Table 3: training cutoffs",
    "bounds": "Appendix B: bounds on the number of turns",
}
"""Title of the page of each target."""


def write_reproduction(found: Reproduction, folder: Path) -> list[Path]:
    """Write a page, its Markdown, and its figures and tables in every format, and return them, the page first.

    Raises:
        OptionError: a file cannot be written.
        MissingExtraError: Matplotlib is not installed.
    """
    parts = [_with_source(part, found) for part in (*SECTIONS[found.target](found), _limits(found))]
    footer = "Beside this page lie its figures as SVG, PDF and PNG, and its tables as CSV, Markdown and LaTeX."
    return write_sections(
        folder / f"{found.target}.html", title=TITLES_OF[found.target], facts=_facts(found), sections=parts, links={},
        episodes="", footer=footer,
    )  # fmt: skip


def _limits(found: Reproduction) -> Section:
    """Return the section on figures of the paper that cannot be compared."""
    name = STUDIES.get(found.target)
    changed = departures(found.study, name) if found.study is not None and name is not None else []
    absent = [] if found.run is None else [each.name for each in found.run.missing]
    words = words_of(
        "reproduction_limits", target=found.target, restricted=len(RESTRICTED), changed=changed, missing=len(absent),
        embedder=found.study and found.study.settings.embedder, models=bool(found.study and found.study.models),
        judge=_judge(found),
    )  # fmt: skip
    return Section("limits", "What cannot be compared with the paper, and why", words)


def _facts(found: Reproduction) -> list[tuple[str, str]]:
    """Return the settings behind a page, by name."""
    facts = [("package", f"inquitree-gym {version('inquitree-gym')}")]
    if found.study is None or found.run is None:
        return facts
    scores = found.run.scores
    return [
        ("agents", ", ".join(dict.fromkeys(score.agent for score in scores))),
        ("papers", ", ".join(found.study.trees)),
        ("fake levels", ", ".join(map(str, found.study.settings.fake_level))),
        ("runs of each", str(found.study.seeds)),
        ("episodes scored", f"{len(scores):,}"),
        ("missing", f"{len(found.run.missing):,}"),
        ("conclusions not judged", f"{sum(score.detail.quality is None for score in scores):,}"),
        ("rules", PRESET),
        ("read by", ", ".join(dict.fromkeys(score.rules for score in scores))),
        ("judged by", _judge(found) or "none; name one with --judge"),
        *facts,
    ]


def _judge(found: Reproduction) -> str:
    scores = found.run.scores if found.run else ()
    return ", ".join(dict.fromkeys(score.judged_by for score in scores if score.judged_by))


def _with_source(part: Section, found: Reproduction) -> Section:
    """Return a section whose captions name judge, preset and version."""
    judge = f", judged by {_judge(found)}" if _judge(found) else ""
    source = f"{judge}{f'; rules: {PRESET}' if found.run else ''}; inquitree-gym {version('inquitree-gym')}"
    charts = tuple(replace(each, caption=each.caption.removesuffix(judge) + source) for each in part.charts)
    tables = tuple(replace(each, caption=each.caption.removesuffix(judge) + source) for each in part.tables)
    return replace(part, charts=charts, tables=tables)
