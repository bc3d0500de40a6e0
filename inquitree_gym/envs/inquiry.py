"""`InquiryEnv`: the engine with a Gymnasium face."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, TreeVectors, load_embedder
from inquitree_gym.engine import Event, Phase, Reading, Rules, State, splitmix64
from inquitree_gym.envs.observations import MAX_OBSERVATION
from inquitree_gym.envs.runtime import RuntimeCache, TreeRuntime
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.errors import ActionError, OptionError, suggest
from inquitree_gym.matching import MAX_READ
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree, load_tree

TreeLike = str | os.PathLike[str] | Tree


class Transition(NamedTuple):
    """The reading of an action and the event it led to; privileged."""

    reading: Reading
    event: Event


class InquiryEnv(gym.Env[str, str]):
    """Re-live the inquiry behind a paper in free text.

    ## Description
    A research tree holds subtopics with prerequisites, studies and results. The agent proposes a subtopic, designs a
    study, reads its result, which may be a fake, and decides whether to redo it, to explore or to conclude.

    ## Action space
    `FreeText`: any string. At the topic and at a subtopic it is matched by sentence embeddings to the candidates; at a
    result it is searched for "redo the study", "explore new subtopic" or "draw conclusion"; at the conclusion it is
    split into claims. Longer strings are read up to the space's length.

    ## Observation space
    `FreeText`: what a scientist would read.

    ## Reward
    0 at every step but the last; on termination Q/|C| in [0, 1] by the local judge (Eq. 9).

    ## Episode end
    ``terminated`` once the conclusion is written; ``truncated`` is never set. After ``max_turns`` the agent is asked
    for its conclusion.

    ## Info
    ``state`` (name of the phase), ``turn``, ``accepted``, ``hint_level``, ``forced``; with ``privileged=True`` also a
    dict ``privileged`` with what an agent must not see.

    ## Arguments
    ``tree``: an id, a path, a `Tree`, or a sequence of them, of which each episode takes one by its seed.
    ``embedder``: a name or an `Embedder`. ``prompts``: a folder whose templates replace the package's.
    ``privileged``: see Info. ``render_mode``: ``"ansi"``, ``"human"`` or ``"rgb_array"``. All `Rules` are keywords too:
    ``threshold``, ``fake_level``, ``max_turns``, ``candidates``, ``on_last_hint``, ``study_turn``, ``explore``.
    ``reset(options=...)`` takes ``tree`` and any rule, for that episode alone.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    def __init__(
        self,
        tree: TreeLike | Sequence[TreeLike],
        *,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown rule, a value out of range, or an embedder without a calibrated threshold.
            TreeError: a tree is unknown or at fault.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise OptionError(f"render_mode is one of {self.metadata['render_modes']} or None, not {render_mode!r}")
        self.trees = _load_all(tree)
        self.embedder = load_embedder(embedder) if isinstance(embedder, str) else embedder
        if not hasattr(self.embedder, "embed"):
            raise OptionError(f"embedder is a name or has the methods of Embedder, not {embedder!r:.80}")
        self.rules = _with_threshold(_override(Rules(), rules, _KEYWORDS, "the environment"), self.embedder)
        self.prompts = Prompts(prompts)
        self.privileged = privileged
        self.render_mode = render_mode
        self.action_space = FreeText(MAX_READ)
        self.observation_space = FreeText(MAX_OBSERVATION)
        self.last: Transition | None = None
        """What the last action or reset led to."""
        self.runtimes = RuntimeCache(self.embedder, self.prompts)
        """Runtimes of the trees; environments may share one cache."""
        self._runtime: TreeRuntime | None = None
        self._first_seed: int | None = None
        self._episode = 0
        self._closed = False

    @property
    def runtime(self) -> TreeRuntime:
        """Engine, matcher, texts and judge of this episode.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        if self._runtime is None:
            raise self._not_started()
        return self._runtime

    @property
    def tree(self) -> Tree:
        """The tree of this episode."""
        return self.runtime.tree

    @property
    def episode_rules(self) -> Rules:
        """The rules of this episode, options included."""
        return self.runtime.engine.rules

    @property
    def turn_limit(self) -> int | None:
        """Turns after which this episode asks for the conclusion; None for no limit."""
        return self.runtime.engine.turn_limit

    @property
    def vectors(self) -> TreeVectors:
        """The vectors of this episode's tree."""
        return self.runtime.vectors

    @property
    def state(self) -> State:
        """The engine's state, with what an agent must not see."""
        return (self.last or self._step).event.state

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: keys the fake results and the choice of a tree. Without one, the k-th episode after a seeded reset
                is seeded by a hash of that seed and k.
            options: ``tree`` and rules that hold for this episode alone.

        Returns: the opening observation and info.

        Raises:
            OptionError: an unknown option or a value out of range.
            ClosedEnvironmentError: after `close`.
        """
        if self._closed:
            raise self._not_started()
        trees, rules = self.resolve_options(options)
        super().reset(seed=seed)
        episode_seed = self._next_seed(seed)
        self._runtime = self.runtimes.get(self._choose_tree(trees, episode_seed), rules)
        event = self._runtime.engine.start(episode_seed)
        self.last = Transition(Reading(), event)
        self._show()
        return self._runtime.observations.render(event), self._info(event)

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[tuple[Tree, ...], Rules]:
        """Return the trees and rules of an episode with these options; see `reset` for them and for the errors."""
        options = dict(options or {})
        trees = _load_all(options.pop("tree")) if "tree" in options else self.trees
        rules = _override(self.rules, options, ("tree",), "reset") if options else self.rules
        return trees, _with_threshold(rules, self.embedder)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            ResetNeeded: before the first reset, or after the end.
            ClosedEnvironmentError: after `close`.
        """
        # The properties raise before the first reset, and are asked then alone: a step is little more than such calls.
        runtime, state = self._runtime or self.runtime, (self.last or self._step).event.state
        if not isinstance(action, str):
            raise ActionError(f"an action is a string, not {type(action).__name__} ({action!r:.80})")
        if state.phase == Phase.END:
            raise ResetNeeded("the episode is over: its conclusion was written; call reset() before the next step()")
        reading = runtime.matcher.read(state, action)
        event = runtime.engine.advance(state, reading)
        self.last = Transition(reading, event)
        terminated = event.state.phase == Phase.END
        reward = runtime.reward(event.state, action) if terminated else 0.0
        if self.render_mode == "human":
            self._show()
        return runtime.observations.render(event), reward, terminated, False, self._info(event)

    def render(self) -> Any:
        """Return the moment: text for ``ansi``, an array (height, width, 3) of uint8 for ``rgb_array``."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make(...)")
            return None
        from inquitree_gym.envs import rendering

        if self.render_mode == "rgb_array":
            return rendering.picture(self.tree, self._step.event)
        text = rendering.as_text(self.tree, self._step.event, self.runtime.observations.render(self._step.event))
        return text if self.render_mode == "ansi" else rendering.to_terminal(text)

    def close(self) -> None:
        """End the episode for good; a closed environment takes neither `step` nor `reset`."""
        self._closed = True
        self._runtime = self.last = None

    @property
    def _step(self) -> Transition:
        if self.last is None:
            raise self._not_started()
        return self.last

    def _not_started(self) -> ResetNeeded | ClosedEnvironmentError:
        if self._closed:
            return ClosedEnvironmentError("the environment was closed; make another one")
        return ResetNeeded("no episode has been started; call reset() first")

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _next_seed(self, seed: int | None) -> int:
        """Return the episode's seed: the one given, or for the k-th episode after it a hash of that seed and k."""
        if seed is not None or self._first_seed is None:
            self._first_seed = int(self.np_random_seed) if seed is None else seed
            self._episode = 0
            return self._first_seed
        self._episode += 1
        return splitmix64(self._first_seed, self._episode)

    def _choose_tree(self, trees: tuple[Tree, ...], episode_seed: int) -> Tree:
        """Return the tree of an episode; one of several is drawn by the episode's seed."""
        return trees[splitmix64(episode_seed, len(trees)) % len(trees)] if len(trees) > 1 else trees[0]

    def _info(self, event: Event) -> dict[str, Any]:
        state = event.state
        info: dict[str, Any] = {
            "state": PHASE_NAMES[state.phase],
            "turn": state.turn,
            "accepted": event.accepted,
            "hint_level": state.hint_level,
            "forced": event.forced,
        }
        if self.privileged:
            info["privileged"] = privileged_info(self._step, self.turn_limit)
        return info


PHASE_NAMES = tuple(phase.name.lower() for phase in Phase)
_KEYWORDS = ("tree", "embedder", "prompts", "privileged", "render_mode")


def privileged_info(step: Transition, turn_limit: int | None) -> dict[str, Any]:
    """Return what an agent must not see, as plain values."""
    reading, event = step
    return {
        "kind": event.kind.name.lower(),
        "node": event.node,
        "fake": event.fake,
        "limit": event.limit,
        "reason": event.reason.name.lower(),
        "decision": event.decision.name.lower(),
        "target": event.state.target,
        "candidate": reading.candidate,
        "similarity": reading.similarity,
        "margin": reading.margin,
        "top": [list(pair) for pair in reading.top],
        "visits": list(event.state.visits),
        "turn_limit": turn_limit,
    }


def _load_all(tree: TreeLike | Sequence[TreeLike]) -> tuple[Tree, ...]:
    if isinstance(tree, str | os.PathLike | Tree):
        return (load_tree(tree),)
    if not isinstance(tree, Sequence) or not tree:
        raise OptionError(f"tree is an id, a path, a Tree, or a sequence with at least one of them, not {tree!r:.80}")
    return tuple(load_tree(each) for each in tree)


def _override(rules: Rules, options: Mapping[str, Any], others: tuple[str, ...], taker: str) -> Rules:
    """Change rules; an unknown name is answered with all that ``taker`` takes, ``others`` included."""
    known = (*others, *Rules.names())
    for name in options:
        if name not in known:
            raise OptionError(f"unknown option '{name}'{suggest(name, known)}; {taker} takes: {', '.join(known)}")
    return rules.override(options)


def _with_threshold(rules: Rules, embedder: Embedder) -> Rules:
    if rules.threshold is not None:
        return rules
    if embedder.threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{embedder.name}'; pass threshold=...")
    return rules.override({"threshold": embedder.threshold})
