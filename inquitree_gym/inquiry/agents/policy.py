"""Policies over the discrete view: retrieval, your own, and those trained with Stable-Baselines3 (extra ``rl``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from inspect import signature
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import gymnasium as gym
import numpy as np

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.baselines.answers import answers
from inquitree_gym.baselines.registry import own_faults
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.envs.spaces import Mask
from inquitree_gym.errors import AgentError, MissingExtraError, OptionError, require
from inquitree_gym.inquiry.agents.answers import longest_match, shown_layout
from inquitree_gym.inquiry.agents.readers import shown_result
from inquitree_gym.inquiry.agents.scripted import TraversalAgent, menu_texts
from inquitree_gym.inquiry.engine import Engine, ObservationKind, Phase, Rules, State
from inquitree_gym.inquiry.engine.rows import MOST_POLES, MOST_TALLIED
from inquitree_gym.inquiry.exam import marks_of
from inquitree_gym.inquiry.menu import MAX_AXIS_SLOTS, Menu, MenuSize, numbered
from inquitree_gym.inquiry.observations import FeatureLayout, FeatureRow, ObservationKey, ObservationRenderer
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.runs.specs import POLICY
from inquitree_gym.sheets import Sheet, write_sheet

Policy = Callable[[FeatureRow, Mask, np.random.Generator], int]
"""Function from features, shape ``(size,)``, and the mask of open actions, shape ``(actions,)``, to an action."""


class RetrievalAgent(TraversalAgent):
    """Chooses the menu text nearest to the observation, and in the exam the options nearest to the results."""

    name = "retrieval"

    def __init__(self, vectors: TreeVectors) -> None:
        super().__init__(vectors.tree)
        self._vectors = vectors
        self._menu = menu_texts(vectors.tree)
        self._results: list[str] = []
        self._waiting: set[str] = set()
        self._last = ""
        self._hint_level = 0

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._results, self._waiting, self._last, self._hint_level = [], set(), "", 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action. A proposal that has to wait, for which no hint is given, is left out for a while."""
        if info["accepted"] or info["forced"]:
            self._waiting = set()
        elif info["state"] == "topic" and info["hint_level"] == self._hint_level:
            self._waiting.add(self._last)
        self._hint_level = info["hint_level"]
        self._last = super().act(observation, info)
        return self._last

    def choose(self, observation: str, texts: Sequence[str]) -> str:
        """Return the text among ``texts`` that is most similar to ``observation``."""
        left = [text for text in texts if text not in self._waiting] or texts
        similarities = np.stack([self._candidates[text] for text in left]) @ self._vectors.of(observation)
        return left[int(np.argmax(similarities))]

    @cached_property
    def _candidates(self) -> dict[str, Vector]:
        """Vectors of the menu texts: those that the matcher compares actions with."""
        return dict(zip(self._menu, (*self._vectors.subtopics, *self._vectors.studies), strict=True))

    def conclude(self) -> str:
        """Return the results as a numbered list."""
        return numbered(self._results)

    def answer(self, observation: str) -> str:
        """Return for each item the option nearest to any of the results."""
        if not self._results:
            return ""
        seen = np.stack([self._vectors.of(result) for result in self._results])
        return answers(
            observation, lambda item: max(item.options, key=lambda text: (seen @ self._vectors.of(text)).max())
        )

    def read_result(self, observation: str) -> None:
        """Keep the text of the result, if one is shown for the first time."""
        tree = self._vectors.tree
        if (shown := shown_result(tree, observation)) is not None:
            texts = tree.studies[shown.study].shown_texts
            if (result := texts[longest_match(texts, observation)]) not in self._results:
                self._results.append(result)


class PolicyAgent(BaselineAgent):
    """Plays a policy that was trained in the discrete view.

    It reads the text observation, tracks visits and results, and gives the policy the features of
    `EmbeddingObservation` and the mask of `MenuActions`. The chosen action becomes its text. It needs nothing
    privileged, since results are recognised by their texts. No observation shows a subtopic that is entered in the turn
    of the limit, so it counts as not visited. One that is declined in that turn counts as visited.
    """

    def __init__(
        self,
        vectors: TreeVectors,
        policy: Policy,
        *,
        name: str = "policy",
        size: tuple[int, ...] | None = None,
        tally: bool = True,
        text_dim: int | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Play ``policy`` on the tree of ``vectors``.

        Args:
            vectors: vectors of the tree under the embedder of the training.
            policy: the trained policy.
            name: name in the log.
            size: slots for subtopics and studies in the training. None for those of the tree.
            tally: True if the training observed the tally.
            text_dim: length of the text features in the training. None for the embedder's own.
            rules: rules of the episodes, on which the mask depends. None for the default.

        Raises:
            OptionError: the tree does not fit into ``size``, or ``size`` or ``text_dim`` is out of range.
        """
        super().__init__()
        self.name = name
        self._vectors = vectors
        self._policy = policy
        self._menu = Menu(vectors.tree, MenuSize.resolve(size, [vectors.tree]))
        self._features = FeatureLayout.create(
            self._menu.size.subtopics, self._menu.size.axes if tally else 0, vectors.embedder.dim, text_dim
        )
        self._engine = Engine(vectors.tree, (rules or Rules()).override({"threshold": 0.0, "exam": "items"}))
        self._observations = ObservationRenderer(vectors.tree, inquiry_prompts(), self._engine)
        self._marks = marks_of(vectors.tree)
        self._state = self._engine.start(0).state
        self._sheet = ""

    @property
    def config(self) -> dict[str, Any]:
        """Name and layout, for the log."""
        return {"name": self.name, "size": list(self._menu.size), "text_dim": self._features.text_dim}

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._state = self._engine.start(0).state

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the text of the policy's action."""
        before = self._state.phase
        self._state = state = self._take(observation, Phase[info["state"].upper()])
        if state.phase == Phase.EXAM:
            if before != Phase.EXAM:  # an empty sheet is asked for again, and a policy has nothing to add
                answers = Sheet(tuple(self._answers(state)))
                self._sheet = write_sheet(answers, shown_layout(self._vectors.tree, observation))
            return self._sheet
        texts: tuple[str, ...] = self._menu.texts
        return texts[self._choose(state, info["hint_level"], observation)]

    def _choose(self, state: State, hint_level: int, observation: str) -> int:
        row = self._features.row(state.phase, hint_level, self._vectors.of(observation))
        self._features.fill(row, state)
        return int(self._policy(row, self._menu.mask(self._engine, state), self.rng))

    def _answers(self, state: State) -> Iterator[int | None]:
        """Yield the option that the policy chooses for each item, asked one at a time as in its training."""
        for item, _ in enumerate(self._vectors.tree.conclusions):
            asked = state.replace(item=item)
            text = self._observations.render_key(ObservationKey(ObservationKind.EXAM, item))
            option = self._choose(asked, 0, text) - self._menu.first_option
            yield option if 0 <= option < self._engine.exam.options(item) else None

    def _take(self, observation: str, phase: Phase) -> State:
        """Return the state updated by ``observation``, which may show that a subtopic was entered, or a result."""
        tree, state = self._vectors.tree, self._state.replace(phase=phase)
        if phase == Phase.SUBTOPIC and self._state.phase != Phase.SUBTOPIC:
            entered = longest_match([subtopic.text for subtopic in tree.subtopics], observation)
            return _visit(state.replace(subtopic=entered), 1)
        if phase == Phase.TOPIC and self._state.phase == Phase.SUBTOPIC:
            return _visit(state, -1)  # the subtopic was declined
        if self._state.phase in (Phase.SUBTOPIC, Phase.STUDY, Phase.RESULT):
            for k in self._engine.studies_of[state.subtopic]:
                study = tree.studies[k]
                if (shown := longest_match(study.shown_texts, observation)) >= 0:
                    return state.replace(tally=self._tallied(state.tally, k, shown % len(study.outcomes)))
        return state

    def _tallied(self, tally: Sequence[int], study: int, outcome: int) -> list[int]:
        """Return a tally with one more result."""
        found = list(tally)
        for axis, divisor, modulus in self._marks[study]:
            found[axis * MOST_POLES + outcome // divisor % modulus] += 1
        return found


def _visit(state: State, change: int) -> State:
    """Return the state with one visit of its subtopic more or less."""
    at, visits = state.subtopic, list(state.visits)
    visits[at] += change
    return state.replace(visits=visits)


_Fits = Callable[[dict[str, Any]], bool]
_ALGORITHMS: dict[str, tuple[str, _Fits]] = {
    "MaskablePPO": ("sb3_contrib", lambda data: "maskable" in str(data["policy_class"]["__module__"])),
    "PPO": ("stable_baselines3", lambda data: "clip_range" in data),
    "A2C": ("stable_baselines3", lambda data: "gae_lambda" in data),
}
"""Packages of the algorithms, with tests of the settings in a file. The first that fits counts."""
_PARTS = tuple(FeatureLayout(0, 1, 0, 0).parts)
_CACHED = 8
"""Loaded models that are kept."""


class _SavedPolicy(PolicyAgent):
    """A policy from a file, named by file and digest in the log."""

    source: dict[str, str]

    @property
    def config(self) -> dict[str, Any]:
        return super().config | self.source


def saved_policy(name: str, vectors: TreeVectors, rules: Rules) -> PolicyAgent:
    """Return an agent that plays the policy in the file of ``policy:FILE``, as `BaseAlgorithm.save` writes it.

    Slots and features are read from the spaces of the model. Loading a model runs code in its file, as the library
    does, so load only files that you trust.

    Args:
        name: name of the agent.
        vectors: vectors of the tree under the embedder of the training.
        rules: rules of the episodes.

    Raises:
        AgentError: the file cannot be read, is no such model, or was trained on something else than the features of
            `EmbeddingObservation` under an embedder of these dimensions, or Stable-Baselines3 is not installed.
        OptionError: the tree does not fit into the slots of the training.
    """
    file = Path(name.removeprefix(POLICY)).expanduser()
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise AgentError(f"the agent '{name}': cannot read '{file}': {error.strerror}") from error
    model = _load(name, file, digest)
    size, features = _layout(name, model, vectors.embedder.dim)
    with own_faults(name, "its model"):
        policy = sb3_policy(model)
    agent = _SavedPolicy(
        vectors,
        policy,
        name=f"{POLICY}{file.stem}",
        size=size,
        tally=features.axes > 0,
        text_dim=features.text_dim,
        rules=rules,
    )
    agent.source = {"file": file.name, "digest": digest[:12]}
    return agent


@lru_cache(maxsize=_CACHED)
def _load(name: str, file: Path, digest: str) -> Any:
    """Load a model. ``digest`` is that of the file, so that a new one is loaded."""
    try:
        with ZipFile(file) as archive:
            data = json.loads(archive.read("data"))
        algorithm, package = next((name, package) for name, (package, fits) in _ALGORITHMS.items() if fits(data))
    except (BadZipFile, KeyError, ValueError, TypeError, StopIteration):
        kinds = ", ".join(_ALGORITHMS)
        raise AgentError(f"the agent '{name}': '{file}' is no saved model of Stable-Baselines3 ({kinds})") from None
    try:
        library = require(package, "rl")
    except MissingExtraError as error:
        raise AgentError(f"the agent '{name}': {error}") from error
    with own_faults(name, "loading"):
        return getattr(library, algorithm).load(file, device="cpu")


def _layout(name: str, model: Any, dim: int) -> tuple[MenuSize, FeatureLayout]:
    """Return slots and features of a model, read from its spaces."""
    space, actions = model.observation_space, model.action_space
    if isinstance(space, gym.spaces.Dict) and set(space) | {"tally"} == set(_PARTS):
        parts = [part for name in _PARTS if isinstance(part := space.spaces.get(name), gym.spaces.Box)]
        space = gym.spaces.Box(
            np.concatenate([part.low for part in parts]), np.concatenate([part.high for part in parts])
        )
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and isinstance(actions, gym.spaces.Discrete):
        text_dim = int((space.low < 0).sum())  # of a row of features, only the text has negative values
        tally = int((space.high == MOST_TALLIED).sum())  # and only a tally exceeds a square root of dimensions
        subtopics = space.shape[0] - text_dim - tally - len(Phase) - 1
        studies = int(actions.n) - subtopics - (MenuSize(0, 0).actions)
        if min(text_dim, subtopics, studies) >= 1:
            features = FeatureLayout(subtopics, tally // MOST_POLES, dim, text_dim)
            if text_dim <= dim and np.allclose(space.low, features.box().low):
                return MenuSize(subtopics, studies, features.axes or MAX_AXIS_SLOTS), features
            raise AgentError(
                f"the agent '{name}' was trained with an embedder of other dimensions than {dim}; name that embedder"
            )
    raise AgentError(
        f"the agent '{name}' was trained on {type(space).__name__} and {type(actions).__name__} of another kind than "
        "the discrete view with features has (EmbeddingObservation and MenuActions)"
    )


def sb3_policy(model: Any, *, deterministic: bool = True) -> Policy:
    """Return the policy of ``model`` for `PolicyAgent`. A maskable model gets the mask.

    Args:
        model: a trained PPO or A2C, or MaskablePPO of sb3-contrib.
        deterministic: take the most probable action instead of sampling with the generator of the agent.

    Raises:
        OptionError: the model has no distribution over actions, or was not trained on features.
    """
    policy: Any = model.policy
    if not hasattr(policy, "get_distribution"):
        raise OptionError(f"{type(model).__name__} has no distribution over actions; take PPO, A2C or MaskablePPO")
    observed = _observed(model.observation_space)
    masked = "action_masks" in signature(policy.get_distribution).parameters

    def act(row: FeatureRow, mask: Mask, rng: np.random.Generator) -> int:
        observation, _ = policy.obs_to_tensor(observed(row[None]))
        found = policy.get_distribution(observation, **({"action_masks": mask[None]} if masked else {}))
        chances = found.distribution.probs.detach().numpy()[0].astype(np.float64)
        return int(chances.argmax() if deterministic else rng.choice(len(chances), p=chances / chances.sum()))

    return act


def _observed(space: gym.Space[Any]) -> Callable[[FeatureRow], Any]:
    """Return a function from feature rows, shape ``(rows, size)``, to observations of ``space``."""
    if isinstance(space, gym.spaces.Box):
        return lambda rows: rows
    if not isinstance(space, gym.spaces.Dict) or set(space) | {"tally"} != set(_PARTS):
        raise OptionError(f"the model was trained on {space}, and not on features, flat or as a Dict")
    widths = {name: int(np.prod(part.shape or ())) for name, part in space.items()}
    tally, text_dim = widths.get("tally", 0), widths["text"]
    parts = FeatureLayout(widths["visited"], tally // MOST_POLES, text_dim, text_dim).parts
    return lambda rows: {name: rows[:, at] for name, at in parts.items()}
