"""Readers and judges of an environment that ask services, ahead of a step or within it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Self

from inquitree_gym._litellm import run_sync
from inquitree_gym.engine import Reading, State
from inquitree_gym.engine.rules import Evidence
from inquitree_gym.errors import BudgetError, JudgeError, RewardError, ServiceError
from inquitree_gym.judges import AsyncJudge, Judgement, Verdict, conclusion_quality
from inquitree_gym.judges.quality import NOTHING
from inquitree_gym.judges.records import version_of
from inquitree_gym.judges.registry import LOCAL, InProcessJudge, load_judge
from inquitree_gym.matching import MAX_ACTION_LENGTH, Matcher
from inquitree_gym.readers import Reader, ReaderAnswer, ReaderRequest, load_reader
from inquitree_gym.trees import Tree


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


class AskedJudge:
    """The judge of the reward of one environment where it is not the local one, and its last judgement."""

    def __init__(self, judge: AsyncJudge) -> None:
        """Ask ``judge``."""
        self.judge = judge
        self.judgement: Judgement | None = None
        """Judgement behind the last reward; None if that was recalled from a log."""
        self.waits = not isinstance(judge, InProcessJudge)
        """True if the judge waits for a service, so that several may be asked at the same time."""
        self._ahead: tuple[Tree, str, Judgement] | None = None
        self._recalled: float | None = None

    @classmethod
    def load(cls, judge: str | AsyncJudge) -> Self | None:
        """Return the judge with a name, or as given; None for the local one. See `load_judge`."""
        return None if judge == LOCAL else cls(load_judge(judge))

    @property
    def config(self) -> dict[str, Any]:
        """Name, version and settings of the judge, for logs."""
        return {"name": self.judge.name, "version": version_of(self.judge.config), **self.judge.config}

    def recall(self, reward: float) -> None:
        """Take the next reward from a log instead of asking."""
        self._recalled = reward

    async def ask_ahead(self, tree: Tree, conclusion: str) -> None:
        """Ask about the conclusion that comes next, and keep the judgement for its step.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        text = conclusion[:MAX_ACTION_LENGTH]
        self._ahead = (tree, text, await self._ask(tree, text))

    def reward(self, tree: Tree, evidence: Evidence, state: State, conclusion: str) -> float:
        """Return Q/|C| of a conclusion in [0, 1] (Eq. 9); an item without a readable verdict adds nothing.

        ``evidence`` is the rule of this name.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        recalled, ahead = self._recalled, self._ahead
        self._recalled = self._ahead = self.judgement = None
        if recalled is not None:
            return recalled
        text = conclusion[:MAX_ACTION_LENGTH]
        if ahead is not None and ahead[0] is tree and ahead[1] == text:
            self.judgement = ahead[2]
        elif isinstance(self.judge, InProcessJudge):
            self.judgement = Judgement(self.judge.for_tree(tree).judge(text))
        else:
            self.judgement = run_sync(self._ask(tree, text))
        scored = (each.score or NOTHING for each in self.judgement.verdicts)
        quality = conclusion_quality(tree, state.proven, tuple(Verdict(score, "") for score in scored), evidence)
        assert quality is not None
        return quality / len(tree.conclusions)

    async def _ask(self, tree: Tree, conclusion: str) -> Judgement:
        try:
            judgement = await self.judge.judge(tree, conclusion)
        except ServiceError as error:
            raise RewardError(
                f"the judge could not grade a conclusion: {error}", status=error.status, transient=error.transient
            ) from error
        if len(judgement.verdicts) != len(tree.conclusions):
            raise JudgeError(
                f"the judge '{self.judge.name}' returned {len(judgement.verdicts)} verdicts on the "
                f"{len(tree.conclusions)} items of {tree.id}; return one per item, in tree order"
            )
        missing = [verdict.why for verdict in judgement.verdicts if verdict.score is None]
        if missing and judgement.usage.skipped:
            raise BudgetError(f"the judge could not grade a conclusion; {missing[0]}")
        if missing and judgement.usage.failed:
            raise RewardError(f"the judge could not grade a conclusion: {missing[0]}", transient=True)
        return judgement


async def all_at_once(asking: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await everything at the same time, and raise the first error."""
    await asyncio.gather(*asking)
