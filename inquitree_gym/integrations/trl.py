"""TRL's trainers: a data set of tasks, and an environment whose one tool makes a move (extra ``trl``)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import cached_property, partial
from typing import Any

from inquitree_gym.errors import ActionError, InquiTreeError, OptionError, require
from inquitree_gym.integrations.session import EpisodeSession, check_move
from inquitree_gym.integrations.tasks import EpisodeTask, make_tasks
from inquitree_gym.kinds import DEFAULT_KIND
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.runs.study import ALL


class TRLSpec:
    """Data set, environments and rewards for ``GRPOTrainer``, each as an attribute named like the argument."""

    def __init__(
        self,
        papers: str | Sequence[str] = ALL,
        *,
        env: str = DEFAULT_KIND,
        seeds: int | Sequence[int] = 5,
        folder: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        """Choose the tasks.

        Args:
            papers: see `make_tasks`, as for the kind, the seeds and the settings.
            env: kind of environment.
            seeds: number of seeds, or the seeds.
            folder: folder for a log of every episode. None writes none.
            settings: settings of the kind. TRL calls tools one by one, so take a static or an ONNX embedder for speed.

        Raises:
            OptionError, TreeError: see `make_tasks`.
        """
        self.tasks = make_tasks(papers, env=env, seeds=seeds, **settings)
        self._folder = None if folder is None else os.fspath(folder)

    @cached_property
    def train_dataset(self) -> Any:
        """A ``datasets.Dataset`` with one row per task. The environment adds the opening to its empty prompt.

        Raises:
            MissingExtraError: the extra ``trl`` is not installed.
        """
        return require("datasets", "trl").Dataset.from_list(
            [
                {
                    "prompt": [{"role": "user", "content": ""}],
                    "key": task.key,
                    **{name: json.dumps(v) if isinstance(v, dict) else v for name, v in asdict(task).items()},
                }
                for task in self.tasks
            ]
        )

    @property
    def environment_factory(self) -> Callable[[], TRLEpisode]:
        """A function without arguments that makes a `TRLEpisode`. It can be sent to another process."""
        return partial(TRLEpisode, self._folder)

    @property
    def reward_funcs(self) -> list[Callable[..., Any]]:
        """No functions: TRL takes the reward from `TRLEpisode.get_reward`. Add your own to this list."""
        return []


class TRLEpisode:
    """The environment of one rollout. TRL takes every public method except `reset` and `get_reward` for a tool."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._session: EpisodeSession | None = None
        self._failed = False

    def __del__(self) -> None:
        """Close the log, since TRL does not say when it is done with an environment."""
        if self._session is not None:
            self._session.close()

    def reset(self, **row: Any) -> str:
        """Begin the episode of a row of `TRLSpec.train_dataset` and return its opening.

        Raises:
            OptionError: columns are missing, or the row holds no task.
        """
        columns = [field.name for field in fields(EpisodeTask)]
        if missing := [name for name in columns if name not in row]:
            raise OptionError(
                f"row must have the columns {columns}, got none named {missing}. Keep them in the data set."
            )
        given = {name: json.loads(row[name]) if name in ("cell", "settings") else row[name] for name in columns}
        task = EpisodeTask(**given)
        if self._session is not None:
            self._session.close()
        self._failed = False
        self._session = EpisodeSession(task, folder=self._folder, agent={"name": "trl"})
        return self._session.begin()

    async def move(self, text: str) -> str:  # TRL runs the calls of one message side by side
        """Make one move, as the last message asks for it.

        Args:
            text: The move, in plain words.

        Returns:
            What follows the move, and what to do next.
        """
        if self._session is None:
            raise OptionError("no episode has been started; call reset first")
        try:
            move = check_move(text)
            with self._session.one_move():
                return await in_step_thread(self._session.move, move)
        except ActionError:
            raise  # TRL shows the message to the model, which can try again
        except InquiTreeError:
            self._failed = True
            raise

    def get_reward(self) -> float | None:
        """Return the reward, in [-1, 1] for inquiries. 0 before its end, None after an error of ours."""
        if self._failed:
            return None
        score = None if self._session is None else self._session.score()
        return 0.0 if score is None else score.reward
