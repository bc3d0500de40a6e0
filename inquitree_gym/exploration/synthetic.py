"""`SyntheticExplorationEnv`, which plays a new question in a new library in every episode."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack

from inquitree_gym.envs.keywords import checked_keywords, signed_keywords
from inquitree_gym.exploration.building.synthetic import (
    Libraries,
    Size,
    check_choices,
    question_spec,
    synthetic_question,
)
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.runtime import ExplorationRuntimes
from inquitree_gym.exploration.schema import ExplorationTask, TaskType
from inquitree_gym.exploration.settings import Tools
from inquitree_gym.fiction.documents import tree_seed
from inquitree_gym.judging.judgement import AsyncJudge

P = ParamSpec("P")
R = TypeVar("R")


class ExplorationKeywords(TypedDict, total=False):
    """Keywords of `ExplorationEnv` that a synthetic one has, too. Its signature has the defaults."""

    max_turns: int | None
    tools: Tools
    judge: str | AsyncJudge[ExplorationTask]
    prompts: str | os.PathLike[str] | None
    privileged: bool
    render_mode: str | None


_ADVICE = {
    "task": "a synthetic exploration draws its own tasks; to play one of yours, make SciExplore-v0 with task=..., or "
    'pass reset(options={"task": ...})',
    "provider": "a synthetic exploration has libraries of its own; to play in another source, make SciExplore-v0 with "
    "task=... and provider=...",
}


def unpack_keywords(template: Callable[..., Any], keywords: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take ``**keywords: Unpack[...]``. See `signed_keywords`."""
    return signed_keywords(template, keywords, checked_keywords(refused=_ADVICE))


class SyntheticExplorationEnv(ExplorationEnv):
    """An `ExplorationEnv` that draws library and question of every episode from the episode's seed.

    ## Arguments
    ``split``: ``"train"`` or ``"test"``, libraries with even or odd seeds. ``size``: documents of a library, 200 or
    2000. ``kind``: ``"T1"`` to ``"T4"``, or None to draw it, T2 only with 2000 documents. ``hops``: records of T1, 2 to
    6, or None to draw it. All others are those of `ExplorationEnv`, without ``task`` and ``provider``.
    ``reset(options={"task": ...})`` plays another task for one episode.

    ## Episodes
    After ``reset(seed=s)`` the task is the `synthetic_question` of ``tree_seed(s, split)``. The seeds of the episodes
    after it, and so their libraries, are hashes of ``s`` and their number. A log names the task by an id from which it
    is drawn again. The last four libraries are kept.

    ## Version history
    v0: first release.
    """

    @unpack_keywords(ExplorationEnv.__init__, ExplorationKeywords)
    def __init__(
        self,
        *,
        split: str = "train",
        size: Size = 200,
        kind: TaskType | None = None,
        hops: int | None = None,
        **keywords: Unpack[ExplorationKeywords],
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split or keyword, or a value out of range.
        """
        tree_seed(0, split)
        check_choices(size, kind, hops)
        self.split, self.size, self.drawn_kind, self.hops = split, size, kind, hops
        self.libraries = Libraries()
        """The last libraries."""
        super().__init__(self._question(0), **keywords)
        self.runtimes = ExplorationRuntimes(None, self.prompts, self.libraries)

    def _question(self, episode_seed: int) -> ExplorationTask:
        seed = tree_seed(episode_seed, self.split)
        spec = question_spec(seed, size=self.size, kind=self.drawn_kind, hops=self.hops)
        return synthetic_question(spec, self.libraries)

    def _choose(self, choices: tuple[ExplorationTask, ...], episode_seed: int) -> ExplorationTask:
        return self._question(episode_seed) if choices is self.tasks else super()._choose(choices, episode_seed)
