"""The environment of the toy kind, and its records."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from inquitree_gym.envs.asking import AskedJudge
from inquitree_gym.envs.episode_records import RecordedStep, ServiceReply
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.log import Header, TaskRef, Turn
from inquitree_gym.prompts import Prompts
from inquitree_gym.seeds import seed_of_agent
from tests.toy.events import ToyEvent, ToySetup
from tests.toy.tasks import TASKS, WordList, words_in

PACKAGE = "tests.toy"


class ToyEnv(gym.Env[str, str]):
    """Say every word of a list once; there are as many turns as words, and each word earns its share."""

    kind: ClassVar[str] = "toy"

    def __init__(
        self,
        task: str | WordList,
        *,
        shown: int = 0,
        loud: bool = False,
        judge: Any = "local",
        prompts: str | None = None,
    ) -> None:
        self.task = TASKS.load(task)
        self.rules = self.episode_rules = {"shown": shown, "loud": loud}
        self.judging = AskedJudge.load(judge, self.kind)
        self.prompts = Prompts(prompts, ("show",), PACKAGE)
        self.action_space, self.observation_space = FreeText(200), FreeText(10_000)
        self.turn, self.last, self.closed = -1, None, False

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        if self.closed:
            raise ClosedEnvironmentError("the environment was closed; make another one")
        if unknown := (options or {}).keys() - self.rules.keys():
            raise OptionError(f"unknown option '{min(unknown)}'; reset takes: {', '.join(self.rules)}")
        super().reset(seed=seed)
        self.episode_rules = self.rules | dict(options or {})
        self.seed, self.turn, self.said, self.last = self.np_random_seed, 0, (), None
        return self.observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.turn < 0 or self.state == "end":
            raise ResetNeeded("no episode is played; call reset() first")
        if not isinstance(action, str):
            raise ActionError(f"an action must be a string, got {type(action).__name__}")
        heard = words_in(self.task, self._heard(action)) if self.judging is None else self._asked(action)
        new = [word for word in heard or () if word not in self.said][:1]
        self.turn, self.said = self.turn + 1, (*self.said, *new)
        event = ToyEvent(kind="word", state=self.state, heard=heard, left=len(self.task.words) - len(self.said))
        self.last = RecordedStep(action, event)
        return self.observation(), len(new) / len(self.task.words), self.state == "end", False, self._info()

    def close(self) -> None:
        self.closed, self.turn = True, -1

    @property
    def state(self) -> str:
        return "end" if self.turn == len(self.task.words) else "say"

    @property
    def records(self) -> ToyRecords:
        return ToyRecords(self)

    def observation(self) -> str:
        words = self.task.words
        return self.prompts.render(
            "show", said=len(self.said), words=len(words), shown=words[: self.episode_rules["shown"]]
        )

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        if self.judging is None or not self.judging.waits:
            return None
        return self.judging.ask_ahead(self.task, self._heard(action))

    def _heard(self, action: str) -> str:
        return action if self.episode_rules["loud"] else action.upper()

    def _asked(self, action: str) -> tuple[str, ...] | None:
        return self.judging.grade(self.task, self._heard(action), lambda heard: heard)

    def _info(self) -> dict[str, Any]:
        return {"state": self.state, "turn": self.turn}


class ToyRecords:
    """Records of the episodes; see `EpisodeRecords`."""

    def __init__(self, env: ToyEnv) -> None:
        self._env = env

    @property
    def agent_seed(self) -> int:
        return seed_of_agent(self._env.seed, self._env.task.id)

    def header(self, *, agent: Mapping[str, Any], versions: Mapping[str, str | None], started: str) -> Header:
        task = self._env.task
        return Header(
            versions=dict(versions),
            task=TaskRef(kind=self._env.kind, id=task.id, version=task.version, digest=task.digest),
            rules=self._env.episode_rules,
            seed=self._env.seed,
            setup=ToySetup(judge=dict(self.judge())),
            prompts=self._env.prompts.digest,
            agent=dict(agent),
            started=started,
        )

    def observation(self) -> str:
        return self._env.observation()

    def last_step(self) -> RecordedStep:
        assert self._env.last is not None
        return self._env.last

    def replies(self) -> Iterator[ServiceReply]:
        judged = self._env.judging and self._env.judging.judgement
        for each in judged.replies if judged else ():
            yield ServiceReply("judge", each.reply, each.fault)

    def judge(self) -> Mapping[str, Any]:
        judging = self._env.judging
        return {"name": "local", "version": 1} if judging is None else judging.config

    def recall(self, turn: Turn[ToyEvent]) -> None:
        if self._env.judging is not None:
            self._env.judging.recall(turn.event.heard)

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        return self._env.ask_ahead(action)
