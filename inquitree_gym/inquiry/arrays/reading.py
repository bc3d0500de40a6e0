"""Reading of menu texts and conclusions in every context of one tree, as branches of the transition table."""

from __future__ import annotations

import numpy as np

from inquitree_gym.envs.spaces import Ints
from inquitree_gym.inquiry.arrays.encoding import (
    FIRST_STUDY,
    LOCKED,
    REDO,
    REJECT,
    REJECTED,
    Branch,
    Context,
    Op,
    StateIndex,
    initial_branches,
    transition,
)
from inquitree_gym.inquiry.engine import Decision, Engine, ObservationKind, Phase, Reading, State
from inquitree_gym.inquiry.runtime import TreeRuntime
from inquitree_gym.log.records import SIMILARITY_TOLERANCE
from inquitree_gym.texts import readable

_TO_TOPIC, _TO_CONCLUSION = transition(Op.GOTO, StateIndex.TOPIC), transition(Op.GOTO, StateIndex.CONCLUSION)


class TextReader:
    """Matches texts in every reading context of one tree."""

    def __init__(self, runtime: TreeRuntime, states: StateIndex) -> None:
        self.branches = initial_branches()
        """Numbers of the branches found so far."""
        self._runtime = runtime
        self._states = states
        self._engine = engine = runtime.engine
        state = engine.start(0).state
        self._state = state._replace(visited=(1 << engine.n) - 1, visits=(1,) * engine.n, runs=(1,) * len(state.runs))
        self._subtopics, self._studies = tuple(range(engine.n)), tuple(range(len(engine.subtopic_of)))
        self._threshold = -1.0 if engine.rules.threshold is None else engine.rules.threshold
        self.n_contexts = Context.SUBTOPIC + engine.n
        """Number of reading contexts. See `Context`."""

    def state(self, context: int) -> State:
        """Return an engine state of this context. All subtopics are visited, so all are candidates."""
        if context >= Context.SUBTOPIC:
            return self._state._replace(phase=Phase.SUBTOPIC, subtopic=context - Context.SUBTOPIC)
        return self._state._replace(phase=Phase.RESULT if context == Context.RESULT else Phase.TOPIC)

    def read(self, text: str) -> Ints:
        """Return the branch numbers of ``text``, shape ``(contexts,)``."""
        self._settle(readable(text))
        found = np.full(self.n_contexts, REJECTED)
        found[Context.TOPIC] = self._read_proposal(text)
        found[Context.RESULT] = self._read_decision(text)
        found[Context.SUBTOPIC :] = self._read_design(text)
        return found

    def number(self, branch: Branch) -> int:
        """Return the number of ``branch``. A new one gets the next."""
        return self.branches.setdefault(branch, len(self.branches))

    def _rank_subtopics(self, text: str) -> tuple[tuple[int, float], ...]:
        return self._runtime.matcher.match_subtopics(readable(text), self._subtopics, len(self._subtopics)).top

    def _rank_studies(self, text: str) -> tuple[tuple[int, float], ...]:
        return self._runtime.matcher.match_studies(readable(text), self._studies, len(self._studies)).top

    def _settle(self, text: str) -> None:
        """Embed ``text`` alone if it came from a batch and its last bits could decide the reading."""
        if self._runtime.vectors.is_rough(text):
            for ranking in (self._rank_subtopics(text), self._rank_studies(text)):
                similarities = np.array([self._threshold, *(similarity for _, similarity in ranking)])
                if (np.diff(np.sort(similarities)) < SIMILARITY_TOLERANCE).any():
                    self._runtime.vectors.settle(text)
                    return

    def _read_proposal(self, text: str) -> int:
        """Return the branch number of ``text`` at the topic."""
        reading = self._runtime.matcher.read(self.state(Context.TOPIC), text)
        if reading.decision == Decision.CONCLUDE:
            return self.number(Branch.always(_TO_CONCLUSION))
        locked = LOCKED if self._engine.rules.feedback == "reason" else REJECT
        return self._name(reading, locked=locked)

    def _read_design(self, text: str) -> list[int]:
        """Return the branch numbers of ``text`` at each subtopic."""
        decision = self._runtime.matcher.read_bare(Phase.SUBTOPIC, readable(text))
        if decision == Decision.CONCLUDE:
            return [self.number(Branch.always(_TO_CONCLUSION))] * self._engine.n
        if decision == Decision.EXPLORE:
            declined = (self._states.of(ObservationKind.DECLINED, subtopic) for subtopic in self._subtopics)
            return [self.number(Branch.always(transition(Op.DECLINE, state))) for state in declined]
        designs = [REJECTED] * self._engine.n
        for study, similarity in reversed(self._rank_studies(text)):  # the nearest of each subtopic last
            if similarity >= self._threshold:
                branch = run_branch(self._engine, self._states, study)
                designs[self._engine.subtopic_of[study]] = self.number(branch)
        return designs

    def _read_decision(self, text: str) -> int:
        """Return the branch number of ``text`` at a result."""
        reading = self._runtime.matcher.read(self.state(Context.RESULT), text)
        if reading.decision == Decision.NONE:
            unvisited_only = self._engine.rules.named_at_result == "unvisited"
            return self._name(reading, locked=_TO_TOPIC, unvisited_only=unvisited_only, enters=False)
        if reading.decision == Decision.REDO:
            return REDO
        target = _TO_TOPIC if reading.decision == Decision.EXPLORE else _TO_CONCLUSION
        return self.number(Branch.always(target))

    def _name(self, reading: Reading, *, locked: int, unvisited_only: bool = False, enters: bool = True) -> int:
        """Return the branch number of a text that may name a subtopic.

        Args:
            reading: the matcher's reading of the text.
            locked: transition if the subtopic lacks a prerequisite.
            unvisited_only: reject a subtopic that was visited.
            enters: enter the subtopic, rather than go back to the topic.
        """
        subtopic = reading.candidate
        if subtopic < 0 or reading.similarity < self._threshold:
            return REJECTED
        target = transition(Op.VISIT, self._states.of(ObservationKind.SUBTOPIC, subtopic)) if enters else _TO_TOPIC
        if unvisited_only or self._engine.prerequisites[subtopic]:
            return self.number(Branch(subtopic, locked, target, REJECT if unvisited_only else target))
        return self.number(Branch.always(target))


def run_study(engine: Engine, states: StateIndex, study: int, *, forced: bool = False, again: bool = False) -> int:
    """Return the transition of running ``study``, for the first time or ``again``."""
    if again and engine.rules.redo_turn:
        return transition(Op.VISIT, states.of(ObservationKind.REDO, study))
    return show_result(engine, states, study, forced=forced)


def run_branch(engine: Engine, states: StateIndex, study: int, *, forced: bool = False) -> Branch:
    """Return the branch of choosing ``study``, which is told if it was run before."""
    run = run_study(engine, states, study, forced=forced)
    if engine.rules.reruns == "match":
        return Branch.always(run)
    recall = transition(Op.GOTO, states.of(ObservationKind.RECALL, study, forced=forced))
    return Branch(FIRST_STUDY - study, run, run, recall)


def show_result(engine: Engine, states: StateIndex, study: int, *, forced: bool = False) -> int:
    """Return the transition of showing the result of ``study``."""
    op = Op.SHOW if engine.rules.fake_level or engine.wordings_of[study] > 1 else Op.VISIT
    return transition(op, states.of(ObservationKind.RESULT, study, forced=forced))
