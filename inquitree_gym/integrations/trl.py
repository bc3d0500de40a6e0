"""TRL's trainers: a data set of tasks, and an environment whose one tool makes a move (extra ``trl``)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.errors import ActionError, InquiTreeError, require
from inquitree_gym.integrations.session import InquirySession, check_move
from inquitree_gym.integrations.tasks import FakeLevels, InquiryTask, MaxTurns, RulesLike, make_tasks
from inquitree_gym.runner.study import ALL


class InquirySpec:
    """Data set, environments and rewards for ``GRPOTrainer``, each as an attribute named like the argument."""

    def __init__(
        self,
        trees: str | Sequence[str] = ALL,
        *,
        seeds: int | Sequence[int] = 5,
        fake_level: FakeLevels = 0,
        max_turns: MaxTurns = "default",
        embedder: str = DEFAULT_EMBEDDER,
        rules: RulesLike = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Choose the tasks.

        Args:
            trees: see `make_tasks`, as for the next three and the rules.
            seeds: number of seeds, or the seeds.
            fake_level: one level or several.
            max_turns: turn limit.
            embedder: reads the moves. TRL calls tools one by one, so take a static or an ONNX one for speed.
            rules: name of a preset, or further rules.
            folder: folder for a log of every inquiry; None writes none.

        Raises:
            OptionError, TreeError: see `make_tasks`.
        """
        self.tasks = make_tasks(trees, seeds=seeds, fake_level=fake_level, max_turns=max_turns, rules=rules)
        self._embedder, self._folder = embedder, None if folder is None else os.fspath(folder)

    @cached_property
    def train_dataset(self) -> Any:
        """A ``datasets.Dataset`` with one row per task; the environment adds the opening to its empty prompt.

        Raises:
            MissingExtraError: the extra ``trl`` is not installed.
        """
        return require("datasets", "trl").Dataset.from_list(
            [
                {
                    "prompt": [{"role": "user", "content": ""}],
                    "key": task.key,
                    "tree": task.tree,
                    "version": task.version,
                    "seed": task.seed,
                    "options": json.dumps(dict(task.options)),
                }
                for task in self.tasks
            ]
        )

    @property
    def environment_factory(self) -> Callable[[], Inquiry]:
        """A function without arguments that makes an `Inquiry`; it can be sent to another process."""
        return partial(Inquiry, self._embedder, self._folder)

    @property
    def reward_funcs(self) -> list[Callable[..., Any]]:
        """No functions: TRL takes the reward from `Inquiry.get_reward`. Add your own to this list."""
        return []


class Inquiry:
    """The environment of one rollout. TRL takes every public method but `reset` and `get_reward` for a tool."""

    def __init__(self, embedder: str = DEFAULT_EMBEDDER, folder: str | None = None) -> None:
        """Keep the settings; the inquiry itself begins with `reset`."""
        self._embedder, self._folder = embedder, folder
        self._session: InquirySession | None = None
        self._failed = False

    def __del__(self) -> None:
        """Close the log, since TRL does not say when it is done with an environment."""
        if self._session is not None:
            self._session.close()

    def reset(self, **row: Any) -> str:
        """Begin the inquiry of a row of `InquirySpec.train_dataset` and return its opening."""
        task = InquiryTask(row["tree"], row["version"], row["seed"], json.loads(row["options"]))
        if self._session is not None:
            self._session.close()
        self._failed = False
        self._session = InquirySession(task, embedder=self._embedder, folder=self._folder, agent={"name": "trl"})
        return self._session.begin()

    def move(self, text: str) -> str:
        """Make one move in the research project: a proposal, a design, a decision or the conclusion, as asked last.

        Args:
            text: The move, in plain words.

        Returns:
            The state of the project after the move, and what to do next.
        """
        assert self._session is not None
        try:
            return self._session.move(check_move(text))
        except ActionError:
            raise  # TRL shows the message to the model, which can try again
        except InquiTreeError:
            self._failed = True
            raise

    def get_reward(self) -> float | None:
        """Return the reward in [0, 1]: 0 without a conclusion, None after an error that is not the model's."""
        if self._failed:
            return None
        score = None if self._session is None else self._session.score()
        return 0.0 if score is None else score.conclusion
