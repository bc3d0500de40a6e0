"""Match logged actions again, with another embedder or threshold.

Each logged action is matched in its logged state, among the candidates open there. Up to and including the first turn
with another outcome, the result is exact, because the agent saw the same texts. After that turn the agent would have
read other texts and acted differently, so only bounds on coverage are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from inquitree_gym.embeddings import Embedder, TreeVectors, load_embedder, tree_vectors
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.inquiry.engine import Decision, Engine, Event, ObservationKind, Phase, Reading, Rules, State
from inquitree_gym.inquiry.events import InquiryEvent, InquirySetup
from inquitree_gym.inquiry.matching import Matcher
from inquitree_gym.inquiry.results import reading_of
from inquitree_gym.log import Episode, Turn
from inquitree_gym.results.load import ScoredRun, finished_episodes, no_finished_episode
from inquitree_gym.results.logs import AnyLogs, Missing, find_logs
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.trees import Tree

GRID = np.round(np.arange(0.20, 0.8001, 0.01), 2)
"""Thresholds of the figure."""
_ALWAYS, _NEVER = 2.0, -2.0
"""Similarities above and below every threshold."""
_MATCHED = (Phase.TOPIC, Phase.SUBTOPIC, Phase.RESULT)
"""Phases in which actions are matched to candidates."""


class CoverageBounds(NamedTuple):
    """Range of the final coverage, in [0, 1]."""

    low: float
    """Coverage so far, less a subtopic that can still be declined."""
    high: float
    """Coverage of an agent that never fails within the remaining turns."""


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """One of the two outcomes of a turn: its action accepted, or not."""

    outcome: str
    """``accepted ID``, ``forced ID``, ``refused``, or the decision."""
    same: bool
    """True if the inquiry continues exactly as logged."""
    bounds: CoverageBounds
    """Bounds of the final coverage if it does not."""


@dataclass(frozen=True, slots=True)
class RematchedTurn:
    """One logged turn, matched again."""

    turn: int
    logged: str
    """The logged outcome. See `TurnOutcome.outcome`."""
    similarity: float
    """Similarity to the nearest candidate. -2 without a candidate."""
    taken: TurnOutcome
    refused: TurnOutcome

    def at(self, threshold: float) -> TurnOutcome:
        """Return the outcome under a threshold."""
        return self.taken if self.similarity >= threshold else self.refused


@dataclass(frozen=True, slots=True)
class RematchedEpisode:
    """One finished episode, matched again."""

    spec: EpisodeSpec
    tree: str
    coverage: float
    """The logged coverage."""
    turns: tuple[RematchedTurn, ...]
    """Turns in a phase with candidates."""
    length: int
    """Turns of the episode, including the conclusion."""
    log: str = ""
    """Name of the log."""
    embedder: str = ""
    """Name of the embedder of the log."""
    read_by: str = ""
    """Name of the embedder or reader that the actions were read by."""
    threshold: float = 0.0
    """Threshold of the log."""

    def departs(self, threshold: float) -> RematchedTurn | None:
        """Return the first turn after which the inquiry differs from the log under a threshold, or None."""
        return next((turn for turn in self.turns if not turn.at(threshold).same), None)

    def bounds(self, threshold: float) -> CoverageBounds:
        """Return the bounds of the final coverage. Both are the logged one if the inquiry follows the log."""
        turn = self.departs(threshold)
        return CoverageBounds(self.coverage, self.coverage) if turn is None else turn.at(threshold).bounds


def rematch_run(
    logs: AnyLogs,
    embedder: Embedder | None = None,
    progress: Callable[[EpisodeSpec], None] | None = None,
    on_damaged: Callable[[Missing], None] | None = None,
) -> list[RematchedEpisode]:
    """Match every finished episode of logs again. See `rematch_episode`.

    Args:
        logs: a path, or the logs that were found there.
        embedder: matches the actions. None keeps the logged choices and similarities, those of a reader included.
        progress: called after each episode.
        on_damaged: called with each log that is damaged or contradicts its own rules. None raises its error.

    Raises:
        LogError: there is no log or no finished episode, or a log is damaged or contradicts its own rules.
    """
    found, logs = [], find_logs(logs)
    for each in finished_episodes(logs, progress, on_damaged):
        vectors = None if embedder is None else tree_vectors(each.task, embedder)
        try:
            again = _rematch(each.episode, each.task, each.entry.spec, vectors)
        except LogError as error:
            if on_damaged is None:
                raise
            on_damaged(Missing(each.entry.name, "damaged", f"'{each.entry.name}': {error}"))
        else:
            found.append(replace(again, log=each.entry.name))
    if not found:
        raise no_finished_episode([ScoredRun(logs.path, (), tuple(logs.foreign))])
    return found


def rematch_episode(episode: Episode[InquiryEvent], vectors: TreeVectors, spec: EpisodeSpec) -> RematchedEpisode:
    """Match every action of an episode again, in its logged state, with the embedder of ``vectors``.

    With the embedder of the log, the logged similarities are used and nothing is embedded. The choices of a reader are
    not used, and no reader is asked again.

    Raises:
        LogError: the log is of another version of the tree, or contradicts its own rules.
    """
    return _rematch(episode, vectors.tree, spec, vectors)


def _rematch(
    episode: Episode[InquiryEvent], tree: Tree, spec: EpisodeSpec, vectors: TreeVectors | None
) -> RematchedEpisode:
    """Match with ``vectors``. None keeps the logged choices and similarities."""
    header = episode.header
    setup: InquirySetup = header.setup
    if header.task.digest != tree.digest:
        raise LogError(f"the episode was played on another version of {tree.id}; match it with that version")
    engine = Engine(tree, Rules().override(header.rules))
    steps = list(_replay(episode, engine, tree))
    if vectors is not None and (setup.reader is not None or vectors.embedder.digest != setup.embedder.digest):
        steps = _matched_again(steps, Matcher(engine, vectors), vectors)
    turns = tuple(_rematched(engine, tree, step) for step in steps if step.state.phase in _MATCHED)
    last = steps[-1].event.state if steps else engine.start(0).state
    used = setup.embedder if vectors is None else vectors.embedder
    asked = setup.reader is not None and vectors is None
    return RematchedEpisode(
        spec=spec,
        tree=tree.id,
        coverage=last.visited.bit_count() / engine.n,
        turns=turns,
        length=len(steps),
        log=spec.file_name,
        embedder=setup.embedder.name,
        read_by=reading_of(header) if asked else used.name,
        threshold=float(header.rules["threshold"]),
    )


def coverage_bounds(engine: Engine, state: State) -> CoverageBounds:
    """Return the least and the greatest coverage with which an inquiry can end from a state.

    An agent that never fails needs one action to enter a subtopic that is open at once, and a whole round of subtopic,
    study, result and decision for each further one.
    """
    seen = state.visited.bit_count()
    if state.phase >= Phase.CONCLUSION:
        return CoverageBounds(seen / engine.n, seen / engine.n)
    may_decline = engine.rules.bare_decisions and state.phase == Phase.SUBTOPIC
    low = (seen - (may_decline and state.visits[state.subtopic] == 1)) / engine.n
    if engine.turn_limit is None:
        return CoverageBounds(low, 1.0)
    lap = 3
    first = {Phase.TOPIC: 1, Phase.SUBTOPIC: lap, Phase.STUDY: lap, Phase.RESULT: lap - 1}
    left = engine.turn_limit - state.turn - first[state.phase]
    reach = 0 if left < 0 else 1 + left // lap
    return CoverageBounds(low, min(engine.n, seen + reach) / engine.n)


def threshold_for(embedder: Embedder | None, threshold: float | None) -> float:
    """Return a threshold, by default the calibrated one of the embedder.

    Raises:
        OptionError: neither is given, or the threshold lies outside [-1, 1].
    """
    found = embedder.threshold if threshold is None and embedder is not None else threshold
    if found is None:
        name = "of the logs" if embedder is None else f"'{embedder.name}'"
        raise OptionError(f"no threshold has been calibrated for the embedder {name}; give one with --threshold")
    if not -1 <= found <= 1:
        raise OptionError(f"--threshold is a cosine similarity from -1 to 1, not {found:g}")
    return found


def logged_embedder(found: Sequence[RematchedEpisode]) -> Embedder:
    """Return the embedder of the logs.

    Raises:
        OptionError: there are several.
        EmbedderError: it is not known by its name here.
    """
    names = list(dict.fromkeys(each.embedder for each in found))
    if len(names) > 1:
        raise OptionError(f"the logs have several embedders ({', '.join(names)}); give a threshold with --threshold")
    return load_embedder(names[0])


@dataclass(frozen=True, slots=True)
class _Step:
    """One logged turn in terms of the engine."""

    turn: Turn[InquiryEvent]
    state: State
    """The state before the action."""
    reading: Reading
    event: Event
    """The logged event."""


def _replay(episode: Episode[InquiryEvent], engine: Engine, tree: Tree) -> Iterator[_Step]:
    """Replay the logged readings to recover the state before every turn. The exam has none."""
    state = engine.start(episode.header.seed).state
    for turn in episode.turns:
        if state.phase == Phase.EXAM:
            return
        reading = _logged_reading(turn, state, tree)
        event = engine.advance(state, reading)
        replayed = (event.kind.name.lower(), event.state.phase.name.lower(), event.fake, event.wording, event.accepted)
        logged = turn.event
        if (*replayed, event.hint_level) != (
            logged.kind, logged.state, logged.fake, logged.wording, logged.accepted, logged.hint_level,
        ):  # fmt: skip
            raise LogError(
                f"turn {turn.turn} of the log contradicts the log's own rules; match it with the release that wrote it"
            )
        yield _Step(turn, state, reading, event)
        state = event.state


def _logged_reading(turn: Turn[InquiryEvent], state: State, tree: Tree) -> Reading:
    nodes = tree.studies if state.phase == Phase.SUBTOPIC else tree.subtopics
    index = {node.id: i for i, node in enumerate(nodes)}
    logged = turn.event.reading
    try:
        candidate = -1 if logged.candidate is None else index[logged.candidate]
        top = tuple((index[name], similarity) for name, similarity in logged.top)
        return Reading(candidate, logged.similarity, Decision[logged.decision.upper()], logged.margin, top)
    except KeyError as error:
        raise LogError(f"turn {turn.turn} of the log names {error}, which was no candidate; it is damaged") from None


def _matched_again(steps: Sequence[_Step], matcher: Matcher, vectors: TreeVectors) -> list[_Step]:
    """Give every turn the reading of another embedder, which embeds all texts in one batch."""
    needed = dict.fromkeys(matcher.to_embed(step.state, step.turn.action) for step in steps)
    texts = [text for text in needed if text is not None]
    for text, vector in zip(texts, vectors.embedder.embed(texts) if texts else (), strict=True):
        vectors.take(text, vector)
    return [replace(step, reading=matcher.read(step.state, step.turn.action)) for step in steps]


def _rematched(engine: Engine, tree: Tree, step: _Step) -> RematchedTurn:
    taken, refused = (
        engine.advance(step.state, step.reading._replace(similarity=similarity)) for similarity in (_ALWAYS, _NEVER)
    )
    return RematchedTurn(
        turn=step.turn.turn,
        logged=_outcome(tree, step.event),
        similarity=_NEVER if step.reading.candidate < 0 else step.reading.similarity,
        taken=_turn_outcome(engine, tree, taken, step.event),
        refused=_turn_outcome(engine, tree, refused, step.event),
    )


def _turn_outcome(engine: Engine, tree: Tree, event: Event, logged: Event) -> TurnOutcome:
    same = (event.state, event.kind, event.node) == (logged.state, logged.kind, logged.node)
    return TurnOutcome(_outcome(tree, event), same, coverage_bounds(engine, event.state))


def _outcome(tree: Tree, event: Event) -> str:
    if event.decision != Decision.NONE:
        return event.decision.name.lower()
    if not (event.accepted or event.forced):
        return "refused"
    nodes = tree.subtopics if event.kind == ObservationKind.SUBTOPIC else tree.studies
    return f"{'accepted' if event.accepted else 'forced'} {nodes[event.node].id}"
