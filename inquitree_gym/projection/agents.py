"""Agents for projections: baselines, and those that ask models."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent, privileged
from inquitree_gym.baselines.conversation import Conversation, bare, is_nothing, move_fault, read_move
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, load_embedder
from inquitree_gym.embeddings.protocol import Vectors, embedded
from inquitree_gym.envs.text import draw_one
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.llm import Chat
from inquitree_gym.projection.judges.direction import claim_direction
from inquitree_gym.projection.observations import AGENT_TEMPLATE_NAMES, PACKAGE
from inquitree_gym.projection.settings import Form, ProjectionRules
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees.catalogue import builtin_ids
from inquitree_gym.trees.disclosure import Level, OutcomeClaim, ProjectionTask

_NO = re.compile(r"\bno(?=\s+([aeiou])?)", re.IGNORECASE)


class Situation(NamedTuple):
    """Everything that a baseline may use at one turn."""

    task: ProjectionTask
    form: Form
    disclosed: tuple[Level, ...]
    """Levels disclosed so far."""
    seed: int
    """Seed of the agent, the same at every turn."""
    rng: np.random.Generator

    def told(self, level: Level, text: str) -> str:
        """Return ``text`` if its level is disclosed, else an empty string."""
        return text if level in self.disclosed else ""


def true_outcome(task: ProjectionTask, form: Form) -> str:
    """Return the outcome of a task: its sentence, or its claims, one per line."""
    return task.disclosure.outcome if form == "sentence" else _in_form([claim.text for claim in task.claims], form)


def negated(null_hypothesis: str) -> str:
    """Return the denial of a null hypothesis, which names no direction.

    >>> negated("If dough has more salt, then there is no change in its height.")
    'If dough has more salt, then there is a change in its height.'
    """
    denied = _NO.sub(lambda found: "an" if found[1] else "a", null_hypothesis)
    return denied if denied != null_hypothesis else f"It is not true that {denied[0].lower()}{denied[1:]}"


@lru_cache(maxsize=64)
def other_tasks(task: ProjectionTask) -> tuple[ProjectionTask, ...]:
    """Return the shipped tasks of all papers except the one that a task scores and the one that it discloses."""
    shipped = map(load_task, builtin_ids())
    told = task.disclosure.question
    return tuple(other for other in shipped if other.paper != task.paper and other.disclosure.question != told)


@lru_cache(maxsize=64)
def _outcome_vectors(tasks: tuple[ProjectionTask, ...], embedder: Embedder) -> Vectors:
    return embedded(embedder, [task.disclosure.outcome for task in tasks])


def _in_form(texts: Sequence[str], form: Form) -> str:
    """Return sentences as one text, or one per line."""
    return ("\n" if form == "claims" else " ").join(texts)


def _tossed(claim: OutcomeClaim, rng: np.random.Generator) -> str:
    """Return a claim or one of its contraries, each side with probability 1/2."""
    return claim.text if rng.random() < 0.5 else claim.contraries[rng.integers(len(claim.contraries))]


def _rising(claim: OutcomeClaim) -> str:
    """Return the first of a claim and its contraries whose words, besides the variables, state a rise, or nothing."""
    return next((text for text in (claim.text, *claim.contraries) if claim_direction(claim, text) > 0), "")


def _coin(at: Situation) -> str:
    return _in_form([_tossed(claim, at.rng) for claim in at.task.claims], at.form)


def _optimist(at: Situation) -> str:
    rising = [next(filter(None, (_rising(claim), _tossed(claim, at.rng)))) for claim in at.task.claims]
    return _in_form(rising, at.form)


def _nearest(at: Situation) -> str:
    others, embedder = other_tasks(at.task), load_embedder(DEFAULT_EMBEDDER)
    told = "\n".join(text for level in at.disclosed for text in at.task.disclosure.texts_of(level))
    nearness = _outcome_vectors(others, embedder) @ embedded(embedder, [told])[0]
    return true_outcome(others[int(nearness.argmax())], at.form)


_PROJECTORS: dict[str, Callable[[Situation], str]] = {
    "empty": lambda at: "",
    "question": lambda at: at.told("question", at.task.disclosure.question),
    "null": lambda at: at.told("null", at.task.disclosure.null_hypothesis),
    "negate-null": lambda at: at.told("null", negated(at.task.disclosure.null_hypothesis)),
    "other-paper": lambda at: true_outcome(draw_one(other_tasks(at.task), at.seed), at.form),
    "retrieval": _nearest,
    "coin": _coin,
    "optimist": _optimist,
    "reversed": lambda at: _in_form([claim.contraries[0] for claim in at.task.claims], at.form),
    "oracle": lambda at: true_outcome(at.task, at.form),
}
_PRIVILEGED = ("coin", "optimist", "reversed", "oracle")

PROJECTING_NAMES = tuple(_PROJECTORS)
"""Names of the baselines for projections."""


class ProjectingBaseline(BaselineAgent):
    """A baseline for projections, by name.

    ``empty`` gives an empty projection. ``question`` restates the question, ``null`` restates the null hypothesis, and
    ``negate-null`` denies it. Their projections are empty until that text is disclosed. ``other-paper`` states the
    outcome of another shipped paper, drawn by the seed: the floor. ``retrieval`` states the outcome of the shipped
    paper that is most similar to what is disclosed.

    The others need ``privileged=True``. ``coin`` states each true claim or a contrary of it with equal probability,
    drawn anew at each level. ``optimist`` states whichever of a claim and its contraries is a rise, and tosses the coin
    if none is. ``reversed`` states the first contrary of every claim, and ``oracle`` the true outcome.
    """

    def __init__(self, name: str, task: ProjectionTask, rules: ProjectionRules | None = None) -> None:
        """Play ``task`` under ``rules``, or the default ones, as the baseline called ``name``.

        Raises:
            OptionError: no baseline has this name.
        """
        if name not in _PROJECTORS:
            raise OptionError(f"unknown baseline '{name}'{suggest(name, _PROJECTORS)}; known: {', '.join(_PROJECTORS)}")
        super().__init__()
        self.name = name
        self.needs_privileged = name in _PRIVILEGED
        self._project = _PROJECTORS[name]
        self._task, self._rules = task, rules or ProjectionRules()
        self._seed = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the projection at the level that ``info`` names."""
        if self.needs_privileged:
            privileged(info, self.name)
        levels = self._rules.levels
        disclosed = tuple(levels[: levels.index(info["level"]) + 1])
        return self._project(Situation(self._task, self._rules.form, disclosed, self._seed, self.rng))


Memory = Literal["none", "conversation"]
ReplyForm = Literal["plain", "thought"]


class ProjectingLLMAgent(ChatAgent):
    """A chat model that says what a study will find.

    Without memory, as in ProjectionBench (arXiv:2605.30284), each level is a separate request with the system prompt
    and everything disclosed so far. In a conversation the model also reads its earlier projections. The difference
    between the two settings shows how strongly earlier projections anchor later ones.

    A reply that cannot be read is answered once with its fault. See `ChatAgent`.
    """

    package = PACKAGE
    template_names = AGENT_TEMPLATE_NAMES

    def __init__(
        self,
        chat: Chat,
        *,
        context: int | None = None,
        prompts: str | os.PathLike[str] | None = None,
        memory: Memory = "none",
        reply: ReplyForm = "plain",
    ) -> None:
        """Project with ``chat``.

        Args:
            chat: the model.
            context: limit of a request. See `ChatAgent`. A request without memory is never shortened.
            prompts: ``"default"``, or a folder whose templates replace those of ``template_names``.
            memory: ``"none"`` asks at each level as if it were the first. ``"conversation"`` also sends the earlier
                levels and replies.
            reply: ``"plain"`` for the projection alone, ``"thought"`` for THOUGHT and ACTION.

        Raises:
            OptionError: an argument is out of range, or a template is invalid.
        """
        for name, given, form in (("memory", memory, Memory), ("reply", reply, ReplyForm)):
            if given not in get_args(form):
                raise OptionError(f"{name} must be one of {', '.join(get_args(form))}, got {given!r:.80}")
        super().__init__(chat, context=context, prompts=prompts)
        self._memory, self._reply = memory, reply

    @property
    def config(self) -> dict[str, Any]:
        """Name, model and settings, without a key."""
        return super().config | {"memory": self._memory, "reply": self._reply}

    def _observe(self, observation: str) -> Conversation:
        if self._memory == "none":
            self._conversation = None
        return super()._observe(observation)

    def _system_text(self) -> str:
        return self._prompts.render("projection_system", memory=self._memory, reply=self._reply)

    def _correction_text(self, fault: str) -> str:
        return self._prompts.render("projection_correction", fault=fault, reply=self._reply)

    def _move_fault(self, reply: str) -> str:
        if self._reply == "thought":
            return move_fault(reply)
        said = bare(reply).strip()
        return "it is empty" if not said else "it names no outcome" if is_nothing(said) else ""

    def _is_finished(self, reply: str) -> bool:
        return self._reply == "thought" and super()._is_finished(reply)

    def _take(self, reply: str) -> str:
        return read_move(reply) if self._reply == "thought" else bare(reply).strip()

    def _written(self, action: str) -> str:
        return super()._written(action) if self._reply == "thought" else action
