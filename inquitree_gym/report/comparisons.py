"""Sections of a report that compare: two runs, several judges, trees before and after training cutoffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from inquitree_gym.analysis.aggregate import SHOWN, Player, Setting, grouped, setting_of
from inquitree_gym.analysis.cutoff import CUTOFF_MEASURES, AnyPlayer, CutoffAnalysis, CutoffSplit, DiffInDiff
from inquitree_gym.analysis.memorisation import Memorisation
from inquitree_gym.report.figures import bars, differences
from inquitree_gym.report.sections import AXES, ReportData, Section
from inquitree_gym.report.tables import Table, TableCell, as_csv, linked, make_table
from inquitree_gym.report.templating import paragraphs
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean
from inquitree_gym.scoring.statistics import Agreement, agreement, item_pairs

MAX_DRAWN = 24
"""Differences that a chart shows; with more of them, only those of the lowest fake level."""
_NO_ESTIMATE = Estimate(None, None, None, 0, 0)
_MEMORY_HEADS = (
    "model", "judge", "cutoff", "conclusions", "not scored", "formless", "mean S", "before", "after", "before − after",
    "df", "unclear trees",
)  # fmt: skip
_GAIN_HEADS = ("agent", "judge", "mean S in the loop", "closed book", "gain", "trees")


def comparison(report: ReportData) -> Section | None:
    """Return the paired differences of two runs or of agents; None without a comparison."""
    if not report.differences:
        return None
    level = min(each.fake_level for each in report.differences)
    several = len(report.differences) <= MAX_DRAWN
    drawn = [each for each in report.differences if several or each.fake_level == level]
    charts = tuple(
        report.name_judge(
            differences(
                f"difference-{name}",
                f"difference in {measure}",
                {f"{each.name}, f{each.fake_level}": (each.estimates[measure],) for each in drawn},
            ),
            measure,
        )
        for name, measure in (("coverage", "coverage"), ("conclusion", "Q/|C|"))
    )
    lines = [
        [
            each.name,
            str(each.fake_level),
            *linked((each.pairs, *map(each.estimates.get, SHOWN)), fakes=each.fake_level),
        ]
        for each in report.differences
    ]
    found = make_table("Paired differences", ("difference", "fakes", "pairs", *SHOWN), lines)
    return Section(
        "comparison",
        "Comparison",
        paragraphs("comparison", level=None if several else level),
        charts,
        (report.name_judge(found, *SHOWN),),
    )


def judges(report: ReportData) -> Section | None:
    """Return Q/|C| by every judge, and how far judges agree; None if there is a single one."""
    if len(report.judged) < 2:
        return None
    means = {name: _by_setting(scores) for name, scores in report.judged.items()}
    shown = {
        f"{report.name(row)}, {judge}": (found.get(row.setting, _NO_ESTIMATE),)
        for row in report.base
        for judge, found in means.items()
    }
    lines = [
        [
            report.name(row), str(row.fake_level),
            *linked((found.get(row.setting) for found in means.values()),
                    agent=report.name(row), fakes=row.fake_level),
        ]
        for row in report.table
    ]  # fmt: skip
    tables = (make_table("Conclusion Q/|C| by judge", ("agent", "fakes", *means), lines), _agreements(report))
    words = paragraphs("judges", level=report.level)
    return Section("judges", "Judges side by side", words, (bars("judges", "conclusion Q/|C|", shown),), tables)


def cutoffs(report: ReportData) -> Section:
    """Return papers from before and after the training cutoff of an agent's model, as in the paper's Figure 4."""
    found, memories = report.cutoffs, report.memories
    splits = () if found is None else found.splits
    words = paragraphs(
        "cutoff",
        splits=splits,
        level=0 if found is None else found.level,
        unnamed={} if found is None else found.unnamed,
        memory_level=None if memories is None else memories.level,
    )
    charts = tuple(
        report.name_judge(
            bars(
                f"cutoff-{number}",
                axis,
                {_label(report.names, each): (each.before[measure], each.after[measure]) for each in splits},
                ("before the cutoff", "after it"),
            ),
            measure,
        )
        for number, (_, measure, axis) in enumerate(AXES if splits else ())
    )
    tables = (
        tuple(
            report.name_judge(table, *CUTOFF_MEASURES)
            for table in (split_table(report.names, splits), crossing_table(found.crossings))
        )
        if found and splits
        else ()
    )
    recalled = () if memories is None else _memory_tables(report, memories)
    return Section("cutoff", "Before and after the training cutoff", words, charts, (*tables, *recalled))


def cutoffs_csv(report: ReportData, found: CutoffAnalysis[Player]) -> str:
    """Return the splits as CSV: one line per agent, measure and side, and one for the difference."""
    heads = (
        "agent", "cutoff", "control", "fake_level", "measure", "side", "mean", "low", "high", "trees", "episodes", "df",
    )  # fmt: skip
    lines = (
        (report.names[each.player], each.cutoff, each.control, found.level, measure, side, *of[measure], degrees)
        for each in found.splits
        for measure in CUTOFF_MEASURES
        for side, of, degrees in (
            ("before", each.before, None),
            ("after", each.after, None),
            ("difference", each.difference, each.degrees[measure]),
        )
    )
    return as_csv(heads, lines)


def _by_setting(scores: Sequence[EpisodeScore]) -> dict[Setting, Estimate]:
    return {
        setting: clustered_mean((score.tree, score.quality_share) for score in group)
        for setting, group in grouped(scores, setting_of).items()
    }


def _agreements(report: ReportData) -> Table:
    scores = {name: _item_scores(found) for name, found in report.judged.items()}
    lines = [
        [one, other, *_agreement_line(agreement(item_pairs(scores[one], scores[other])))]
        for one, other in combinations(scores, 2)
    ]
    heads = ("judge", "judge", "κ", "same grade", "mean |ΔS|", "items", "unscored")
    return make_table("Agreement", heads, lines, labels=2)


def _agreement_line(found: Agreement) -> list[object]:
    interval = "" if found.low is None or found.high is None else f"[{found.low:z.2f}, {found.high:z.2f}]"
    kappa = None if found.kappa is None else TableCell(f"{found.kappa:z.3f}", interval)
    return [kappa, found.same, found.difference, found.items, found.unscored]


def _item_scores(scores: Sequence[EpisodeScore]) -> dict[tuple[str, str], tuple[float | None, ...]]:
    """Return the scores of the conclusion items by tree and episode."""
    return {
        (score.tree, f"{setting_of(score)} {score.seed}"): tuple(verdict.score for verdict in score.verdicts)
        for score in scores
        if score.verdicts
    }


def split_table(
    names: Mapping[AnyPlayer, str], splits: Sequence[CutoffSplit[AnyPlayer]], clusters: str = "trees"
) -> Table:
    """Return a table of the measures before and after the cutoffs; ``clusters`` is the word for trees or papers."""
    heads = (
        "agent", "cutoff", "measure", "before", clusters, "after", clusters, "before − after", "df",
        f"unclear {clusters}",
    )  # fmt: skip
    lines = [
        [
            _label(names, each), each.cutoff, measure,
            *linked(
                (each.before[measure], each.before[measure].trees, each.after[measure], each.after[measure].trees,
                 each.difference[measure], each.degrees[measure], each.unclear),
                agent=names[each.player],
            ),
        ]
        for each in splits
        for measure in each.difference
    ]  # fmt: skip
    return make_table("Before and after", heads, lines, labels=3)


def crossing_table(found: Mapping[str, DiffInDiff], clusters: str = "trees") -> Table:
    """Return a table of the effects within trees or papers that lie on both sides of a cutoff; see `split_table`."""
    same, both = f"before − after, same {clusters[:-1]}", f"{clusters} on both sides"
    heads = ("measure", same, both, f"other {clusters}", "models", "episodes")
    lines = [
        [measure, each.effect, each.effect.trees, each.others, each.models, each.effect.episodes]
        for measure, each in found.items()
    ]
    title = f"The same {clusters[:-1]}, before for one model and after for another"
    return make_table(title, heads, lines)


def _memory_tables(report: ReportData, found: Memorisation) -> tuple[Table, ...]:
    lines = [
        [
            each.name, each.judge, each.cutoff, each.conclusions, each.unscored, each.formless, each.memory,
            each.before, each.after, each.difference, each.degrees, each.unclear,
        ]
        for each in found.models
    ]  # fmt: skip
    gains = [
        [report.names[each.player], each.judge, each.loop, each.memory, each.gain, each.gain.trees]
        for each in found.gains
    ]
    memory = make_table("Closed book: mean S from the topic alone", _MEMORY_HEADS, lines, labels=3)
    return (memory, make_table("In the loop beside closed book", _GAIN_HEADS, gains, labels=2)) if gains else (memory,)


def _label(names: Mapping[AnyPlayer, str], split: CutoffSplit[AnyPlayer]) -> str:
    return names[split.player] + ", control" * split.control
