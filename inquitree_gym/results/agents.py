"""Names of agents in tables and pages, and the costs of their episodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from inquitree_gym.llm import Usage
from inquitree_gym.llm.chat import is_cut_short, used_up
from inquitree_gym.log import Episode

MAX_SHOWN = 24
"""Characters of a setting in a label."""


def agent_label(config: Mapping[str, Any]) -> str:
    """Return an agent's logged name with its model. See `agent_and_model`."""
    return " ".join(filter(None, agent_and_model(config)))


def agent_and_model(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return an agent's logged name, and its model: the study's ``label`` for it, or its name and reasoning effort.

    The model of an agent without one is empty.
    """
    model, effort = (str(config.get(name) or "") for name in ("model", "reasoning_effort"))
    if model and effort:
        model = f"{model} ({effort})"
    return str(config.get("name", "unknown")), str(config.get("label") or model)


def distinct_labels(agents: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the labels of agents, in which one that stands for several configurations names what differs.

    Args:
        agents: label and configuration of the agent of each episode.
    """
    configs: dict[str, dict[str, Mapping[str, Any]]] = {}
    keys = [config_key(config) for _, config in agents]
    for (agent, config), key in zip(agents, keys, strict=True):
        configs.setdefault(agent, {})[key] = config
    labels = {
        (agent, key): label
        for agent, of_agent in configs.items()
        if len(of_agent) > 1
        for key, label in zip(of_agent, _labels(agent, list(of_agent.values())), strict=True)
    }
    return [labels.get((agent, key), agent) for (agent, _), key in zip(agents, keys, strict=True)]


def config_key(value: Any) -> str:
    """Return a configuration as text that is equal for equal ones."""
    return json.dumps(value, sort_keys=True, default=str)


def _labels(agent: str, configs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = dict.fromkeys(name for config in configs for name in config)
    varied = [name for name in names if len({config_key(config.get(name)) for config in configs}) > 1]
    for config in configs:
        shown = [f"{name}={str(config[name])[:MAX_SHOWN]}" for name in varied if config.get(name) is not None]
        yield f"{agent} ({', '.join(shown)})" if shown else agent


Number = TypeVar("Number", int, float)
REFUSALS = ("refusal", "content_filter")
"""Finish reasons of a reply that refuses."""
READER = "reader"
"""Role of the replies that read an action."""


@dataclass(frozen=True, slots=True)
class EpisodeCost:
    """Replies, tokens, dollars and seconds of one or more episodes. None is unknown, never 0."""

    replies: int
    """Replies of services, cached ones included."""
    corrections: int
    """Replies requested again because the previous one broke the agent's protocol."""
    cut_short: int
    """Replies that reached the limit of their tokens."""
    without_text: int
    """Replies that reached it before any text, by reasoning alone. Each was asked for again."""
    retries: int
    """Failed requests before these replies."""
    refused: int
    """Replies in which the model or the service's filter refused to answer."""
    unread: int
    """Replies of a reader that name no candidate. See `LLMReader`."""
    prompt_tokens: int | None
    """Prompt tokens of the paid replies, as counted by the services."""
    completion_tokens: int | None
    """Completion tokens of the paid replies, reasoning included."""
    reasoning_tokens: int | None
    """Completion tokens that were reasoning. None if no service named them."""
    dollars: float | None
    """US dollars for the paid replies of known price. None without one."""
    unpriced: int
    """Paid replies of unknown price. With any, the dollars are a lower bound."""
    agent_seconds: float | None
    env_seconds: float

    @classmethod
    def total(cls, costs: Iterable[EpisodeCost]) -> Self:
        """Add costs field by field. A field that is unknown in all of them stays None."""
        costs = list(costs)
        totals: Any = {field.name: _known_sum(getattr(cost, field.name) for cost in costs) for field in fields(cls)}
        return cls(**totals)


def cost_of(episode: Episode[Any]) -> EpisodeCost:
    """Add up the cost of one episode. Cached replies are free."""
    usage = sum(map(Usage.of, episode.replies), Usage())
    return EpisodeCost(
        replies=len(episode.replies),
        corrections=sum(reply.role == "correction" for reply in episode.replies),
        cut_short=sum(is_cut_short(reply.finish_reason) for reply in episode.replies),
        without_text=sum(used_up(reply.text, reply.finish_reason) for reply in episode.replies),
        retries=sum(reply.retries for reply in episode.replies),
        refused=sum(reply.finish_reason in REFUSALS for reply in episode.replies),
        unread=sum(reply.role == READER and bool(reply.fault) for reply in episode.replies),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        dollars=usage.cost,
        unpriced=usage.unpriced,
        agent_seconds=_known_sum(turn.agent_seconds for turn in episode.turns),
        env_seconds=sum(turn.env_seconds for turn in episode.turns),
    )


def _known_sum(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
