"""Judgements of texts about any task, and the judges that give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from inquitree_gym.errors import JudgeError
from inquitree_gym.llm import Completion, Usage

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
P_co = TypeVar("P_co", covariant=True)

LOCAL = "local"
"""Name of the judge that needs no service, of the kinds that have one."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of a chat model that judged a text."""

    reply: Completion
    fault: str = ""
    """Fault in the reply. Empty if all of it can be read."""


@dataclass(frozen=True, slots=True)
class Judgement(Generic[P_co]):
    """Grades of one text by a judge."""

    payload: P_co
    """The grades: the verdicts on a conclusion, or the alignment of a projection."""
    usage: Usage = field(default_factory=Usage)
    unread: int = 0
    """Number of grades or replies that could not be read."""
    replies: tuple[JudgeReply, ...] = ()
    """Replies of a chat model behind the payload, in the order of the requests. Empty for other judges."""
    why: str = ""
    """Reason why something is unscored, if the payload has none."""


class AsyncJudge(Protocol[T_contra]):
    """Judge of texts about any task of one kind of environment."""

    @property
    def name(self) -> str:
        """Name by which the judge was requested."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine its judgements, besides task and text. Plain values.

        ``version`` is the judge's version, 1 if absent.
        """

    async def judge(self, task: T_contra, text: str, /) -> Judgement[Any]:
        """Judge one text about a task."""


class TaskJudge(Protocol[P_co]):
    """Judge of texts about one task, which computes in this process."""

    def judge(self, text: str, /) -> P_co:
        """Return the payload of the judgement of a text."""


@dataclass(frozen=True)
class InProcessJudge(Generic[T]):
    """`AsyncJudge` without a service: one judge per task that computes in this process."""

    name: str
    make_config: Callable[[], dict[str, Any]]
    for_task: Callable[[T], TaskJudge[Any]]
    """Function that returns the judge of a task, the same object for the same task."""

    @cached_property
    def config(self) -> dict[str, Any]:
        """See `AsyncJudge.config`. A model of the hub is loaded for it."""
        return self.make_config()

    async def judge(self, task: T, text: str, /) -> Judgement[Any]:
        """See `AsyncJudge.judge`. Blocks the event loop while it computes."""
        return Judgement(self.for_task(task).judge(text))


class JudgedText(NamedTuple):
    """A text of an episode that is judged."""

    turn: int
    """Turn at which it was written, 1 for the first."""
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgements of one episode by one judge."""

    judge: str
    """Name of the judge. Empty where nothing is judged."""
    version: int = 1
    payloads: Mapping[int, Any] = field(default_factory=dict)
    """Payloads of its judgements, by turn. A turn that was not judged is absent."""


def judge_label(name: str, version: int) -> str:
    """Return a judge's name with its version, as tables and figures show it. Empty without a judge.

    >>> judge_label("local", 2)
    'local v2'
    """
    return f"{name} v{version}" if name else ""


def version_of(config: Mapping[str, Any]) -> int:
    """Return the version of a judge with this configuration, 1 by default. Raise `JudgeError` for an invalid one."""
    version = config.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise JudgeError(f"the version of a judge must be an integer from 1, got {version!r:.80}")
    return version
