"""Pages of projections: sections of their reports, and the view of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

from inquitree_gym.errors import OptionError
from inquitree_gym.judging.judgement import Judged
from inquitree_gym.log import Episode, Turn
from inquitree_gym.projection.events import ProjectionEvent
from inquitree_gym.projection.judges.alignment import Alignment, ProjectionScore
from inquitree_gym.projection.results import (
    AUC,
    COIN_F1,
    RESULTS,
    RETURN,
    ProjectionDetail,
    ProjectionResults,
    ProjectionScores,
    anchoring,
    belief_at,
    brier_at,
    f1_at,
    levels_of,
    normalised_at,
    sheet_at,
    skill_at,
)
from inquitree_gym.projection.sheets import sheet_score, statements
from inquitree_gym.results.comparison import differences_table
from inquitree_gym.results.cutoff import ModelDates, find_model, parse_date, side_of
from inquitree_gym.results.figures import Chart, Curves, levels
from inquitree_gym.results.load import ScoredRun
from inquitree_gym.results.report import FurtherResult, KindPages, Report, Section, shown_of
from inquitree_gym.results.score import KindResults, Measure
from inquitree_gym.results.sections import paired
from inquitree_gym.results.summary import NO_ESTIMATE, POOLED, SettingSummary, mean_of_groups
from inquitree_gym.results.tables import Table, TableCell, linked, make_table, number
from inquitree_gym.results.turns import Badge, EpisodeBody, TurnView
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

_SIGNS = {"question": "Q", "null": "0", "procedure": "P"}
"""One-letter signs of the levels in the strip of turns."""
_LEVELS = {
    "question": "projects from topic and question",
    "null": "projects with the null hypothesis",
    "procedure": "projects with the procedure",
}


@dataclass(frozen=True, slots=True)
class RatedClaim:
    """A projected claim, and its ratings."""

    true: str
    """The true claim that it is analogous to. Empty for an extraneous one."""
    projected: str | None
    """None if the projection has no analogous claim."""
    ratings: tuple[float, ...]
    """Ratings in both orders, in [-1, 1]. For an extraneous claim their means over the true claims. Empty for none."""
    mean: float | None
    reason: str = ""
    """Reason of the judge. Empty without one."""


@dataclass(frozen=True, slots=True)
class AnsweredClaim:
    """A claim, and what a sheet says about it."""

    true: str
    stated: str
    """The statement that was chosen. Empty for none."""
    is_right: bool
    probability: float | None
    """Probability given to the statement. None for none."""


@dataclass(frozen=True, slots=True)
class ProjectionTurn(TurnView):
    """One turn of an episode of projections."""

    claims: tuple[RatedClaim, ...] = ()
    """True claims with their analogous ones, then extraneous ones. Empty where the judge found no claims."""
    scored: ProjectionScore | None = None
    """Score as printed. None for a projection without one."""
    answers: tuple[AnsweredClaim, ...] = ()
    """Answers to the sheet. Empty for a projection."""
    notes: tuple[str, ...] = ()
    """Reasons why parts of a sheet were not read."""


def rated_claims(alignment: Alignment, task: ProjectionTask) -> Iterator[RatedClaim]:
    """Yield the true claims of a task with their analogous ones, then the extraneous claims."""
    reasons = alignment.reasons or ("",) * len(task.claims)
    for i, claim in enumerate(task.claims):
        projected = alignment.analogous[i]
        ratings = () if projected is None else tuple(map(float, alignment.pair_ratings[i]))
        mean = None if projected is None else float(alignment.pairs[i])
        yield RatedClaim(claim.text, projected, ratings, mean, reasons[i])
    for j, extra in enumerate(alignment.extraneous):
        ratings = tuple(map(float, alignment.extra_ratings[j].mean(axis=0)))
        yield RatedClaim("", extra, ratings, float(alignment.extras[j]))


def _turn_view(
    episode: Episode[ProjectionEvent], task: ProjectionTask, turn: Turn[ProjectionEvent], judged: Judged
) -> ProjectionTurn:
    """Return a projection as it was judged, or a sheet."""
    event, replies = turn.event, episode.replies_to(turn.turn)
    if event.sheet is not None:
        sheet, score = event.sheet.sheet, sheet_score(task.claims, event.sheet.sheet)
        colour = "true" if score > 0 else "fake" if score < 0 else "forced"
        return ProjectionTurn(
            turn=turn,
            replies=replies,
            state=f"sheet, {event.level}",
            mark=Badge(colour, f"answers the sheet at {event.level}; score {score:.3f}", "S"),
            answers=tuple(answered_claims(task, sheet)),
            notes=event.sheet.notes,
        )
    alignment = judged.payloads.get(turn.turn)
    scored = alignment.score() if alignment is not None and alignment.complete else None
    colour, words = "decision", "not judged"
    if turn.turn in judged.payloads:
        colour, words = "forced", "unscored"
    if scored is not None:
        colour, words = "true" if scored.f1 > 0 else "fake", f"F1 = {scored.f1:.3f}"
    return ProjectionTurn(
        turn=turn,
        replies=replies,
        state=event.level,
        mark=Badge(colour, f"{_LEVELS[event.level]}; {words}", _SIGNS[event.level]),
        claims=() if alignment is None else tuple(rated_claims(alignment, task)),
        scored=scored,
    )


def answered_claims(task: ProjectionTask, sheet: Sheet) -> Iterator[AnsweredClaim]:
    """Yield every claim of a task with the answer to it."""
    for i, (claim, choice) in enumerate(zip(task.claims, sheet.choices, strict=True)):
        stated = "" if choice is None else statements(claim)[choice]
        yield AnsweredClaim(claim.text, stated, choice == 0, sheet.probabilities[i] if sheet.probabilities else None)


ProjectionReport = Report[ProjectionDetail]
O3 = "o3"
"""Model at whose cutoff every page counts the papers, as in the paper."""
CHANCE = (COIN_F1, "coin, analytic")


def by_sheet(report: ProjectionReport) -> Section | None:
    """Return the scores of the sheets, the Brier skill and the beliefs by level. None without sheets."""
    if not any(score.detail.sheets for score in report.scores):
        return None
    played = levels_of(report.scores)
    charts = []
    for name, heading, label, chance in (
        ("sheet-score", sheet_at, "score of the sheet", None),
        ("sheet-skill", skill_at, "Brier skill", (0.0, "chance, 1/k")),
        ("belief", belief_at, "belief in the true claims", (_even_belief(report), "chance, 1/k")),
    ):
        shown = _courses(report, POOLED, list(map(heading, played)))
        if any(each.mean is not None for points in shown.values() for _, each in points):
            share = heading is belief_at
            charts.append(levels(name, ("level", label), shown, share=share, names=played, chance=chance))
    given = [level for level in played if any(row.estimates[brier_at(level)].trees for row in report.base)]
    briers = [name for level in given for name in (brier_at(level), skill_at(level))]
    table = report.rows_table("Sheets by level", report.base, (RETURN, *map(sheet_at, played), *briers))
    beliefs = report.rows_table("Belief in the true claims by level", report.base, list(map(belief_at, played)))
    return Section("sheets", "Sheets by level", report.words("sheets"), tuple(charts), (table, beliefs))


def by_level(report: ProjectionReport) -> Section | None:
    """Return F1 by level, as in the paper's Table 5 and Figure 3. None if no projection was judged."""
    if not any(score.detail.levels for score in report.scores):
        return None
    played = levels_of(report.scores)
    groups = [group for group in report.groups() if group != mean_of_groups(report.results)]
    charts = [_level_chart(report, played, number, group) for number, group in enumerate((groups[-1], *groups[:-1]))]
    tables = [report.name_judge(_f1_table(report, played), AUC)]
    normalised = [normalised_at(level) for level in played]
    if any(row.estimates[name].mean is not None for row in report.table for name in normalised):
        shown, labels = _courses(report, POOLED, normalised), ("level", "F1 between coin (0) and oracle (1)")
        charts.append(report.name_judge(levels("normalised", labels, shown, share=False, names=played), AUC))
        tables.append(report.name_judge(_normalised_table(report, played), AUC))
    words = report.words("levels", coin=COIN_F1)
    return Section("levels", "F1 by level", words, tuple(charts), tuple(tables))


def example(report: ProjectionReport) -> Section:
    """Return the projections of one paper with their claims and ratings, as in the paper's Table 3."""
    name: str = report.addition
    key = (report.kind, name)
    task: ProjectionTask = next(run.tasks[key] for run in report.runs if key in run.tasks)
    first: dict[str, ProjectionScores] = {}
    for score in report.scores:
        if score.task == name:
            first.setdefault(report.name(score), score)
    claims = make_table("True claims", ("claim", "text"), [[claim.id, claim.text] for claim in task.claims], labels=2)
    variant = cast(ProjectionResults, report.results).variant
    tables = [claims]
    if answered := [line for agent, score in first.items() for line in _answered(agent, score, task)]:
        heads = ("agent", "level", "true claim", "statement chosen", "right", "probability")
        tables.append(make_table("Sheets", heads, answered, labels=4))
    said = [
        [agent, level.level, level.text, level.f1[variant]]
        for agent, score in first.items()
        for level in score.detail.levels
    ]
    if said:
        sentences = make_table("Projections", ("agent", "level", "projection", "F1"), said, labels=3)
        rated = [line for agent, score in first.items() for line in _rated(agent, score, task)]
        heads = ("agent", "level", "true claim", "projected claim", "ratings", "mean")
        ratings = make_table("Claims and ratings", heads, rated, labels=4)
        tables += [report.name_judge(sentences, AUC), report.name_judge(ratings, AUC)]
    words = report.words("example", paper=task.paper.title, outcome=task.disclosure.outcome, judged=bool(said))
    return Section("example", f"Example: {name}", words, (), tuple(tables), folded=True)


def anchored(report: ProjectionReport) -> Section | None:
    """Return the differences with and without memory of earlier projections. None unless a player has both."""
    found = anchoring(report.scores, report.results)
    return paired(report, "anchoring", "Anchoring", found) if found else None


def read_before(report: ProjectionReport) -> Section | None:
    """Return how many papers each model may have read. None if no cutoff is known."""
    told = list(dict.fromkeys(_told(report, dates) for dates in _known(report)))
    return Section("memory", "What models may have read", report.words("memory", told=told)) if told else None


def _even_belief(report: ProjectionReport) -> float:
    """Return the mean over papers of 1/k, the belief that gives the k statements of a claim equal weight."""
    tasks = {score.task: run.tasks[report.kind, score.task] for run in report.runs for score in run.scores}
    return fmean(fmean(1 / len(statements(claim)) for claim in task.claims) for task in tasks.values())


def _courses(report: ProjectionReport, group: str, names: Sequence[str]) -> Curves:
    """Return the estimates of these measures, one per level, by name of the player."""
    return {
        player: [(float(place), row.estimates.get(name, NO_ESTIMATE)) for place, name in enumerate(names)]
        for player, row in report.of_group(group).items()
    }


def _level_chart(report: ProjectionReport, played: Sequence[str], number: int, group: str) -> Chart:
    shown = _courses(report, group, list(map(f1_at, played)))
    chart = levels(f"f1-{number}", ("level", f"F1, {group}"), shown, names=played, chance=CHANCE)
    return report.name_judge(chart, AUC)


def _f1_table(report: ProjectionReport, played: Sequence[str]) -> Table:
    heads = ["agent", "papers", "n (papers)"]
    heads += [head for level in played for head in (level, f"std, {level}")] + [AUC, "unscored"]
    lines = [
        [
            report.name(row), row.group,
            *linked(
                (f"{row.episodes:,} ({row.tasks})", *_means_with_deviations(row, played),
                 row.estimates[AUC], row.unscored),
                agent=report.name(row),
            ),
        ]
        for row in report.table
    ]  # fmt: skip
    return make_table("F1 by level", heads, lines, 2, {AUC: report.results.heading(AUC)})


def _means_with_deviations(row: SettingSummary, played: Sequence[str]) -> Iterator[object]:
    for level in played:
        yield row.estimates.get(f1_at(level), NO_ESTIMATE)
        yield row.deviations.get(f1_at(level))


def _normalised_table(report: ProjectionReport, played: Sequence[str]) -> Table:
    lines = [
        [report.name(row), row.group, *(row.estimates.get(normalised_at(level)) for level in played)]
        for row in report.table
    ]
    return make_table("F1 between coin and oracle", ("agent", "papers", *played), lines, labels=2)


def _rated(agent: str, score: ProjectionScores, task: ProjectionTask) -> Iterator[list[object]]:
    """Yield the rows of the projections of one episode: pairs, then extraneous claims."""
    for level in score.detail.levels:
        claims = () if level.alignment is None else rated_claims(level.alignment, task)
        for claim in claims:
            projected = "N/A" if claim.projected is None else claim.projected
            ratings = TableCell(", ".join(map(number, claim.ratings)) or "–", claim.reason)
            yield [agent, level.level, claim.true or "extraneous", projected, ratings, claim.mean]


def _answered(agent: str, score: ProjectionScores, task: ProjectionTask) -> Iterator[list[object]]:
    """Yield the rows of the sheets of one episode."""
    for each in score.detail.sheets:
        for claim in answered_claims(task, each.sheet):
            right = "yes" if claim.is_right else "no" if claim.stated else "–"
            yield [agent, each.level, claim.true, claim.stated or "–", right, claim.probability]


def _known(report: Report[Any]) -> Iterator[ModelDates]:
    """Yield the known training cutoffs of o3 and of the models that were played."""
    played = (score.model for score in report.scores)
    for model in dict.fromkeys((O3, *filter(None, played))):
        if (dates := find_model(report.options.models, model)) is not None:
            yield dates


def _told(report: Report[Any], dates: ModelDates) -> str:
    """Return a phrase with the number of papers that appeared before the cutoff of a model."""
    published = {score.task: score.published for score in report.scores if score.published}
    before = sum(side_of(parse_date(day), dates.window) == "before" for day in published.values())
    return f"{before} of {len(published)} papers appeared before the cutoff of {dates.name} ({dates.written_cutoff})"


class ProjectionPages(KindPages):
    """Pages of projections. See `KindPages` for the methods."""

    charts: Mapping[str, tuple[str, str]] = {
        "auc": (AUC, f"{AUC}, all, pooled"), "return": (RETURN, "return, all, pooled")
    }  # fmt: skip
    listed = (RETURN, *map(sheet_at, LEVELS), AUC)
    sections = (by_sheet, by_level, example, anchored, read_before)

    def maps(self, results: KindResults[Any, Any]) -> Mapping[str, Measure[Any]]:
        """Return the return and the area under titles of their own: the leaderboard's figures have the plain names."""
        return {f"{name} by paper": measure for name, measure in super().maps(results).items()}

    def addition(self, options: Mapping[str, Any], runs: Sequence[ScoredRun], models: Sequence[ModelDates]) -> str:
        """Return the id of the task that is the example.

        Raises:
            OptionError: no episode is about the one that is named.
        """
        known = list(dict.fromkeys(score.task for run in runs for score in run.scores))
        example: str = options.get("example") or known[0]
        if example not in known:
            raise OptionError(
                f"no episode is about '{example}', so it cannot be the example; choose one of {', '.join(known)}"
            )
        return example

    def further_results(self, report: Report[ProjectionDetail]) -> Iterator[FurtherResult]:
        """Yield the differences with and without memory."""
        found = anchoring(report.scores, report.results)
        rows = list(differences_table(found, shown_of(report.results), report.results)) if found else []
        yield FurtherResult("anchoring", "Anchoring: conversation − none", found, rows)

    def view(
        self, episode: Episode[ProjectionEvent], task: ProjectionTask, judged: Judged, score: ProjectionScores | None
    ) -> EpisodeBody:  # fmt: skip
        """Return the projections and sheets turn by turn, with claims, ratings and answers."""
        views = [_turn_view(episode, task, turn, judged) for turn in episode.turns]
        meanings = dict.fromkeys((view.mark.kind, view.mark.sign, view.mark.words.partition(";")[0]) for view in views)
        return EpisodeBody(
            views=views,
            signs=list(meanings),
            template="projection.html",
            paper=task.paper,
            settings={"judge": episode.header.setup.judge},
            values={"detail": RESULTS.detail(episode, task, judged)},
        )


PAGES = ProjectionPages()
