"""`SyntheticEnv`: a new generated tree in every episode."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.keywords import InquiryKeywords, unpack_keywords
from inquitree_gym.envs.vector import InquiryVectorEnv
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

    @unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
    def __init__(
        self,
        *,
        split: str = "train",
        difficulty: Difficulty | Mapping[str, Any] | None = None,
        **keywords: Unpack[InquiryKeywords],
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split, setting or keyword, or a value out of range.
        """
        self.split = split
        self.difficulty = Difficulty.of(difficulty)
        super().__init__(synthetic_tree(tree_seed(0, split), self.difficulty.largest()), **keywords)
        self.runtimes = self.runtimes.within("episode")

    def _choose(self, choices: tuple[Tree, ...], episode_seed: int) -> Tree:
        """Return the tree of an episode; ``self.trees`` only tells menus and features how large it may be."""
        if choices is not self.trees:
            return super()._choose(choices, episode_seed)
        return synthetic_tree(tree_seed(episode_seed, self.split), self.difficulty)


@unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
def synthetic_vector(
    num_envs: int,
    *,
    split: str = "train",
    difficulty: Difficulty | Mapping[str, Any] | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **keywords: Unpack[InquiryKeywords],
) -> InquiryVectorEnv:
    """Return an `InquiryVectorEnv` of ``num_envs`` synthetic inquiries; see `SyntheticEnv` for the other arguments."""
    make = partial(SyntheticEnv, split=split, difficulty=difficulty)
    return InquiryVectorEnv(num_envs, env_fn=make, autoreset_mode=autoreset_mode, **keywords)
