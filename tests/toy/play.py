"""What plays the toy kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.baselines.llm import ChatAgent
from tests.toy.env import PACKAGE, ToyEnv
from tests.toy.settings import ToySettings
from tests.toy.tasks import WordList


class Sayer(BaselineAgent):
    """Says the words in their order, or in a random one."""

    def __init__(self, env: ToyEnv, name: str) -> None:
        super().__init__()
        self.name, self._words = name, env.task.words

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self._chance = np.random.default_rng(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        at = info["turn"] if self.name == "oracle" else int(self._chance.integers(len(self._words)))
        return self._words[at].upper()


class ToyLLMAgent(ChatAgent):
    """A chat model that says words."""

    package = PACKAGE


class ToyPlay:
    """What plays the toy kind; see `kinds.Play`."""

    templates = ("show",)
    agents: Mapping[str, Callable[[ToyEnv], Sayer]] = {
        "oracle": lambda env: Sayer(env, "oracle"),
        "random": lambda env: Sayer(env, "random"),
    }
    model_agents: Mapping[str, type[ChatAgent]] = {"llm": ToyLLMAgent}
    default_agents = ("oracle", "random")
    saved_policy = None
    course_note = "One request for each word."

    def maker(self, settings: ToySettings, shared: Any) -> Callable[[WordList], ToyEnv]:
        rules = settings.all_rules()
        return lambda task: ToyEnv(task, judge=shared.judge, prompts=shared.prompts, **rules)

    def courses(self, task: WordList, settings: ToySettings, prompts: str) -> tuple[Any, Any]:
        env = ToyEnv(task, prompts=prompts)
        opening, info = env.reset()
        course = [(opening, info)] * len(task.words)
        return course, course


PLAY = ToyPlay()
