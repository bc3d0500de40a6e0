"""Matching of free-text actions with candidates and decisions."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, TreeVectors, load_embedder, tree_vectors
from inquitree_gym.embeddings.protocol import SIMILARITY_TOLERANCE
from inquitree_gym.errors import OptionError, ReaderError, suggest
from inquitree_gym.inquiry.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.inquiry.llm_matcher import Reader, ReaderAnswer, ReaderRequest, load_reader
from inquitree_gym.inquiry.repeats import Repeats, ShownText
from inquitree_gym.sheets import LETTERS
from inquitree_gym.text_limits import MAX_ACTION_LENGTH, readable
from inquitree_gym.trees import Tree, load_tree

if TYPE_CHECKING:
    from inquitree_gym.embeddings.protocol import Vectors
    from inquitree_gym.embeddings.vectors import Vector
    from inquitree_gym.trees.document import Candidate, Study, Subtopic


TOP_K = 5
"""Number of nearest candidates in a reading."""
CACHE_SIZE = 16_384
"""Maximum number of readings kept in memory."""

_TAKEN = {Phase.TOPIC: (Decision.CONCLUDE,), Phase.SUBTOPIC: (Decision.CONCLUDE, Decision.EXPLORE)}
"""Decisions that are taken in a phase if a text says nothing else."""
_READABLE = re.compile(r"[^\W_]")
_NO_READING = Reading()
_Read = tuple[Reading, tuple[ShownText, ...] | None]
"""A reading with the texts that the action repeats once they are shown."""
# Looked up once, for speed.
_SUBTOPIC, _STUDY, _CONCLUSION, _EXAM = Phase.SUBTOPIC, Phase.STUDY, Phase.CONCLUSION, Phase.EXAM


class Matcher:
    """Interprets actions as readings for one tree, with a cache of past readings."""

    def __init__(self, engine: Engine, vectors: TreeVectors) -> None:
        self._engine = engine
        self._vectors = vectors
        self._threshold = -1.0 if engine.rules.threshold is None else engine.rules.threshold
        self._tokens_only = engine.rules.decisions == "tokens"
        self._cache: OrderedDict[tuple[int, int, str], _Read] = OrderedDict()
        self._subtopics = _verbatim(vectors.tree.subtopics)
        self._studies = _verbatim(vectors.tree.studies)
        self._repeats = Repeats(engine, vectors)

    def read(self, state: State, action: str) -> Reading:
        """Return the reading of ``action`` in ``state``. Only its first `MAX_ACTION_LENGTH` characters count."""
        phase = state.phase
        if phase == _STUDY or phase >= _CONCLUSION:
            return read_letter(action) if phase == _EXAM else _NO_READING
        action = action[:MAX_ACTION_LENGTH]
        key = self._key(state, action)
        known = self._cache.get(key)
        if known is None:
            text = readable(action)
            reading = self._interpret(state, text)
            known = self._cache[key] = (reading, self.repeated(state, text, reading))
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        reading, repeated = known
        return reading if repeated == () else self._marked(state, action, reading, repeated)

    def to_embed(self, state: State, action: str) -> str | None:
        """Return the text that `read` would have to embed for this action, or None."""
        action = action[:MAX_ACTION_LENGTH]
        if state.phase == Phase.STUDY or state.phase >= Phase.CONCLUSION or self._key(state, action) in self._cache:
            return None
        text = readable(action)
        return text if self._is_matched(state, text) and not self._vectors.knows(text) else None

    def reader_request(self, state: State, action: str) -> ReaderRequest | None:
        """Return the request to a reader about this action. None if it is not matched with candidates."""
        if state.phase == Phase.STUDY or state.phase >= Phase.CONCLUSION:
            return None
        text = readable(action)
        if not self._is_matched(state, text):
            return None
        nodes = self._nodes(state)
        candidates = tuple((nodes[i].id, nodes[i].text) for i in self._engine.candidates(state))
        return ReaderRequest("studies" if state.phase == Phase.SUBTOPIC else "subtopics", candidates, text)

    def read_choice(self, state: State, action: str, choice: str | None) -> Reading:
        """Return the reading of an action that a reader was asked about.

        Args:
            state: the state before the action.
            action: the action.
            choice: id that the reader chose, with similarity 1. None, or an id that is no candidate, has similarity 0.
        """
        decision = self._decision(state.phase, readable(action))
        nodes = self._nodes(state)
        for candidate in self._engine.candidates(state):
            if nodes[candidate].id == choice:
                reading = Reading(candidate, 1.0, decision, None, ((candidate, 1.0),))
                text = readable(action[:MAX_ACTION_LENGTH])
                return self._marked(state, text, reading, self.repeated(state, text, reading))
        return _NO_READING._replace(decision=decision)

    def match_subtopics(self, text: str, candidates: tuple[int, ...], top: int = TOP_K) -> Reading:
        """Return the reading of ``text`` among some subtopics, with the ``top`` nearest ones.

        A text without a letter or digit matches nothing. A text that ends with that of a subtopic, word for word, has
        the similarity 1 to that subtopic, even if paraphrases draw its centroid away.
        """
        if not _READABLE.search(text):
            return _NO_READING
        return self._match(text, self._vectors.subtopics, self._subtopics, candidates, top)

    def match_studies(self, text: str, candidates: tuple[int, ...], top: int = TOP_K) -> Reading:
        """Return the reading of ``text`` among some studies. See `match_subtopics`."""
        if not _READABLE.search(text):
            return _NO_READING
        return self._match(text, self._vectors.studies, self._studies, candidates, top)

    def _match(
        self, text: str, family: Vectors, verbatim: Mapping[str, int], candidates: tuple[int, ...], top: int
    ) -> Reading:
        said = text.rstrip()
        own = next((i for name, i in verbatim.items() if said.endswith(name)), None)
        reading = self._nearest(self._vectors.of(text), family, own, candidates, top)
        if self._vectors.is_rough(text) and self._is_close(reading):
            reading = self._nearest(self._vectors.settle(text), family, own, candidates, top)
        return reading

    def _nearest(
        self, vector: Vector, family: Vectors, own: int | None, candidates: tuple[int, ...], count: int
    ) -> Reading:
        # Multiply with the whole family: its shape affects rounding, so a subset would give other similarities.
        similarities = family @ vector
        if own is not None:
            similarities[own] = 1
        similarities = similarities[list(candidates)]
        order = np.argsort(-similarities, kind="stable")[:count]
        top = tuple((candidates[i], float(similarities[i])) for i in order)
        margin = top[0][1] - top[1][1] if len(top) > 1 else None
        return Reading(top[0][0], top[0][1], Decision.NONE, margin, top)

    def _is_close(self, reading: Reading) -> bool:
        """Return whether rounding could change the event: near the threshold, or at a tie."""
        gaps = [reading.similarity - self._threshold, *([] if reading.margin is None else [reading.margin])]
        return any(abs(gap) < SIMILARITY_TOLERANCE for gap in gaps)

    def _is_matched(self, state: State, text: str) -> bool:
        """Return whether ``text`` is compared with candidates, rather than read as a decision or as nothing."""
        decision = self._decision(state.phase, text)
        matched = not decision and (state.phase != Phase.RESULT or self._names_subtopic(text))
        return matched and _READABLE.search(text) is not None

    def repeated(self, state: State, text: str, reading: Reading) -> tuple[ShownText, ...] | None:
        """Return the texts that an accepted action repeats once they are shown. See `Repeats.repeated`."""
        if reading.candidate < 0 or not reading.similarity >= self._threshold:
            return ()
        return self._repeats.repeated(self._nodes(state)[reading.candidate], text)

    def _marked(self, state: State, action: str, reading: Reading, found: tuple[ShownText, ...] | None) -> Reading:
        """Mark a reading by which a node would be chosen for the first time, in words that were shown before."""
        if (state.runs if state.phase == _SUBTOPIC else state.visits)[reading.candidate]:
            return reading
        node = self._nodes(state)[reading.candidate]
        return reading._replace(repeats=self._repeats.repeats(state, node, readable(action), found))

    def _nodes(self, state: State) -> Sequence[Subtopic | Study]:
        tree = self._vectors.tree
        return tree.studies if state.phase == Phase.SUBTOPIC else tree.subtopics

    def _interpret(self, state: State, text: str) -> Reading:
        candidates = self._engine.candidates(state)
        decision = self._decision(state.phase, text)
        if state.phase == Phase.RESULT:
            matched = not decision and self._names_subtopic(text)
            return (self.match_subtopics(text, candidates) if matched else _NO_READING)._replace(decision=decision)
        if decision:
            return _NO_READING._replace(decision=decision)
        match = self.match_studies if state.phase == Phase.SUBTOPIC else self.match_subtopics
        return match(text, candidates)

    def _decision(self, phase: Phase, text: str) -> Decision:
        if phase == Phase.RESULT:
            from inquitree_gym.inquiry.decisions import read_decision  # whose patterns a reset does not need

            return read_decision(self._without_quotes(text), tokens_only=self._tokens_only)
        return self.read_bare(phase, text)

    def read_bare(self, phase: Phase, text: str) -> Decision:
        """Return the decision that ``text`` is, if it is accepted at TOPIC or SUBTOPIC, else `Decision.NONE`."""
        from inquitree_gym.inquiry.decisions import MAX_BARE_LENGTH, bare_decision, declines

        if len(text) > MAX_BARE_LENGTH or not self._engine.rules.bare_decisions:
            return Decision.NONE
        if phase == Phase.SUBTOPIC and not self._tokens_only and declines(text):
            return Decision.EXPLORE
        decision = bare_decision(text, tokens_only=self._tokens_only)
        return decision if decision in _TAKEN[phase] else Decision.NONE

    def _key(self, state: State, action: str) -> tuple[int, int, str]:
        phase = state.phase
        return (phase, state.subtopic if phase == _SUBTOPIC else -1, action)

    def _names_subtopic(self, text: str) -> bool:
        """Return whether a text at a result, which makes no decision, may name a subtopic."""
        from inquitree_gym.inquiry.decisions import asks_to_repeat

        return self._engine.rules.named_at_result == "any" or not asks_to_repeat(self._without_quotes(text))

    def _without_quotes(self, text: str) -> str:
        """Remove quoted subtopics, which may mention a repetition or a decision without asking for it."""
        for subtopic in self._vectors.tree.subtopics:
            text = text.replace(subtopic.text, " ")
        return text


def read_letter(action: str) -> Reading:
    """Return the option of an exam that a text names by its letter alone."""
    said = action[:MAX_ACTION_LENGTH].strip().upper()
    return Reading(LETTERS.index(said), 1.0) if len(said) == 1 and said in LETTERS else _NO_READING


MatchState = Literal["topic", "subtopic", "result"]


def _verbatim(nodes: Sequence[Candidate]) -> dict[str, int]:
    """Return the texts of nodes with paraphrases by index. Without any, the vector of the text is the candidate."""
    return {node.text: i for i, node in enumerate(nodes) if node.paraphrases}


class RankedNode(NamedTuple):
    """A subtopic or study with its similarity to a text."""

    id: str
    similarity: float
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    """The meaning of a text for one tree, as an environment with default rules reads it."""

    tree: str
    state: str
    subtopic: str | None
    """Subtopic whose studies were compared. None at the topic and at a result."""
    embedder: str
    threshold: float
    decision: str | None
    """Token of the decision that the text states. None if it states none."""
    accepted: bool
    """True if the nearest node is similar enough. A subtopic is entered only if its prerequisites were visited."""
    prerequisites: tuple[str, ...]
    """Prerequisites of the nearest node."""
    nearest: tuple[RankedNode, ...]
    """The nearest nodes, best first, at most `TOP_K`. Empty for a text that was not compared with nodes."""


def match(
    tree: str | os.PathLike[str] | Tree,
    text: str,
    state: MatchState = "topic",
    subtopic: str | None = None,
    *,
    embedder: str | Embedder = DEFAULT_EMBEDDER,
    threshold: float | None = None,
) -> Match:
    """Return the reading of ``text`` as an action, with its runners-up. Nothing is played.

    Args:
        tree: id, path or tree.
        text: the action.
        state: state of the inquiry: at the topic and at a result subtopics are candidates, in a subtopic its studies.
        subtopic: id of the subtopic, for ``state="subtopic"``.
        embedder: name or object.
        threshold: τ in [-1, 1]. None for the embedder's own.

    Raises:
        TreeError: the tree is unknown or invalid.
        OptionError: ``state`` and ``subtopic`` disagree, the tree has no such subtopic, or no threshold is known.
    """
    from inquitree_gym.inquiry.decisions import TOKENS

    found = load_tree(tree)
    reader = load_embedder(embedder) if isinstance(embedder, str) else embedder
    limit = reader.threshold if threshold is None else threshold
    if limit is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{reader.name}'; pass threshold=...")
    engine = Engine(found, Rules(threshold=limit))
    at = _state_at(found, state, subtopic)
    reading = Matcher(engine, tree_vectors(found, reader)).read(engine.start(0).state.replace(**at), text)
    family = found.studies if state == "subtopic" else found.subtopics
    nearest = tuple(RankedNode(family[i].id, similarity, family[i].text) for i, similarity in reading.top)
    prerequisites = found.subtopics[reading.candidate].requires if nearest and state != "subtopic" else ()
    decision = next((token for token, meaning in TOKENS.items() if meaning == reading.decision), None)
    accepted = bool(nearest) and reading.similarity >= limit
    return Match(found.id, state, subtopic, reader.name, limit, decision, accepted, prerequisites, nearest)


def _state_at(tree: Tree, state: str, subtopic: str | None) -> dict[str, Any]:
    """Return the fields of an engine state.

    Raises:
        OptionError: ``state`` is unknown, or does not fit ``subtopic``.
    """
    phases = {"topic": Phase.TOPIC, "subtopic": Phase.SUBTOPIC, "result": Phase.RESULT}
    if state not in phases:
        raise OptionError(f"state must be one of {', '.join(phases)}, got '{state}'")
    if (subtopic is not None) != (state == "subtopic"):
        raise OptionError('pass subtopic= if and only if state="subtopic"')
    ids = [each.id for each in tree.subtopics]
    if subtopic is not None and subtopic not in ids:
        raise OptionError(f"{tree.id} has no subtopic '{subtopic}'{suggest(subtopic, ids)}; it has {', '.join(ids)}")
    if state == "result":
        return {"phase": Phase.RESULT, "subtopic": 0, "study": 0}
    return {"phase": phases[state], "subtopic": -1 if subtopic is None else ids.index(subtopic)}


class AskedReader:
    """The reader of one environment, and its answers to the last action and to the next one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.answer: ReaderAnswer | None = None
        """Answer behind the last reading. None if that action was not matched with candidates."""
        self._ahead: tuple[ReaderRequest, ReaderAnswer] | None = None

    @classmethod
    def load(cls, reader: str | Reader) -> Self | None:
        """Return the reader with a name, or as given. None for the reading by similarity. See `load_reader`."""
        found = load_reader(reader)
        return None if found is None else cls(found)

    def take(self, request: ReaderRequest, answer: ReaderAnswer) -> None:
        """Keep an answer for the next action, which is not asked about again."""
        self._ahead = (request, answer)

    async def ask_ahead(self, request: ReaderRequest) -> None:
        """Ask about the next action, and keep the answer for its step.

        Raises:
            ReaderError: the reader gave no usable reply.
        """
        self.take(request, await self._ask(request))

    def read(self, matcher: Matcher, state: State, action: str) -> Reading:
        """Return the reading of ``action``. See `Matcher.read`.

        Raises:
            ReaderError: the reader gave no usable reply. The state has not changed.
        """
        ahead, self._ahead, self.answer = self._ahead, None, None
        request = matcher.reader_request(state, action)
        if request is None:
            return matcher.read(state, action)
        from inquitree_gym.llm.litellm import run_sync

        self.answer = ahead[1] if ahead and ahead[0] == request else run_sync(self._ask(request))
        return matcher.read_choice(state, action, self.answer.candidate)

    async def _ask(self, request: ReaderRequest) -> ReaderAnswer:
        answer = await self.reader.choose(request)
        if not isinstance(answer, ReaderAnswer) or not isinstance(answer.candidate, str | None):
            raise ReaderError(
                f"a reader must give a ReaderAnswer with the id of a candidate or None, got {answer!r:.80}. Mend it."
            )
        return answer
