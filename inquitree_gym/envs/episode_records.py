"""Protocol between an environment and its log: what every kind of environment records about an episode.

`play`, `LogEpisodes` and the resumption of torn logs use an environment only through this protocol.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym

from inquitree_gym.errors import OptionError

if TYPE_CHECKING:
    from inquitree_gym.llm import Completion
    from inquitree_gym.log import Header, Turn, TurnEvent


class RecordedStep(NamedTuple):
    """The last step of an environment, as a log keeps it."""

    action: str
    """The action as text."""
    event: TurnEvent
    """Outcome of the action, in the form of the kind of environment."""


class ServiceReply(NamedTuple):
    """Reply of a chat model that an environment asked in its last step."""

    role: str
    """``reader`` or ``judge``. See `Reply.role`."""
    reply: Completion
    fault: str = ""
    """Reason why the reply does not have the format of its role. Empty for a valid reply."""


class EpisodeRecords(Protocol):
    """Records of the episode that an environment plays, all of them privileged."""

    @property
    def agent_seed(self) -> int:
        """Seed for the agent of this episode."""

    def header(self, *, agent: Mapping[str, Any], versions: Mapping[str, str | None], started: str) -> Header:
        """Return the header of this episode's log, with the task, the rules and everything else that determines it.

        Args:
            agent: configuration of the agent, in values of JSON.
            versions: versions of Python and packages.
            started: UTC time, ISO 8601.
        """

    def observation(self) -> str:
        """Return the last observation as text, before any wrapper changed it."""

    def last_step(self) -> RecordedStep:
        """Return the last step. Call it after a step, not after a reset."""

    def replies(self) -> Iterator[ServiceReply]:
        """Yield the replies of reader and judge that the last step asked for, in the order of the requests."""

    def judge(self) -> Mapping[str, Any]:
        """Return name, version and settings of the judge of the reward."""

    def recall(self, turn: Turn[Any]) -> None:
        """Take the answers of reader and judge for the next step from a logged turn instead of asking them again."""

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks reader or judge about ``action`` ahead of its step. None if neither is asked."""


@runtime_checkable
class RecordedEnv(Protocol):
    """An environment whose episodes can be played by `play` and logged by `LogEpisodes`."""

    @property
    def kind(self) -> str:
        """Name of its kind. See `kinds.kind`. Every view of an environment has it, as an attribute of its class."""

    @property
    def records(self) -> EpisodeRecords:
        """Records of its episodes."""


def unwrap_records(env: gym.Env[Any, Any]) -> EpisodeRecords:
    """Return the records of the environment inside ``env``.

    Raises:
        OptionError: its episodes cannot be recorded.
    """
    inner = env.unwrapped
    if not isinstance(inner, RecordedEnv):
        raise OptionError(
            f"{type(env).__name__} must wrap an environment of this package or a RecordedEnv, "
            f"got {type(inner).__name__}"
        )
    return inner.records
