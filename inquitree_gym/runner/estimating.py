"""What asking the models of a study may take, reckoned before anything is asked.

An episode is walked through twice without a model: on the shortest full way, 3n turns and the conclusion, and on the
longest, where every proposal fails until the forced move, n(2H + 3) turns and the conclusion; a turn limit cuts both.
The agent itself writes the requests, from the templates and within its context, so prompts are as long as they will
be, but for the replies, each taken to have `REPLY_TOKENS`. Corrections, redone studies and reasoning are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from inquitree_gym._waiting import at_once
from inquitree_gym.baselines import Request, make_agent
from inquitree_gym.baselines.agent import asks
from inquitree_gym.embeddings import TreeVectors, load_embedder
from inquitree_gym.engine import Decision, Engine, Event, Phase, Reading, Rules, State
from inquitree_gym.envs.observations import ObservationRenderer
from inquitree_gym.envs.runtime import PHASE_NAMES
from inquitree_gym.llm import Completion, estimated_tokens
from inquitree_gym.log import Reply
from inquitree_gym.prompts import Prompts
from inquitree_gym.runner.models import ModelSettings
from inquitree_gym.runner.study import EpisodeSpec, StudyConfig
from inquitree_gym.trees import Tree, load_tree

REPLY_TOKENS = 200
"""Estimated tokens of a reply: a short thought and a move."""

_EXPLORE, _CONCLUDE = (Reading(decision=each) for each in (Decision.EXPLORE, Decision.CONCLUDE))
_FILLED = "THOUGHT: " + "so it is. " * 74 + "\nACTION: explore new subtopic"
_REPLY = Completion(_FILLED, "stop", {}, None)


class Load(NamedTuple):
    """What asking takes."""

    requests: int = 0
    prompt: int = 0
    """Estimated tokens of all requests."""
    completion: int = 0
    """Estimated tokens of all replies."""

    def __add__(self, other: object) -> Load:
        """Sum field by field."""
        if not isinstance(other, Load):
            return NotImplemented
        return Load._make(mine + theirs for mine, theirs in zip(self, other, strict=True))

    def times(self, number: int) -> Load:
        """Return what so many of these take."""
        return Load._make(value * number for value in self)


class Estimate(NamedTuple):
    """What one model is asked for."""

    model: str
    """Its label."""
    episodes: int
    least: Load
    most: Load
    dollars: tuple[float, float] | None
    """US dollars for the least and the most by litellm's price list; None where it has no price."""


def estimate(study: StudyConfig, cells: Iterable[EpisodeSpec]) -> list[Estimate]:
    """Reckon what the models of ``study`` are asked for in ``cells``, each as if nothing of it had been played."""
    wanted = Counter((cell.model, cell.agent, cell.tree) for cell in cells if cell.model)
    found = []
    for model in study.models:
        least = most = Load()
        episodes = 0
        for (label, agent, tree), number in wanted.items():
            if label == model.label:
                low, high = (_load(study, model, agent, load_tree(tree), way).times(number) for way in (_take, _fail))
                least, most, episodes = least + low, most + high, episodes + number
        found.append(Estimate(model.label, episodes, least, most, _dollars(model, least, most)))
    return found


def _dollars(model: ModelSettings, least: Load, most: Load) -> tuple[float, float] | None:
    chat = model.chat_model()
    low, high = (chat.price(load.prompt, load.completion) for load in (least, most))
    return None if low is None or high is None else (low, high)


Way = Callable[[Engine, State], Reading]


def _load(study: StudyConfig, model: ModelSettings, agent_name: str, tree: Tree, way: Way) -> Load:
    vectors = TreeVectors(tree, load_embedder(study.embedder))  # which embeds nothing until it is asked to
    agent = make_agent(agent_name, vectors, chat=model.chat_model(), context=model.context)
    assert asks(agent)
    agent.reset(0)
    total = Load()

    async def ask(request: Request) -> Reply:
        nonlocal total
        total += Load(1, sum(map(estimated_tokens, request.messages)), REPLY_TOKENS)
        return request.to_reply(1, _REPLY)

    rules = Rules(threshold=0.5, max_turns=study.turn_limit(tree))
    for observation, event in _walk(tree, rules, way):
        at_once(agent.decide(observation, _info(event), ask))
    return total


def _walk(tree: Tree, rules: Rules, way: Way) -> Iterator[tuple[str, Event]]:
    """Yield what an agent reads before each of its actions on a way through ``tree``."""
    engine = Engine(tree, rules)
    observations = ObservationRenderer(tree, Prompts(None), engine.turn_limit)
    event = engine.start(0)
    while event.state.phase != Phase.END:
        yield observations.render(event), event
        event = engine.advance(event.state, way(engine, event.state))


def _info(event: Event) -> dict[str, Any]:
    """Return what an environment would tell."""
    state = event.state
    return {
        "state": PHASE_NAMES[state.phase],
        "turn": state.turn,
        "accepted": event.accepted,
        "hint_level": event.hint_level,
        "forced": event.forced,
    }


def _take(engine: Engine, state: State) -> Reading:
    """Name what can be had."""
    if state.phase == Phase.TOPIC:
        return Reading(next(i for i in engine.admissible(state) if not state.visits[i]), 1.0)
    if state.phase == Phase.SUBTOPIC:
        return Reading(engine.studies_of[state.subtopic][0], 1.0)
    return _decide(engine, state)


def _fail(engine: Engine, state: State) -> Reading:
    """Name nothing, until the forced move."""
    return Reading() if state.phase in (Phase.TOPIC, Phase.SUBTOPIC) else _decide(engine, state)


def _decide(engine: Engine, state: State) -> Reading:
    return _CONCLUDE if state.visited == (1 << engine.n) - 1 else _EXPLORE
