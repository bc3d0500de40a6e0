"""`ProjectionMenuEnv`: the discrete view, whose options for each true claim are its statements and nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Ints, Mask
from inquitree_gym.errors import OptionError
from inquitree_gym.projection.arrays import ProjectionBatchEnv
from inquitree_gym.projection.options import OVER, STATEMENTS, ProjectionMenu, ProjectionRow
from inquitree_gym.projection.runtime import privileged_projection_info
from inquitree_gym.projection.sheets import draw_layout, statements
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

MenuStep = tuple[ProjectionRow, float, bool, bool, dict[str, Any]]
CELL = 16
"""Height and width of a square of a picture, in pixels."""
_GAP = 2
_EMPTY, _LIT, _NEITHER = (255, 255, 255), (0, 0, 0), (204, 204, 204)
_COLOURS = np.array([(213, 94, 0), _NEITHER, (0, 114, 178)], np.uint8)
"""Colours of a fall, of no direction, and of a rise."""


class ProjectionMenuEnv(gym.Env[ProjectionRow, Ints]):
    """Answer the sheets about what a study in a synthetic world will find, while it is disclosed level by level.

    It is a `ProjectionBatchEnv` with one environment, and the texts of its world.

    ## Action space
    ``MultiDiscrete([3] * slots)``. A slot holds one true claim. Its options are the statements with the letters A and
    B, and nothing. Seed and level draw which of the two is the claim, as in the sheets of `ProjectionEnv`. Options of
    empty slots have no effect. All claims are answered in one turn, so one turn is one level.

    ## Observation space
    Box of float32, see `ProjectionFeatures`: the level, the directions that the statements give, and from the procedure
    on the directions of the deducible claims.

    ## Reward, episode end
    Those of the sheets of `ProjectionEnv`.

    ## Info
    ``state`` ("sheet" or "end"), ``level``, ``turn``. ``action_mask`` is int8 of shape ``(slots, 3)``, and a tuple of
    its rows is a mask for ``action_space.sample``. With ``privileged=True`` a dict ``privileged``: the true ``claims``,
    and the ``scores`` of the turns so far.

    ## Version history
    v0: first release.
    """

    kind = "projection"
    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium has it)

    _task: ProjectionTask | None = None

    def __init__(self, menu: ProjectionMenu, *, privileged: bool = False, render_mode: str | None = None) -> None:
        """Choose worlds and views. ``reset(options=...)`` takes ``levels`` for one episode.

        Args:
            menu: worlds and rules.
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

    @property
    def task(self) -> ProjectionTask:
        """The task of this episode, with its texts.

        Raises:
            ResetNeeded: before the first reset.
            ClosedEnvironmentError: after `close`.
        """
        self._arrays.check_started()
        if self._task is None:
            self._task = self.menu.source.task(self._arrays.seeds.of(0))
        return self._task

    @property
    def options(self) -> tuple[tuple[str, ...], ...]:
        """The statements of every claim at this level, in the order of their letters."""
        claims, level = self.task.claims, LEVELS[self._arrays.last_level[0]]
        orders = draw_layout(claims, self._arrays.seeds.of(0), level)
        return tuple(tuple(statements(claim)[k] for k in order) for claim, order in zip(claims, orders, strict=True))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ProjectionRow, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: determines the world and the order of the statements. Without it, the k-th episode after a seeded
                reset is seeded by a hash of that seed and k.
            options: ``levels``, for this episode alone.

        Raises:
            OptionError: an unknown option or a value out of range.
            ClosedEnvironmentError: after `close`.
        """
        rows, _ = self._arrays.reset(seed=seed, options=options)
        super().reset(seed=seed)
        self._task = None
        return rows[0], self._info()

    def step(self, action: Any) -> MenuStep:
        """Answer the sheet of one level.

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

    def _as_text(self, given: ProjectionRow) -> str:
        words = {1: "rises", -1: "falls", 0: "direction not given away"}
        lines = [f"{self.task.id} · {self._info()['level']}"]
        for options, sign in zip(self.options, given.astype(int).tolist(), strict=False):
            lines.append(f"{words[sign]}:")
            lines += [f"  {number} {text}" for number, text in enumerate((*options, "(nothing)"))]
        return "\n".join(lines)

    def _info(self) -> dict[str, Any]:
        arrays = self._arrays
        info = {
            "state": "end" if arrays.level[0] == OVER else "sheet",
            "level": LEVELS[arrays.last_level[0]],
            "turn": int(arrays.turn[0]),
            "action_mask": arrays.masks()[0],
        }
        if self.privileged:
            scores = arrays.scores[0, : arrays.turn[0]].tolist()
            info["privileged"] = privileged_projection_info(self.task, None) | {"scores": scores}
        return info


def options_picture(parts: dict[str, ProjectionRow]) -> NDArray[np.uint8]:
    """Return a picture of the parts of one observation, uint8 of shape ``((slots + 1) · CELL, 4 · CELL, 3)``.

    The first row has a black square for the level. Each row below is one claim: the direction that the disclosure
    reveals, then those of its statements. Blue is a rise, orange a fall, and grey no direction.
    """
    slots = len(parts["claims"])
    cells = np.full((slots + 1, 1 + len(LEVELS), 3), _EMPTY, np.uint8)
    cells[0, 1:][parts["level"] > 0] = _LIT
    signs = np.concatenate([parts["given"][:, None], parts["directions"]], axis=1).astype(np.int64)
    claims = parts["claims"] > 0
    cells[1:, : 1 + STATEMENTS][claims] = _COLOURS[signs[claims] + 1]
    picture = cells.repeat(CELL, axis=0).repeat(CELL, axis=1)
    for edge in range(_GAP):
        picture[edge::CELL] = _EMPTY
        picture[:, edge::CELL] = _EMPTY
    return picture
