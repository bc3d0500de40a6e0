"""The paper's tables and figures as sections: by the paper's definitions, and with differences and intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from inquitree_gym.analysis.aggregate import CHANGE, MEASURES, Player, grouped, player_of
from inquitree_gym.analysis.bounds import AgentTurns
from inquitree_gym.analysis.bounds_report import TITLES, bounds_summary, bounds_table, draw_trees
from inquitree_gym.analysis.cutoff import CutoffSplit, side_of
from inquitree_gym.analysis.cutoff_models import ModelDates, find_model, parse_date
from inquitree_gym.analysis.load import ScoredRun
from inquitree_gym.analysis.reproduction import (
    PRINTED_CUTOFFS,
    Control,
    LevelFigures,
    Target,
    level_figures,
    printed_models,
    splits,
)
from inquitree_gym.report.figures import Chart, Curves, bars, levels
from inquitree_gym.report.sections import ReportData, Section, report_data
from inquitree_gym.report.tables import Table, make_table
from inquitree_gym.report.templating import paragraphs
from inquitree_gym.runner.study import StudyConfig
from inquitree_gym.scoring import EpisodeScore, Estimate, paired_difference
from inquitree_gym.scoring.vigilance import D_PRIME, FALSE_ALARMS, HITS, SENSITIVITY
from inquitree_gym.trees import Tree

OURS = ("coverage", "unaided", "coverage at 3n", "Q/|C|")
"""Measures of Table 2 with intervals."""
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
_AT_LEVELS = ("redo", CHANGE, HITS, FALSE_ALARMS, D_PRIME)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Everything that one page shows."""

    target: Target
    study: StudyConfig | None = None
    """Study behind the page; None for a target that plays nothing."""
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
        [report.name(row), row.episodes, row.trees, *(row.estimates[name].mean for name in PRINTED)]
        for row in report.base
    ]
    charts = tuple(
        bars(name, measure, {report.name(row): (row.estimates[measure],) for row in report.base})
        for name, measure in zip(CHARTS, PRINTED, strict=True)
    )
    pairs = list(_differences(report))
    tables = [report.rows_table("Means over trees with intervals", report.base, OURS)]
    if pairs:
        tables.append(make_table("Differences, paired by tree and seed", ("agents", *OURS), pairs))
    heads = ("agent", "episodes", "trees", "coverage", "conclusion Q/|C|")
    return [
        Section("printed", "As the paper defines it", paragraphs("table2_printed"), (),
                (make_table("Means over papers and runs", heads, printed),)),
        Section("ours", "With intervals and differences", paragraphs("table2_ours"), charts, tuple(tables)),
    ]  # fmt: skip


def _fig3(found: Reproduction) -> list[Section]:
    report = _report(found)
    figures = level_figures([episode.score for episode in report.episodes])
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
        Section("printed", "As the paper defines it", paragraphs("fig3_printed"), _printed_charts(report, figures),
                (make_table("Redo frequency and detection", heads, printed, labels=2), *_control_printed(found))),
        Section("ours", "With intervals and differences", paragraphs("fig3_ours"), charts,
                (report.rows_table("By fake level", report.table, _AT_LEVELS), *_control_ours(found))),
    ]  # fmt: skip


def _printed_charts(report: ReportData, figures: Sequence[LevelFigures]) -> tuple[Chart, Chart]:
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
        yield make_table("Control: true and fake statements", ("model", "results", *SENSITIVITY), lines)
    if pairs:
        yield make_table("In the inquiry − alone, on the same results", ("agent", "results", *SENSITIVITY), pairs)


def _fig4(found: Reproduction) -> list[Section]:
    report = _report(found)
    scores = [episode.score for episode in report.episodes]
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
        Section("printed", "As the paper defines it", paragraphs("fig4_printed"), charts,
                (make_table("Split at the cutoffs printed in Table 3", heads, lines, labels=3),)),
        Section("ours", "At the cutoffs found since, with intervals", paragraphs("fig4_ours", unnamed=unnamed), (),
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
        Section("printed", "As the paper prints it", paragraphs("table3_printed"), (),
                (make_table("Cutoffs printed in the paper", heads, lines, labels=2),)),
        Section("ours", "As found since", paragraphs("table3_ours"), (),
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
        Section("printed", "As the paper defines it", paragraphs("bounds_printed"), (),
                (make_table("Bounds on L", ("subtopics n", "3n", "n(2H + 3)"), printed, labels=0),)),
        Section("ours", "Random agents between the bounds", paragraphs("bounds_ours"), (chart,), (*tables, over)),
    ]  # fmt: skip


def _report(found: Reproduction) -> ReportData:
    assert found.run is not None
    return report_data([found.run])


def _by_level(report: ReportData, measure: str) -> Curves:
    found: dict[str, list[tuple[float, Estimate]]] = {name: [] for name in report.names.values()}
    for row in sorted(report.table, key=lambda row: row.fake_level):
        if row.fake_level:
            found[report.name(row)].append((float(row.fake_level), row.estimates[measure]))
    return found


def _differences(report: ReportData) -> Iterator[list[object]]:
    """Yield a row for every two players, the better one first."""
    groups = grouped((episode.score for episode in report.episodes), player_of)
    for one, other in combinations([row.setting.player for row in report.base], 2):
        pairs = ((_values(groups[one], name), _values(groups[other], name)) for name in OURS)
        yield [f"{report.names[one]} − {report.names[other]}", *(paired_difference(*pair) for pair in pairs)]


def _values(scores: Iterable[EpisodeScore], name: str) -> dict[tuple[str, int], float | None]:
    return {(score.tree, score.seed): MEASURES[name](score) for score in scores}


def _player(report: ReportData, split: CutoffSplit[Player]) -> str:
    return report.names[split.player] + ", control" * split.control


def _is_asked(model: ModelDates, scores: Iterable[EpisodeScore]) -> bool:
    return any(name is not None and model.fits(name) for name in {score.model for score in scores})


def _sides(trees: Iterable[Tree], model: ModelDates) -> list[int]:
    """Return the numbers of trees before, after and on neither side of the cutoff of a model."""
    found = Counter(side_of(parse_date(tree.paper.published.written), model.window) for tree in trees)
    return [found[side] for side in ("before", "after", "unclear")]


def _percent(change: float | None, expected: bool) -> str | None:
    """Return a relative change as text; None where none is expected, at level 0 and without a level 0."""
    return (UNDEFINED if change is None else f"{change:+.1f} %") if expected else None


def _plain_table(caption: str, rows: Iterable[list[str]]) -> Table:
    heads, *lines = rows
    return make_table(caption, heads, lines)


SECTIONS = {"table2": _table2, "fig3": _fig3, "fig4": _fig4, "table3": _table3, "bounds": _bounds}
"""Sections of each target: by the paper's definition, then ours."""
