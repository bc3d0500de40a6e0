"""Menu texts to reactions: what follows from each, wherever it is said."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inquitree_gym.engine import Decision, Engine, Phase, Reading, State
from inquitree_gym.envs.batch.encoding import Ints, Layout, Move, effect
from inquitree_gym.envs.runtime import TreeRuntime
from inquitree_gym.matching import SIMILARITY_TOLERANCE, readable

ANY, AT_TOPIC, AT_RESULT, AT_SUBTOPIC = range(4)
"""Groups of places, by what an action is read as: anything will do, a subtopic, a decision, a study of subtopic 0 (of
the i-th, i more)."""
NOBODY = -1
"""Instead of a subtopic, where none is named."""
REFUSED = effect(Move.REFUSE)
TOPIC, CONCLUSION = effect(Move.GO, Layout.TOPIC), effect(Move.GO, Layout.CONCLUSION)


class Reaction(NamedTuple):
    """What follows from a text, as effects, by how the subtopic that it names stands."""

    subtopic: int
    locked: int
    fresh: int
    """Open, and not visited yet; also what follows where no subtopic is named."""
    again: int


def plain(follows: int) -> Reaction:
    """Return the reaction of a text that names no subtopic."""
    return Reaction(NOBODY, follows, follows, follows)


class Reactions:
    """The reactions of one play, numbered in the order in which they come."""

    REFUSE, REDO, READ = range(3)
    """Not accepted; the study is run again (what that is depends on where it is said); not yet read."""

    def __init__(self) -> None:
        """Hold those three."""
        self.list = [plain(REFUSED), plain(effect(Move.REFUSE, 1)), plain(effect(Move.READ))]
        self._numbers = {reaction: number for number, reaction in enumerate(self.list)}

    def number(self, reaction: Reaction) -> int:
        """Return the number of a reaction; a new one gets the next."""
        number = self._numbers.setdefault(reaction, len(self.list))
        if number == len(self.list):
            self.list.append(reaction)
        return number


class _Way(NamedTuple):
    """How a subtopic may be named."""

    locked: int
    """Effect where a candidate lacks a prerequisite."""
    none: int
    """Effect where there is no candidate."""
    fresh_only: bool
    """Whether only a subtopic not visited yet counts."""


_PROPOSED = _Way(REFUSED, REFUSED, fresh_only=False)
_EXPLORED = _Way(TOPIC, TOPIC, fresh_only=False)
_IN_OTHER_WORDS = _Way(TOPIC, REFUSED, fresh_only=True)


class Reader:
    """Reads texts by asking the matcher."""

    def __init__(self, play: TreeRuntime, layout: Layout) -> None:
        """Read for ``play``; the places that effects name are those of ``layout``."""
        self.play = play
        self.reactions = Reactions()
        """All that texts were read as so far."""
        self._layout = layout
        self._engine = engine = play.engine
        self._state = engine.start(0).state._replace(visited=(1 << engine.n) - 1)
        self._subtopics, self._studies = tuple(range(engine.n)), tuple(range(len(engine.subtopic_of)))
        self._threshold = -1.0 if engine.rules.threshold is None else engine.rules.threshold
        self._direct = engine.rules.explore == "direct"
        self._admissible = engine.rules.candidates == "admissible"

    def state(self, group: int) -> State:
        """Return a state in which an action is read as in ``group``. All is visited, so all are candidates."""
        if group >= AT_SUBTOPIC:
            return self._state._replace(phase=Phase.SUBTOPIC, subtopic=group - AT_SUBTOPIC)
        return self._state._replace(phase=Phase.RESULT if group == AT_RESULT else Phase.TOPIC)

    def read(self, text: str) -> Ints:
        """Return the numbers of the reactions to ``text`` by group, shape ``(groups,)``."""
        self._settle(readable(text))
        found = np.full(AT_SUBTOPIC + self._engine.n, Reactions.REFUSE)
        for group in (AT_TOPIC, AT_RESULT):
            found[group] = self._read(group, text)
        for study, similarity in reversed(self._ranked_studies(text)):  # so that of a subtopic's the nearest stays
            if similarity >= self._threshold:
                follows = run(self._engine, self._layout, study)
                found[AT_SUBTOPIC + self._engine.subtopic_of[study]] = self.reactions.number(plain(follows))
        return found

    def _ranked_subtopics(self, text: str) -> tuple[tuple[int, float], ...]:
        """Return all subtopics with their similarities to ``text``, best first."""
        return self.play.matcher.match_subtopics(readable(text), self._subtopics, len(self._subtopics)).top

    def _ranked_studies(self, text: str) -> tuple[tuple[int, float], ...]:
        """Return all studies with their similarities to ``text``, best first."""
        return self.play.matcher.match_studies(readable(text), self._studies, len(self._studies)).top

    def _settle(self, text: str) -> None:
        """Embed ``text`` alone, if it was embedded in a batch and its last bits could decide how it is read."""
        if self.play.vectors.is_rough(text):
            for ranking in (self._ranked_subtopics(text), self._ranked_studies(text)):
                similarities = np.array([self._threshold, *(similarity for _, similarity in ranking)])
                if (np.diff(np.sort(similarities)) < SIMILARITY_TOLERANCE).any():
                    self.play.vectors.settle(text)
                    return

    def _read(self, group: int, text: str) -> int:
        """Return the number of the reaction to ``text`` at the topic or at a result."""
        reading = self.play.matcher.read(self.state(group), text)
        if group == AT_TOPIC:
            return self._name(reading, text, _PROPOSED)
        if reading.decision == Decision.NONE:
            return self._name(reading, text, _IN_OTHER_WORDS)
        if reading.decision == Decision.REDO:
            return Reactions.REDO
        if reading.decision == Decision.EXPLORE and self._direct:
            return self._name(reading, text, _EXPLORED)
        return self.reactions.number(plain(TOPIC if reading.decision == Decision.EXPLORE else CONCLUSION))

    def _name(self, reading: Reading, text: str, way: _Way) -> int:
        """Return the number of the reaction to naming a subtopic: the first that is a candidate counts."""
        follows = way.none
        number = self.reactions.number(plain(follows))
        for i in reversed(self._named(reading, text)):
            fresh = effect(Move.ACT, self._layout.subtopic(i)) if self._direct or not way.fresh_only else TOPIC
            locked = follows if self._admissible else way.locked
            if way.fresh_only or self._engine.prerequisites[i]:
                number = self.reactions.number(Reaction(i, locked, fresh, REFUSED if way.fresh_only else fresh))
            else:
                number = self.reactions.number(plain(fresh))
            follows = effect(Move.TRY, number)
        return number

    def _named(self, reading: Reading, text: str) -> list[int]:
        """Return the subtopics that ``text`` can be taken for, best first."""
        if reading.candidate < 0 or reading.similarity < self._threshold:
            return []
        if not self._admissible:
            return [reading.candidate]
        return [i for i, similarity in self._ranked_subtopics(text) if similarity >= self._threshold]


def run(engine: Engine, layout: Layout, j: int, *, forced: bool = False) -> int:
    """Return the effect of running study ``j``."""
    if engine.rules.study_turn:
        return effect(Move.ACT, layout.study(j, forced))
    return show(engine, layout, j, forced=forced)


def show(engine: Engine, layout: Layout, j: int, *, forced: bool = False) -> int:
    """Return the effect of showing the result of study ``j``."""
    return effect(Move.SHOW if engine.rules.fake_level else Move.ACT, layout.result(j, forced=forced))
