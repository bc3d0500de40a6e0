"""Agents for projections: baselines, and those that ask models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent, privileged
from inquitree_gym.baselines.answers import answers, random_answers
from inquitree_gym.baselines.conversation import Conversation, bare, is_nothing, move_fault, read_move
from inquitree_gym.baselines.llm import ChatAgent
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, load_embedder
from inquitree_gym.embeddings.protocol import Vectors, embedded
from inquitree_gym.envs.text import draw_one
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.llm import Chat
from inquitree_gym.projection.observations import AGENT_TEMPLATE_NAMES, PACKAGE
from inquitree_gym.projection.settings import Form, ProjectionRules
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees.catalogue import builtin_ids
from inquitree_gym.trees.disclosure import Level, OutcomeClaim, ProjectionTask


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


def _coin(at: Situation) -> str:
    return _in_form([_tossed(claim, at.rng) for claim in at.task.claims], at.form)


def _told_vector(at: Situation) -> tuple[Embedder, Vectors]:
    """Return the embedder of the package, and the vector of everything disclosed."""
    embedder = load_embedder(DEFAULT_EMBEDDER)
    told = "\n".join(text for level in at.disclosed for text in at.task.disclosure.texts_of(level))
    return embedder, embedded(embedder, [told])[0]


def _nearest(at: Situation) -> str:
    others, (embedder, told) = other_tasks(at.task), _told_vector(at)
    nearness = _outcome_vectors(others, embedder) @ told
    return true_outcome(others[int(nearness.argmax())], at.form)


def _nearest_answers(at: Situation, observation: str) -> str:
    embedder, told = _told_vector(at)
    return answers(observation, lambda item: item.options[int((embedded(embedder, item.options) @ told).argmax())])


def _stating(texts: Iterable[str], observation: str) -> str:
    """Return answers that choose one of ``texts`` wherever it is among the statements."""
    known = frozenset(texts)
    return answers(observation, lambda item: next((text for text in item.options if text in known), None))


class _Projector(NamedTuple):
    """Behaviour of a baseline."""

    project: Callable[[Situation], str]
    answer: Callable[[Situation, str], str] = lambda at, observation: ""
    """Answers to the sheet in an observation."""
    is_privileged: bool = False


_PROJECTORS = {
    "null": _Projector(lambda at: at.told("null", at.task.disclosure.null_hypothesis)),
    "other-paper": _Projector(lambda at: true_outcome(draw_one(other_tasks(at.task), at.seed), at.form)),
    "retrieval": _Projector(_nearest, _nearest_answers),
    "coin": _Projector(_coin, lambda at, observation: random_answers(observation, at.rng), True),
    "reversed": _Projector(
        lambda at: _in_form([claim.contraries[0] for claim in at.task.claims], at.form),
        lambda at, observation: _stating((claim.contraries[0] for claim in at.task.claims), observation),
        True,
    ),
    "oracle": _Projector(
        lambda at: true_outcome(at.task, at.form),
        lambda at, observation: _stating((claim.text for claim in at.task.claims), observation),
        True,
    ),
}

PROJECTING_NAMES = tuple(_PROJECTORS)
"""Names of the baselines for projections."""


class ProjectingBaseline(BaselineAgent):
    """A baseline for projections, by name.

    ``null`` restates the null hypothesis, or nothing until it is disclosed, and leaves sheets out. ``other-paper``
    states the outcome of another shipped paper, drawn by the seed, and leaves sheets out. ``retrieval`` states the
    outcome of the shipped paper that is most similar to what is disclosed, and answers sheets by the same similarity.

    The others need ``privileged=True``. ``coin`` states each true claim or a contrary of it with equal probability,
    drawn anew at each level, and answers sheets at random. ``reversed`` states the first contrary of every claim, and
    ``oracle`` the true outcome.
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
        self._projector = _PROJECTORS[name]
        self.needs_privileged = self._projector.is_privileged
        self._task, self._rules = task, rules or ProjectionRules()
        self._seed = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the projection at the level that ``info`` names, or the answers to its sheet."""
        if self.needs_privileged:
            privileged(info, self.name)
        levels = self._rules.levels
        disclosed = tuple(levels[: levels.index(info["level"]) + 1])
        at = Situation(self._task, self._rules.form, disclosed, self._seed, self.rng)
        is_sheet = info["state"] == "sheet"
        return self._projector.answer(at, observation) if is_sheet else self._projector.project(at)


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
