"""Load the episodes of logs and score them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from inquitree_gym.analysis.logs import AnyLogs, LoggedEpisode, Logs, MissingEpisode, find_logs
from inquitree_gym.analysis.recorded import RecordedJudges, recorded_judges
from inquitree_gym.errors import LogError
from inquitree_gym.judges import Judge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.llm import Usage
from inquitree_gym.llm.chat import is_cut_short, used_up
from inquitree_gym.log import Episode, Turn
from inquitree_gym.readers import READER_ROLE
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.trees import score_name
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.exposures import Exposure, exposures
from inquitree_gym.scoring.trajectory import choices, coverage_over_turns
from inquitree_gym.trees import Tree
from inquitree_gym.trees.provenance import Tier

Number = TypeVar("Number", int, float)
REFUSALS = ("refusal", "content_filter")
"""Finish reasons of a reply that refuses."""


@dataclass(frozen=True, slots=True)
class EpisodeCost:
    """Replies, tokens, dollars and seconds of one or more episodes; None is unknown, never 0."""

    replies: int
    """Replies of services, cached ones included."""
    corrections: int
    """Replies requested again because the previous one broke the agent's protocol."""
    cut_short: int
    """Replies that reached the limit of their tokens."""
    without_text: int
    """Replies that reached it before any text, by reasoning alone; each was asked for again."""
    retries: int
    """Failed requests before these replies."""
    refused: int
    """Replies in which the model or the service's filter refused to answer."""
    unread: int
    """Replies of a reader that name no candidate; see `LLMReader`."""
    prompt_tokens: int | None
    """Prompt tokens of the paid replies, as counted by the services."""
    completion_tokens: int | None
    """Completion tokens of the paid replies, reasoning included."""
    reasoning_tokens: int | None
    """Completion tokens that were reasoning; None if no service named them."""
    dollars: float | None
    """US dollars for the paid replies of known price; None without one."""
    unpriced: int
    """Paid replies of unknown price; with any, the dollars are a lower bound."""
    agent_seconds: float | None
    env_seconds: float

    @classmethod
    def total(cls, costs: Iterable[EpisodeCost]) -> Self:
        """Add costs field by field; a field that is unknown in all of them stays None."""
        costs = list(costs)
        totals: Any = {field.name: _known_sum(getattr(cost, field.name) for cost in costs) for field in fields(cls)}
        return cls(**totals)


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """Outcomes and similarities of the choices, at the topic and at subtopics, of one or more episodes."""

    outcomes: Counter[str]
    """Choices by outcome: ``accepted``, ``hinted``, ``asked``, ``forced``, ``limit``."""
    reasons: Counter[str]
    """Actions that were not accepted, by reason; unreadable decisions at a result are included."""
    accepted: tuple[float, ...]
    """Similarity of each accepted choice to its candidate."""
    refused: tuple[float, ...]
    """Similarity of each other choice to its nearest candidate."""

    @property
    def choices(self) -> int:
        """Number of choices."""
        return self.outcomes.total()

    def share(self, outcome: str) -> float | None:
        """Return the share of choices with an outcome; None without a choice."""
        return self.outcomes[outcome] / self.choices if self.choices else None

    @classmethod
    def total(cls, counts: Iterable[ReadingCounts]) -> Self:
        """Pool the readings of several episodes."""
        counts = list(counts)
        return cls(
            outcomes=sum((each.outcomes for each in counts), Counter()),
            reasons=sum((each.reasons for each in counts), Counter()),
            accepted=tuple(similarity for each in counts for similarity in each.accepted),
            refused=tuple(similarity for each in counts for similarity in each.refused),
        )


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """One finished episode: its score, cost and course."""

    score: EpisodeScore
    subtopics: int
    """n, the subtopics of the tree."""
    threshold: float
    """Similarity from which a choice is accepted."""
    coverage: tuple[float, ...]
    """Coverage after each turn, in [0, 1]."""
    cost: EpisodeCost
    readings: ReadingCounts
    exposures: tuple[Exposure, ...]
    """Results that the agent observed, in order."""
    tier: Tier | None = None
    """Evidence tier of the tree."""
    file: Path | None = None
    """The log; None for an episode that is in none."""


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The scored episodes of one run, or of the logs under one path."""

    folder: Path
    episodes: list[ScoredEpisode]
    missing: list[MissingEpisode]
    judged: dict[str, list[EpisodeScore]]
    """Scores by every other judge, by its label; see `inquitree judge`."""
    trees: dict[str, Tree] = field(default_factory=dict)
    """Trees of the episodes, by id."""

    @property
    def scores(self) -> list[EpisodeScore]:
        """Scores of the finished episodes by the chosen judge."""
        return [episode.score for episode in self.episodes]


def load_run(logs: AnyLogs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str = LOCAL) -> ScoredRun:
    """Read and score every finished episode of a run folder, of another folder of logs, or of a single log.

    Stored judgements are reused. The local judge judges the other conclusions at once; any other judge must have judged
    the logs before (`inquitree judge`). A log that cannot be scored is among the missing ones.

    Args:
        logs: a path, or the logs that were found there.
        progress: called after each episode.
        judge: name or label of the judge; see `recorded_judges`.

    Raises:
        LogError: there is no log, or no finished episode.
        JudgeError: a file of judgements is damaged, or the judge has not judged the logs.
        OptionError: the judge is unknown.
    """
    run = score_logs(find_logs(logs), progress, judge)
    if not run.episodes:
        raise no_finished_episode([run])
    return run


def score_logs(logs: Logs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str = LOCAL) -> ScoredRun:
    """Read and score what can be scored, which may be nothing; see `load_run`."""
    run = ScoredRun(logs.path, [], list(logs.foreign), {})
    judges = {home.path: recorded_judges(home.path, judge) for home in logs.homes}
    for entry in logs.entries:
        found = entry.read()
        gone = found if isinstance(found, MissingEpisode) else found.missing
        if gone is not None:
            run.missing.append(gone)
        elif isinstance(found, LoggedEpisode):
            _add_scores(run, found, judges[entry.home])
        if progress is not None:
            progress(entry.spec)
    return run


def _add_scores(run: ScoredRun, found: LoggedEpisode, judges: RecordedJudges) -> None:
    """Score a finished episode by the chosen judge, and by the others that have judged it."""
    episode, tree, log = found.episode, found.tree, found.entry.file.name
    scored = scored_episode(episode, tree, judges.chosen(log, tree))
    shown: dict[str, Any] = {"tree": score_name(found.entry.spec.tree, tree)}
    shown["limit"] = found.entry.limit or scored.score.limit
    run.episodes.append(replace(scored, score=replace(scored.score, **shown), file=found.entry.file))
    for label, other in judges.others(log, tree).items():
        run.judged.setdefault(label, []).append(replace(score_episode(episode, tree, other), **shown))
    run.trees[shown["tree"]] = tree


def agents_apart(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Return runs whose scores have a label for each configuration of an agent; see `told_apart`."""
    flat = [score for run in runs for scores in (run.scores, *run.judged.values()) for score in scores]
    apart = iter(told_apart(flat))
    return [
        replace(
            run,
            episodes=[replace(facts, score=next(apart)) for facts in run.episodes],
            judged={label: [next(apart) for _ in scores] for label, scores in run.judged.items()},
        )
        for run in runs
    ]


def finished_episodes(
    logs: AnyLogs,
    progress: Callable[[EpisodeSpec], None] | None = None,
    on_damaged: Callable[[MissingEpisode], None] | None = None,
) -> Iterator[LoggedEpisode]:
    """Yield the finished episodes of logs with their trees.

    Args:
        logs: a path, or the logs that were found there; see `find_logs` for the errors.
        progress: called after each episode.
        on_damaged: called with each file that cannot be read as a log on a tree at hand, which is then left out; None
            raises its error. Missing and torn episodes are left out in silence.

    Raises:
        LogError: a log is damaged.
    """
    logs = find_logs(logs)

    def leave_out(each: MissingEpisode) -> None:
        if on_damaged is None:
            raise LogError(each.error)
        on_damaged(each)

    for foreign in logs.foreign:
        leave_out(foreign)
    for entry in logs.entries:
        found = entry.read()
        if isinstance(found, LoggedEpisode):
            if found.missing is None:
                yield found
        elif found.status != "missing":
            leave_out(found)
        if progress is not None:
            progress(entry.spec)


class LoadedRun(Protocol):
    """Scored episodes of any kind, and those that are missing."""

    @property
    def folder(self) -> Path:
        """The path that was read."""

    @property
    def episodes(self) -> Sequence[object]:
        """The scored episodes."""

    @property
    def missing(self) -> Sequence[MissingEpisode]:
        """Episodes without a score."""


def no_finished_episode(runs: Sequence[LoadedRun], of: str = "") -> LogError:
    """Return the error for runs without a finished episode; ``of`` says which kind was looked for."""
    reason = next((f" ({each.name}: {each.error})" for run in runs for each in run.missing if each.error), "")
    paths = ", ".join(f"'{run.folder}'" for run in runs)
    return LogError(f"{paths} holds no finished episode{of} yet; run its study first{reason}")


def scored_episode(episode: Episode, tree: Tree, judge: Judge) -> ScoredEpisode:
    """Score one finished episode.

    Raises:
        LogError: the episode was played on another version of the tree.
    """
    return ScoredEpisode(
        score=score_episode(episode, tree, judge),
        subtopics=len(tree.subtopics),
        threshold=float(episode.header.rules["threshold"]),
        coverage=tuple(coverage_over_turns(episode, tree)),
        cost=cost_of(episode),
        readings=_readings(episode),
        exposures=exposures(episode, tree),
        tier=tree.provenance.tier,
    )


def cost_of(episode: Episode) -> EpisodeCost:
    """Add up the cost of one episode; cached replies are free."""
    usage = sum(map(Usage.of, episode.replies), Usage())
    return EpisodeCost(
        replies=len(episode.replies),
        corrections=sum(reply.role == "correction" for reply in episode.replies),
        cut_short=sum(is_cut_short(reply.finish_reason) for reply in episode.replies),
        without_text=sum(used_up(reply.text, reply.finish_reason) for reply in episode.replies),
        retries=sum(reply.retries for reply in episode.replies),
        refused=sum(reply.finish_reason in REFUSALS for reply in episode.replies),
        unread=sum(reply.role == READER_ROLE and bool(reply.fault) for reply in episode.replies),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        dollars=usage.cost,
        unpriced=usage.unpriced,
        agent_seconds=_known_sum(turn.agent_seconds for turn in episode.turns),
        env_seconds=sum(turn.env_seconds for turn in episode.turns),
    )


def _readings(episode: Episode) -> ReadingCounts:
    chosen = choices(episode.turns)
    return ReadingCounts(
        outcomes=Counter(map(_outcome, chosen)),
        reasons=Counter(turn.inquiry_event.reason for turn in episode.turns if turn.inquiry_event.reason != "none"),
        accepted=tuple(turn.inquiry_reading.similarity for turn in chosen if turn.inquiry_event.accepted),
        refused=tuple(turn.inquiry_reading.similarity for turn in chosen if not turn.inquiry_event.accepted),
    )


def _outcome(turn: Turn) -> str:
    """Return the outcome of a choice; a choice cut off by the turn limit got no hint."""
    event = turn.inquiry_event
    if event.accepted or event.forced:
        return "accepted" if event.accepted else "forced"
    return "limit" if event.limit else "asked" if event.reason == "tie" else "hinted"


def _known_sum(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
