"""Records of the episodes of `InquiryEnv`."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from inquitree_gym.engine import Event, Kind, Phase, Rules, event_values
from inquitree_gym.envs.recorded import RecordedStep, ServiceReply
from inquitree_gym.envs.runtime import Transition
from inquitree_gym.judges.asking import JUDGE_ROLE
from inquitree_gym.log import EmbedderRef, EventRecord, Header, ReadingRecord, TaskRef, Turn
from inquitree_gym.readers import READER_ROLE, ReaderAnswer
from inquitree_gym.trees import Tree

if TYPE_CHECKING:
    from inquitree_gym.envs.inquiry import InquiryEnv

_SUBTOPIC_KINDS = (Kind.SUBTOPIC, Kind.SUBTOPIC_HINT, Kind.SUBTOPIC_TIE, Kind.DECLINED)


class InquiryRecords:
    """Records of the episode of one inquiry; see `EpisodeRecords` for the methods."""

    def __init__(self, env: InquiryEnv) -> None:
        """Describe the episodes of ``env``."""
        self._env = env

    @property
    def agent_seed(self) -> int:
        """See `InquiryEnv.agent_seed`."""
        return self._env.agent_seed

    def header(self, *, agent: Mapping[str, Any], versions: Mapping[str, str | None], started: str) -> Header:
        """Name the tree, the rules, the embedder and the reader."""
        env, tree = self._env, self._env.tree
        return Header(
            versions=dict(versions),
            task=TaskRef(kind="inquiry", id=tree.id, version=tree.version, digest=tree.digest),
            rules=env.episode_rules.as_dict(),
            seed=env.state.seed,
            embedder=EmbedderRef(name=env.embedder.name, digest=env.embedder.digest),
            reader=None if env.asked is None else json.loads(json.dumps(env.asked.reader.config)),
            prompts=env.prompts.digest,
            agent=dict(agent),
            started=started,
        )

    def observation(self) -> str:
        """Render the last event."""
        return self._env.runtime.observations.render(self._last.event)

    def last_step(self) -> RecordedStep:
        """Name the candidates, the subtopics and the studies by id."""
        tree, last = self._env.tree, self._last
        return RecordedStep(last.action, _event_record(tree, last.event), _reading_record(tree, last))

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the reader's reply about the last action, and the judge's replies about the conclusion."""
        asked, judging = self._env.asked, self._env.judging
        answer = None if asked is None else asked.answer
        if answer is not None and answer.reply is not None:
            yield ServiceReply(READER_ROLE, answer.reply, answer.fault)
        over = self._last.event.state.phase == Phase.END
        if over and judging is not None and judging.judgement is not None:
            for each in judging.judgement.replies:
                yield ServiceReply(JUDGE_ROLE, each.reply, each.fault)

    def judge(self) -> Mapping[str, Any]:
        """Describe the local judge, or the one that was given."""
        if self._env.judging is not None:
            return self._env.judging.config
        local = self._env.runtime.judge
        return {"name": local.name, "version": local.version}

    def recall(self, turn: Turn) -> None:
        """Take the reader's choice and the judge's reward."""
        env = self._env
        if env.asked is not None and (request := env.reader_request(turn.action)) is not None:
            env.asked.take(request, ReaderAnswer(turn.inquiry_reading.candidate))
        if env.judging is not None and turn.terminated:
            env.judging.recall(turn.reward)

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """See `InquiryEnv.ask_ahead`."""
        return self._env.ask_ahead(action)

    def former_options(self, header: Header) -> dict[str, Any]:
        """Return the rules that did not exist when the log was written, as it was played then."""
        return Rules.unnamed(header.rules)

    def in_current_form(self, header: Header) -> Header:
        """Return the header with every rule named.

        The digest of templates that lack the one of a redo is replaced by the present one, unless a redo is shown.
        """
        prompts, rules = self._env.prompts, Rules.recorded(header.rules)
        same = not self._env.episode_rules.redo_turn and header.prompts == prompts.digest_without("redo")
        digest = prompts.digest if same else header.prompts
        return header.model_copy(update={"rules": rules.as_dict(), "prompts": digest})

    @property
    def _last(self) -> Transition:
        assert self._env.last_transition is not None
        return self._env.last_transition


def _reading_record(tree: Tree, last: Transition) -> ReadingRecord:
    """Name the candidates by id: studies if the action was taken at a subtopic, subtopics elsewhere."""
    reading, nodes = last.reading, tree.studies if last.phase == Phase.SUBTOPIC else tree.subtopics
    return ReadingRecord(
        candidate=nodes[reading.candidate].id if reading.candidate >= 0 else None,
        similarity=reading.similarity,
        decision=reading.decision.name.lower(),
        margin=reading.margin,
        top=tuple((nodes[index].id, similarity) for index, similarity in reading.top),
    )


def _event_record(tree: Tree, event: Event) -> EventRecord:
    nodes = tree.subtopics if event.kind in _SUBTOPIC_KINDS else tree.studies
    named = {name: nodes[i].id if i >= 0 else None for name, i in (("node", event.node), ("other", event.other))}
    return EventRecord(**event_values(event) | named)
