"""Matching of free-text actions with candidates and decisions."""

from __future__ import annotations

import re
from collections import OrderedDict

import numpy as np

from inquitree_gym.decisions import asks_to_repeat, read_decision
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.engine import Decision, Engine, Phase, Reading, State

MAX_ACTION_LENGTH = 20_000
"""Maximum number of characters that are read from an action; the rest is ignored."""
TOP_K = 5
"""Number of nearest candidates in a reading."""
CACHE_SIZE = 16_384
"""Maximum number of readings kept in memory."""
SIMILARITY_TOLERANCE = 1e-5
"""Largest difference between two computations of one similarity, such as alone and in a batch."""

_READABLE = re.compile(r"[^\W_]")
_NO_READING = Reading()
_SUBTOPIC, _STUDY, _CONCLUSION = Phase.SUBTOPIC, Phase.STUDY, Phase.CONCLUSION  # looked up once, for speed


class Matcher:
    """Interprets actions as readings for one tree, with a cache of past readings."""

    def __init__(self, engine: Engine, vectors: TreeVectors) -> None:
        """Bind the candidates of ``engine`` to the vectors of its tree, without embedding anything yet."""
        self._engine = engine
        self._vectors = vectors
        self._threshold = -1.0 if engine.rules.threshold is None else engine.rules.threshold
        self._admissible_only = engine.rules.candidates == "admissible"
        self._cache: OrderedDict[tuple[int, int, str], Reading] = OrderedDict()

    def read(self, state: State, action: str) -> Reading:
        """Return the reading of ``action`` in ``state``; only its first `MAX_ACTION_LENGTH` characters count."""
        if state.phase == _STUDY or state.phase >= _CONCLUSION:
            return _NO_READING
        action = action[:MAX_ACTION_LENGTH]
        key = self._key(state, action)
        reading = self._cache.get(key)
        if reading is None:
            reading = self._interpret(state, readable(action))
            self._cache[key] = reading
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return reading

    def to_embed(self, state: State, action: str) -> str | None:
        """Return the text that `read` would have to embed for this action, or None."""
        action = action[:MAX_ACTION_LENGTH]
        if state.phase == Phase.STUDY or state.phase >= Phase.CONCLUSION or self._key(state, action) in self._cache:
            return None
        text = readable(action)
        needed = _READABLE.search(text) and (
            state.phase != Phase.RESULT or self._names_subtopic(text, self._decision(text))
        )
        return text if needed and not self._vectors.knows(text) else None

    def match_subtopics(self, text: str, candidates: tuple[int, ...], top: int = TOP_K) -> Reading:
        """Return the reading of ``text`` among some subtopics, with the ``top`` nearest ones.

        A text without a letter or digit matches nothing.
        """
        return self._match(text, self._vectors.subtopics, candidates, top) if _READABLE.search(text) else _NO_READING

    def match_studies(self, text: str, candidates: tuple[int, ...], top: int = TOP_K) -> Reading:
        """Return the reading of ``text`` among some studies, with the ``top`` nearest ones.

        A text without a letter or digit matches nothing.
        """
        return self._match(text, self._vectors.studies, candidates, top) if _READABLE.search(text) else _NO_READING

    def _match(self, text: str, family: Vectors, candidates: tuple[int, ...], top: int) -> Reading:
        reading = self._nearest(self._vectors.of(text), family, candidates, top)
        if self._vectors.is_rough(text) and self._is_close(reading):
            reading = self._nearest(self._vectors.settle(text), family, candidates, top)
        return reading

    def _nearest(self, vector: Vector, family: Vectors, candidates: tuple[int, ...], count: int) -> Reading:
        # Multiply with the whole family: its shape affects rounding, so a subset would give other similarities.
        similarities = (family @ vector)[list(candidates)]
        order = np.argsort(-similarities, kind="stable")[:count]
        top = tuple((candidates[i], float(similarities[i])) for i in order)
        margin = top[0][1] - top[1][1] if len(top) > 1 else None
        return Reading(top[0][0], top[0][1], Decision.NONE, margin, top)

    def _is_close(self, reading: Reading) -> bool:
        """Return whether rounding could change the decision: near the threshold, or near a tie."""
        tie = reading.margin is not None and reading.margin < SIMILARITY_TOLERANCE
        return tie or abs(reading.similarity - self._threshold) < SIMILARITY_TOLERANCE

    def _interpret(self, state: State, text: str) -> Reading:
        candidates = self._engine.candidates(state)
        if state.phase == Phase.SUBTOPIC:
            return self.match_studies(text, candidates)
        if state.phase == Phase.TOPIC:
            return self.match_subtopics(text, candidates)
        decision = self._decision(text)
        if self._names_subtopic(text, decision):
            return self.match_subtopics(text, candidates)._replace(decision=decision)
        return _NO_READING._replace(decision=decision)

    def _decision(self, text: str) -> Decision:
        return read_decision(self._without_quotes(text), tokens_only=self._engine.rules.decisions == "tokens")

    def _key(self, state: State, action: str) -> tuple[int, int, str]:
        if state.phase == _SUBTOPIC:
            return (state.phase, state.subtopic, action)
        return (state.phase, state.visited if self._admissible_only else -1, action)

    def _names_subtopic(self, text: str, decision: Decision) -> bool:
        """Return whether a text at a result, which makes ``decision``, may name a subtopic."""
        if decision == Decision.NONE:
            return not asks_to_repeat(self._without_quotes(text))
        return decision == Decision.EXPLORE and self._engine.rules.explore == "direct"

    def _without_quotes(self, text: str) -> str:
        """Remove quoted subtopics, which may mention repetition, or a decision, without asking for it."""
        for subtopic in self._vectors.tree.subtopics:
            text = text.replace(subtopic.text, " ")
        return text


def readable(action: str) -> str:
    """Return the first `MAX_ACTION_LENGTH` characters of an action, with lone surrogates replaced."""
    return action[:MAX_ACTION_LENGTH].encode("utf-8", "replace").decode()
