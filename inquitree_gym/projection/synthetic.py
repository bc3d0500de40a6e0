"""Projections about synthetic worlds (see `worlds`), with a new world in every episode."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from gymnasium.vector import AutoresetMode

from inquitree_gym.fiction.documents import Count
from inquitree_gym.projection.arrays import ProjectionBatchEnv
from inquitree_gym.projection.env import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.projection.keywords import ProjectionKeywords, unpack_keywords
from inquitree_gym.projection.menu import ProjectionMenuEnv
from inquitree_gym.projection.options import MenuKeywords, ProjectionMenu, WorldSource
from inquitree_gym.projection.worlds import WorldSettings
from inquitree_gym.trees.disclosure import ProjectionTask


class SyntheticProjectionEnv(ProjectionEnv):
    """A `ProjectionEnv` that makes up the world of every episode from the episode's seed.

    ## Arguments
    ``split``: ``"train"`` or ``"test"``. No world is in both. ``claims``: number of claims, or a range to draw it from.
    ``deducible``: share of the claims whose sign follows from what the procedure states. With 0 no agent can be above
    chance. With 1 all signs can be deduced at the level ``procedure``, and none before. All others are those of
    `ProjectionEnv`, without ``task``. ``reset(options={"task": ...})`` plays another task for one episode.

    ## Episodes
    After ``reset(seed=s)`` the task is ``synthetic_task(tree_seed(s, split), WorldSettings(...))``. The seeds of the
    episodes after it, and so their worlds, are hashes of ``s`` and their number.

    ## Version history
    v0: first release.
    """

    @unpack_keywords(ProjectionEnv.__init__, ProjectionKeywords)
    def __init__(
        self, *, split: str = "train", claims: Count = 5, deducible: float = 1.0, **keywords: Unpack[ProjectionKeywords]
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split or keyword, or a value out of range.
        """
        self._worlds = WorldSource(WorldSettings(claims=claims, deducible=deducible), split)
        super().__init__(self._worlds.task(0), **keywords)
        self.runtimes = self.runtimes.within("episode")

    def _choose(self, choices: tuple[ProjectionTask, ...], episode_seed: int) -> ProjectionTask:
        return self._worlds.task(episode_seed) if choices is self.tasks else super()._choose(choices, episode_seed)


@unpack_keywords(ProjectionEnv.__init__, ProjectionKeywords)
def synthetic_projection_vector(
    num_envs: int,
    *,
    split: str = "train",
    claims: Count = 5,
    deducible: float = 1.0,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **keywords: Unpack[ProjectionKeywords],
) -> ProjectionVectorEnv:
    """Return a `ProjectionVectorEnv` of synthetic worlds. See `SyntheticProjectionEnv` for the other arguments."""
    make = partial(SyntheticProjectionEnv, split=split, claims=claims, deducible=deducible)
    return ProjectionVectorEnv(num_envs, env_fn=make, autoreset_mode=autoreset_mode, **keywords)


@unpack_keywords(ProjectionMenu.of, MenuKeywords)
def synthetic_projection_menu_env(
    *,
    split: str = "train",
    claims: Count = 5,
    deducible: float = 1.0,
    privileged: bool = False,
    render_mode: str | None = None,
    **keywords: Unpack[MenuKeywords],
) -> ProjectionMenuEnv:
    """Return a `ProjectionMenuEnv` of synthetic worlds.

    ``split``, ``claims`` and ``deducible`` are those of `SyntheticProjectionEnv`. All other arguments are those of
    `ProjectionMenu.of` and `ProjectionMenuEnv`.
    """
    source = WorldSource(WorldSettings(claims=claims, deducible=deducible), split)
    return ProjectionMenuEnv(ProjectionMenu.of(source, **keywords), privileged=privileged, render_mode=render_mode)


@unpack_keywords(ProjectionMenu.of, MenuKeywords)
def synthetic_projection_batch(
    num_envs: int,
    *,
    split: str = "train",
    claims: Count = 5,
    deducible: float = 1.0,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    infos: bool = True,
    **keywords: Unpack[MenuKeywords],
) -> ProjectionBatchEnv:
    """Return a `ProjectionBatchEnv` of synthetic worlds. See `synthetic_projection_menu_env`."""
    source = WorldSource(WorldSettings(claims=claims, deducible=deducible), split)
    menu = ProjectionMenu.of(source, **keywords)
    return ProjectionBatchEnv(num_envs, menu, autoreset_mode=autoreset_mode, infos=infos)
