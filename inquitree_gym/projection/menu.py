"""`ProjectionMenuEnv`: the discrete view, whose options for each true claim are the claim, its contrary and nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Ints, Mask
from inquitree_gym.errors import OptionError
from inquitree_gym.projection.arrays import ProjectionBatchEnv
from inquitree_gym.projection.judges.alignment import ORDERS, Alignment
from inquitree_gym.projection.keywords import load_tasks, unpack_keywords
from inquitree_gym.projection.options import OVER, MenuKeywords, ProjectionMenu, ProjectionRow, TaskTable
from inquitree_gym.projection.runtime import Assessment, privileged_projection_info
from inquitree_gym.projection.tasks import TaskLike
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

MenuStep = tuple[ProjectionRow, float, bool, bool, dict[str, Any]]
CELL = 16
"""Height and width of a square of a picture, in pixels."""
_GAP = 2
_EMPTY, _LIT, _NEITHER = (255, 255, 255), (0, 0, 0), (204, 204, 204)
_COLOURS = np.array([(213, 94, 0), _NEITHER, (0, 114, 178)], np.uint8)
"""Colours of a fall, of no direction, and of a rise."""


class ProjectionMenuEnv(gym.Env[ProjectionRow, Ints]):
    """Choose what a study will find, claim by claim, while it is disclosed level by level.

    It is a `ProjectionBatchEnv` with one environment, and the texts of its task.

    ## Action space
    ``MultiDiscrete([3] * slots)``. A slot holds one true claim. Its three options are the claim itself, its first
    contrary, and nothing. The seed of the episode shuffles the options of each claim. Options of empty slots have no
    effect. All claims are chosen in one turn, so one turn is one level, as in the text view, and rewards are the same.

    ## Observation space
    Box of float32, see `ProjectionFeatures`: the level, the directions that the options state, and the directions that
    the disclosure reveals. In a synthetic world the procedure reveals the signs of the deducible claims. Disclosures of
    papers reveal none.

    ## Reward, episode end
    As in `ProjectionEnv`, with the F1 of the chosen options computed by the formula, without embeddings.

    ## Info
    ``state``, ``level``, ``turn`` as in `ProjectionEnv`. ``action_mask`` is int8 of shape ``(slots, 3)``, and a tuple
    of its rows is a mask for ``action_space.sample``. With ``privileged=True`` the dict ``privileged`` of
    `ProjectionEnv`.

    ## Version history
    v0: first release.
    """

    kind = "projection"
    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    _task: ProjectionTask | None = None
    _assessment: Assessment | None = None

    def __init__(self, menu: ProjectionMenu, *, privileged: bool = False, render_mode: str | None = None) -> None:
        """Choose tasks and views. ``reset(options=...)`` takes ``task``, ``levels`` and ``reward`` for one episode.

        Args:
            menu: tasks, rules and slots.
            privileged: True to put a dict ``privileged`` into the infos.
            render_mode: ``"ansi"`` or ``"rgb_array"``.

        Raises:
            OptionError: the render mode is unknown.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise OptionError(
                f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}"
            )
        self.menu, self.privileged, self.render_mode = menu, privileged, render_mode
        self.action_space: gym.Space[Any] = menu.action_space
        self.observation_space: gym.Space[Any] = menu.features.space
        self._arrays = ProjectionBatchEnv(1, menu, autoreset_mode=AutoresetMode.DISABLED, infos=False)
        self._source = menu.source

    @property
    def task(self) -> ProjectionTask:
        """The task of this episode, with its texts.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        self._arrays.check_started()
        if self._task is None:
            self._task = self._source.task(self._arrays.seeds.of(0))
        return self._task

    @property
    def options(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the three options of every claim, in the order of the actions. Empty for nothing."""
        orders = self._arrays.order[0].tolist()
        return tuple(
            tuple((claim.text, claim.contraries[0], "")[option] for option in order)
            for claim, order in zip(self.task.claims, orders, strict=False)
        )

    def projection(self, action: Any) -> str:
        """Return the chosen texts, one claim per line: the action in the form "claims" of `ProjectionEnv`."""
        return "\n".join(text for text in self._chosen_texts(action) if text)

    def alignment(self, action: Any) -> Alignment:
        """Return the alignment of the chosen options with the claims."""
        chosen, claims = self.menu.check_actions(action, (self.menu.slots,)), len(self.task.claims)
        pairs = self._arrays.pairs(chosen[None])[0, :claims]
        texts = tuple(text or None for text in self._chosen_texts(chosen))
        return Alignment(texts, (), np.repeat(pairs[:, None], ORDERS, axis=1), np.zeros((0, claims, ORDERS)))

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
        rows, _ = self._arrays.reset(seed=seed, options=options)
        super().reset(seed=seed)
        self._source = self.menu.resolve_options(options)[0]
        self._task = self._assessment = None
        return rows[0], self._info()

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
        self._arrays.check_started()
        if self._arrays.level[0] == OVER:
            raise ResetNeeded("the episode is over: all levels were projected; call reset() before the next step()")
        chosen = self.menu.check_actions(action, (self.menu.slots,))
        rows, rewards, ended, _, _ = self._arrays.step(chosen[None])
        if self.privileged:
            self._assessment = Assessment.of(self.alignment(chosen))
        return rows[0], float(rewards[0]), bool(ended[0]), False, self._info()

    def action_masks(self) -> Mask:
        """Return which options are open, bool of shape ``(3 * slots,)``. The form MaskablePPO expects."""
        masks: Mask = self._arrays.action_masks()[0]
        return masks

    def render(self) -> Any:
        """Return the options and the directions that the disclosure reveals.

        Text for ``ansi``, pixels for ``rgb_array``. See `options_picture`.
        """
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make(...)")
            return None
        parts = self.menu.features.split(self._arrays.observe()[0])
        return options_picture(parts) if self.render_mode == "rgb_array" else self._as_text(parts["given"])

    def close(self) -> None:
        """End the episode for good. A closed environment takes neither `step` nor `reset`."""
        self._arrays.close()

    def _chosen_texts(self, action: Any) -> list[str]:
        chosen = self.menu.check_actions(action, (self.menu.slots,)).tolist()
        return [options[number] for options, number in zip(self.options, chosen, strict=False)]

    def _as_text(self, given: ProjectionRow) -> str:
        words = {1: "rises", -1: "falls", 0: "direction not given away"}
        lines = [f"{self.task.id} · {self._info()['level']}"]
        for options, sign in zip(self.options, given.astype(int).tolist(), strict=False):
            lines.append(f"{words[sign]}:")
            lines += [f"  {number} {text or '(nothing)'}" for number, text in enumerate(options)]
        return "\n".join(lines)

    def _info(self) -> dict[str, Any]:
        arrays = self._arrays
        info = {
            "state": "end" if arrays.level[0] == OVER else "project",
            "level": LEVELS[arrays.last_level[0]],
            "turn": int(arrays.turn[0]),
            "action_mask": arrays.masks()[0],
        }
        if self.privileged:
            info["privileged"] = privileged_projection_info(self.task, self._assessment)
        return info


def options_picture(parts: dict[str, ProjectionRow]) -> NDArray[np.uint8]:
    """Return a picture of the parts of one observation, uint8 of shape ``((slots + 1) · CELL, 4 · CELL, 3)``.

    The first row has a black square for the level. Each row below is one claim: the direction that the disclosure
    reveals, then those of its three options. Blue is a rise, orange a fall, and grey no direction.
    """
    slots, options = parts["directions"].shape
    cells = np.full((slots + 1, 1 + options, 3), _EMPTY, np.uint8)
    cells[0, 1:][parts["level"] > 0] = _LIT
    signs = np.concatenate([parts["given"][:, None], parts["directions"]], axis=1).astype(np.int64)
    claims = parts["claims"] > 0
    cells[1:][claims] = _COLOURS[signs[claims] + 1]
    picture = cells.repeat(CELL, axis=0).repeat(CELL, axis=1)
    for edge in range(_GAP):
        picture[edge::CELL] = _EMPTY
        picture[:, edge::CELL] = _EMPTY
    return picture


@unpack_keywords(ProjectionMenu.of, MenuKeywords)
def projection_menu_env(
    *,
    task: TaskLike | Sequence[TaskLike],
    privileged: bool = False,
    render_mode: str | None = None,
    **keywords: Unpack[MenuKeywords],
) -> ProjectionMenuEnv:
    """Return a `ProjectionMenuEnv` of given tasks.

    ``task`` is that of `ProjectionEnv`. ``levels``, ``reward`` and ``size`` are those of `ProjectionMenu.of`. All other
    arguments are those of the class.
    """
    menu = ProjectionMenu.of(TaskTable(load_tasks(task)), **keywords)
    return ProjectionMenuEnv(menu, privileged=privileged, render_mode=render_mode)
