"""Scores and measures of inquiries, and their part of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.engine.rules import limit_label, logged_rules
from inquitree_gym.inquiry.gains import (
    CHECKED,
    CHOOSING,
    CONFLICT_D,
    OBSERVER_AUC,
    OBSERVER_D,
    REDO_AUC,
    TAKEN_UP,
    TOLD,
    TOLD_HITS,
    Reasoned,
    count_conflicts,
    gains,
    reasoned,
    showings_of,
    taken_up,
)
from inquitree_gym.inquiry.judges.quality import Verdict, conclusion_quality, mean_score
from inquitree_gym.inquiry.observer import design_of
from inquitree_gym.inquiry.recall import Answer, recall_gap, recalled
from inquitree_gym.inquiry.trajectory import ReadingCounts, Trajectory, check_log, coverage_over_turns, trajectory_of
from inquitree_gym.inquiry.vigilance import (
    ALL,
    CRITERION,
    D_PRIME,
    FALSE_ALARMS,
    FIRST,
    HITS,
    REDO,
    REDO_FAKES,
    REDO_TRUES,
    TELLABLE,
    TRUTH_SEEN,
    Calibration,
    Counts,
    Exposure,
    calibration,
    exposures,
    redo_probabilities,
    sensitivity,
)
from inquitree_gym.results.score import Anchors, KindResults, Measure, Score
from inquitree_gym.results.statistics import Estimate, paired_difference
from inquitree_gym.trees import Tree

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent, InquirySetup
    from inquitree_gym.judging.judgement import Judged
    from inquitree_gym.log import Episode, Header
    from inquitree_gym.trees.fields import Tier


@dataclass(frozen=True, slots=True)
class InquiryDetail:
    """Part of a score that only inquiries have."""

    trajectory: Trajectory
    verdicts: tuple[Verdict, ...]
    """By conclusion item, in tree order. Empty without a conclusion."""
    quality: float | None
    """Q = Σ p·S (Eq. 9), in [0, |C|]. None without a conclusion, or with an unscored item."""
    items: int
    """|C|: number of conclusion items of the tree."""
    subtopics: int
    """n, the subtopics of the tree."""
    threshold: float
    """Similarity from which a choice is accepted."""
    coverage: tuple[float, ...]
    """Coverage after each turn, in [0, 1]."""
    readings: ReadingCounts
    exposures: tuple[Exposure, ...]
    """Results that the agent observed, in order."""
    conflicts: Counts
    """Conflicts and agreements between results. See `count_conflicts`."""
    tier: Tier | None = None
    """Evidence tier of the tree."""
    reasoned: Reasoned | None = None
    """The exact posterior beside the showings. None in worlds that are not drawn evenly."""
    answers: tuple[Answer, ...] = ()
    """Answers beside the posterior in worlds that are not drawn evenly. See `recalled`."""

    @property
    def quality_share(self) -> float | None:
        """Q/|C| in [0, 1], the scale of the paper's tables."""
        return None if self.quality is None else self.quality / self.items

    @property
    def mean_grade(self) -> float | None:
        """Mean S of the conclusion items, in [0, 1]. None without a conclusion or with an unscored item.

        Unlike Q/|C|, it ignores the evidence ratio p: it grades the statements, not how they were found.
        """
        return mean_score(self.verdicts)

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        trajectory = self.trajectory
        return {
            "trajectory": asdict(trajectory),
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "quality": self.quality,
            "items": self.items,
            "quality_share": self.quality_share,
            "calibration": asdict(Calibration.of(trajectory.beliefs)),
        }


EpisodeScore = Score[InquiryDetail]
"""Score of an inquiry."""


def inquiry_detail(episode: Episode[InquiryEvent], tree: Tree, verdicts: tuple[Verdict, ...]) -> InquiryDetail:
    """Return what the score of an inquiry holds, from its log, which `check_log` has passed, its tree and the verdicts.

    ``verdicts`` are those on its conclusion.
    """
    shown = exposures(episode, tree)
    trajectory = trajectory_of(episode, tree, shown)
    rules = logged_rules(episode.header.rules)
    return InquiryDetail(
        trajectory=trajectory,
        verdicts=verdicts,
        quality=conclusion_quality(tree, trajectory.proven, verdicts, rules.evidence) if verdicts else None,
        items=len(tree.conclusions),
        subtopics=len(tree.subtopics),
        threshold=float(episode.header.rules["threshold"]),
        coverage=tuple(coverage_over_turns(episode, tree)),
        readings=ReadingCounts.of(episode),
        exposures=shown,
        tier=tree.provenance.tier,
        reasoned=reasoned(episode, tree, shown, trajectory.exam),
        answers=recalled(episode, tree, shown, trajectory.exam),
        conflicts=count_conflicts(design_of(tree), showings_of(episode, tree, shown), shown),
    )


def reading_of(header: Header) -> str:
    """Return the embedder and threshold, or the reader, of a log, and the rules that differ from the default.

    The set of worlds is named where it is not that of the preset.
    """
    setup: InquirySetup = header.setup
    by = f"{setup.embedder.name} τ={header.rules['threshold']}"
    if setup.reader is not None:
        by = str(setup.reader.get("name", "unknown reader"))
    rules = logged_rules(header.rules)
    label = rules.label
    named = [by] if label == "default" else [by, f"rules: {label}"]
    usual = Rules.preset(label.split(", ")[0]).world
    return ", ".join(named if rules.world == usual else [*named, f"world={rules.world}"])


def limit_of(header: Header) -> str:
    """Return the turn limit as the rules have it: ``3n``, ``3n+3``, a number, or ``none``."""
    return limit_label(header.rules["max_turns"])


FLOOR, CEILING = "random-menu", "oracle"
OF_ORACLE = "return / oracle"
"""Heading of the return on the scale from 0 to the oracle's return (1), if the scores hold the oracle."""
NORMALISED = "normalised"
"""Heading of Q/|C| scaled from the floor (0) to the oracle (1), if the scores hold both."""
CHANGE = "redo_rate − level 0"
"""Name of the redo frequency minus that of the same tree and seed without fakes, if that was played."""
LEVEL = "fake_level"
"""Name of the fake level on the grid."""
REDO_PROBABILITIES = (REDO, REDO_FAKES, REDO_TRUES)
AGAINST_POSTERIOR = (D_PRIME, OBSERVER_D, OBSERVER_AUC, REDO_AUC, TOLD, TOLD_HITS)
CONFLICTS = (TAKEN_UP, CHECKED, CONFLICT_D)
"""Columns of the tables of vigilance."""
STATED, BOUNDS = "stated", "bounds of L"
"""Facts of a setting: results with a stated belief, and the bounds of L of its trees, each end as a range."""


def _stretch(detail: InquiryDetail) -> float | None:
    """Return the position of L between its bounds: 0 at the lower, 1 at the upper one. None if they are one or none."""
    path = detail.trajectory
    if path.most_turns is None or path.most_turns <= path.fewest_turns:
        return None
    return (path.turns - path.fewest_turns) / (path.most_turns - path.fewest_turns)


def _redone(showing: str, rate: str) -> Callable[[InquiryDetail], float | None]:
    return lambda detail: getattr(detail.trajectory.showings[showing], rate)


SPLIT = tuple(
    Measure(f"{rate}, {showing}", _redone(showing, rate), f"{rate} among the showings: {showing}")
    for showing in (FIRST, TELLABLE, TRUTH_SEEN)
    for rate in (HITS, FALSE_ALARMS)
)
"""Rates over one kind of showings. See `SHOWINGS`."""
COVERAGE = Measure[InquiryDetail]("coverage", lambda detail: detail.trajectory.coverage, "share of subtopics entered")
UNAIDED = Measure[InquiryDetail](
    "unaided_coverage", lambda detail: detail.trajectory.unaided_coverage, "share of subtopics entered without a hint"
)
CREDIT = Measure[InquiryDetail]("credit", lambda detail: detail.trajectory.credit, "mean earned credit of the results")
RETURN = Measure[InquiryDetail](
    "return", lambda detail: None if detail.trajectory.exam is None else detail.trajectory.exam.score,
    "return of the exam, in [-1, 1]", anchors=Anchors(OF_ORACLE, 0.0, CEILING),
)  # fmt: skip
RIGHT = Measure[InquiryDetail](
    "right", lambda detail: None if detail.trajectory.exam is None else detail.trajectory.exam.share_right,
    "share of the exam's items answered right",
)  # fmt: skip
ANSWERED = Measure[InquiryDetail](
    "answered", lambda detail: None if detail.trajectory.exam is None else detail.trajectory.exam.share_answered,
    "share of the exam's items answered",
)  # fmt: skip
SHEET_BRIER = Measure[InquiryDetail](
    "sheet_brier", lambda detail: None if detail.trajectory.exam is None else detail.trajectory.exam.mean_brier,
    "Brier score of the probabilities given to answers, mean over the axes",
)  # fmt: skip
READING = Measure[InquiryDetail](
    "reading", lambda detail: None if detail.reasoned is None else detail.reasoned.reading,
    "expected return of the answers minus that of the exact posterior's, after the same showings",
)  # fmt: skip
EXACT = Measure[InquiryDetail](
    "exact_return", lambda detail: None if detail.reasoned is None else detail.reasoned.best,
    "expected return of the exact posterior's answers after the same showings",
)  # fmt: skip
INFORMATION = Measure[InquiryDetail](
    "information", lambda detail: None if detail.reasoned is None else detail.reasoned.information,
    "expected information of the studies chosen, as a share of the best open ones",
)  # fmt: skip
SHARE = Measure[InquiryDetail](
    "Q/|C|", lambda detail: detail.quality_share, "quality of the conclusion", judged=True,
    anchors=Anchors(NORMALISED, FLOOR, CEILING),
)  # fmt: skip
GRADE = Measure[InquiryDetail]("mean S", lambda detail: detail.mean_grade, "mean grade of the items", judged=True)
MEASURES: tuple[Measure[InquiryDetail], ...] = (
    RETURN,
    RIGHT,
    ANSWERED,
    SHEET_BRIER,
    READING,
    EXACT,
    INFORMATION,
    COVERAGE,
    UNAIDED,
    CREDIT,
    Measure("coverage_at_3n", lambda detail: detail.trajectory.coverage_at_3n, "coverage within the first 3n turns"),
    Measure("Q", lambda detail: detail.quality, "sum of p·S over the conclusion items", judged=True),
    SHARE,
    Measure("turns", lambda detail: float(detail.trajectory.turns), "turns up to the decision to conclude"),
    Measure("stretch", _stretch, "position of L between its bounds"),
    Measure("hints", lambda detail: float(detail.trajectory.hints), "hints given"),
    Measure("redo_rate", lambda detail: detail.trajectory.redo_rate, "share of results redone"),
    Measure(HITS, lambda detail: detail.trajectory.hit_rate, "share of fake results redone"),
    Measure(FALSE_ALARMS, lambda detail: detail.trajectory.false_alarm_rate, "share of true results redone"),
    *SPLIT,
)
LEGEND = (
    "n: episodes (trees). Means over trees; [low, high] is the 95 % interval, t over tree means, from five trees on.\n"
    "n = … below a mean: the trees with a value, if fewer than in the row; its neighbours rest on other trees.\n"
    "random, random-redo: name the tree's texts, as in the paper; their coverage and credit take no understanding.\n"
    "unaided coverage: subtopics entered on a decision that needed no hint.\n"
    "credit: mean over the results of 1, ¼ or 0, by the hints before the first choice of subtopic and study; 0 after\n"
    "a forced move, or in words that were shown before.\n"
    "turns: L, up to the decision to conclude.\n"
    "return: of the exam, the mean over the axes of credit times score, from -1 to 1; guessing is worth 0.\n"
    "return / oracle: on the scale from 0 to the oracle's return (1) of the same trees and level, where it ran.\n"
    "right, answered: shares of the exam's items. sheet brier: of the probabilities given to answers, over the axes.\n"
    "reading: expected return of the agent's answers minus that of the exact posterior's answers; 0 at best.\n"
    "choosing: worth of the results seen, from random choice (0) to greedy choice (1), both simulated at this limit.\n"
    "information: expected bits of the studies chosen, as a share of the best study open at that moment.\n"
    "tellable: fakes that are fake with ≥ 0.6 for the exact posterior. redo AUC: of P(fake), redone against others.\n"
    "observer d′, AUC: of P(fake) against the truth, fake being called where it is likelier than true.\n"
    "redo probability: redone / shown over all results, unlike the mean of shares redo rate. conflicts taken up: next\n"
    "result reads the axis on which two results contradict each other; agreements: the same where they agree.\n"
    "Q, S: grades of the written conclusion; name a judge with --judge to see them.\n"
    "normalised: Q/|C| from the floor (random-menu, 0) to the oracle (1) of the same trees and level, where both ran.\n"
    "stretch: position of L between its bounds, 0 at 3n, 1 at the limit or n(2H+3); below 0 for an early conclusion.\n"
    "hit rate, false alarm rate: shares of the fake and of the true results that were redone.\n"
    "redo rate − level 0: paired by tree and seed. d′: sensitivity, how well fakes are told from true results.\n"
    "first: first results of a study. detectable: fakes that reasoning can tell, and true results, until the true\n"
    "result of the study was seen. Brier, AUC: of the stated probabilities that results are fake; stated: their number."
)


class InquiryResults(KindResults[Tree, InquiryDetail]):
    """Results of inquiries. See `KindResults` for the methods."""

    measures = MEASURES
    shown = ("return", "right", "credit", "coverage", "unaided_coverage")
    tables: Mapping[str, tuple[str, ...]] = {
        "Results": ("return", OF_ORACLE, "credit", "unaided_coverage"),
        "Answers and coverage": ("right", "answered", "sheet_brier", "coverage", "coverage_at_3n"),
        "Gains": (CHOOSING, "information", "reading", "exact_return"),
        "Conclusions, by a judge": ("Q", "Q/|C|", "mean S", NORMALISED),
        "Steps": ("turns", BOUNDS, "stretch", "hints"),
        "Vigilance": ("redo_rate", CHANGE, HITS, FALSE_ALARMS, D_PRIME),
        "Vigilance by kind of showing": tuple(measure.name for measure in SPLIT[:4]),
        "Redo probabilities": REDO_PROBABILITIES,
        "Vigilance against the posterior": AGAINST_POSTERIOR,
        "Conflicts between results": CONFLICTS,
        "Stated beliefs": (STATED, "Brier", "AUC"),
    }
    compared = ("return", "coverage", "unaided_coverage", "Q/|C|", "turns", "redo_rate", HITS, FALSE_ALARMS)
    split = (RETURN, COVERAGE, UNAIDED, SHARE, GRADE)
    clusters = "trees"
    legend = LEGEND

    def detail(self, episode: Episode[InquiryEvent], task: Tree, judged: Judged) -> InquiryDetail:
        """Return course and conclusion."""
        verdicts = next((tuple(payload) for payload in judged.payloads.values()), ())
        return inquiry_detail(episode, task, verdicts)

    def check(self, episode: Episode[InquiryEvent], task: Tree) -> None:
        """See `check_log`."""
        check_log(episode, task)

    def rules(self, header: Header) -> str:
        """See `reading_of`."""
        return reading_of(header)

    def limit(self, header: Header, task: Tree) -> str:
        """See `limit_of`."""
        return limit_of(header)

    def unscored(self, detail: InquiryDetail) -> int:
        """Return 1 for a judged conclusion with an unscored item."""
        return int(bool(detail.verdicts) and detail.quality is None)

    def pooled(self, scores: Sequence[EpisodeScore], of_player: Sequence[EpisodeScore]) -> dict[str, Estimate]:
        """Return what needs many results: calibration, redo probabilities, d′, c, conflicts and `gains`."""
        from inquitree_gym.results.summary import grouped

        beliefs = {
            tree: [belief for score in group for belief in score.detail.trajectory.beliefs]
            for tree, group in grouped(scores, lambda score: score.task).items()
        }
        counts = _counts(scores, lambda detail: detail.trajectory.showings[ALL])
        sensed = {name: each for name, each in sensitivity(counts).items() if name in (D_PRIME, CRITERION)}
        conflicts = taken_up(_counts(scores, lambda detail: detail.conflicts))
        change = {CHANGE: _redo_change(scores, of_player)}
        posterior = gains((score.task, score.detail.reasoned, score.detail.exposures) for score in scores)
        posterior |= recall_gap((score.task, score.seed, score.detail.answers) for score in scores)
        return calibration(beliefs) | change | posterior | redo_probabilities(counts) | conflicts | sensed

    def facts(self, scores: Sequence[EpisodeScore]) -> dict[str, int | str]:
        """Return the number of stated beliefs, and the bounds of L."""
        paths = [score.detail.trajectory for score in scores]
        highs = [path.most_turns for path in paths if path.most_turns is not None]
        bounds = f"[{_span([path.fewest_turns for path in paths])}, {_span(highs) if highs else '∞'}]"
        return {STATED: sum(len(path.beliefs) for path in paths), BOUNDS: bounds}

    def plain(self, detail: InquiryDetail) -> dict[str, Any]:
        """See `InquiryDetail.as_plain`."""
        return detail.as_plain()


def _counts(scores: Iterable[EpisodeScore], of: Callable[[InquiryDetail], Counts]) -> dict[str, Counts]:
    """Return counts of the episodes added up by tree."""
    counts: dict[str, Counts] = {}
    for score in scores:
        counts[score.task] = counts.get(score.task, Counts()) + of(score.detail)
    return counts


def _redo_change(scores: Sequence[EpisodeScore], of_player: Sequence[EpisodeScore]) -> Estimate:
    """Return redo frequency minus that at level 0, paired by tree and seed. No value at level 0 itself."""
    without_fakes = [score for score in of_player if not score.cell[LEVEL]]
    ours, theirs = (
        {(score.task, score.seed): score.detail.trajectory.redo_rate for score in side}
        for side in (scores, without_fakes)
    )
    return paired_difference(ours if scores[0].cell[LEVEL] else {}, theirs)


def _span(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"


RESULTS = InquiryResults()
