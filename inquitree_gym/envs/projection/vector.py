"""`ProjectionVectorEnv`: projections whose claims are embedded in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from gymnasium.vector import AutoresetMode

from inquitree_gym.envs.keywords import unpack_keywords
from inquitree_gym.envs.projection.env import ProjectionEnv
from inquitree_gym.envs.projection.keywords import ProjectionKeywords
from inquitree_gym.envs.text_vector import TextVectorEnv, check_vector_arguments
from inquitree_gym.judges.projections.registry import load_projection_judge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.trees.tasks import TaskLike


class ProjectionVectorEnv(TextVectorEnv):
    """A `TextVectorEnv` of projections.

    ## Arguments
    ``num_envs``: number of environments. ``task``: as in `ProjectionEnv`, for every environment; ``tasks``: instead,
    one task for each. ``autoreset_mode``: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
    ``env_fn``: constructor of one environment. All others are those of `ProjectionEnv`.
    """

    @unpack_keywords(ProjectionEnv.__init__, ProjectionKeywords)
    def __init__(
        self,
        num_envs: int,
        *,
        task: TaskLike | Sequence[TaskLike] | None = None,
        tasks: Sequence[TaskLike] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        env_fn: Callable[..., ProjectionEnv] = ProjectionEnv,
        **keywords: Unpack[ProjectionKeywords],
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: ``num_envs`` below 1, ``tasks`` of another length, an unknown ``autoreset_mode``, or any error
                of `ProjectionEnv`.
        """
        mode = check_vector_arguments(num_envs, tasks, autoreset_mode, name="tasks")
        if (judge := keywords.get("judge", LOCAL)) != LOCAL:
            keywords["judge"] = load_projection_judge(judge)  # once, so that all environments share its requests
        shared = {} if task is None else {"task": task}
        each = [shared] * num_envs if tasks is None else [{"task": one} for one in tasks]
        super().__init__([env_fn(**one, **keywords) for one in each], mode)
