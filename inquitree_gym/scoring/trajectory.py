"""What an episode did, from its log: coverage, turns, hints, redo."""

from __future__ import annotations

from typing import NamedTuple

from inquitree_gym.engine import Rules
from inquitree_gym.errors import LogError
from inquitree_gym.log import Episode, Turn
from inquitree_gym.scoring.exposures import showings
from inquitree_gym.trees import Tree


class Path(NamedTuple):
    """The way of one episode through its tree; every share lies in [0, 1]."""

    coverage: float
    """r_c (Eq. 7): subtopics entered over all subtopics."""
    unaided_coverage: float
    """Subtopics entered, the first time, on a decision that needed no hint, over all subtopics."""
    coverage_at_3n: float
    """Subtopics entered within the first 3n turns, over all subtopics."""
    turns: int
    """L: turns up to and including the decision to conclude, or the limit; the conclusion is not counted."""
    fewest_turns: int
    most_turns: int | None
    """[3n, n(2H + 3)] under the rules of the episode; None where nothing is forced."""
    choices: int
    """Actions taken for a choice, at the topic or at a subtopic."""
    accepted: int
    """Choices that were accepted."""
    hints: int
    forced: int
    fakes_shown: int
    """Fake results that the agent could react to."""
    hits: int
    """Fake results that the agent redid."""
    trues_shown: int
    false_alarms: int
    """True results that the agent redid."""
    proven: int
    """Bit k is set when the true result of study k was observed."""
    conclusion: str | None
    """None for an episode that was never concluded."""

    @property
    def redo_rate(self) -> float | None:
        """Share of results that were redone; None without any."""
        return _share(self.hits + self.false_alarms, self.fakes_shown + self.trues_shown)

    @property
    def hit_rate(self) -> float | None:
        """Share of fake results that were redone (Fig. 3); None without any."""
        return _share(self.hits, self.fakes_shown)

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of true results that were redone (Fig. 3); None without any."""
        return _share(self.false_alarms, self.trues_shown)


def read_path(episode: Episode, tree: Tree) -> Path:
    """Follow one episode through its tree.

    Raises:
        LogError: the episode was played on another version of the tree.
    """
    if episode.header.tree.digest != tree.digest:
        raise LogError(
            f"the episode was played on {episode.header.tree.id} with digest {episode.header.tree.digest[:12]}, "
            f"but the tree at hand has {tree.digest[:12]}; score it with the tree it was played on"
        )
    n = len(tree.subtopics)
    entries = _first_entries(episode.turns)
    shown = showings(episode)
    fakes = [each.redone for each in shown if each.fake and each.redone is not None]
    trues = [each.redone for each in shown if not each.fake and each.redone is not None]
    index = {study.id: k for k, study in enumerate(tree.studies)}
    low, high = _bounds(episode, n)
    return Path(
        coverage=len(entries) / n,
        unaided_coverage=sum(unaided for _, unaided in entries.values()) / n,
        coverage_at_3n=sum(turn <= 3 * n for turn, _ in entries.values()) / n,
        turns=len(episode.turns) - any(turn.event.kind == "end" for turn in episode.turns),
        fewest_turns=low,
        most_turns=high,
        choices=len(choices(episode.turns)),
        accepted=sum(turn.event.accepted for turn in choices(episode.turns)),
        hints=sum(turn.event.hint_level > 0 and not turn.event.limit for turn in episode.turns),
        forced=sum(turn.event.forced for turn in episode.turns),
        fakes_shown=len(fakes),
        hits=sum(fakes),
        trues_shown=len(trues),
        false_alarms=sum(trues),
        proven=sum(1 << index[study] for study in {each.study for each in shown if not each.fake}),
        conclusion=next((turn.action for turn in episode.turns if turn.event.kind == "end"), None),
    )


def coverage_over_turns(episode: Episode, tree: Tree) -> list[float]:
    """Return coverage after each turn, first to last."""
    seen: set[str] = set()
    curve = []
    for turn in episode.turns:
        if turn.event.kind == "subtopic" and turn.event.node is not None:
            seen.add(turn.event.node)
        curve.append(len(seen) / len(tree.subtopics))
    return curve


def choices(turns: tuple[Turn, ...]) -> list[Turn]:
    """Return the turns whose action was a choice: taken at the topic or at a subtopic."""
    phases = ["topic", *(turn.event.state for turn in turns)]
    return [turn for turn, phase in zip(turns, phases, strict=False) if phase in ("topic", "subtopic")]


def _first_entries(turns: tuple[Turn, ...]) -> dict[str, tuple[int, bool]]:
    """By subtopic entered: the turn of its first entry, and whether no hint had been given for that choice.

    Nor may any hint before have led to it: else a hint could be kept for later and said back as one's own idea.
    """
    found: dict[str, tuple[int, bool]] = {}
    told: set[str | None] = set()
    hinted = False
    for turn in turns:
        event = turn.event
        if event.kind == "subtopic" and event.node is not None:
            found.setdefault(event.node, (turn.turn, not (hinted or event.forced or event.node in told)))
        hinted = event.kind == "subtopic_hint"
        if hinted:
            told.add(event.node)
    return found


def _bounds(episode: Episode, n: int) -> tuple[int, int | None]:
    rules = Rules(**episode.header.rules)
    return rules.fewest_turns(n), rules.most_turns(n)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
