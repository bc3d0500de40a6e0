"""`SyntheticEnv`: a new generated tree in every episode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from gymnasium.vector import AutoresetMode

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.engine.rules import TIE_MARGIN, Candidates, Decisions, Explore, FakeKey, Feedback, LastHint, OnTie
from inquitree_gym.envs.inquiry import InquiryEnv, inquiry_keywords
from inquitree_gym.envs.keywords import suggest_keywords
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.envs.vector import InquiryVectorEnv
from inquitree_gym.judges.registry import LOCAL as LOCAL_JUDGE
from inquitree_gym.judges.registry import AsyncJudge
from inquitree_gym.readers import LOCAL, Reader
from inquitree_gym.trees import Difficulty, Tree, synthetic_tree, tree_seed


class SyntheticEnv(InquiryEnv):
    """An `InquiryEnv` that generates the tree of every episode from the episode's seed.

    ## Arguments
    ``split``: ``"train"`` or ``"test"``; no tree is in both. ``difficulty``: a `Difficulty`, or its settings by name.
    All others are those of `InquiryEnv`, without ``tree``; ``reset(options={"tree": ...})`` plays another tree for one
    episode.

    ## Episodes
    After ``reset(seed=s)`` the tree is ``synthetic_tree(tree_seed(s, split), difficulty)``; the seeds of the episodes
    after it, and so their trees, are hashes of ``s`` and their number.

    ## Version history
    v0: first release.
    """

    @suggest_keywords
    def __init__(  # noqa: PLR0913  (keywords)
        self,
        *,
        split: str = "train",
        difficulty: Difficulty | Mapping[str, Any] | None = None,
        embedder: str | Embedder = DEFAULT_EMBEDDER,
        reader: str | Reader = LOCAL,
        judge: str | AsyncJudge = LOCAL_JUDGE,
        prompts: str | os.PathLike[str] | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
        threshold: float | None = None,
        fake_level: int = 0,
        max_turns: int | Literal["default"] | None = "default",
        candidates: Candidates = "all",
        on_last_hint: LastHint = "advance",
        study_turn: bool = False,
        explore: Explore = "hub",
        decisions: Decisions = "phrases",
        bare_decisions: bool = True,
        feedback: Feedback = "hint",
        on_tie: OnTie = "nearest",
        tie_margin: float = TIE_MARGIN,
        fake_key: FakeKey = 2,
        replication: Literal["exact", "varied"] = "exact",
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split, setting or keyword, or a value out of range.
        """
        keywords = inquiry_keywords(locals())
        self.split = split
        self.difficulty = Difficulty.of(difficulty)
        super().__init__(synthetic_tree(tree_seed(0, split), self.difficulty.largest()), **keywords)
        self.runtimes = RuntimeCache(self.embedder, self.prompts, scope="episode")

    def _choose_tree(self, trees: tuple[Tree, ...], episode_seed: int) -> Tree:
        """Return the tree of an episode; ``self.trees`` only tells menus and features how large it may be."""
        if trees is not self.trees:
            return super()._choose_tree(trees, episode_seed)
        return synthetic_tree(tree_seed(episode_seed, self.split), self.difficulty)


@suggest_keywords
def synthetic_vector(  # noqa: PLR0913  (keywords)
    num_envs: int,
    *,
    split: str = "train",
    difficulty: Difficulty | Mapping[str, Any] | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    embedder: str | Embedder = DEFAULT_EMBEDDER,
    reader: str | Reader = LOCAL,
    judge: str | AsyncJudge = LOCAL_JUDGE,
    prompts: str | os.PathLike[str] | None = None,
    privileged: bool = False,
    render_mode: str | None = None,
    threshold: float | None = None,
    fake_level: int = 0,
    max_turns: int | Literal["default"] | None = "default",
    candidates: Candidates = "all",
    on_last_hint: LastHint = "advance",
    study_turn: bool = False,
    explore: Explore = "hub",
    decisions: Decisions = "phrases",
    bare_decisions: bool = True,
    feedback: Feedback = "hint",
    on_tie: OnTie = "nearest",
    tie_margin: float = TIE_MARGIN,
    fake_key: FakeKey = 2,
    replication: Literal["exact", "varied"] = "exact",
) -> InquiryVectorEnv:
    """Return an `InquiryVectorEnv` of ``num_envs`` synthetic inquiries; see `SyntheticEnv` for the other arguments."""
    make = partial(SyntheticEnv, split=split, difficulty=difficulty)
    return InquiryVectorEnv(num_envs, env_fn=make, autoreset_mode=autoreset_mode, **inquiry_keywords(locals()))
