"""Play of explorations: agents by name, the maker of a run's environments, and courses for estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.exploration.agents import ExploringLLMAgent, FirstHitAgent, GoldPathAgent, GuessingAgent, SilentAgent
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.reader import ReaderAgent
from inquitree_gym.exploration.runtime import TEMPLATE_NAMES, ExplorationRuntimes, exploration_prompts
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.settings import ExplorationSettings
from inquitree_gym.exploration.wide import WideAgent
from inquitree_gym.protocols import Course, Shared


class ExplorationPlay:
    """Agents and environments of explorations. See `protocols.Play` for the methods."""

    templates = TEMPLATE_NAMES
    agents: Mapping[str, Callable[[ExplorationEnv], Agent]] = {
        "silent": lambda env: SilentAgent(),
        "random": GuessingAgent,
        "first-hit": lambda env: FirstHitAgent(),
        "wide": lambda env: WideAgent(),
        "reader": lambda env: ReaderAgent(),
        "oracle": lambda env: GoldPathAgent(),
    }
    model_agents: Mapping[str, type[ChatAgent]] = {"llm": ExploringLLMAgent}
    default_agents = ("oracle", "silent")
    saved_policy = None
    course_note = "One request at least, and one more than there are turns at most."

    def maker(self, settings: ExplorationSettings, shared: Shared) -> Callable[[ExplorationTask], ExplorationEnv]:
        """Return the maker of environments. See `protocols.Play.maker`."""
        prompts = exploration_prompts(shared.prompts)
        runtimes = ExplorationRuntimes(None, prompts)
        rules = settings.all_rules()

        def make(task: ExplorationTask) -> ExplorationEnv:
            env = ExplorationEnv(task, judge=shared.judge, **rules)
            env.prompts, env.runtimes = prompts, runtimes
            return env

        return make

    def courses(self, task: ExplorationTask, settings: ExplorationSettings, prompts: str) -> tuple[Course, Course]:
        """Return an answer at once, and an answer after all turns. Each observation stands for the first one."""
        opening = ExplorationEnv(task, prompts=prompts, max_turns=settings.max_turns).reset(seed=0)
        return [opening], repeat(opening, (settings.max_turns or task.turns) + 1)


PLAY = ExplorationPlay()
