"""The course of an episode: coverage, turns, hints, and the results that were shown and redone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.inquiry.engine.rules import logged_rules
from inquitree_gym.inquiry.exam import Exam, axis_points, brier_by_axis, credited, exam_of, marks_of, sheet_of_world
from inquitree_gym.inquiry.vigilance import ALL, Belief, beliefs, exposures, tally
from inquitree_gym.trees.worlds import World, poles_in

if TYPE_CHECKING:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.inquiry.vigilance import Counts, Exposure
    from inquitree_gym.log import Episode, Turn
    from inquitree_gym.log.records import SheetRecord
    from inquitree_gym.trees import Tree


_ENTERS = {"subtopic": 1, "declined": -1}
"""Entries of a subtopic by the kind of an event that has one or takes one back."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The course of one episode through its tree. Shares are in [0, 1]."""

    coverage: float
    """r_c (Eq. 7): share of subtopics entered."""
    unaided_coverage: float
    """Share of subtopics first entered without a hint for them, now or earlier. See `first_entries`."""
    credit: float | None
    """Mean earned credit of the results shown. None without any."""
    coverage_at_3n: float
    """Share of subtopics entered within the first 3n turns."""
    turns: int
    """L: turns up to and including the decision to conclude, or up to the limit, without the conclusion itself."""
    fewest_turns: int
    """Lower bound of L under the rules of the episode: 3n by default."""
    most_turns: int | None
    """Upper bound of L under the rules of the episode: n(2H + 3) by default, None if no move is ever forced."""
    choices: int
    """Actions at the topic or at a subtopic, without decisions."""
    accepted: int
    hints: int
    forced: int
    showings: dict[str, Counts]
    """Results with a decision after them, and those redone, by the names of `SHOWINGS`."""
    beliefs: tuple[Belief, ...]
    """Beliefs stated about results, in order."""
    proven: int
    """Bit set of the studies whose true result was observed, bit k for study k."""
    exam: ExamScore | None
    """Score of the exam. None if none was taken."""
    conclusion: str | None
    """Text of the conclusion. None if the episode has none."""

    @property
    def redo_rate(self) -> float | None:
        """Share of results that were redone. None without any."""
        return self.showings[ALL].redo_rate

    @property
    def hit_rate(self) -> float | None:
        """Share of fake results that were redone (Fig. 3). None without any."""
        return self.showings[ALL].hit_rate

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of true results that were redone (Fig. 3). None without any."""
        return self.showings[ALL].false_alarm_rate


def read_trajectory(episode: Episode[InquiryEvent], tree: Tree) -> Trajectory:
    """Return the trajectory of an episode.

    Raises:
        LogError: see `check_log`.
    """
    check_log(episode, tree)
    return trajectory_of(episode, tree, exposures(episode, tree))


def trajectory_of(episode: Episode[InquiryEvent], tree: Tree, shown: Sequence[Exposure]) -> Trajectory:
    """Return the trajectory of an episode that `check_log` has passed, given its results."""
    n = len(tree.subtopics)
    entries = first_entries(episode.turns)
    index = {study.id: k for k, study in enumerate(tree.studies)}
    rules = logged_rules(episode.header.rules)
    chosen = choices(episode.turns)
    return Trajectory(
        coverage=len(entries) / n,
        unaided_coverage=sum(unaided for _, unaided in entries.values()) / n,
        credit=_mean_credit(episode),
        coverage_at_3n=sum(turn <= 3 * n for turn, _ in entries.values()) / n,
        turns=len(episode.turns) - sum(turn.event.state in ("exam", "end") for turn in episode.turns),
        fewest_turns=rules.fewest_turns(n),
        most_turns=rules.most_turns(n),
        choices=len(chosen),
        accepted=sum(turn.event.accepted for turn in chosen),
        hints=sum(turn.event.hint_level > 0 and not turn.event.limit for turn in episode.turns),
        forced=sum(turn.event.forced for turn in episode.turns),
        showings=tally(shown),
        beliefs=beliefs(shown),
        proven=sum(1 << index[study] for study in {each.study for each in shown if not each.fake}),
        exam=exam_score(episode, tree),
        conclusion=conclusion_of(episode),
    )


def conclusion_of(episode: Episode[InquiryEvent]) -> str | None:
    """Return the written conclusion. None if there is none yet."""
    found = concluding_turn(episode)
    return None if found is None else found.action


def concluding_turn(episode: Episode[InquiryEvent]) -> Turn[InquiryEvent] | None:
    """Return the turn in which the conclusion was written: the first one that leads to the exam or to the end."""
    return next((turn for turn in episode.turns if turn.event.state in ("exam", "end")), None)


def _mean_credit(episode: Episode[InquiryEvent]) -> float | None:
    found = [turn.event.credit for turn in episode.turns if turn.event.credit is not None]
    return sum(found) / len(found) if found else None


@dataclass(frozen=True, slots=True)
class ExamScore:
    """The exam of one episode."""

    score: float
    """Return in [-1, 1]: the mean over the axes of credit times score."""
    by_axis: tuple[float, ...]
    """Score of each axis of the exam, in [-1, 1], whatever credit was earned."""
    credit: tuple[float, ...]
    """Credit that was earned for each axis, in [0, 1]."""
    choices: tuple[int | None, ...]
    """Statement that was chosen for each conclusion item, by its place in the tree. None for none."""
    right: tuple[int, ...]
    """Statement that holds, for each item."""
    brier: tuple[float | None, ...]
    """Mean squared error of the stated probabilities by axis. None without any."""

    @property
    def mean_brier(self) -> float | None:
        """Mean of `brier` over the axes that have one. None without any."""
        known = [each for each in self.brier if each is not None]
        return sum(known) / len(known) if known else None

    @property
    def share_right(self) -> float:
        """Share of the items whose statement was chosen."""
        return sum(a == b for a, b in zip(self.choices, self.right, strict=True)) / len(self.right)

    @property
    def share_answered(self) -> float:
        """Share of the items that were answered."""
        return sum(choice is not None for choice in self.choices) / len(self.choices)


def world_of(tree: Tree, episode: Episode[Any]) -> World:
    """Return the world of an episode.

    Raises:
        LogError: the tree has no such world.
    """
    named = episode.header.setup.world
    try:
        return tuple(poles[0] for poles in poles_in(tree, named))
    except OptionError as error:
        raise LogError(f"the world of the log is none of {tree.id}: {error}") from None


def exam_score(episode: Episode[InquiryEvent], tree: Tree) -> ExamScore | None:
    """Return the score of the exam. None if none was taken."""
    sheets = [turn.event.sheet for turn in episode.turns if turn.event.sheet is not None]
    exam = exam_of(tree)
    if not sheets:
        return None
    sheet = sheets[-1].sheet
    world = world_of(tree, episode) or (0,) * len(exam.poles)
    credit = [0.0] * len(exam.poles)
    read = dict(zip((study.id for study in tree.studies), marks_of(tree), strict=True))
    for turn in episode.turns:
        if turn.event.kind == "result" and turn.event.node is not None:
            for mark in read[turn.event.node]:
                credit[mark.axis] = max(credit[mark.axis], turn.event.credit or 0.0)
    points = axis_points(exam, sheet, world)
    return ExamScore(
        score=credited(exam, points, credit),
        by_axis=tuple(point / exam.scale for point in points),
        credit=tuple(credit),
        choices=sheet.choices,
        right=tuple(choice or 0 for choice in sheet_of_world(exam, world).choices),
        brier=brier_by_axis(exam, sheet, world),
    )


def check_log(episode: Episode[InquiryEvent], tree: Tree) -> None:
    """Check that a log is of this version of ``tree`` and names rules, nodes and results that exist.

    Raises:
        LogError: it is of another version, or names something unknown.
    """
    header = episode.header
    if header.task.digest != tree.digest:
        raise LogError(
            f"the episode was played on {header.task.id} with digest {header.task.digest[:12]}, "
            f"but the given tree has {tree.digest[:12]}; score it with the tree it was played on"
        )
    if absent := {"threshold", "fake_level", "max_turns"} - header.rules.keys():
        raise LogError(f"the header of the log names no {' and no '.join(sorted(absent))}; it is damaged")
    try:
        rules = logged_rules(header.rules)
    except OptionError as error:
        raise LogError(f"the rules of the log are none of this release: {error}") from None
    if rules.threshold is None:
        raise LogError("the threshold of the log is not a number; it is damaged")
    results = {study.id: len(study.outcomes) for study in tree.studies}
    known = {None, *results, *(node.id for node in tree.subtopics), *(item.id for item in tree.conclusions)}
    world_of(tree, episode)
    exam = exam_of(tree)
    entered = Counter[str | None]()
    for turn in episode.turns:
        event = turn.event
        if event.kind in _ENTERS:
            entered[event.node] += _ENTERS[event.kind]
        if (
            (event.sheet is not None and not _fits(event.sheet, exam))
            or event.node not in known
            or (event.kind == "result" and event.fake not in range(results.get(event.node or "", 0)))
            or entered[event.node] < 0
        ):
            raise LogError(f"turn {turn.turn} of the log cannot have happened in {tree.id}; it is damaged")


def _fits(sheet: SheetRecord, exam: Exam) -> bool:
    """Tell whether a sheet answers the items of an exam by options that they have."""
    options = [range(exam.options(item)) for item in range(len(exam.items))]
    return len(sheet.choices) == len(options) and all(
        choice is None or choice in known for choice, known in zip(sheet.choices, options, strict=True)
    )


def coverage_over_turns(episode: Episode[InquiryEvent], tree: Tree) -> list[float]:
    """Return the coverage after each turn, in [0, 1]."""
    visits = Counter[str | None]()
    curve, covered, n = [], 0, len(tree.subtopics)
    for turn in episode.turns:
        if change := _ENTERS.get(turn.event.kind, 0):
            node = turn.event.node
            visits[node] += change
            covered += change if visits[node] == max(change, 0) else 0  # the first entry, or the last one taken back
        curve.append(covered / n)
    return curve


def choices(turns: tuple[Turn[InquiryEvent], ...]) -> list[Turn[InquiryEvent]]:
    """Return the turns at the topic or at a subtopic that made no decision."""
    phases = ["topic", *(turn.event.state for turn in turns)]
    chosen = (turn for turn, phase in zip(turns, phases, strict=False) if phase in ("topic", "subtopic"))
    return [turn for turn in chosen if turn.event.decision == "none"]


def first_entries(turns: tuple[Turn[InquiryEvent], ...]) -> dict[str, tuple[int, bool]]:
    """Map each subtopic entered to the turn of its first entry that was not declined, and whether it was unaided.

    A hint counts even if it came earlier: otherwise an agent could store it and propose it later as its own idea. For
    the same reason an aided entry that was declined counts as a hint.
    """
    entries: dict[str, list[tuple[int, bool]]] = {}
    told: set[str | None] = set()
    hinted = False
    for turn in turns:
        event = turn.event
        if event.kind == "subtopic" and event.node is not None:
            unaided = not (hinted or event.forced or event.node in told)
            entries.setdefault(event.node, []).append((turn.turn, unaided))
        if event.kind == "declined" and event.node is not None and not entries[event.node].pop()[1]:
            told.add(event.node)
        if event.kind == "subtopic_hint":
            told.add(event.node)
        hinted = event.kind == "subtopic_hint" or (hinted and event.kind == "wait")
    return {node: found[0] for node, found in entries.items() if found}


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """Outcomes and similarities of the choices, at the topic and at subtopics, of one or more episodes."""

    outcomes: Counter[str]
    """Choices by outcome: ``accepted``, ``hinted``, ``waits``, ``forced``, ``limit``."""
    reasons: Counter[str]
    """Actions that were not accepted, by reason. Unreadable decisions at a result are included."""
    accepted: tuple[float, ...]
    """Similarity of each accepted choice to its candidate."""
    refused: tuple[float, ...]
    """Similarity of each other choice to its nearest candidate."""

    @property
    def choices(self) -> int:
        """Number of choices."""
        return self.outcomes.total()

    def share(self, outcome: str) -> float | None:
        """Return the share of choices with an outcome. None without a choice."""
        return self.outcomes[outcome] / self.choices if self.choices else None

    @classmethod
    def of(cls, episode: Episode[InquiryEvent]) -> ReadingCounts:
        """Count the readings of one episode."""
        chosen = choices(episode.turns)
        return cls(
            outcomes=Counter(map(_outcome, chosen)),
            reasons=Counter(turn.event.reason for turn in episode.turns if turn.event.reason != "none"),
            accepted=tuple(turn.event.reading.similarity for turn in chosen if turn.event.accepted),
            refused=tuple(turn.event.reading.similarity for turn in chosen if not turn.event.accepted),
        )

    @classmethod
    def total(cls, counts: Iterable[ReadingCounts]) -> ReadingCounts:
        """Pool the readings of several episodes."""
        counts = list(counts)
        return cls(
            outcomes=sum((each.outcomes for each in counts), Counter()),
            reasons=sum((each.reasons for each in counts), Counter()),
            accepted=tuple(similarity for each in counts for similarity in each.accepted),
            refused=tuple(similarity for each in counts for similarity in each.refused),
        )


def _outcome(turn: Turn[InquiryEvent]) -> str:
    """Return the outcome of a choice. A choice cut off by the turn limit got no hint."""
    event = turn.event
    if event.accepted:
        return "accepted"
    if event.forced:
        return "forced"
    if event.limit:
        return "limit"
    return "waits" if event.reason == "prerequisite_unmet" and not event.hint_level else "hinted"


class AxisRow(NamedTuple):
    """One axis of the world."""

    id: str
    question: str
    holds: str
    """Pole that holds in the world that was played."""
    studies: str
    """Studies that read the axis; those that were run come first, marked with a dot."""
    items: str
    """Numbers of the conclusion items that state it."""


def axis_rows(episode: Episode[InquiryEvent], tree: Tree) -> list[AxisRow]:
    """Return the axes of the tree, with what holds and where it is read."""
    run = {turn.event.node for turn in episode.turns if turn.event.kind == "result"}
    rows = []
    for axis, pole in zip(tree.axes, world_of(tree, episode), strict=True):
        reads = sorted((s.id for s in tree.studies if axis.id in s.result.axes), key=lambda study: study not in run)
        items = [str(number) for number, item in enumerate(tree.conclusions, 1) if axis.id in item.axes]
        studies = ", ".join(f"{study} ●" if study in run else study for study in reads)
        rows.append(AxisRow(axis.id, axis.question, axis.poles[pole], studies, ", ".join(items)))
    return rows
