"""One pass over the logs of a run: the score of every episode, and what the score does not hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from inquitree_gym.analysis.recorded import recorded_judges
from inquitree_gym.errors import LogError
from inquitree_gym.judges import Judge
from inquitree_gym.log import Episode, Reply, Turn, has_header, read_episode
from inquitree_gym.runner.folder import EPISODES, read_manifest
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.exposures import Showing, showings
from inquitree_gym.scoring.trajectory import choices, coverage_over_turns
from inquitree_gym.trees import Tree, load_tree


class Spent(NamedTuple):
    """What an episode cost; what nobody measured is None, never 0."""

    replies: int
    """Replies of services, those from a cache among them."""
    corrections: int
    """Replies that were asked for again because one before broke the agent's protocol."""
    cut_short: int
    """Replies that the service ended because they had all the tokens they may have."""
    prompt_tokens: int | None
    completion_tokens: int | None
    """Tokens over the replies that were paid for, as the services counted them, reasoning among the completion's."""
    dollars: float | None
    """US dollars over the paid replies of known price; None without one."""
    unpriced: int
    """Paid replies of unknown price: the dollars are then a lower bound."""
    agent_seconds: float | None
    env_seconds: float


class Reads(NamedTuple):
    """How the choices of an episode, at the topic and at subtopics, were read."""

    threshold: float
    """τ."""
    outcomes: Counter[str]
    """Choices by what came of them: ``accepted``, ``hinted``, ``forced``, ``limit``."""
    reasons: Counter[str]
    """Actions that were not accepted, by reason; those at a result among them."""
    taken: tuple[float, ...]
    """Similarity of each accepted choice to its candidate."""
    refused: tuple[float, ...]


class EpisodeFacts(NamedTuple):
    """What a report knows of one whole episode."""

    score: EpisodeScore
    subtopics: int
    """n."""
    coverage: tuple[float, ...]
    """Coverage after each turn, first to last."""
    spent: Spent
    reads: Reads
    showings: tuple[Showing, ...]
    """Every result that was shown, first to last."""


class Missing(NamedTuple):
    """An episode that cannot be scored yet."""

    name: str
    """Name of its log."""
    status: str
    """``missing``, ``torn``, ``failed`` where a failure is the last thing in the log, ``damaged`` where it cannot be
    read."""
    error: str
    """What the log says of the failure, or what is wrong with it; empty where nothing is said."""


class RunFacts(NamedTuple):
    """What a report knows of one run."""

    folder: Path
    episodes: list[EpisodeFacts]
    missing: list[Missing]
    judged: dict[str, list[EpisodeScore]]
    """By label of every other judge, the scores of the episodes that it has judged; see `inquitree judge`."""

    @property
    def scores(self) -> list[EpisodeScore]:
        """The scores of the whole episodes."""
        return [facts.score for facts in self.episodes]


def gather(folder: str | os.PathLike[str], progress: Callable[[EpisodeSpec], None] | None = None) -> RunFacts:
    """Read and score every whole episode of a run folder.

    The scores are those of the local judge; what it has said before and is kept beside the run is not asked again.

    Raises:
        LogError: the folder is no run, holds no whole episode, or one that was played on another version of its tree.
        JudgeError: a file of judgements is damaged.
    """
    study = read_manifest(folder)
    trees = {name: load_tree(name) for name in study.trees}
    recorded = recorded_judges(folder)
    found = RunFacts(Path(folder), [], [], {})
    for cell in study.specs():
        episode = _look(found.folder / EPISODES / cell.file_name)
        if isinstance(episode, Missing):
            found.missing.append(episode)
        else:
            tree = trees[cell.tree]
            found.episodes.append(facts_of(episode, tree, recorded.local(cell.file_name, tree)))
            for label, judge in recorded.panel(cell.file_name, tree).items():
                found.judged.setdefault(label, []).append(score_episode(episode, tree, judge))
        if progress is not None:
            progress(cell)
    if not found.episodes:
        reason = next((f" ({each.name}: {each.error})" for each in found.missing if each.error), "")
        raise LogError(f"'{folder}' holds no finished episode yet; run its study first{reason}")
    return found


def facts_of(episode: Episode, tree: Tree, judge: Judge) -> EpisodeFacts:
    """Score one whole episode, and count what it spent and how it was read."""
    score = score_episode(episode, tree, judge)
    curve = tuple(coverage_over_turns(episode, tree))
    return EpisodeFacts(score, len(tree.subtopics), curve, spent_on(episode), _reads(episode), showings(episode))


def _look(file: Path) -> Episode | Missing:
    """Return the whole episode of a log, or why there is none."""
    if not has_header(file):
        return Missing(file.name, "missing", "")
    try:
        episode = read_episode(file)
    except LogError as error:
        return Missing(file.name, "damaged", str(error))
    if episode.footer is not None:
        return episode
    return Missing(file.name, episode.status, "" if episode.failure is None else episode.failure.error)


def spent_on(episode: Episode) -> Spent:
    """Add up what an episode cost."""
    paid = [reply for reply in episode.replies if not reply.cached]
    prices = [reply.cost for reply in paid if reply.cost is not None]
    seconds = [turn.agent_seconds for turn in episode.turns if turn.agent_seconds is not None]
    return Spent(
        replies=len(episode.replies),
        corrections=sum(reply.role == "correction" for reply in episode.replies),
        cut_short=sum(reply.finish_reason == "length" for reply in episode.replies),
        prompt_tokens=_tokens(paid, "prompt"),
        completion_tokens=_tokens(paid, "completion"),
        dollars=sum(prices) if prices else None,
        unpriced=len(paid) - len(prices),
        agent_seconds=sum(seconds) if seconds else None,
        env_seconds=sum(turn.env_seconds for turn in episode.turns),
    )


def _tokens(replies: Sequence[Reply], kind: str) -> int | None:
    counted = [reply.tokens[kind] for reply in replies if reply.tokens is not None and kind in reply.tokens]
    return sum(counted) if counted else None


def _reads(episode: Episode) -> Reads:
    chosen = choices(episode.turns)
    return Reads(
        threshold=float(episode.header.rules["threshold"]),
        outcomes=Counter(map(_outcome, chosen)),
        reasons=Counter(turn.event.reason for turn in episode.turns if turn.event.reason != "none"),
        taken=tuple(turn.reading.similarity for turn in chosen if turn.event.accepted),
        refused=tuple(turn.reading.similarity for turn in chosen if not turn.event.accepted),
    )


def _outcome(turn: Turn) -> str:
    """Tell what came of a choice; one that the turn limit cut off got no hint."""
    event = turn.event
    if event.accepted or event.forced:
        return "accepted" if event.accepted else "forced"
    return "limit" if event.limit else "hinted"
