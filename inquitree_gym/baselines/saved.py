"""Policies of Stable-Baselines3 that were trained on the discrete view, from a model or its file (extra ``rl``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import gymnasium as gym
import numpy as np

from inquitree_gym.baselines.own import POLICY, own_faults
from inquitree_gym.baselines.policy import Policy, PolicyAgent
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.engine import Phase, Rules
from inquitree_gym.envs.menu import Mask, MenuSize
from inquitree_gym.envs.observations import FeatureLayout, FeatureRow
from inquitree_gym.errors import AgentError, MissingExtraError, OptionError, require

_Fits = Callable[[dict[str, Any]], bool]
_ALGORITHMS: dict[str, tuple[str, _Fits]] = {
    "MaskablePPO": ("sb3_contrib", lambda data: "maskable" in str(data["policy_class"]["__module__"])),
    "PPO": ("stable_baselines3", lambda data: "clip_range" in data),
    "A2C": ("stable_baselines3", lambda data: "gae_lambda" in data),
}
"""Package and recognition of the algorithms, the first one that fits, from the settings in a file."""
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
    does; so load only files that you trust.

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
    model = _load(name, file.resolve(), digest)
    size, text_dim = _layout(name, model, vectors.embedder.dim)
    with own_faults(name, "its model"):
        policy = sb3_policy(model)
    agent = _SavedPolicy(vectors, policy, name=f"{POLICY}{file.stem}", size=size, text_dim=text_dim, rules=rules)
    agent.source = {"file": file.name, "digest": digest[:12]}
    return agent


@lru_cache(maxsize=_CACHED)
def _load(name: str, file: Path, digest: str) -> Any:
    """Load a model; ``digest`` is that of the file, so that a new one is loaded."""
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


def _layout(name: str, model: Any, dim: int) -> tuple[MenuSize, int]:
    """Return slots and length of the text features of a model, which its spaces tell."""
    space, actions = model.observation_space, model.action_space
    if isinstance(space, gym.spaces.Dict) and set(space) == set(FeatureLayout(0, 0, 0).parts):
        space = gym.spaces.Box(
            np.concatenate([space[part].low for part in FeatureLayout(0, 0, 0).parts]),  # type: ignore[attr-defined]
            np.concatenate([space[part].high for part in FeatureLayout(0, 0, 0).parts]),  # type: ignore[attr-defined]
        )
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and isinstance(actions, gym.spaces.Discrete):
        text_dim = int((space.low < 0).sum())  # of a row of features, only the text has negative values
        subtopics = space.shape[0] - text_dim - len(Phase) - 1
        studies = int(actions.n) - subtopics - (MenuSize(0, 0).actions)
        if min(text_dim, subtopics, studies) >= 1:
            if text_dim <= dim and np.allclose(space.low, FeatureLayout(subtopics, dim, text_dim).box().low):
                return MenuSize(subtopics, studies), text_dim
            raise AgentError(
                f"the agent '{name}' was trained with an embedder of other dimensions than {dim}; name that embedder"
            )
    raise AgentError(
        f"the agent '{name}' was trained on {type(space).__name__} and {type(actions).__name__} of another kind than "
        "the discrete view with features has (EmbeddingObservation and MenuActions)"
    )


def sb3_policy(model: Any, *, deterministic: bool = True) -> Policy:
    """Return the policy of ``model`` for `PolicyAgent`; a maskable model gets the mask.

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
    if not isinstance(space, gym.spaces.Dict) or set(space) != set(FeatureLayout(0, 0, 0).parts):
        raise OptionError(f"the model was trained on {space}, and not on features, flat or as a Dict")
    subtopics, text_dim = (int(np.prod(space[name].shape or ())) for name in ("visited", "text"))
    parts = FeatureLayout(subtopics, text_dim, text_dim).parts
    return lambda rows: {name: rows[:, at] for name, at in parts.items()}
