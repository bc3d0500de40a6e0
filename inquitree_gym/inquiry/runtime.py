"""Runtime of a tree under one set of rules: engine, matcher, observation texts, and the info of its events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from inquitree_gym.embeddings import Embedder, TreeVectors, tree_vectors
from inquitree_gym.envs.episode_records import RecordedStep, ServiceReply
from inquitree_gym.envs.text import Runtimes, Scope, TextEnv, TextRecords
from inquitree_gym.inquiry.engine import Event, ObservationKind, Phase, Reading, Rules, State, event_values
from inquitree_gym.inquiry.engine import rows as at
from inquitree_gym.inquiry.llm_matcher import ReaderAnswer
from inquitree_gym.sheets import LETTERS
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import world_id

if TYPE_CHECKING:
    from inquitree_gym.envs.asking import AskedJudge
    from inquitree_gym.inquiry.engine import Engine
    from inquitree_gym.inquiry.events import InquiryEvent, InquirySetup, ReadingRecord
    from inquitree_gym.inquiry.matching import AskedReader, Matcher
    from inquitree_gym.inquiry.observations import ObservationRenderer
    from inquitree_gym.log import Turn
    from inquitree_gym.prompts import Prompts
    from inquitree_gym.sheets import SheetReading
    from inquitree_gym.trees.document import ConclusionItem, Study, Subtopic


EXAM_VERSION = 1
"""Version of the exam and its scores."""
MAX_CACHED_RUNTIMES = 64
"""Runtimes cached per `RuntimeCache`."""

PHASE_NAMES = tuple(phase.name.lower() for phase in Phase)


@dataclass(frozen=True, slots=True, eq=False)
class TreeRuntime:
    """Everything that an environment needs to play one tree under one set of rules."""

    task: Tree
    engine: Engine
    matcher: Matcher
    observations: ObservationRenderer
    vectors: TreeVectors

    @property
    def rules(self) -> Rules:
        """Rules of the episodes."""
        return self.engine.rules

    def uncached_texts(self, state: State, action: str) -> Iterator[tuple[TreeVectors, str]]:
        """Yield the texts that ``action`` still has to have embedded in ``state``, each with its vector cache."""
        if (text := self.matcher.to_embed(state, action)) is not None:
            yield self.vectors, text


class RuntimeCache(Runtimes[Tree, Rules, TreeRuntime]):
    """Runtimes by tree and rules, for one embedder and one set of templates. Built on first use."""

    most = MAX_CACHED_RUNTIMES

    def __init__(self, embedder: Embedder, prompts: Prompts, *, scope: Scope = "shared") -> None:
        """Create an empty cache.

        Args:
            embedder: reads the actions.
            prompts: templates of the observations.
            scope: see `Runtimes.scope`.
        """
        super().__init__()
        self._embedder = embedder
        self._prompts = prompts
        self._scope = scope

    @property
    def scope(self) -> Scope:
        """See `Runtimes.scope`."""
        return self._scope

    def within(self, scope: Scope) -> RuntimeCache:
        """Return an empty cache with vectors of another lifetime."""
        return RuntimeCache(self._embedder, self._prompts, scope=scope)

    def _build(self, about: Tree, rules: Rules) -> TreeRuntime:
        from inquitree_gym.inquiry.engine import Engine
        from inquitree_gym.inquiry.matching import Matcher
        from inquitree_gym.inquiry.observations import ObservationRenderer

        engine = Engine(about, rules)
        vectors = self._vectors(about, self._embedder)
        return TreeRuntime(
            task=about,
            engine=engine,
            matcher=Matcher(engine, vectors),
            observations=ObservationRenderer(about, self._prompts, engine),
            vectors=vectors,
        )

    def _vectors(self, tree: Tree, embedder: Embedder) -> TreeVectors:
        if self.scope == "shared":
            return tree_vectors(tree, embedder)
        return TreeVectors(tree, embedder, lasting=self.scope == "private")


class Transition(NamedTuple):
    """The reading of an action and the event that it led to. Privileged."""

    reading: Reading
    event: Event
    action: str = ""
    """The action as text. Empty after a reset."""
    phase: Phase = Phase.TOPIC
    """Phase in which the action was taken."""
    sheet: SheetReading | None = None
    """The answers to the exam, once it is over."""


def public_info(event: Event) -> dict[str, Any]:
    """Return the info that agents may see, as plain values."""
    row = event.row  # read directly, for speed
    return {
        "state": PHASE_NAMES[row[at.PHASE]], "turn": row[at.TURN], "accepted": row[at.ACCEPTED] == 1,
        "hint_level": row[at.HINT_LEVEL], "forced": row[at.FORCED] == 1,
    }  # fmt: skip


def privileged_info(transition: Transition, turn_limit: int | None) -> dict[str, Any]:
    """Return the info that agents must not see, as plain values."""
    reading, event = transition.reading, transition.event
    values = event_values(event)
    return {
        **{name: values[name] for name in ("kind", "node", "fake", "wording", "credit", "limit", "reason", "decision")},
        "target": event.state.target,
        "candidate": reading.candidate,
        "similarity": reading.similarity,
        "margin": reading.margin,
        "top": [list(pair) for pair in reading.top],
        "visits": list(event.state.visits),
        "world": list(event.state.world),
        "turn_limit": turn_limit,
    }


_SUBTOPIC_KINDS = (ObservationKind.SUBTOPIC, ObservationKind.SUBTOPIC_HINT, ObservationKind.DECLINED)


class InquiryRecords(TextRecords[Tree, Rules, TreeRuntime, Transition]):
    """Records of the episode of one inquiry."""

    def __init__(
        self,
        env: TextEnv[Tree, Rules, TreeRuntime, Transition],
        *,
        embedder: Embedder,
        reader: AskedReader | None,
        judge: AskedJudge[Tree] | None,
        exam: str,
    ) -> None:
        """Describe the episodes of ``env``. Reader and judge are None for the local ones, which ``exam`` names."""
        super().__init__(env)
        self._exam = exam
        self._embedder, self._reader, self._judge = embedder, reader, judge

    def observation(self) -> str:
        """Render the last event."""
        return self._env.runtime.observations.render(self._env.last.event)

    def last_step(self) -> RecordedStep:
        """Name the candidates, the subtopics and the studies by id."""
        tree, last = self._env.task, self._env.last
        return RecordedStep(last.action, _logged_event(tree, last, _reading_record(tree, last)))

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the reader's reply about the last action, and the judge's replies about the conclusion."""
        from inquitree_gym.log.records import JUDGE_ROLE, READER_ROLE

        answer = None if self._reader is None else self._reader.answer
        if answer is not None and answer.reply is not None:
            yield ServiceReply(READER_ROLE, answer.reply, answer.fault)
        over = self._env.last.event.state.phase == Phase.END
        if over and self._judge is not None and self._judge.judgement is not None:
            for asked in self._judge.judgement.replies:
                yield ServiceReply(JUDGE_ROLE, asked.reply, asked.fault)

    def judge(self) -> Mapping[str, Any]:
        """Describe the exam, or the judge that was given."""
        return {"name": self._exam, "version": EXAM_VERSION} if self._judge is None else self._judge.config

    def recall(self, turn: Turn[InquiryEvent]) -> None:
        """Take the reader's choice and the judge's reward."""
        matcher, state = self._env.runtime.matcher, self._env.last.event.state
        if self._reader is not None and (request := matcher.reader_request(state, turn.action)) is not None:
            self._reader.take(request, ReaderAnswer(turn.event.reading.candidate))
        if self._judge is not None and turn.terminated:
            self._judge.recall(turn.reward)

    def _setup(self) -> InquirySetup:
        from inquitree_gym.inquiry.events import EmbedderRef, InquirySetup

        return InquirySetup(
            embedder=EmbedderRef(name=self._embedder.name, digest=self._embedder.digest),
            world=world_id(self._env.runtime.engine.world(self._env.last.event.state)),
            reader=None if self._reader is None else json.loads(json.dumps(self._reader.reader.config)),
        )


def _reading_record(tree: Tree, last: Transition) -> ReadingRecord:
    """Name the candidates by id: studies if the action was taken at a subtopic, subtopics elsewhere."""
    from inquitree_gym.inquiry.events import ReadingRecord

    reading, nodes = last.reading, tree.studies if last.phase == Phase.SUBTOPIC else tree.subtopics
    if last.phase == Phase.EXAM:
        candidate = LETTERS[reading.candidate] if reading.candidate >= 0 else None
        return ReadingRecord(candidate=candidate, similarity=reading.similarity, decision="none", margin=None, top=())
    return ReadingRecord(
        candidate=nodes[reading.candidate].id if reading.candidate >= 0 else None,
        similarity=reading.similarity,
        decision=reading.decision.name.lower(),
        margin=reading.margin,
        top=tuple((nodes[index].id, similarity) for index, similarity in reading.top),
        repeats=reading.repeats,
    )


def _logged_event(tree: Tree, last: Transition, reading: ReadingRecord) -> InquiryEvent:
    from inquitree_gym.inquiry.events import InquiryEvent
    from inquitree_gym.log.records import SheetRecord

    event, sheet = last.event, last.sheet
    nodes: Sequence[Subtopic | Study | ConclusionItem] = tree.studies
    if event.state.phase == Phase.EXAM:
        nodes = tree.conclusions
    elif event.kind in _SUBTOPIC_KINDS:
        nodes = tree.subtopics
    values = event_values(event) | {"node": _id(nodes, event.node)}
    return InquiryEvent(reading=reading, sheet=None if sheet is None else SheetRecord.of(sheet), **values)


def _id(nodes: Sequence[Subtopic | Study | ConclusionItem], index: int) -> str | None:
    return nodes[index].id if index >= 0 else None
