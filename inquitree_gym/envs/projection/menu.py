"""`ProjectionMenuEnv`: the discrete view, whose options for each true claim are the claim, its contrary and nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from inquitree_gym.envs.batch.encoding import Ints
from inquitree_gym.envs.keywords import unpack_keywords
from inquitree_gym.envs.menu import Mask
from inquitree_gym.envs.projection.claim_options import OPTIONS
from inquitree_gym.envs.projection.features import OVER, ProjectionFeatures, ProjectionRow
from inquitree_gym.envs.projection.kernel import ProjectionKernel
from inquitree_gym.envs.projection.keywords import load_tasks, projection_rules
from inquitree_gym.envs.projection.picture import options_picture
from inquitree_gym.envs.projection.rules import ProjectionRules, RewardTime
from inquitree_gym.envs.projection.runtime import Assessment, privileged_projection_info
from inquitree_gym.envs.projection.sources import TaskSource, TaskTable, resolve_slots
from inquitree_gym.envs.text import closed_error, not_started_error
from inquitree_gym.errors import ActionError, OptionError
from inquitree_gym.judges.projections.alignment import ORDERS, Alignment
from inquitree_gym.trees.disclosure import LEVELS, Level, ProjectionTask
from inquitree_gym.trees.tasks import TaskLike

MenuStep = tuple[ProjectionRow, float, bool, bool, dict[str, Any]]
MENU_RULES = ("levels", "reward")
"""Rules that a reset takes; the others are about text."""
_ONE_ENV = np.zeros(1, np.int64)


class MenuKeywords(TypedDict, total=False):
    """Keywords of every discrete view of projections; `ProjectionMenu.of` has the defaults."""

    levels: Sequence[Level]
    reward: RewardTime
    size: int | None


@dataclass(frozen=True, slots=True)
class ProjectionMenu:
    """Tasks, rules and slots of a discrete view."""

    source: TaskSource
    rules: ProjectionRules
    slots: int
    """Slots for claims, so that tasks with different numbers of claims share one action space."""

    @classmethod
    def of(
        cls,
        source: TaskSource,
        *,
        levels: Sequence[Level] = LEVELS,
        reward: RewardTime = "each",
        size: int | None = None,
    ) -> ProjectionMenu:
        """Return a menu of the tasks of ``source``.

        Args:
            source: tasks to draw from.
            levels: levels in the order of disclosure; see `ProjectionRules`.
            reward: time of the reward; see `ProjectionRules`.
            size: number of slots for claims; None takes the number of claims of the largest task.

        Raises:
            OptionError: a value is out of range, or a task has more claims than there are slots.
        """
        rules = ProjectionRules(levels=levels, reward=reward)  # type: ignore[arg-type]
        return cls(source, rules, resolve_slots(size, source))

    @property
    def features(self) -> ProjectionFeatures:
        """Layout of the observations."""
        return ProjectionFeatures(self.slots)

    @property
    def action_space(self) -> spaces.MultiDiscrete:
        """Space of the actions: an option for every slot."""
        return spaces.MultiDiscrete([OPTIONS] * self.slots)

    def resolve_options(self, options: Mapping[str, Any] | None) -> tuple[TaskSource, ProjectionRules]:
        """Return the tasks to draw from and the rules of an episode with these `reset` options.

        Raises:
            OptionError: an option is unknown or out of range, or a task does not fit into the slots.
            TreeError: a task is unknown or invalid.
        """
        if not options:
            return self.source, self.rules
        rules = projection_rules(self.rules, options, MENU_RULES)
        if "task" not in options:
            return self.source, rules
        source = TaskTable(load_tasks(options["task"]))
        resolve_slots(self.slots, source)
        return source, rules

    def check_actions(self, actions: Any, shape: tuple[int, ...]) -> Ints:
        """Return actions as an int64 array.

        Raises:
            ActionError: they are not whole numbers of ``shape``, or lie outside 0 to 2.
        """
        try:
            found = np.asarray(actions)
        except ValueError as error:  # rows of different lengths
            raise ActionError(f"options are whole numbers of shape {shape}: {error}") from error
        if found.dtype.kind not in "iu" or found.shape != shape:
            raise ActionError(f"options are whole numbers of shape {shape}, not {found.dtype} of shape {found.shape}")
        if found.size and not 0 <= found.min() <= found.max() < OPTIONS:
            wrong = found[(found < 0) | (found >= OPTIONS)][0]
            raise ActionError(f"an option lies in 0 to {OPTIONS - 1}, not {wrong}")
        return found.astype(np.int64, copy=False)


class ProjectionMenuEnv(gym.Env[ProjectionRow, Ints]):
    """Choose what a study will find, claim by claim, while it is disclosed level by level.

    ## Action space
    ``MultiDiscrete([3] * slots)``. A slot holds one true claim; its three options are the claim itself, its first
    contrary, and nothing. The seed of the episode shuffles the options of each claim. Options of empty slots have no
    effect. All claims are chosen in one turn, so one turn is one level, as in the text view, and rewards are the same.

    ## Observation space
    Box of float32, see `ProjectionFeatures`: the level, the directions that the options state, and the directions that
    the disclosure reveals. In a synthetic world the procedure reveals the signs of the deducible claims. Disclosures of
    papers reveal none.

    ## Reward, episode end
    As in `ProjectionEnv`, with the F1 of the chosen options computed by the formula, without embeddings.

    ## Info
    ``state``, ``level``, ``turn`` as in `ProjectionEnv`; ``action_mask`` (int8, shape ``(slots, 3)``; a tuple of its
    rows is a mask for ``action_space.sample``); with ``privileged=True`` the dict ``privileged`` of `ProjectionEnv`.

    ## Arguments
    ``menu``: tasks, rules and slots. ``privileged``: see Info. ``render_mode``: ``"ansi"`` or ``"rgb_array"``.
    ``reset(options=...)`` takes ``task``, ``levels`` and ``reward``, for that episode.

    ## Version history
    v0: first release.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    _task: ProjectionTask | None = None
    _started = False
    _closed = False

    def __init__(self, menu: ProjectionMenu, *, privileged: bool = False, render_mode: str | None = None) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown ``render_mode``.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise OptionError(f"render_mode is one of {self.metadata['render_modes']} or None, not {render_mode!r}")
        self.menu, self.privileged, self.render_mode = menu, privileged, render_mode
        self.action_space: gym.Space[Any] = menu.action_space
        self.observation_space: gym.Space[Any] = menu.features.space
        self._kernel = ProjectionKernel(1, menu.slots)
        self._source = menu.source
        self._assessment: Assessment | None = None

    @property
    def task(self) -> ProjectionTask:
        """The task of this episode, with its texts.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        self._check_started()
        if self._task is None:
            self._task = self._source.task(self._kernel.seeds.of(0))
        return self._task

    @property
    def options(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the three options of every claim, in the order of the actions; empty for nothing."""
        orders = self._kernel.options.order[0].tolist()
        return tuple(
            tuple((claim.text, claim.contraries[0], "")[option] for option in order)
            for claim, order in zip(self.task.claims, orders, strict=False)
        )

    def projection(self, action: Any) -> str:
        """Return the chosen texts, one claim per line: the action in the form "claims" of `ProjectionEnv`."""
        chosen = self.menu.check_actions(action, (self.menu.slots,)).tolist()
        texts = (options[number] for options, number in zip(self.options, chosen, strict=False))
        return "\n".join(text for text in texts if text)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ProjectionRow, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: determines the task and the order of the options. Without it, the k-th episode after a seeded reset is
                seeded by a hash of that seed and k.
            options: ``task``, ``levels`` and ``reward``, for this episode alone.

        Raises:
            OptionError: an unknown option or a value out of range.
            TreeError: the task is unknown or invalid.
            ClosedEnvironmentError: after `close`.
        """
        if self._closed:
            raise closed_error()
        source, rules = self.menu.resolve_options(options)
        super().reset(seed=seed)
        self._source = source
        self._kernel.seeds.reset(_ONE_ENV, [seed], self.np_random)
        self._kernel.start(_ONE_ENV, self._source, rules)
        self._task, self._assessment, self._started = None, None, True
        return self._kernel.observe()[0], self._info()

    def step(self, action: Any) -> MenuStep:
        """Project the outcome at one level.

        Args:
            action: whole numbers of shape ``(slots,)``, 0 to 2.

        Returns: observation, reward, terminated, truncated (always False) and info.

        Raises:
            ActionError: not whole numbers of that shape, or out of range.
            ResetNeeded: before the first reset, or after the end.
            ClosedEnvironmentError: after `close`.
        """
        self._check_started()
        if self._kernel.level[0] == OVER:
            raise ResetNeeded("the episode is over: all levels were projected; call reset() before the next step()")
        chosen = self.menu.check_actions(action, (self.menu.slots,))
        rewards, ended, _ = self._kernel.step(chosen[None])
        if self.privileged:
            self._assessment = Assessment.of(self.alignment(chosen))
        return self._kernel.observe()[0], float(rewards[0]), bool(ended[0]), False, self._info()

    def action_masks(self) -> Mask:
        """Return which options are open, bool of shape ``(3 * slots,)``; the form MaskablePPO expects."""
        masks: Mask = self._kernel.masks()[0].reshape(-1).view(np.bool_)
        return masks

    def alignment(self, action: Any) -> Alignment:
        """Return the alignment of the chosen options with the claims."""
        chosen = self.menu.check_actions(action, (self.menu.slots,))
        claims = len(self.task.claims)
        pairs = self._kernel.pairs(chosen[None])[0, :claims]
        texts = [options[number] or None for options, number in zip(self.options, chosen.tolist(), strict=False)]
        return Alignment(tuple(texts), (), np.repeat(pairs[:, None], ORDERS, axis=1), np.zeros((0, claims, ORDERS)))

    def render(self) -> Any:
        """Return the options and the directions that the disclosure reveals.

        Text for ``ansi``, pixels for ``rgb_array``; see `options_picture`.
        """
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make(...)")
            return None
        parts = self.menu.features.split(self._kernel.observe()[0])
        return options_picture(parts) if self.render_mode == "rgb_array" else self._as_text(parts["given"])

    def _as_text(self, given: ProjectionRow) -> str:
        told = {1: "rises", -1: "falls", 0: "direction not given away"}
        lines = [f"{self.task.id} · {self._info()['level']}"]
        for options, sign in zip(self.options, given.astype(int).tolist(), strict=False):
            lines.append(f"{told[sign]}:")
            lines += [f"  {number} {text or '(nothing)'}" for number, text in enumerate(options)]
        return "\n".join(lines)

    def close(self) -> None:
        """End the episode for good; a closed environment takes neither `step` nor `reset`."""
        self._closed = True

    def _check_started(self) -> None:
        if self._closed:
            raise closed_error()
        if not self._started:
            raise not_started_error()

    def _info(self) -> dict[str, Any]:
        kernel = self._kernel
        info = {
            "state": "end" if kernel.level[0] == OVER else "project",
            "level": LEVELS[kernel.last_level[0]],
            "turn": int(kernel.turn[0]),
            "action_mask": kernel.masks()[0],
        }
        if self.privileged:
            info["privileged"] = privileged_projection_info(self.task, self._assessment)
        return info


@unpack_keywords(ProjectionMenu.of, MenuKeywords)
def projection_menu_env(
    *,
    task: TaskLike | Sequence[TaskLike],
    privileged: bool = False,
    render_mode: str | None = None,
    **keywords: Unpack[MenuKeywords],
) -> ProjectionMenuEnv:
    """Return a `ProjectionMenuEnv` of given tasks.

    ``task`` is that of `ProjectionEnv`; ``levels``, ``reward`` and ``size`` are those of `ProjectionMenu.of`; all other
    arguments are those of the class.
    """
    menu = ProjectionMenu.of(TaskTable(load_tasks(task)), **keywords)
    return ProjectionMenuEnv(menu, privileged=privileged, render_mode=render_mode)
