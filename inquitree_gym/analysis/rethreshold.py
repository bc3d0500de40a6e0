"""Any log read again, with another embedder or threshold (DESIGN section 8).

Each logged action is matched again in the state that it was logged in, to the candidates that were open then. Up to
and with the first turn that leads elsewhere this is exactly what would have happened: the agent saw the same until
then. From there on it would have read other texts and said other things, so nothing but bounds on coverage can be told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inquitree_gym.embeddings import Embedder, TreeVectors, load_embedder, tree_vectors
from inquitree_gym.engine import Decision, Engine, Event, Phase, Reading, Rules, State
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Episode, Turn, has_header, read_episode
from inquitree_gym.matching import Matcher
from inquitree_gym.runner.folder import EPISODES, read_manifest
from inquitree_gym.runner.study import EpisodeSpec, StudyConfig
from inquitree_gym.trees import Tree, load_tree

GRID = np.round(np.arange(0.20, 0.8001, 0.01), 2)
"""Thresholds that the picture shows."""
_SURELY, _NEVER = 2.0, -2.0
"""Similarities above and below every threshold."""


class Bounds(NamedTuple):
    """Coverage that an episode can still end with, in [0, 1]."""

    low: float
    """What has been entered: coverage never falls."""
    high: float
    """What an agent that fails at nothing any more would reach within the turns left."""


class Fork(NamedTuple):
    """One of the two ways a turn can go: its action accepted as similar enough, or not."""

    outcome: str
    """``accepted ID``, ``forced ID``, ``refused``, or the decision at a result."""
    same: bool
    """Whether the inquiry goes on exactly as logged."""
    bounds: Bounds
    """Of the final coverage, where it does not."""


class Turned(NamedTuple):
    """One logged turn read again."""

    turn: int
    logged: str
    """What came of it, in the words of `Fork.outcome`."""
    similarity: float
    """To the nearest candidate; -2 where there is nothing to match."""
    taken: Fork
    refused: Fork

    def at(self, threshold: float) -> Fork:
        """Return what comes of the turn under a threshold."""
        return self.taken if self.similarity >= threshold else self.refused


class Reread(NamedTuple):
    """One whole episode read again."""

    cell: EpisodeSpec
    tree: str
    coverage: float
    """As logged."""
    turns: tuple[Turned, ...]
    """The turns at which something is matched."""
    length: int
    """Turns of the episode, the conclusion included."""

    def departs(self, threshold: float) -> Turned | None:
        """Return the first turn that leads elsewhere under a threshold; None where none does."""
        return next((turn for turn in self.turns if not turn.at(threshold).same), None)

    def bounds(self, threshold: float) -> Bounds:
        """Return the bounds of the final coverage; both are the logged one where nothing leads elsewhere."""
        turn = self.departs(threshold)
        return Bounds(self.coverage, self.coverage) if turn is None else turn.at(threshold).bounds


def reread_run(
    folder: str | os.PathLike[str],
    embedder: Embedder | None = None,
    progress: Callable[[EpisodeSpec], None] | None = None,
) -> list[Reread]:
    """Read every whole episode of a run again; see `reread_episode`.

    Args:
        folder: of the run.
        embedder: reads the actions; None takes the one of the run, whose similarities stand in the logs.
        progress: told each cell once it is read.

    Raises:
        LogError: the folder is no run, holds no whole episode, or a log does not follow the rules it names.
    """
    study = read_manifest(folder)
    embedder = load_embedder(study.embedder) if embedder is None else embedder
    found = []
    for cell in study.specs():
        file = Path(folder) / EPISODES / cell.file_name
        episode = read_episode(file) if has_header(file) else None
        if episode is not None and episode.footer is not None:
            tree = load_tree(cell.tree)
            found.append(reread_episode(episode, tree_vectors(tree, embedder), cell))
        if progress is not None:
            progress(cell)
    if not found:
        raise LogError(f"'{folder}' holds no finished episode yet; run its study first")
    return found


def reread_episode(episode: Episode, vectors: TreeVectors, cell: EpisodeSpec) -> Reread:
    """Match every action of an episode again, in its logged state, by the embedder of ``vectors``.

    Where that is the embedder of the log, its similarities are taken from there and nothing is embedded.

    Raises:
        LogError: the log is of another version of the tree, or does not follow the rules it names.
    """
    tree = vectors.tree
    if episode.header.tree.digest != tree.digest:
        raise LogError(f"the episode was played on another version of {tree.id}; read it again with that one")
    engine = Engine(tree, Rules(**episode.header.rules))
    moments = list(_moments(episode, engine, tree))
    if vectors.embedder.digest != episode.header.embedder.digest:
        moments = _read_again(moments, Matcher(engine, vectors), vectors)
    turns = tuple(_turned(engine, tree, moment) for moment in moments if moment.state.phase in _MATCHED)
    last = moments[-1].event.state if moments else engine.start(0).state
    coverage = last.visited.bit_count() / engine.n
    return Reread(cell, tree.id, coverage, turns, len(moments))


_MATCHED = (Phase.TOPIC, Phase.SUBTOPIC, Phase.RESULT)
"""Where an action is matched to candidates."""


class _Moment(NamedTuple):
    """One logged turn in terms of the engine."""

    turn: Turn
    state: State
    """Before the action."""
    reading: Reading
    event: Event
    """As logged."""


def _moments(episode: Episode, engine: Engine, tree: Tree) -> Iterator[_Moment]:
    """Replay the logged readings, which gives the state behind every turn."""
    state = engine.start(episode.header.seed).state
    for turn in episode.turns:
        reading = _logged_reading(turn, state, tree)
        event = engine.advance(state, reading)
        if not _is_logged(event, turn):
            raise LogError(
                f"turn {turn.turn} of the log does not follow its own rules: read it with the release that wrote it"
            )
        yield _Moment(turn, state, reading, event)
        state = event.state


def _logged_reading(turn: Turn, state: State, tree: Tree) -> Reading:
    nodes = tree.studies if state.phase == Phase.SUBTOPIC else tree.subtopics
    index = {node.id: i for i, node in enumerate(nodes)}
    logged = turn.reading
    try:
        candidate = -1 if logged.candidate is None else index[logged.candidate]
        return Reading(candidate, logged.similarity, Decision[logged.decision.upper()], logged.margin)
    except KeyError as error:
        raise LogError(f"turn {turn.turn} of the log names {error}, which was no candidate; it is damaged") from None


def _is_logged(event: Event, turn: Turn) -> bool:
    logged = turn.event
    found = (event.kind.name.lower(), event.state.phase.name.lower(), event.fake, event.accepted, event.hint_level)
    return found == (logged.kind, logged.state, logged.fake, logged.accepted, logged.hint_level)


def _read_again(moments: Sequence[_Moment], matcher: Matcher, vectors: TreeVectors) -> list[_Moment]:
    """Give every turn the reading of another embedder; what it has to embed goes in one batch."""
    needed = dict.fromkeys(matcher.to_embed(moment.state, moment.turn.action) for moment in moments)
    texts = [text for text in needed if text is not None]
    for text, vector in zip(texts, vectors.embedder.embed(texts) if texts else (), strict=True):
        vectors.take(text, vector)
    return [moment._replace(reading=matcher.read(moment.state, moment.turn.action)) for moment in moments]


def _turned(engine: Engine, tree: Tree, moment: _Moment) -> Turned:
    ways = [
        engine.advance(moment.state, moment.reading._replace(similarity=similarity)) for similarity in (_SURELY, _NEVER)
    ]
    taken, refused = (_fork(engine, tree, way, moment.event) for way in ways)
    nothing = moment.reading.candidate < 0
    similarity = _NEVER if nothing else moment.reading.similarity
    return Turned(moment.turn.turn, _outcome(tree, moment.event), similarity, taken, refused)


def _fork(engine: Engine, tree: Tree, way: Event, logged: Event) -> Fork:
    same = (way.state, way.kind, way.node) == (logged.state, logged.kind, logged.node)
    return Fork(_outcome(tree, way), same, coverage_bounds(engine, way.state))


def _outcome(tree: Tree, event: Event) -> str:
    if event.decision != Decision.NONE:
        return event.decision.name.lower()
    if not (event.accepted or event.forced):
        return "refused"
    nodes = tree.subtopics if event.kind.name == "SUBTOPIC" else tree.studies
    return f"{'accepted' if event.accepted else 'forced'} {nodes[event.node].id}"


def coverage_bounds(engine: Engine, state: State) -> Bounds:
    """Return the least and the most coverage that an inquiry can end with from a state, whoever goes on.

    The most is reached by an agent that fails at nothing: one action to enter a subtopic where that is open, and a
    whole round of study, result and choice for each further one.
    """
    seen = state.visited.bit_count()
    if state.phase >= Phase.CONCLUSION:
        return Bounds(seen / engine.n, seen / engine.n)
    if engine.turn_limit is None:
        return Bounds(seen / engine.n, 1.0)
    direct = engine.rules.explore == "direct"
    lap = 2 + (not direct) + engine.rules.study_turn
    first = {Phase.TOPIC: 1, Phase.SUBTOPIC: lap, Phase.STUDY: lap - 1, Phase.RESULT: lap - 1 - engine.rules.study_turn}
    left = engine.turn_limit - state.turn - first[state.phase]
    reach = 0 if left < 0 else 1 + left // lap
    return Bounds(seen / engine.n, min(engine.n, seen + reach) / engine.n)


def threshold_for(embedder: Embedder, threshold: float | None) -> float:
    """Return τ: the one given, or the calibrated default of the embedder.

    Raises:
        OptionError: there is neither, or it lies outside [-1, 1].
    """
    found = embedder.threshold if threshold is None else threshold
    if found is None:
        raise OptionError(
            f"no threshold has been calibrated for the embedder '{embedder.name}'; give one with --threshold"
        )
    if not -1 <= found <= 1:
        raise OptionError(f"--threshold is a cosine similarity from -1 to 1, not {found:g}")
    return found


def logged_threshold(study: StudyConfig) -> float:
    """Return τ of a run; see `threshold_for` for the errors."""
    return threshold_for(load_embedder(study.embedder), study.threshold)
