"""The judge that an environment asks about texts, before or during a step."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Self, TypeVar

from inquitree_gym.errors import BudgetError, OptionError, RewardError, ServiceError
from inquitree_gym.judging.judgement import LOCAL, AsyncJudge, InProcessJudge, Judgement, version_of
from inquitree_gym.kinds import kind
from inquitree_gym.text_limits import MAX_ACTION_LENGTH

T = TypeVar("T")
R = TypeVar("R")


class AskedJudge(Generic[T]):
    """The judge that one environment asks about texts on tasks, and its last judgement.

    An environment has none where the local judge sets its reward.
    """

    def __init__(self, judge: AsyncJudge[T], task_kind: str) -> None:
        """Ask a judge about the texts of a kind of environment."""
        self.judge = judge
        self.waits = not isinstance(judge, InProcessJudge)
        """True if it waits for a service, so that several may be asked at the same time."""
        self.judgement: Judgement[Any] | None = None
        """Judgement behind the last reward. None if the reward was recalled from a log."""
        self._judging = kind(task_kind).judging
        self._ahead: tuple[T, str, Judgement[Any]] | None = None
        self._recalled: Any = None

    @classmethod
    def load(cls, judge: str | AsyncJudge[T], task_kind: str) -> Self | None:
        """Return the judge with a name, or a given judge as it is. None for the local judge. See `load_judge`."""
        if judge == LOCAL:
            return None
        from inquitree_gym.judging.registry import load_judge

        return cls(load_judge(judge, task_kind=task_kind), task_kind)

    @property
    def config(self) -> dict[str, Any]:
        """Name, version and settings of the judge, for logs."""
        return {"name": self.judge.name, "version": version_of(self.judge.config), **self.judge.config}

    def recall(self, measured: object) -> None:
        """Take what the next text is worth from a log instead of asking. See `grade`."""
        self._recalled = measured

    async def ask_ahead(self, task: T, text: str) -> None:
        """Ask about the text that comes next, and keep the judgement for its step.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        text = text[:MAX_ACTION_LENGTH]
        self._ahead = (task, text, self._checked(task, await self._ask(task, text)))

    def grade(self, task: T, text: str, measure: Callable[[Any], R]) -> R:
        """Return what a text is worth.

        Args:
            task: the task that it is about.
            text: the text.
            measure: computes the worth from the payload of a judgement.

        Raises:
            RewardError: the judge gave no usable answer.
            BudgetError: a cap is reached.
        """
        ahead, self._ahead = self._ahead, None
        recalled, self._recalled = self._recalled, None
        self.judgement = None
        if recalled is not None:
            worth: R = recalled
            return worth
        text = text[:MAX_ACTION_LENGTH]
        if ahead is not None and ahead[0] is task and ahead[1] == text:
            self.judgement = ahead[2]
        elif isinstance(self.judge, InProcessJudge):
            self.judgement = self._checked(task, Judgement(self.judge.for_task(task).judge(text)))
        else:
            from inquitree_gym.llm.litellm import run_sync

            self.judgement = self._checked(task, run_sync(self._ask(task, text)))
        return measure(self.judgement.payload)

    async def _ask(self, task: T, text: str) -> Judgement[Any]:
        try:
            return await self.judge.judge(task, text)
        except ServiceError as error:
            raise RewardError(
                f"the judge could not grade a {self._judging.noun}: {error}",
                status=error.status,
                transient=error.transient,
            ) from error

    def _checked(self, task: T, judgement: Judgement[Any]) -> Judgement[Any]:
        """Return a judgement that fits the task and lacks no grade because of the service or the budget."""
        payload = self._judging.payload.of(task, judgement.payload)
        if payload.unscored:
            missing = judgement.why or payload.why or "a grade is missing"
            if judgement.usage.skipped:
                raise BudgetError(f"the judge could not grade a {self._judging.noun}; {missing}")
            if judgement.usage.failed:
                raise RewardError(f"the judge could not grade a {self._judging.noun}: {missing}", transient=True)
        return judgement


def reward_of(reward: str | None, judge: object, own: str, words: str) -> Any:
    """Return what pays: ``reward``, by default ``"judge"`` with a judge and ``own`` without one.

    ``words`` name the latter in errors.

    Raises:
        OptionError: reward and judge do not go together, or the judge is named ``local``, which these kinds lack.
    """
    if reward == "judge" and judge is None:
        raise OptionError(f"reward='judge' needs judge=..., such as 'llm:MODEL', or leave both out for {words}")
    if reward not in (None, "judge") and judge is not None:
        raise OptionError(f"judge={judge!r:.80} does nothing with reward={reward!r}; leave one of them out")
    if judge == LOCAL:
        raise OptionError(f"no judge is called 'local' here; leave judge out for {words}, or name 'llm:MODEL'")
    return reward or (own if judge is None else "judge")


def shared_judge(judge: str | AsyncJudge[T] | None, task_kind: str) -> str | AsyncJudge[T] | None:
    """Return a judge that several environments share, so that they share its requests. ``local`` stays a name."""
    if judge is None:
        return None
    asked = AskedJudge.load(judge, task_kind)
    return judge if asked is None else asked.judge


async def all_at_once(asking: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await everything at the same time, and raise the first error."""
    import asyncio  # costs a tenth of a start, which asks nobody

    await asyncio.gather(*asking)
