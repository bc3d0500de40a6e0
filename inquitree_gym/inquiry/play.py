"""Play of inquiries: agents by name, the maker of a run's environments, and courses for estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from inquitree_gym.baselines.agent import Agent
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.embeddings import TreeVectors, load_embedder, tree_vectors
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.agents.llm import LLMAgent, RecallAgent, ScepticAgent
from inquitree_gym.inquiry.agents.policy import RetrievalAgent, saved_policy
from inquitree_gym.inquiry.agents.readers import CopyistAgent, CoverAgent, EchoAgent
from inquitree_gym.inquiry.agents.scripted import (
    OracleAgent,
    RandomAgent,
    RandomMenuAgent,
    RandomWordsAgent,
    RedoUntilTrue,
    WorstCaseAgent,
)
from inquitree_gym.inquiry.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.llm_matcher import LOCAL, LLMReader
from inquitree_gym.inquiry.observations import ObservationRenderer
from inquitree_gym.inquiry.prompts import TEMPLATE_NAMES, inquiry_prompts
from inquitree_gym.inquiry.runtime import RuntimeCache, public_info
from inquitree_gym.inquiry.settings import InquirySettings
from inquitree_gym.inquiry.vector import SyntheticEnv
from inquitree_gym.judging.judgement import LOCAL as LOCAL_JUDGE
from inquitree_gym.protocols import Course, Shared
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Tree

Policy = Callable[[Engine, State], Reading]
_EXPLORE, _CONCLUDE = (Reading(decision=decision) for decision in (Decision.EXPLORE, Decision.CONCLUDE))
_ANY_THRESHOLD = 0.5
"""Threshold of courses, which match no text."""


class InquiryPlay:
    """Agents and environments of inquiries. See `protocols.Play` for the methods."""

    templates = TEMPLATE_NAMES
    agents: Mapping[str, Callable[[InquiryEnv], Agent]] = {
        "random": lambda env: RandomAgent(_tree(env)),
        "random-menu": lambda env: RandomMenuAgent(_tree(env)),
        "random-words": lambda env: RandomWordsAgent(),
        "oracle": lambda env: OracleAgent(_tree(env), env.rules if env.last_transition is None else env.episode_rules),
        "worst-case": lambda env: WorstCaseAgent(),
        "retrieval": lambda env: RetrievalAgent(_vectors(env)),
        "cover": lambda env: CoverAgent(_tree(env)),
        "greedy": lambda env: _exact("greedy", env),
        "bayes": lambda env: _exact("bayes", env),
        "copyist": lambda env: CopyistAgent(_tree(env)),
        "echo": lambda env: EchoAgent(_tree(env)),
        "random-redo": lambda env: RedoUntilTrue(RandomAgent(_tree(env))),
        "retrieval-redo": lambda env: RedoUntilTrue(RetrievalAgent(_vectors(env))),
    }
    model_agents: Mapping[str, type[ChatAgent]] = {"llm": LLMAgent, "sceptic": ScepticAgent, "recall": RecallAgent}
    default_agents = ("random", "oracle")
    course_note = (
        "Requests from 3n turns (every proposal accepted) to n(2H + 3) (every one forced) or the turn limit, the "
        "conclusion and the exam, which an unreadable answer takes twice. Redone studies are extra."
    )

    def saved_policy(self, name: str, env: InquiryEnv) -> Agent:
        """See `inquiry.agents.policy.saved_policy`."""
        return saved_policy(name, _vectors(env), env.rules)

    def maker(self, settings: InquirySettings, shared: Shared) -> Callable[[Tree], InquiryEnv]:
        """Return the maker of environments. See `protocols.Play.maker`."""
        embedder = load_embedder(settings.embedder, device=shared.device)  # its weights are loaded on first use
        if settings.threshold is None and embedder.threshold is None:
            raise OptionError(
                f"no threshold has been calibrated for the embedder '{settings.embedder}'; give the study a threshold"
            )
        reader = LOCAL if settings.reader is None else LLMReader(shared.chat(settings.reader), cache=shared.cache)
        prompts = inquiry_prompts(shared.prompts)
        runtimes = RuntimeCache(embedder, prompts)
        judge = None if shared.judge == LOCAL_JUDGE else shared.judge
        rules = settings.chosen_rules() | {"threshold": settings.threshold}

        def make(tree: Tree) -> InquiryEnv:
            env = InquiryEnv(tree, embedder=embedder, reader=reader, judge=judge, **rules)
            env.prompts, env.runtimes = prompts, runtimes
            return env

        return make

    def courses(self, task: Tree, settings: InquirySettings, prompts: str) -> tuple[Course, Course]:
        """Return a full traversal without a failure, and one in which every proposal fails until the forced move."""
        options = settings.options(settings.cells()[0], task)
        engine = Engine(task, Rules(threshold=_ANY_THRESHOLD).override(options))
        observations = ObservationRenderer(task, inquiry_prompts(prompts), engine)
        return _walk(engine, observations, _succeed, 0), _walk(engine, observations, _fail, None)


def _walk(
    engine: Engine, observations: ObservationRenderer, policy: Policy, choice: int | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each observation of an episode with its info. ``choice`` answers every item of a sheet."""
    event, sheet = engine.start(0), Sheet((choice,) * len(engine.exam.items))
    while (state := event.state).phase != Phase.END:
        yield observations.render(event), public_info(event)
        takes_sheet = state.phase == Phase.EXAM and engine.rules.exam == "sheet"
        event = engine.answer(state, sheet) if takes_sheet else engine.advance(state, policy(engine, state))


def _succeed(engine: Engine, state: State) -> Reading:
    """Name an admissible candidate every time."""
    if state.phase == Phase.TOPIC:
        return Reading(next(i for i in engine.admissible(state) if not state.visits[i]), 1.0)
    if state.phase == Phase.SUBTOPIC:
        return Reading(engine.studies_of[state.subtopic][0], 1.0)
    return _decide(engine, state)


def _fail(engine: Engine, state: State) -> Reading:
    """Name no candidate, so that every move is forced."""
    return Reading() if state.phase in (Phase.TOPIC, Phase.SUBTOPIC) else _decide(engine, state)


def _decide(engine: Engine, state: State) -> Reading:
    if state.phase == Phase.EXAM:
        return Reading()
    return _CONCLUDE if state.visited == (1 << engine.n) - 1 else _EXPLORE


def _exact(name: str, env: InquiryEnv) -> Agent:
    """Return an agent that chooses by the posterior, whose modules no other one needs."""
    from inquitree_gym.inquiry.agents.exact import BayesAgent, GreedyAgent

    kinds: Mapping[str, type[GreedyAgent]] = {"greedy": GreedyAgent, "bayes": BayesAgent}
    return kinds[name](_tree(env))


def _tree(env: InquiryEnv) -> Tree:
    if env.last_transition is not None:
        return env.task
    if len(env.tasks) > 1 or isinstance(env, SyntheticEnv):
        raise OptionError("the environment draws its tree at each reset; call env.reset() before make_agent()")
    return env.tasks[0]


def _vectors(env: InquiryEnv) -> TreeVectors:
    return env.vectors if env.last_transition is not None else tree_vectors(_tree(env), env.embedder)


PLAY = InquiryPlay()
BASELINE_NAMES = tuple(PLAY.agents)
"""Names of the agents of inquiries without a chat model."""
MODEL_AGENT_NAMES = tuple(PLAY.model_agents)
"""Names of the agents of inquiries with a chat model."""
AGENT_NAMES = (*BASELINE_NAMES, *MODEL_AGENT_NAMES)
"""Names that `make_agent` takes for inquiries, apart from agents of your own. Replay and human agents need more than an
environment: use their classes."""
