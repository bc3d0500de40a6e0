"""Sections of a report of projections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inquitree_gym.analysis.cutoff import side_of
from inquitree_gym.analysis.cutoff_models import ModelDates, find_model, parse_date
from inquitree_gym.analysis.projection_summary import (
    AUC,
    COIN_F1,
    MEAN_OF_DOMAINS,
    NO_ESTIMATE,
    POOLED,
    PairedProjections,
    ProjectionSummary,
    anchoring,
    paper_means,
)
from inquitree_gym.analysis.projections import ScoredProjections
from inquitree_gym.errors import OptionError
from inquitree_gym.report.comparisons import crossing_table, split_table
from inquitree_gym.report.figures import Chart, bars, differences, dots, levels
from inquitree_gym.report.projection_data import ProjectionReport
from inquitree_gym.report.projection_view import rated_claims
from inquitree_gym.report.sections import Section, missing_from, spending_of
from inquitree_gym.report.tables import Table, TableCell, linked, make_table, number, shaded
from inquitree_gym.report.templating import paragraphs
from inquitree_gym.scoring import Estimate

O3 = "o3"
"""Model at whose cutoff every page splits the papers, as in the paper."""
CHANCE = (COIN_F1, "coin, analytic")
_NOT_APPLICABLE = "N/A"


def leaderboard(report: ProjectionReport) -> Section:
    """Return the AUC by player and domain, as in the paper's Table 2."""
    groups = report.groups()
    lines = [
        [name, *linked((rows[group].auc if group in rows else None for group in groups), agent=name)]
        for name, rows in _rows_by_player(report)
    ]
    whole = _whole(report)
    shown = {name: (row.auc,) for name, row in sorted(whole.items(), key=lambda each: -(each[1].auc.mean or 0.0))}
    words = paragraphs("projection_auc", auc=report.metric.auc, variant=report.metric.variant)
    table = report.judged(make_table("AUC by domain", ("agent", *groups), lines))
    return Section("auc", "AUC", words, (report.judged(bars("auc", _all_of(report, AUC), shown)),), (table,))


def by_level(report: ProjectionReport) -> Section:
    """Return F1 by level, as in the paper's Table 5 and Figure 3."""
    groups = [group for group in report.groups() if group != POOLED or MEAN_OF_DOMAINS not in report.groups()]
    charts = [_level_chart(report, number, group) for number, group in enumerate((groups[-1], *groups[:-1]))]
    tables = [report.judged(_f1_table(report))]
    if any(found.mean is not None for row in report.table for found in row.normalised.values()):
        whole = _whole(report)
        shown = {name: _points(report, row.normalised) for name, row in whole.items()}
        labels = ("level", "F1 between coin (0) and oracle (1)")
        charts.append(report.judged(levels("normalised", labels, shown, share=False, names=report.levels)))
        tables.append(report.judged(_normalised_table(report)))
    words = paragraphs("projection_levels", coin=COIN_F1)
    return Section("levels", "F1 by level", words, tuple(charts), tuple(tables))


def papers(report: ProjectionReport) -> Section:
    """Return F1 averaged over the levels by paper and player, as in the paper's Figure 4."""
    means = {
        name: paper_means((facts.score for facts in episodes), lambda score: score.mean_f1(report.metric.variant))
        for name, episodes in report.by_player()
    }
    tasks = list(dict.fromkeys(facts.score.task for facts in report.episodes))
    found = {task: {name: of[task] for name, of in means.items() if task in of} for task in tasks}
    ranked = sorted(found, key=lambda task: -sum(found[task].values()) / max(1, len(found[task])))
    domains = {facts.score.task: facts.score.domain for facts in report.episodes}
    lines = [
        [task, domains[task], *(cell for name in means for cell in linked(
            [shaded(found[task].get(name))], paper=task, agent=name))]
        for task in ranked
    ]  # fmt: skip
    chart = dots("papers", "F1, averaged over the levels", {task: found[task] for task in ranked})
    table = make_table("F1 averaged over the levels", ("paper", "domain", *means), lines, labels=2)
    return Section("papers", "By paper", paragraphs("projection_papers"), (report.judged(chart),),
                   (report.judged(table),))  # fmt: skip


def example(report: ProjectionReport) -> Section:
    """Return the projections of one paper with their claims and ratings, as in the paper's Table 3.

    Raises:
        OptionError: no episode is about the paper.
    """
    task = report.example or report.episodes[0].score.task
    shown = [(name, facts) for name, each in report.by_player() for facts in each if facts.score.task == task]
    if not shown:
        known = ", ".join(dict.fromkeys(facts.score.task for facts in report.episodes))
        raise OptionError(f"no episode is about '{task}', so it cannot be the example; choose one of {known}")
    first = dict(reversed(shown))  # one episode for each player, the first
    of = shown[0][1].task
    claims = make_table("True claims", ("claim", "text"), [[each.id, each.text] for each in of.claims], labels=2)
    said = [
        [name, level.level, level.text, level.f1[report.metric.variant]]
        for name, facts in first.items() for level in facts.score.levels
    ]  # fmt: skip
    sentences = make_table("Projections", ("agent", "level", "projection", "F1"), said, labels=3)
    rated = [line for name, facts in first.items() for line in _rated(name, facts)]
    heads = ("agent", "level", "true claim", "projected claim", "ratings", "mean")
    ratings = make_table("Claims and ratings", heads, rated, labels=4)
    words = paragraphs("projection_example", paper=of.paper.title, outcome=of.disclosure.outcome)
    tables = (claims, report.judged(sentences), report.judged(ratings))
    return Section("example", f"Example: {task}", words, (), tables, folded=True)


def comparison(report: ProjectionReport) -> Section | None:
    """Return the paired differences of the players; None without a comparison."""
    return _paired(report, "comparison", "Comparison", report.differences) if report.differences else None


def anchored(report: ProjectionReport) -> Section | None:
    """Return the differences with and without memory of earlier projections; None unless a player has both."""
    found = anchoring([facts.score for facts in report.episodes], report.metric)
    return _paired(report, "anchoring", "Anchoring", found) if found else None


def cutoffs(report: ProjectionReport) -> Section:
    """Return how many papers each model may have read, and the results before and after its cutoff."""
    found = report.cutoffs
    words = paragraphs(
        "projection_memory",
        told=list(dict.fromkeys(_told(report, each) for each in _known(report))),
        unnamed=found.unnamed,
        splits=found.splits,
    )
    tables = [report.judged(split_table(report.names, found.splits, "papers"))] if found.splits else []
    if found.splits:
        tables.append(report.judged(crossing_table(found.crossings, "papers")))
    return Section("memory", "Before and after the training cutoff", words, (), tuple(tables))


def spending(report: ProjectionReport) -> Section:
    """Return tokens, dollars and seconds."""
    return spending_of(
        {name: [(facts.cost, len(facts.score.levels)) for facts in episodes] for name, episodes in report.by_player()}
    )


def missing(report: ProjectionReport) -> Section:
    """Return the episodes without a score, and the number of unscored projections."""
    gone = [(run.folder.name, each) for run in report.runs for each in run.missing]
    unscored = sum(facts.score.unscored for facts in report.episodes)
    total = sum(len(facts.score.levels) for facts in report.episodes)
    scored = f"{len(report.episodes):,} episodes"
    return missing_from(gone, scored, f"{unscored:,} of {total:,} projections could not be scored by the judge")


def threats(report: ProjectionReport) -> Section:
    """Return the threats to validity."""
    return Section("threats", "Threats to validity", paragraphs("projection_threats", judges=report.judged_by))


SECTIONS: tuple[Callable[[ProjectionReport], Section | None], ...] = (
    leaderboard, by_level, papers, example, comparison, anchored, cutoffs, spending, missing, threats,
)  # fmt: skip


def _rows_by_player(report: ProjectionReport) -> Iterator[tuple[str, dict[str, ProjectionSummary]]]:
    for player, name in report.names.items():
        yield name, {row.group: row for row in report.table if row.player == player}


def _whole(report: ProjectionReport) -> dict[str, ProjectionSummary]:
    """Return the summaries over all papers by player: the mean of the domains, or of the only domain."""
    return {name: rows.get(MEAN_OF_DOMAINS, rows[POOLED]) for name, rows in _rows_by_player(report)}


def _all_of(report: ProjectionReport, measure: str) -> str:
    several = MEAN_OF_DOMAINS in report.groups()
    return f"{measure}, mean of the domains" if several else measure


def _points(report: ProjectionReport, found: dict[str, Estimate]) -> list[tuple[float, Estimate]]:
    return [(float(report.levels.index(level)), estimate) for level, estimate in found.items()]


def _level_chart(report: ProjectionReport, number: int, group: str) -> Chart:
    shown = {name: _points(report, row.f1) for name, row in report.of_group(group).items()}
    chart = levels(f"f1-{number}", ("level", f"F1, {group}"), shown, names=report.levels, chance=CHANCE)
    return report.judged(chart)


def _f1_table(report: ProjectionReport) -> Table:
    heads = ["agent", "papers", "n (papers)"]
    heads += [head for level in report.levels for head in (level, f"std, {level}")] + [AUC, "unscored"]
    lines = [
        [
            report.names[row.player], row.group,
            *linked(
                (f"{row.episodes:,} ({row.papers})",
                 *(value for level in report.levels for value in (row.f1.get(level, NO_ESTIMATE), row.std.get(level))),
                 row.auc, row.unscored),
                agent=report.names[row.player],
            ),
        ]
        for row in report.table
    ]  # fmt: skip
    return make_table("F1 by level", heads, lines, labels=2)


def _normalised_table(report: ProjectionReport) -> Table:
    lines = [
        [report.names[row.player], row.group, *(row.normalised.get(level) for level in report.levels)]
        for row in report.table
    ]
    return make_table("F1 between coin and oracle", ("agent", "papers", *report.levels), lines, labels=2)


def _rated(name: str, facts: ScoredProjections) -> Iterator[list[object]]:
    """Yield the rows of the projections of one episode: pairs, then extraneous claims."""
    for level in facts.score.levels:
        claims = () if level.alignment is None else rated_claims(level.alignment, facts.task)
        for claim in claims:
            projected = _NOT_APPLICABLE if claim.projected is None else claim.projected
            ratings = TableCell(", ".join(map(number, claim.ratings)) or "–", claim.reason)
            yield [name, level.level, claim.true or "extraneous", projected, ratings, claim.mean]


def _paired(report: ProjectionReport, anchor: str, title: str, found: Sequence[PairedProjections]) -> Section:
    measures = (*report.levels, AUC)
    lines = [[each.name, each.pairs, *(each.estimates.get(name) for name in measures)] for each in found]
    table = make_table("Paired differences of F1 and AUC", ("difference", "pairs", *measures), lines)
    chart = differences(f"{anchor}-auc", f"difference in {AUC}", {each.name: (each.estimates[AUC],) for each in found})
    words = paragraphs(f"projection_{anchor}")
    return Section(anchor, title, words, (report.judged(chart),), (report.judged(table),))


def _known(report: ProjectionReport) -> Iterator[ModelDates]:
    """Yield the known training cutoffs of o3 and of the models that were played."""
    played = (facts.score.model for facts in report.episodes)
    for model in dict.fromkeys((O3, *filter(None, played))):
        if (dates := find_model(report.models, model)) is not None:
            yield dates


def _told(report: ProjectionReport, dates: ModelDates) -> str:
    """Return a phrase that says how many papers appeared before the cutoff of a model."""
    published = {facts.score.task: facts.score.published for facts in report.episodes}
    before = sum(side_of(parse_date(each), dates.window) == "before" for each in published.values())
    return f"{before} of {len(published)} papers appeared before the cutoff of {dates.name} ({dates.written_cutoff})"
