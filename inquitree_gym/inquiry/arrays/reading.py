"""Reading of menu texts and conclusions in every context of one tree, as branches of the transition table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

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
        self._direct = engine.rules.explore == "direct"
        self._asks, self._margin = engine.rules.on_tie > 0, engine.rules.on_tie
        self._first_asked = Context.SUBTOPIC + engine.n
        self.n_contexts = self._first_asked * (1 + self._asks)
        """Number of reading contexts. See `Context`."""
        self._admissible = engine.rules.candidates == "admissible"

    def state(self, context: int) -> State:
        """Return an engine state of this context. All subtopics are visited, so all are candidates."""
        context = self.unasked(context)
        if context >= Context.SUBTOPIC:
            return self._state._replace(phase=Phase.SUBTOPIC, subtopic=context - Context.SUBTOPIC)
        return self._state._replace(phase=Phase.RESULT if context == Context.RESULT else Phase.TOPIC)

    def unasked(self, context: int) -> int:
        """Return the context of a state in which the agent has not been asked."""
        return context % self._first_asked

    def asked(self, context: int, asked: bool) -> int:
        """Return the context of a state in which the agent has been ``asked`` or not."""
        return context + self._first_asked * asked

    def read(self, text: str) -> Ints:
        """Return the branch numbers of ``text``, shape ``(contexts,)``."""
        self._settle(readable(text))
        found = np.full(self.n_contexts, REJECTED)
        found[Context.RESULT] = self._read_decision(text)
        for asked in range(1 + self._asks):
            asks = self._asks and not asked
            found[self.asked(Context.TOPIC, bool(asked))] = self._read_proposal(text, asks=asks)
            first = self.asked(Context.SUBTOPIC, bool(asked))
            found[first : first + self._engine.n] = self._read_design(text, asks=asks)
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

    def _read_proposal(self, text: str, *, asks: bool) -> int:
        """Return the branch number of ``text`` at the topic."""
        reading = self._runtime.matcher.read(self.state(Context.TOPIC), text)
        if reading.decision == Decision.CONCLUDE:
            return self.number(Branch.always(_TO_CONCLUSION))
        locked = LOCKED if self._engine.rules.feedback == "reason" else REJECT
        return self._name(reading, text, locked=locked, none=REJECT, asks=asks)

    def _read_design(self, text: str, *, asks: bool) -> list[int]:
        """Return the branch numbers of ``text`` at each subtopic."""
        decision = self._runtime.matcher.read_bare(Phase.SUBTOPIC, readable(text))
        if decision == Decision.CONCLUDE:
            return [self.number(Branch.always(_TO_CONCLUSION))] * self._engine.n
        if decision == Decision.EXPLORE:
            declined = (self._states.of(ObservationKind.DECLINED, subtopic) for subtopic in self._subtopics)
            return [self.number(Branch.always(transition(Op.DECLINE, state))) for state in declined]
        near: list[list[tuple[int, float]]] = [[] for _ in self._subtopics]
        for study, similarity in self._rank_studies(text):
            if similarity >= self._threshold:
                near[self._engine.subtopic_of[study]].append((study, similarity))
        return [self._design(found, asks) for found in near]

    def _design(self, near: Sequence[tuple[int, float]], asks: bool) -> int:
        """Return the branch number of a text, given the studies of a subtopic that it is near enough to."""
        if not near:
            return REJECTED
        study = near[0][0]
        if asks and len(near) > 1 and near[0][1] - near[1][1] < self._margin:
            ask = self._ask(self._engine.studies_of[self._engine.subtopic_of[study]], study, near[1][0])
            return self.number(Branch.always(ask))
        return self.number(run_branch(self._engine, self._states, study))

    def _ask(self, nodes: Sequence[int], one: int, other: int) -> int:
        """Return the transition to the question of which of two ``nodes`` is meant."""
        return transition(Op.ASK, list(combinations(nodes, 2)).index((min(one, other), max(one, other))))

    def _read_decision(self, text: str) -> int:
        """Return the branch number of ``text`` at a result."""
        reading = self._runtime.matcher.read(self.state(Context.RESULT), text)
        if reading.decision == Decision.NONE:
            unvisited_only = self._engine.rules.named_at_result == "unvisited"
            return self._name(
                reading, text, locked=_TO_TOPIC, none=REJECT, unvisited_only=unvisited_only, enters=self._direct
            )
        if reading.decision == Decision.REDO:
            return REDO
        if reading.decision == Decision.EXPLORE and self._direct:
            return self._name(reading, text, locked=_TO_TOPIC, none=_TO_TOPIC)
        target = _TO_TOPIC if reading.decision == Decision.EXPLORE else _TO_CONCLUSION
        return self.number(Branch.always(target))

    def _name(
        self,
        reading: Reading,
        text: str,
        *,
        locked: int,
        none: int,
        unvisited_only: bool = False,
        enters: bool = True,
        asks: bool = False,
    ) -> int:
        """Return the branch number of a text that may name a subtopic.

        Args:
            reading: the matcher's reading of the text.
            text: the text itself.
            locked: transition if the nearest subtopic lacks a prerequisite and no other one may count instead.
            none: transition if no subtopic is near enough.
            unvisited_only: reject a subtopic that was visited.
            enters: enter the subtopic, rather than go back to the topic.
            asks: ask if two subtopics are equally near.
        """
        following = none
        number = self.number(Branch.always(following))
        named = self._named(reading, text)
        for place, (subtopic, _) in reversed(list(enumerate(named))):
            target = transition(Op.VISIT, self._states.of(ObservationKind.SUBTOPIC, subtopic)) if enters else _TO_TOPIC
            if asks:
                others = named[place + 1 :] if self._admissible else reading.top[1:2]
                target = self._enter_or_ask(target, named[place], others)
            branch = Branch.always(target)
            if unvisited_only or self._engine.prerequisites[subtopic]:
                otherwise = following if self._admissible else locked
                branch = Branch(subtopic, otherwise, target, REJECT if unvisited_only else target)
            number = self.number(branch)
            following = transition(Op.FALLBACK, number)
        return number

    def _enter_or_ask(self, enter: int, nearest: tuple[int, float], others: Sequence[tuple[int, float]]) -> int:
        """Return the transition that asks if one of ``others`` is as near and open, and enters the nearest if not."""
        following = enter
        for other, similarity in reversed(others):
            if similarity >= self._threshold and nearest[1] - similarity < self._margin:
                ask = self._ask(self._subtopics, nearest[0], other)
                locked = following if self._engine.prerequisites[other] else ask
                following = transition(Op.FALLBACK, self.number(Branch(other, locked, ask, ask)))
        return following

    def _named(self, reading: Reading, text: str) -> list[tuple[int, float]]:
        """Return the subtopics that ``text`` can be taken for with their similarities, nearest first."""
        if reading.candidate < 0 or reading.similarity < self._threshold:
            return []
        if not self._admissible:
            return [(reading.candidate, reading.similarity)]
        return [pair for pair in self._rank_subtopics(text) if pair[1] >= self._threshold]


def run_study(engine: Engine, states: StateIndex, study: int, *, forced: bool = False, again: bool = False) -> int:
    """Return the transition of running ``study``, for the first time or ``again``."""
    if again and engine.rules.redo_turn:
        return transition(Op.VISIT, states.of(ObservationKind.REDO, study))
    if engine.rules.study_turn:
        return transition(Op.VISIT, states.of(ObservationKind.STUDY, study, forced=forced))
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
