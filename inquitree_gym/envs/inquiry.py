"""`InquiryEnv`: one inquiry in free text."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium as gym
from gymnasium.error import ResetNeeded

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, TreeVectors, load_embedder
from inquitree_gym.engine import Event, Phase, Reading, Rules, State
from inquitree_gym.engine.rules import TIE_MARGIN, Candidates, Decisions, Explore, FakeKey, Feedback, LastHint, OnTie
from inquitree_gym.envs.asking import AskedJudge, AskedReader
from inquitree_gym.envs.inquiry_records import InquiryRecords
from inquitree_gym.envs.keywords import TreeLike as TreeLike
from inquitree_gym.envs.keywords import episode_rules, load_trees, suggest_keywords, with_threshold
from inquitree_gym.envs.observations import MAX_OBSERVATION
from inquitree_gym.envs.runtime import RuntimeCache, Transition, TreeRuntime, privileged_info, public_info
from inquitree_gym.envs.spaces import FreeText
from inquitree_gym.envs.text import TextEnv, not_a_text_error
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.registry import LOCAL as LOCAL_JUDGE
from inquitree_gym.judges.registry import AsyncJudge
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.prompts import Prompts
from inquitree_gym.readers import LOCAL, Reader, ReaderRequest
from inquitree_gym.trees import Tree

_END = Phase.END  # looked up once, for speed


class InquiryEnv(TextEnv[Tree, TreeRuntime, Transition]):
    """Re-live the inquiry behind a paper in free text.

    ## Description
    A research tree holds subtopics with prerequisites, studies and results. The agent proposes a subtopic, designs a
    study, reads its result, which may be a fake, and decides whether to redo it, to explore or to conclude.

    ## Action space
    `FreeText`: any string. At the topic and at a subtopic it is matched by sentence embeddings to the candidates; at a
    result it is searched for "redo the study", "explore new subtopic" or "draw conclusion"; at the conclusion it is
    split into claims. Text beyond the length of the space is ignored.

    ## Observation space
    `FreeText`: prose, as a scientist would read it.

    ## Reward
    0 at every step but the last; on termination Q/|C| in [0, 1] by the judge (Eq. 9).

    ## Episode end
    ``terminated`` once the conclusion is written; ``truncated`` is never set. After ``max_turns`` the agent is asked
    for its conclusion.

    ## Info
    ``state`` (name of the phase), ``turn``, ``accepted``, ``hint_level``, ``forced``; with ``privileged=True`` also a
    dict ``privileged`` that the agent must not see.

    ## Arguments
    ``tree``: an id, a path, a `Tree`, or a sequence of them to sample from, by the seed of each episode.
    ``embedder``: a name or an `Embedder`. ``reader``: ``"local"`` matches actions by similarity, ``"llm:MODEL"`` or a
    `Reader` is asked which candidate is meant. ``judge``: ``"local"``, ``"nli:MODEL"``, ``"llm:MODEL"``,
    ``"llm-paper:MODEL"`` or an `AsyncJudge`, which sets the reward. ``prompts``: ``"default"``, ``"paper"``, or a
    folder whose templates replace the package's; None for those of ``rules``. ``privileged``: see Info.
    ``render_mode``: ``"ansi"``, ``"human"`` or ``"rgb_array"``. ``rules``: ``"default"``, or ``"paper"`` for every
    choice as the paper prints it. The others are rules, which override those of ``rules``: ``threshold`` (τ in [-1, 1];
    None for the embedder's own), ``fake_level`` (fakes with probability level/10, 0 to 10), ``max_turns`` ("default"
    for n(2H + 3), None for no limit), ``candidates`` (locked subtopics, too, or only admissible ones),
    ``on_last_hint`` (advance to the target or repeat the hint), ``study_turn`` and ``redo_turn`` (a study, or a redo,
    takes a turn before its result), ``explore`` (return to the topic, or directly to a subtopic that is named),
    ``decisions`` (phrases count, or only exact tokens), ``replication`` (one wording of a true result, or several);
    see `Rules`. ``reset(options=...)`` takes ``tree``, ``rules`` (the prompts stay) and any rule, for that episode.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    runtimes: RuntimeCache
    _score: float | None = None

    @suggest_keywords
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        tree: TreeLike | Sequence[TreeLike],
        *,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        reader: str | Reader = LOCAL,
        judge: str | AsyncJudge = LOCAL_JUDGE,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
        rules: Literal["default", "paper"] = "default",
        threshold: float | None = None,
        fake_level: int = 0,
        max_turns: int | Literal["default"] | None = "default",
        candidates: Candidates = "all",
        on_last_hint: LastHint = "advance",
        study_turn: bool = False,
        redo_turn: bool = False,
        explore: Explore = "hub",
        decisions: Decisions = "phrases",
        bare_decisions: bool = True,
        feedback: Feedback = "hint",
        on_tie: OnTie = "nearest",
        tie_margin: float = TIE_MARGIN,
        fake_key: FakeKey = 2,
        replication: Literal["exact", "varied"] = "exact",
        named_at_result: Literal["unvisited", "any"] = "unvisited",
        evidence: Literal["groups", "results"] = "groups",
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown keyword, a value out of range, or an embedder without a calibrated threshold.
            TreeError: a tree is unknown or invalid.
        """
        given = locals()
        chosen = Rules(**{name: given[name] for name in Rules.names()})
        self._check_render_mode(render_mode)
        self.trees = load_trees(tree)
        self.embedder = load_embedder(embedder) if isinstance(embedder, str) else embedder
        if not hasattr(self.embedder, "embed"):
            raise OptionError(f"embedder is a name or has the methods of Embedder, not {embedder!r:.80}")
        self.rules = with_threshold(chosen, self.embedder)
        self.asked, self.judging = AskedReader.load(reader), AskedJudge.load(judge)
        """The reader that is asked about actions and the judge that sets the reward; None for the local ones."""
        self.prompts = Prompts(prompts)
        self.privileged, self.render_mode = privileged, render_mode
        self.action_space, self.observation_space = FreeText(MAX_ACTION_LENGTH), FreeText(MAX_OBSERVATION)
        self.runtimes = RuntimeCache(self.embedder, self.prompts)
        self._events: list[Event] = []

    @property
    def tree(self) -> Tree:
        """The tree of this episode."""
        return self.runtime.tree

    @property
    def episode_rules(self) -> Rules:
        """The rules of this episode, including the options of its reset."""
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
        """The engine's state; privileged."""
        last = self.last_transition
        if last is None:
            raise self._not_started()
        return last.event.state

    @property
    def agent_seed(self) -> int:
        """Seed for the agent of this episode, a hash of seed and tree; pass it to `Agent.reset`."""
        return self.runtime.engine.agent_seed(self.state.seed)

    @property
    def records(self) -> InquiryRecords:
        """Records of its episodes, for logs."""
        return InquiryRecords(self)

    def _start(self, runtime: TreeRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        event = runtime.engine.start(episode_seed)
        self.last_transition = Transition(Reading(), event)
        self._events, self._score = [event], None
        return runtime.observations.render(event), self._info(event)

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[tuple[Tree, ...], Rules]:
        """Return the trees to sample from and the rules of an episode with these `reset` options."""
        if not options:
            return self.trees, self.rules
        return self.requested_trees(options) or self.trees, episode_rules(self.rules, options, self.embedder)

    def requested_trees(self, options: Mapping[str, Any] | None) -> tuple[Tree, ...]:
        """Return the trees that `reset` options name, or none."""
        return load_trees(options["tree"]) if options and "tree" in options else ()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            ResetNeeded: before the first reset, or after the end.
            ReaderError, RewardError: reader or judge gave no usable answer; the same step can be taken again.
            ClosedEnvironmentError: after `close`.
        """
        runtime, last = self._runtime, self.last_transition
        if runtime is None or last is None:
            raise self._not_started()
        if not isinstance(action, str):
            raise not_a_text_error(action)
        state = last.event.state
        if state.phase == _END:
            raise ResetNeeded("the episode is over: its conclusion was written; call reset() before the next step()")
        matcher, asked = runtime.matcher, self.asked
        reading = matcher.read(state, action) if asked is None else asked.read(matcher, state, action)
        event = runtime.engine.advance(state, reading)
        terminated = event.state.phase == _END
        judge = self.judging
        given = runtime.reward if judge is None else partial(judge.reward, runtime.tree, runtime.engine.rules.evidence)
        reward = given(event.state, action) if terminated else 0.0
        self.last_transition = Transition(reading, event, action, state.phase)
        if self.render_mode is not None:
            self._record(event, reward if terminated else None)
        return runtime.observations.render(event), reward, terminated, False, self._info(event)

    def reader_request(self, action: str) -> ReaderRequest | None:
        """Return the request that `step` would make to the reader about ``action``; None if it would make none."""
        return None if self.asked is None else self.runtime.matcher.reader_request(self.state, action)

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks reader or judge about ``action`` ahead of its step; None if neither is asked."""
        if self.judging is not None and self.judging.waits and self.state.phase == Phase.CONCLUSION:
            return self.judging.ask_ahead(self.tree, action)
        request = self.reader_request(action)
        return None if self.asked is None or request is None else self.asked.ask_ahead(request)

    def uncached_texts(self, action: str) -> Iterator[tuple[TreeVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""
        judged_elsewhere = self.judging is not None and self.state.phase == Phase.CONCLUSION
        if judged_elsewhere or self.reader_request(action) is not None:
            return iter(())
        return self.runtime.uncached_texts(self.state, action)

    def render(self) -> Any:
        """Return text for ``ansi``, an array (height, width, 3) of uint8 for ``rgb_array``; print for ``human``."""
        if self.render_mode != "rgb_array":
            return super().render()
        from inquitree_gym.envs import rendering

        course = (self.tree, self._events, self.turn_limit)
        return rendering.picture(*course, privileged=self.privileged, score=self._score)

    def _as_text(self) -> str:
        from inquitree_gym.envs import rendering

        runtime, event = self.runtime, self._events[-1]
        return rendering.as_text(runtime.tree, event, runtime.observations.render(event))

    def _record(self, event: Event, score: float | None) -> None:
        self._events.append(event)
        self._score = score
        if self.render_mode == "human":
            self.render()

    def _info(self, event: Event) -> dict[str, Any]:
        info = public_info(event)
        if self.privileged:
            assert self.last_transition is not None
            info["privileged"] = privileged_info(self.last_transition, self.turn_limit)
        return info


def unwrap_inquiry(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> InquiryEnv:
    """Return the `InquiryEnv` inside ``wrapper``.

    Raises:
        OptionError: it wraps something else.
    """
    env = wrapper.unwrapped
    if not isinstance(env, InquiryEnv):
        raise OptionError(f"{type(wrapper).__name__} wraps an InquiryEnv, not {type(env).__name__}")
    return env
