"""Play of projections: agents by name, the maker of a run's environments, and courses for estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.envs.asking import reward_of
from inquitree_gym.errors import OptionError
from inquitree_gym.judging.judgement import LOCAL
from inquitree_gym.projection.agents import PROJECTING_NAMES, ProjectingBaseline, ProjectingLLMAgent
from inquitree_gym.projection.env import OWN_REWARD, ProjectionEnv
from inquitree_gym.projection.observations import TEMPLATE_NAMES, projection_prompts
from inquitree_gym.projection.runtime import ProjectionRuntimes, ProjectionState
from inquitree_gym.projection.settings import ProjectionRules, ProjectionSettings
from inquitree_gym.projection.synthetic import SyntheticProjectionEnv
from inquitree_gym.protocols import Course, Shared
from inquitree_gym.trees.disclosure import ProjectionTask


def _projecting(name: str, env: ProjectionEnv) -> Agent:
    if env.last_transition is not None:
        return ProjectingBaseline(name, env.task, env.episode_rules)
    if len(env.tasks) > 1 or isinstance(env, SyntheticProjectionEnv):
        raise OptionError("the environment draws its task at each reset; call env.reset() before make_agent()")
    return ProjectingBaseline(name, env.tasks[0], env.rules)


class ProjectionPlay:
    """Agents and environments of projections. See `protocols.Play` for the methods."""

    templates = TEMPLATE_NAMES
    agents: Mapping[str, Callable[[ProjectionEnv], Agent]] = {
        name: partial(_projecting, name) for name in PROJECTING_NAMES
    }
    model_agents: Mapping[str, type[ChatAgent]] = {"llm": ProjectingLLMAgent}
    default_agents = ("coin", "oracle")
    saved_policy = None
    course_note = "One request for each projection and each sheet."

    def maker(self, settings: ProjectionSettings, shared: Shared) -> Callable[[ProjectionTask], ProjectionEnv]:
        """Return the maker of environments. See `protocols.Play.maker`."""
        prompts = projection_prompts(shared.prompts)
        runtimes = ProjectionRuntimes(prompts)
        judge = None if shared.judge == LOCAL else shared.judge
        rules = settings.all_rules() | {"reward": reward_of(settings.reward, judge, *OWN_REWARD)}

        def make(task: ProjectionTask) -> ProjectionEnv:
            env = ProjectionEnv(task, judge=judge, **rules)
            env.prompts, env.runtimes = prompts, runtimes
            return env

        return make

    def courses(self, task: ProjectionTask, settings: ProjectionSettings, prompts: str) -> tuple[Course, Course]:
        """Return the observation of each turn, twice: every course takes the same turns."""
        rules = ProjectionRules().override(settings.all_rules())
        runtime = ProjectionRuntimes(projection_prompts(prompts)).get(task, rules)
        states = [ProjectionState(0, turn, turn) for turn in range(rules.turns)]
        course = [(runtime.observe(state), runtime.info(state)) for state in states]
        return course, course


PLAY = ProjectionPlay()
PROJECTION_AGENT_NAMES = (*PLAY.agents, *PLAY.model_agents)
"""Names that `make_agent` takes for projections, apart from agents of your own."""
