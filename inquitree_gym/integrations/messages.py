"""Finished episodes as rows of chat messages, for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import kind
from inquitree_gym.llm import Completion, Message
from inquitree_gym.log import Episode
from inquitree_gym.results.logs import agent_label
from inquitree_gym.trees import builtin_ids

PROPOSER = "llm"
"""Agent in whose form the episodes of agents without a model are written."""


class _NoChat:
    """Chat of an agent that only writes down what was said."""

    @property
    def config(self) -> dict[str, Any]:
        """Settings. None."""
        return {}

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        raise OptionError("this agent writes episodes down; it has no model to ask")


def message_row(episode: Episode[Any]) -> dict[str, Any]:
    """Return a concluded episode as one row of a dataset, plain values and valid UTF-8 throughout.

    ``messages`` is the conversation of an agent that asks a model: this release's system prompt, then observations and
    replies in turn. A malformed reply is left out where it was corrected. The actions of an agent without a model are
    written as such an agent would reply.
    """
    header = episode.header
    grid = kind(header.task.kind).settings.grid
    return {
        "messages": [
            {name: text.encode("utf-8", "replace").decode() for name, text in message.items()}
            for message in writer_of(episode).messages_of(episode)
        ],
        "kind": header.task.kind,
        "task": header.task.id,
        "version": header.task.version,
        **{name: header.rules[name] for name in grid if name in header.rules},
        "seed": header.seed,
        "agent": agent_label(header.agent),
        "reward": None if episode.footer is None else episode.footer.episode_return,
        "fingerprint": episode.fingerprint,
        "canary": header.canary,
    }


def had_other_prompts(episode: Episode[Any]) -> bool:
    """Tell whether a model played with other templates than those of this release, which its row has."""
    ours = writer_of(episode).templates
    return bool(episode.header.agent.get("templates", ours) != ours)


def writer_of(episode: Episode[Any]) -> Any:
    """Return an agent like the one that played, or the plain one that asks a model, with this release's prompts."""
    of_kind, agent = kind(episode.header.task.kind), episode.header.agent
    agents = of_kind.play.model_agents
    settings = {name: agent[name] for name in of_kind.settings.agent.model_fields if name in agent}
    return agents.get(agent.get("name", PROPOSER), agents[PROPOSER])(_NoChat(), **settings)


def plain_writer(env: str, prompts: str | None = None) -> Any:
    """Return the agent of a kind that asks a model, without its model, for its prompts and its reading of replies."""
    return kind(env).play.model_agents[PROPOSER](_NoChat(), prompts=prompts)


def check_contamination(tasks: Iterable[str], allowed: bool) -> None:
    """Raise `OptionError` unless messages about these tasks may be exported, or if permission is given needlessly."""
    shipped = [name for name in dict.fromkeys(tasks) if name in builtin_ids()]
    if shipped and not allowed:
        raise OptionError(
            f"{', '.join(shipped)}: a model trained on messages about trees of the benchmark cannot be evaluated on "
            "them any more; export episodes on synthetic trees or your own, or give --benchmark"
        )
    if allowed and not shipped:
        raise OptionError("--benchmark does nothing here: no episode is on a tree of the benchmark; leave it out")
