"""`InquiryEnv`: one inquiry in free text."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Unpack

import gymnasium as gym
from gymnasium.error import ResetNeeded

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, TreeVectors, load_embedder
from inquitree_gym.envs.asking import AskedJudge, reward_of
from inquitree_gym.envs.text import TextEnv, not_a_text_error
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine import Event, ObservationKind, Phase, Reading, Rules, State
from inquitree_gym.inquiry.engine.rules import Preset
from inquitree_gym.inquiry.judges.quality import verdicts_reward
from inquitree_gym.inquiry.keywords import (
    RewardOf,
    RuleKeywords,
    episode_rules,
    load_trees,
    unpack_keywords,
    with_threshold,
)
from inquitree_gym.inquiry.keywords import TreeLike as TreeLike
from inquitree_gym.inquiry.llm_matcher import LOCAL, Reader, ReaderRequest
from inquitree_gym.inquiry.matching import AskedReader
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.inquiry.runtime import (
    InquiryRecords,
    RuntimeCache,
    Transition,
    TreeRuntime,
    privileged_info,
    public_info,
)
from inquitree_gym.judging.judgement import AsyncJudge
from inquitree_gym.sheets import Sheet, SheetReading, read_sheet
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import EVEN, in_world

_CONCLUSION, _EXAM, _END = Phase.CONCLUSION, Phase.EXAM, Phase.END  # looked up once, for speed


class InquiryEnv(TextEnv[Tree, Rules, TreeRuntime, Transition]):
    """Re-live the inquiry behind a paper in free text.

    ## Description
    A research tree holds subtopics with prerequisites, studies and results. The agent proposes a subtopic, designs a
    study, reads its result, which may be a fake, and decides whether to redo it, to explore or to conclude.

    ## Action space
    `FreeText`: any string. At the topic and at a subtopic it is matched by sentence embeddings to the candidates. At a
    result it is searched for "redo the study", "explore new subtopic" or "draw conclusion". In the exam it is read for
    an item's number and a letter per line. Text beyond the length of the space is ignored.

    ## Observation space
    `FreeText`: prose, as a scientist would read it.

    ## Reward
    0 at every step but the last. On termination the return of the exam, in [-1, 1]: the mean over the axes of the tree
    of the credit earned by the results that read an axis, times 1 for a right, -1/(poles - 1) for a wrong and 0 for no
    answer. With ``reward="exam-expected"`` the mean of that over the worlds, each as likely as the showings leave it,
    which varies less. With ``reward="judge"`` Q/|C| in [0, 1] of the conclusion by a judge (Eq. 9).

    ## Episode end
    ``terminated`` once the exam is taken, or the conclusion is written where there is none. ``truncated`` is never set.
    After ``max_turns`` the agent is asked for its conclusion.

    ## Info
    ``state`` (name of the phase), ``turn``, ``accepted``, ``hint_level``, ``forced``. With ``privileged=True`` also a
    dict ``privileged`` that the agent must not see.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "human", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    kind = "inquiry"
    task_option = "tree"
    runtimes: RuntimeCache
    _score: float | None = None

    @unpack_keywords(Rules, RuleKeywords)
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        tree: TreeLike | Sequence[TreeLike],
        *,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        reader: str | Reader = LOCAL,
        reward: RewardOf | None = None,
        judge: str | AsyncJudge[Any] | None = None,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
        rules: Preset = "default",
        **switches: Unpack[RuleKeywords],
    ) -> None:
        """Choose trees, services, views and rules. ``reset(options=...)`` takes ``tree`` and the rules, too.

        Args:
            tree: an id, a path, a `Tree`, or a sequence of them to sample from, by the seed of each episode.
            embedder: a name or an `Embedder`, which matches the actions.
            reader: ``"local"`` matches actions by similarity. ``"llm:MODEL"`` or a `Reader` is asked which candidate is
                meant.
            reward: ``"exam"``, ``"exam-expected"`` for its mean over the worlds that the showings leave possible, or
                ``"judge"`` for the grade of the conclusion. None is ``"judge"`` with a judge.
            judge: grades the conclusion: ``"nli:MODEL"``, ``"llm:MODEL"``, ``"llm-paper:MODEL"`` or an `AsyncJudge`.
            prompts: ``"default"``, ``"paper"``, or a folder whose templates replace the package's. None for those of
                ``rules``.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: ``"ansi"``, ``"human"`` or ``"rgb_array"``.
            rules: ``"default"``, or ``"paper"`` for every choice as the paper prints it.
            **switches: rules by name, which override those of ``rules``. See `Rules` for their values.

        Raises:
            OptionError: an unknown keyword, a value out of range, or an embedder without a calibrated threshold.
            TreeError: a tree is unknown or invalid.
        """
        chosen = Rules(**switches)
        self.embedder = load_embedder(embedder) if isinstance(embedder, str) else embedder
        if not hasattr(self.embedder, "embed"):
            raise OptionError(f"embedder must be a name or have the methods of Embedder, got {embedder!r:.80}")
        self.rules = with_threshold(chosen, self.embedder)
        self.asked = AskedReader.load(reader)
        """The reader that is asked about actions. None for the reading by similarity."""
        self.judging = _judge_of(reward, judge, self.kind)
        """The judge that sets the reward. None for the exam."""
        self.expects = reward == "exam-expected"
        """True if the exam pays its expected return."""
        templates = inquiry_prompts(prompts)
        super().__init__(
            load_trees(tree),
            runtimes=RuntimeCache(self.embedder, templates),
            prompts=templates,
            privileged=privileged,
            render_mode=render_mode,
        )
        if find_spec("matplotlib") is None and render_mode != "rgb_array":  # Gymnasium's checker tries every mode
            self.metadata = {**self.metadata, "render_modes": ["ansi", "human"]}
        self._events: list[Event] = []
        self._conclusion = ""
        self._choices: list[int | None] = []
        self._showings: list[tuple[int, int]] = []
        if self.expects:
            check_expected(self.rules)

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees to sample from."""
        return self.tasks

    @property
    def tree(self) -> Tree:
        """The tree of this episode."""
        return self.task

    @property
    def turn_limit(self) -> int | None:
        """Turns after which this episode asks for the conclusion. None for no limit."""
        return self.runtime.engine.turn_limit

    @property
    def vectors(self) -> TreeVectors:
        """The vectors of this episode's tree."""
        return self.runtime.vectors

    @property
    def state(self) -> State:
        """The engine's state. Privileged."""
        return self.last.event.state

    @property
    def records(self) -> InquiryRecords:
        """Records of its episodes, for logs."""
        exam = "exam-expected" if self.expects else "exam"
        return InquiryRecords(self, embedder=self.embedder, reader=self.asked, judge=self.judging, exam=exam)

    def _start(self, runtime: TreeRuntime, episode_seed: int) -> tuple[str, dict[str, Any]]:
        if self.expects:
            check_expected(runtime.rules)
        event = runtime.engine.start(episode_seed)
        self.last_transition = Transition(Reading(), event)
        self._events, self._score, self._choices, self._showings = [event], None, [], []
        return runtime.observations.render(event), self._info(event)

    def _load(self, tasks: Any) -> tuple[Tree, ...]:
        return load_trees(tasks)

    def _override(self, options: Mapping[str, Any]) -> Rules:
        return episode_rules(self.rules, options, self.embedder)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: the action is not a string.
            ResetNeeded: before the first reset, or after the end.
            ReaderError, RewardError: reader or judge gave no usable answer. The same step can be taken again.
            ClosedEnvironmentError: after `close`.
        """
        runtime, last = self._runtime, self.last_transition
        if runtime is None or last is None:
            raise self._not_started()
        if not isinstance(action, str):
            raise not_a_text_error(action)
        state = last.event.state
        phase = state.phase
        if phase == _END:
            raise ResetNeeded("the episode is over; call reset() before the next step()")
        transition = self._advance(runtime, state, action)
        event = transition.event
        if self.expects and event.kind == ObservationKind.RESULT:
            self._showings.append((event.node, event.outcome))
        terminated = event.state.phase == _END
        conclusion = action if phase == _CONCLUSION else self._conclusion
        reward = self._reward(runtime, transition, conclusion) if terminated else 0.0
        self.last_transition, self._conclusion = transition, conclusion
        if self.render_mode is not None:
            self._record(event, reward if terminated else None)
        return runtime.observations.render(event), reward, terminated, False, self._info(event)

    def _advance(self, runtime: TreeRuntime, state: State, action: str) -> Transition:
        """Read an action, and take it."""
        engine, phase = runtime.engine, state.phase
        if phase == _EXAM and engine.rules.exam == "sheet":
            found = read_sheet(action, engine.layout(state))
            event = engine.answer(state, found.sheet)
            return Transition(Reading(), event, action, phase, found if event.state.phase == _END else None)
        matcher, asked = runtime.matcher, self.asked
        reading = matcher.read(state, action) if asked is None else asked.read(matcher, state, action)
        event = engine.advance(state, reading)
        if phase != _EXAM:
            return Transition(reading, event, action, phase)
        known = reading.candidate if reading.candidate < engine.exam.options(state.item) else -1
        self._choices = [*self._choices[: state.item], None if known < 0 else known]
        over = event.state.phase == _END
        return Transition(
            reading, event, action, phase, SheetReading(Sheet(tuple(self._choices)), ()) if over else None
        )

    def _reward(self, runtime: TreeRuntime, last: Transition, conclusion: str) -> float:
        """Return the return of an episode that is over."""
        state = last.event.state
        if self.expects and last.sheet is not None:
            from inquitree_gym.inquiry import observer  # which no other reward needs

            model = observer.observe(observer.design_of(runtime.task), runtime.rules.fake_level)
            beliefs = observer.axis_beliefs(model, observer.believe(model, self._showings))[0]
            return observer.expected_return(model, beliefs, last.sheet.sheet, [each / 4 for each in state.earned])
        if self.judging is None:
            return runtime.engine.exam_return(state)
        measure = partial(verdicts_reward, runtime.task, state, evidence=runtime.rules.evidence)
        told = in_world(runtime.task, runtime.engine.world(state))
        return self.judging.grade(told, conclusion, measure)

    @property
    def _ends_next(self) -> bool:
        """True if the next action ends the episode."""
        phase = self.state.phase
        return phase == Phase.CONCLUSION if self.episode_rules.exam == "none" else phase == Phase.EXAM

    def reader_request(self, action: str) -> ReaderRequest | None:
        """Return the request that `step` would make to the reader about ``action``. None if it would make none."""
        return None if self.asked is None else self.runtime.matcher.reader_request(self.state, action)

    def ask_ahead(self, action: str) -> Coroutine[Any, Any, None] | None:
        """Return a coroutine that asks reader or judge about ``action`` ahead of its step. None if neither is asked."""
        if self.judging is not None and self.judging.waits and self._ends_next:
            told = in_world(self.tree, self.runtime.engine.world(self.state))
            conclusion = action if self.state.phase == Phase.CONCLUSION else self._conclusion
            return self.judging.ask_ahead(told, conclusion)
        request = self.reader_request(action)
        return None if self.asked is None or request is None else self.asked.ask_ahead(request)

    def uncached_texts(self, action: str) -> Iterator[tuple[TreeVectors, str]]:
        """Return the texts that `step` will embed for ``action``, each with its vector cache."""
        if self.reader_request(action) is not None:
            return iter(())
        return self.runtime.uncached_texts(self.state, action)

    def render(self) -> Any:
        """Return text for ``ansi``, an array (height, width, 3) of uint8 for ``rgb_array``. Print for ``human``."""
        if self.render_mode != "rgb_array":
            return super().render()
        from inquitree_gym.inquiry import rendering

        course = (self.tree, self._events, self.turn_limit)
        return rendering.picture(*course, privileged=self.privileged, score=self._score)

    def _as_text(self) -> str:
        from inquitree_gym.inquiry import rendering

        runtime, event = self.runtime, self._events[-1]
        return rendering.as_text(runtime.task, event, runtime.observations.render(event))

    def _record(self, event: Event, score: float | None) -> None:
        self._events.append(event)
        self._score = score
        if self.render_mode == "human":
            self.render()

    def _info(self, event: Event) -> dict[str, Any]:
        info = public_info(event)
        if self.privileged:
            info["privileged"] = privileged_info(self.last, self.turn_limit)
        return info


def _judge_of(reward: str | None, judge: str | AsyncJudge[Any] | None, kind: str) -> AskedJudge[Any] | None:
    """Return the judge that sets the reward. None for the exam."""
    if reward not in (None, "exam", "exam-expected", "judge"):
        raise OptionError(f"reward must be 'exam', 'exam-expected' or 'judge', got {reward!r:.80}")
    reward_of(reward, judge, "exam", "the exam")
    return None if judge is None else AskedJudge.load(judge, kind)


def check_expected(rules: Rules) -> None:
    """Raise `OptionError` if there is no expected return: without an exam, or in worlds that are not drawn evenly."""
    if rules.exam == "none" or rules.world not in EVEN:
        raise OptionError(
            f"reward='exam-expected' needs an exam and a world drawn from {', '.join(EVEN)}, got exam={rules.exam!r} "
            f"and world={rules.world!r}; pass reward='exam'"
        )


def unwrap_inquiry(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> InquiryEnv:
    """Return the `InquiryEnv` inside ``wrapper``.

    Raises:
        OptionError: it wraps something else.
    """
    env = wrapper.unwrapped
    if not isinstance(env, InquiryEnv):
        raise OptionError(f"{type(wrapper).__name__} must wrap an InquiryEnv, got {type(env).__name__}")
    return env
