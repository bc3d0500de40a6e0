"""Pages of inquiries: additions to a report, and the turns of an episode with the state after each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry import sections
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.events import InquiryEvent
from inquitree_gym.inquiry.exam import exam_of
from inquitree_gym.inquiry.gains import PageBeliefs, page_beliefs
from inquitree_gym.inquiry.judges.quality import Verdict, evidence_ratios
from inquitree_gym.inquiry.opportunities import Choice
from inquitree_gym.inquiry.recall import ESTIMATES
from inquitree_gym.inquiry.results import COVERAGE, RETURN, SHARE, UNAIDED, EpisodeScore, InquiryDetail
from inquitree_gym.inquiry.trajectory import axis_rows, exam_score, world_of
from inquitree_gym.inquiry.vigilance import exposures
from inquitree_gym.judging.judgement import Judged
from inquitree_gym.log import Episode
from inquitree_gym.protocols import Outline
from inquitree_gym.results.report import FurtherResult, KindPages, Report
from inquitree_gym.results.score import KindResults, Measure
from inquitree_gym.results.summary import as_plain, summary_table
from inquitree_gym.results.tables import Table, make_table
from inquitree_gym.results.turns import Badge, EpisodeBody, TurnView
from inquitree_gym.trees import HINT_LEVELS, Tree
from inquitree_gym.trees.drawing import diagram
from inquitree_gym.trees.worlds import EVEN, ItemInWorld, in_world, world_id

_IN_SUBTOPIC = ("subtopic", "study", "result")
"""States in which a subtopic is under study."""


@dataclass(frozen=True, slots=True)
class InquiryTurn(TurnView):
    """One turn, and the state of the inquiry after it."""

    shown: Badge | None
    """Kind of the observation that the agent read, if its text alone does not show it."""
    verdict: str
    """Hit, miss or false alarm. Empty for other decisions."""
    truth: str
    """True result, if the observation held a fake one."""
    path: tuple[str, ...]
    """Subtopics in the order in which they were entered, revisits included."""
    current: str
    """Subtopic under study. Empty at the topic and at the conclusion."""
    target: str
    """Target of the hint that comes next. Empty without one."""
    results: dict[str, int]
    """Result seen last, by study: 0 for the true one, i for the i-th fake."""


def inquiry_view(episode: Episode[InquiryEvent], tree: Tree, score: EpisodeScore | None) -> EpisodeBody:
    """Return what the page of an inquiry shows.

    Args:
        episode: finished or torn.
        tree: the tree that it was played on.
        score: the score. None for an unfinished episode.
    """
    views = turn_views(episode, tree)
    beliefs = None
    if score is not None and score.detail.reasoned is not None:
        beliefs = page_beliefs(episode, tree, score.detail.exposures)
    return EpisodeBody(
        views=views,
        signs=legend(views),
        template="inquiry.html",
        paper=tree.paper,
        values={
            "tree": tree,
            "diagram": diagram(tree),
            "names": {s.id: s.name for s in tree.subtopics} | {s.id: s.text for s in tree.studies},
            "world": world_id(world_of(tree, episode)),
            "fiction": tuple(axis.actual for axis in tree.axes) != world_of(tree, episode),
            "exam": _exam_rows(episode, tree, beliefs),
            "beliefs": _belief_rows(episode, tree, score, beliefs),
            "axes": axis_rows(episode, tree),
            "items": _graded_items(episode, tree, score),
            "threshold": float(episode.header.rules["threshold"]),
        },
    )


class ExamRow(NamedTuple):
    """One statement of the exam."""

    text: str
    chosen: bool
    holds: bool
    chance: float | None
    """Probability that it holds for the posterior after the last result. None where that is not defined."""


def _exam_rows(
    episode: Episode[InquiryEvent], tree: Tree, beliefs: PageBeliefs | None
) -> list[tuple[str, list[ExamRow]]]:
    """Return the statements of each conclusion item."""
    exam = exam_score(episode, tree)
    if exam is None:
        return []
    none = [(None,) * len(item.options) for item in tree.conclusions]
    chances = none if beliefs is None else beliefs.statements
    return [
        (
            item.id,
            [
                ExamRow(text, place == chosen, place == right, chance)
                for place, (text, chance) in enumerate(zip(item.options, of_item, strict=True))
            ],
        )
        for item, chosen, right, of_item in zip(tree.conclusions, exam.choices, exam.right, chances, strict=True)
    ]


class BeliefRow(NamedTuple):
    """One result, the choice that led to it, and the belief after it. The first row is the belief before any."""

    turn: int
    study: str
    fake: bool
    doubt: float | None
    """P(fake) when it was shown."""
    choice: Choice | None
    best: str
    """Study with the largest expected information that was open. Empty in the first row."""
    holds: list[float]
    """Belief in the pole that holds, by axis."""


def _belief_rows(
    episode: Episode[InquiryEvent], tree: Tree, score: EpisodeScore | None, beliefs: PageBeliefs | None
) -> list[BeliefRow]:
    """Return a row for each result. There is none where the posterior is not defined."""
    if score is None or score.detail.reasoned is None or beliefs is None:
        return []
    world, found = world_of(tree, episode), score.detail.reasoned
    first, *after = ([axis[pole] for axis, pole in zip(each, world, strict=True)] for each in beliefs.axes)
    results = zip(score.detail.exposures, found.doubts, found.choices, after, strict=True)
    return [BeliefRow(0, "", False, None, None, "", first)] + [
        BeliefRow(each.turn, each.study, each.fake > 0, doubt, choice, tree.studies[choice.best].id, row)
        for each, doubt, choice, row in results
    ]


def _graded_items(
    episode: Episode[InquiryEvent], tree: Tree, score: EpisodeScore | None
) -> list[tuple[ItemInWorld, float, Verdict]]:
    """Return per conclusion item: the item, its evidence ratio p, and the verdict."""
    if score is None or not score.detail.verdicts:
        return []
    rules = Rules().override(episode.header.rules)
    ratios = map(float, evidence_ratios(tree, score.detail.trajectory.proven, rules.evidence))
    items = in_world(tree, world_of(tree, episode)).conclusions
    return list(zip(items, ratios, score.detail.verdicts, strict=True))


def turn_views(episode: Episode[InquiryEvent], tree: Tree) -> list[InquiryTurn]:
    """Follow an episode, finished or torn, through its tree."""
    truths = {study.id: study.results[0] for study in in_world(tree, world_of(tree, episode)).studies}
    path: tuple[str, ...] = ()
    results: dict[str, int] = {}
    controls = {study.id for study in tree.studies if len(study.outcomes) == 1}
    before: InquiryEvent | None = None
    result: InquiryEvent | None = None
    found = []
    for turn in episode.turns:
        event = turn.event
        if event.kind == "subtopic" and event.node is not None:
            path = (*path, event.node)
        if event.kind == "declined":
            path = path[:-1]
        if event.kind == "result" and event.node is not None:
            results = {**results, event.node: event.fake}
        state = "topic" if before is None else before.state
        # A recalled result has had its decision, and that of a study that is never faked counts in no rate.
        uncounted = (before is not None and before.kind == "recall") or (result is not None and result.node in controls)
        view = InquiryTurn(
            turn=turn,
            replies=episode.replies_to(turn.turn),
            state=state,
            shown=_shown(before),
            mark=_mark(event),
            verdict=_verdict(result, event) if state == "result" and not uncounted else "",
            truth=truths.get(before.node or "", "") if before is not None and before.fake else "",
            path=path,
            current=path[-1] if path and event.state in _IN_SUBTOPIC else "",
            target=event.node or "" if _is_hint(event) else "",
            results=results,
        )
        found.append(view)
        result = event if event.kind == "result" else result
        before = event
    return found


def legend(views: Iterable[InquiryTurn]) -> list[tuple[str, str, str]]:
    """Return class, sign and meaning of every sign that these turns have. One line stands for all levels of hints."""
    found = dict.fromkeys((view.mark.kind, "1" if view.mark.sign.isdigit() else view.mark.sign) for view in views)
    return [(kind, sign, _SIGNS[sign]) for sign in _SIGNS for kind, other in found if other == sign]


def _shown(event: InquiryEvent | None) -> Badge | None:
    """Return the kind of an observation that its text alone does not show: a result or a hint."""
    if event is None or event.node is None:
        return None
    if event.kind == "result":
        which = f"fake result {event.fake}" if event.fake else "true result"
        return Badge("fake" if event.fake else "true", f"{which} of {event.node}")
    if _is_hint(event):
        return Badge("hint", f"hint {event.hint_level} of {HINT_LEVELS}, towards {event.node}")
    return None


def _is_hint(event: InquiryEvent) -> bool:
    # At the turn limit the prompt for the conclusion takes the place of the hint.
    return event.kind.endswith("_hint") and not event.limit


_SIGNS = {
    "●": "accepted", "1": "not accepted; hint of this level", "×": "not accepted; no hint left", "!": "forced",
    "T": "true result shown", "F": "fake result shown", "→": "explores", "←": "declines", "■": "concludes",
    "?": "asked again", "w": "has to wait", "r": "was run before",
}  # fmt: skip
"""Meaning of the signs of turns."""
_DECISIONS = {
    "topic": Badge("decision", "decides to explore", "→"),
    "conclusion": Badge("decision", "decides to conclude", "■"),
    "ask_again": Badge("hint", "no decision can be read; asked again", "?"),
    "exam": Badge("decision", "the conclusion is filed; the exam begins", "■"),
    "exam_again": Badge("hint", "no answer can be read; asked again", "?"),
    "end": Badge("decision", "the project is closed", "■"),
}
_NAMING = {
    "declined": ("decision", "declines {node}", "←"),
    "recall": ("decision", "{node} was run before", "r"),
    "wait": ("hint", "has to wait for its prerequisites", "w"),
}
"""Class, words and sign of outcomes that name nodes."""


def _mark(event: InquiryEvent) -> Badge:
    mark = _DECISIONS.get(event.kind) or _choice_mark(event)
    if event.kind in _NAMING:
        kind, words, sign = _NAMING[event.kind]
        mark = Badge(kind, words.format(node=event.node), sign)
    return replace(mark, words=f"{mark.words}; the turn limit strikes") if event.limit else mark


def _choice_mark(event: InquiryEvent) -> Badge:
    """Return the outcome of a choice or of a study."""
    why = event.reason.replace("_", " ")
    if event.kind.endswith("_hint"):
        hint = f"; hint {event.hint_level} towards {event.node}" if _is_hint(event) else ""
        return Badge("hint", f"not accepted ({why}){hint}", str(event.hint_level or "×"))
    verb = "enters" if event.kind == "subtopic" else "redoes" if event.decision == "redo" else "runs"
    words = f"forced into {event.node} ({why})" if event.forced else f"{verb} {event.node}"
    if event.kind != "result":
        return Badge("forced", words, "!") if event.forced else Badge("accepted", words, "●")
    if event.fake:
        return Badge("fake", f"{words}; fake result {event.fake} is shown", "F")
    return Badge("true", f"{words}; the true result is shown", "T")


def _verdict(result: InquiryEvent | None, event: InquiryEvent) -> str:
    """Return the verdict on a decision at a result. Empty for a true result that was not redone."""
    if result is None or event.decision == "none":
        return ""
    if event.decision == "redo":
        return "hit: a fake result is redone" if result.fake else "false alarm: a true result is redone"
    return "miss: a fake result is not redone" if result.fake else ""


def found_so_far(episode: Episode[InquiryEvent], tree: Tree) -> Outline:
    """Return the subtopics entered, with the studies run and the results seen, as the observations told them.

    From the end on, fakes are marked, and what was not found follows.
    """
    told, ended = in_world(tree, world_of(tree, episode)), episode.footer is not None
    outcomes = {study.id: study.outcomes for study in told.studies}
    views, seen = turn_views(episode, tree), defaultdict[str, list[Outline]](list)
    for event in (turn.event for turn in episode.turns):
        if event.kind == "result" and event.node is not None:
            heading = f"Result {len(seen[event.node]) + 1}" + (" (fake)" if ended and event.fake else "")
            seen[event.node].append(Outline(heading, outcomes[event.node][event.fake][event.wording]))
    nodes = {subtopic.id: subtopic for subtopic in tree.subtopics}
    path = dict.fromkeys(views[-1].path if views else ())
    parts = [
        Outline(
            f"Subtopic {number}", nodes[name].text,
            tuple(
                Outline("Study" if study.id in seen else "Study that was not run", study.text, tuple(seen[study.id]))
                for study in nodes[name].studies
                if ended or study.id in seen
            ),
        )
        for number, name in enumerate(path, 1)
    ]  # fmt: skip
    left = [Outline("Subtopic that was not entered", each.text) for each in tree.subtopics if each.id not in path]
    return Outline("Topic", tree.topic, (*parts, *(left if ended else ())))


def belief_table(episode: Episode[InquiryEvent], tree: Tree) -> Table | None:
    """Return the belief of the exact posterior in each pole of each axis, at the end beside the answer and the truth.

    Before the end it holds only the axes that the results seen so far have read. None where no posterior is defined.
    """
    shown = exposures(episode, tree)
    if Rules().override(episode.header.rules).world not in EVEN:
        return None
    try:
        now = page_beliefs(episode, tree, shown).axes[-1]
    except OptionError:
        return None
    exam, design, seen = exam_score(episode, tree), exam_of(tree), {each.study for each in shown}
    read = {axis for study in tree.studies if study.id in seen for axis in study.result.axes}
    stated: set[tuple[int, int]] = set()
    for item, choice in enumerate(() if exam is None else exam.choices):
        if choice is not None:
            stated.update(zip(design.items[item], design.stated(item, choice), strict=True))
    world, ended = world_of(tree, episode), episode.footer is not None
    lines = []
    for place, (axis, chances) in enumerate(zip(tree.axes, now, strict=True)):
        for pole, (text, chance) in enumerate(zip(axis.poles, chances, strict=True)):
            marks = ("✓ yours" if (place, pole) in stated else "", "✓ holds" if world[place] == pole else "")
            if ended or axis.id in read:
                lines.append((axis.question, text, chance, *(marks if ended else ())))
    heads = ("question", "possible answer", "belief", *(("you", "truth") if ended else ()))
    return make_table("Belief of the ideal observer", heads, lines, labels=2)


class InquiryPages(KindPages):
    """Pages of inquiries. See `KindPages` for the methods."""

    charts: Mapping[str, tuple[str, str]] = {
        "coverage": ("coverage", "coverage r_c"),
        "unaided": ("unaided_coverage", "unaided coverage"),
        "return": ("return", "return of the exam"),
        "conclusion": ("Q/|C|", "conclusion Q/|C|"),
    }
    board = ("return", "right", "answered", "credit", "coverage", "unaided_coverage", "hints")
    listed = ("return", "right", "coverage", "unaided_coverage", "turns", "hints")
    sections = (
        sections.gains,
        sections.vigilance,
        sections.vigilance_over_time,
        sections.turns,
        sections.readings,
        sections.recall,
    )

    def maps(self, results: KindResults[Any, InquiryDetail]) -> Mapping[str, Measure[InquiryDetail]]:
        """See `KindPages.maps`."""
        return {"Return": RETURN, "Unaided coverage": UNAIDED, "Coverage": COVERAGE, "Conclusion Q/|C|": SHARE}

    def label(self, score: EpisodeScore) -> str:
        """Return the tree with its evidence tier."""
        return f"{score.task} (tier {score.detail.tier})" if score.detail.tier else score.task

    def csvs(self, report: Report[InquiryDetail]) -> Mapping[str, str]:
        """Return vigilance over the course of inquiries, if fakes were shown."""
        found = sections.vigilance_trends(report)
        return {"-vigilance.csv": sections.vigilance_csv(found)} if found else {}

    def further_results(self, report: Report[InquiryDetail]) -> Iterator[FurtherResult]:
        """Yield the recall gap."""
        found = sections.recall_rows(report)
        rows = list(summary_table(found, ESTIMATES, report.results)) if found else []
        yield FurtherResult("recall_gap", "Recall gap", [as_plain(row) for row in found], rows)

    def view(
        self, episode: Episode[InquiryEvent], task: Tree, judged: Judged, score: EpisodeScore | None
    ) -> EpisodeBody:
        """See `inquiry_view`."""
        return inquiry_view(episode, task, score)

    def found(self, episode: Episode[InquiryEvent], task: Tree) -> Outline:
        """See `found_so_far`."""
        return found_so_far(episode, task)

    def beliefs(self, episode: Episode[InquiryEvent], task: Tree) -> Table | None:
        """See `belief_table`."""
        return belief_table(episode, task)


PAGES = InquiryPages()
