"""Finished episodes as rows of chat messages, for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inquitree_gym.baselines.conversation import NOTHING, assistant, read_opinion, system, user
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import Message
from inquitree_gym.log import Episode, Turn
from inquitree_gym.prompts import AGENT_TEMPLATE_NAMES, BELIEF_TEMPLATE, Prompts
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.scoring.trajectory import read_trajectory
from inquitree_gym.trees import Tree, builtin_ids


def message_row(episode: Episode, tree: Tree) -> dict[str, Any]:
    """Return a concluded episode as one row of a dataset, plain values and valid UTF-8 throughout.

    ``messages`` is the conversation of an `LLMAgent`: this release's system prompt, then observations and replies in
    turn. A malformed reply is left out where it was corrected. The actions of an agent without a model stand after
    ``ACTION:``.

    Raises:
        LogError: the episode was played on another version of the tree.
    """
    header = episode.header
    return {
        "messages": [
            {name: text.encode("utf-8", "replace").decode() for name, text in message.items()}
            for message in _messages(episode)
        ],
        "tree": tree.id,
        "version": tree.version,
        "fake_level": int(header.rules["fake_level"]),
        "seed": header.seed,
        "agent": agent_label(header.agent),
        "reward": episode.turns[-1].reward,
        "coverage": read_trajectory(episode, tree).coverage,
        "fingerprint": episode.fingerprint,
        "canary": header.canary,
    }


def had_other_prompts(episode: Episode) -> bool:
    """Tell whether a model played with other templates than those of this release, which its row shows."""
    ours = _prompts(episode).digest
    return bool(episode.header.agent.get("templates", ours) != ours)


def check_contamination(trees: Iterable[str], allowed: bool) -> None:
    """Raise unless messages about the trees with these ids may be exported.

    Raises:
        OptionError: some are trees of the benchmark, without permission; or none is, with it.
    """
    shipped = [name for name in dict.fromkeys(trees) if name in builtin_ids()]
    if shipped and not allowed:
        raise OptionError(
            f"{', '.join(shipped)}: a model trained on messages about trees of the benchmark cannot be evaluated on "
            "them any more; export episodes on synthetic trees or your own, or give --benchmark"
        )
    if allowed and not shipped:
        raise OptionError("--benchmark does nothing here: no episode is on a tree of the benchmark; leave it out")


def _messages(episode: Episode) -> list[Message]:
    prompts = _prompts(episode)
    names = ["llm_system", *[BELIEF_TEMPLATE] * _asks_belief(episode)]
    messages = [system("\n\n".join(map(prompts.render, names)))]
    for turn in episode.turns:
        replies = {reply.role: reply.text for reply in episode.replies_to(turn.turn)}
        messages.append(user(_observation(turn, replies, prompts)))
        messages.append(assistant(replies.get("correction", replies.get("proposer", f"ACTION: {turn.action}"))))
    return messages


def _observation(turn: Turn, replies: dict[str, str], prompts: Prompts) -> str:
    """Return an observation as the agent read it, with the sceptic's opinion where there is one."""
    if "sceptic" not in replies:
        return turn.observation
    opinion = read_opinion(replies["sceptic"]).strip() or NOTHING
    return prompts.render("sceptic_note", observation=turn.observation, opinion=opinion)


def _prompts(episode: Episode) -> Prompts:
    return Prompts(None, (*AGENT_TEMPLATE_NAMES, *[BELIEF_TEMPLATE] * _asks_belief(episode)))


def _asks_belief(episode: Episode) -> bool:
    return bool(episode.header.agent.get("belief"))
