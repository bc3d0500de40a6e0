"""Readers and judges of an environment that ask services, ahead of a step or within it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from inquitree_gym._litellm import run_sync
from inquitree_gym.engine import Reading, State
from inquitree_gym.engine.rules import Evidence
from inquitree_gym.errors import BudgetError, JudgeError, RewardError, ServiceError
from inquitree_gym.judges import AsyncJudge, Judgement, Verdict, conclusion_quality
from inquitree_gym.judges.quality import NOTHING
from inquitree_gym.judges.records import version_of
from inquitree_gym.judges.registry import LOCAL, InProcessJudge, load_judge
from inquitree_gym.llm import Usage
from inquitree_gym.matching import MAX_ACTION_LENGTH, Matcher
from inquitree_gym.readers import Reader, ReaderAnswer, ReaderRequest, load_reader
from inquitree_gym.trees import Tree

J = TypeVar("J", bound="NamedJudge")
D = TypeVar("D")
G = TypeVar("G")


class AskedReader:
    """The reader of one environment, and its answers to the last action and to the next one."""

    def __init__(self, reader: Reader) -> None:
        """Ask ``reader``."""
        self.reader = reader
        self.answer: ReaderAnswer | None = None
        """Answer behind the last reading; None if that action was not matched with candidates."""
        self._ahead: tuple[ReaderRequest, ReaderAnswer] | None = None

    @classmethod
    def load(cls, reader: str | Reader) -> Self | None:
        """Return the reader with a name, or as given; None for the reading by similarity. See `load_reader`."""
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
        self.take(request, await self.reader.choose(request))

    def read(self, matcher: Matcher, state: State, action: str) -> Reading:
        """Return the reading of ``action``; see `Matcher.read`.

        Raises:
            ReaderError: the reader gave no usable reply; the state has not changed.
        """
        ahead, self._ahead, self.answer = self._ahead, None, None
        request = matcher.reader_request(state, action)
        if request is None:
            return matcher.read(state, action)
        self.answer = ahead[1] if ahead and ahead[0] == request else run_sync(self.reader.choose(request))
        return matcher.read_choice(state, action, self.answer.candidate)


class NamedJudge(Protocol):
    """The members that judges of conclusions and judges of projections share."""

    @property
    def name(self) -> str:
        """Name by which the judge was requested."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine its judgements."""


class JudgeAhead(ABC, Generic[J, D, G]):
    """A judge (type J) that one environment asks about texts on documents (type D), and its last judgement (type G)."""

    graded: ClassVar[str]
    """Kind of text that is graded, for messages."""

    def __init__(self, judge: J, *, waits: bool) -> None:
        """Ask ``judge``.

        Args:
            judge: the judge.
            waits: True if it waits for a service, so that several may be asked at the same time.
        """
        self.judge, self.waits = judge, waits
        self.judgement: G | None = None
        """Judgement behind the last reward; None if the reward was recalled from a log."""
        self._ahead: tuple[D, str, G] | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Name, version and settings of the judge, for logs."""
        return {"name": self.judge.name, "version": version_of(self.judge.config), **self.judge.config}

    async def ask_ahead(self, document: D, text: str) -> None:
        """Ask about the text that comes next, and keep the judgement for its step.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        text = text[:MAX_ACTION_LENGTH]
        self._ahead = (document, text, await self._ask(document, text))

    def _judge(self, document: D, text: str) -> G:
        """Return the judgement of a text, requested ahead of the step or now; see `ask_ahead` for the errors."""
        ahead, self._ahead, self.judgement = self._ahead, None, None
        text = text[:MAX_ACTION_LENGTH]
        if ahead is not None and ahead[0] is document and ahead[1] == text:
            self.judgement = ahead[2]
        else:
            self.judgement = self._judge_here(document, text) or run_sync(self._ask(document, text))
        return self.judgement

    async def _ask(self, document: D, text: str) -> G:
        try:
            judgement = await self._request(document, text)
        except ServiceError as error:
            raise RewardError(
                f"the judge could not grade {self.graded}: {error}", status=error.status, transient=error.transient
            ) from error
        usage, missing = self._shortfall(document, judgement)
        if missing and usage.skipped:
            raise BudgetError(f"the judge could not grade {self.graded}; {missing}")
        if missing and usage.failed:
            raise RewardError(f"the judge could not grade {self.graded}: {missing}", transient=True)
        return judgement

    @abstractmethod
    def _judge_here(self, document: D, text: str) -> G | None:
        """Return the judgement of a judge that computes in this process; None for one that has to be awaited."""

    @abstractmethod
    async def _request(self, document: D, text: str) -> G:
        """Await the judgement."""

    @abstractmethod
    def _shortfall(self, document: D, judgement: G) -> tuple[Usage, str]:
        """Return the usage of a judgement, and the reason why something in it is unscored, or an empty text."""


class AskedJudge(JudgeAhead[AsyncJudge, Tree, Judgement]):
    """The judge of the conclusions of one environment, if it is not the local judge."""

    graded = "a conclusion"

    def __init__(self, judge: AsyncJudge) -> None:
        """Ask ``judge``."""
        super().__init__(judge, waits=not isinstance(judge, InProcessJudge))
        self._recalled: float | None = None

    @classmethod
    def load(cls, judge: str | AsyncJudge) -> Self | None:
        """Return the judge with a name, or a given judge as it is; None for the local judge. See `load_judge`."""
        return None if judge == LOCAL else cls(load_judge(judge))

    def recall(self, reward: float) -> None:
        """Take the next reward from a log instead of asking."""
        self._recalled = reward

    def reward(self, tree: Tree, evidence: Evidence, state: State, conclusion: str) -> float:
        """Return Q/|C| of a conclusion in [0, 1] (Eq. 9); an item without a readable verdict adds nothing.

        ``evidence`` is the rule of this name.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        recalled, self._recalled = self._recalled, None
        if recalled is not None:
            self._ahead = self.judgement = None
            return recalled
        scored = (each.score or NOTHING for each in self._judge(tree, conclusion).verdicts)
        quality = conclusion_quality(tree, state.proven, tuple(Verdict(score, "") for score in scored), evidence)
        assert quality is not None
        return quality / len(tree.conclusions)

    def _judge_here(self, tree: Tree, conclusion: str) -> Judgement | None:
        if not isinstance(self.judge, InProcessJudge):
            return None
        return Judgement(self.judge.for_tree(tree).judge(conclusion))

    async def _request(self, tree: Tree, conclusion: str) -> Judgement:
        return await self.judge.judge(tree, conclusion)

    def _shortfall(self, tree: Tree, judgement: Judgement) -> tuple[Usage, str]:
        if len(judgement.verdicts) != len(tree.conclusions):
            raise JudgeError(
                f"the judge '{self.judge.name}' returned {len(judgement.verdicts)} verdicts on the "
                f"{len(tree.conclusions)} items of {tree.id}; return one per item, in tree order"
            )
        missing = (verdict.why or "no verdict" for verdict in judgement.verdicts if verdict.score is None)
        return judgement.usage, next(missing, "")


async def all_at_once(asking: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await everything at the same time, and raise the first error."""
    await asyncio.gather(*asking)
