"""`SyntheticEnv`: a tree that nobody has seen before in every episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.envs.vector import InquiryVectorEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Difficulty, Tree, synthetic_tree, tree_seed


class SyntheticEnv(InquiryEnv):
    """An `InquiryEnv` whose tree is made anew for every episode, from the episode's seed.

    ## Arguments
    ``split``: ``"train"`` or ``"test"``; no tree is in both. ``difficulty``: a `Difficulty`, or its settings by name.
    All others are those of `InquiryEnv`, without ``tree``; ``reset(options={"tree": ...})`` plays another tree for one
    episode.

    ## Episodes
    After ``reset(seed=s)`` the tree is ``synthetic_tree(tree_seed(s, split), difficulty)``; the episodes after it have
    seeds, and so trees, that are hashes of ``s`` and their number.

    ## Version history
    v0: first release.
    """

    def __init__(
        self, *, split: str = "train", difficulty: Difficulty | Mapping[str, Any] | None = None, **inquiry: Any
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split, setting or keyword, or a value out of range.
        """
        if "tree" in inquiry:
            raise OptionError(
                "a synthetic inquiry makes its own trees; to play one of yours, make InquiTree-v0 with tree=..., or "
                'pass reset(options={"tree": ...})'
            )
        self.split = split
        self.difficulty = Difficulty.of(difficulty)
        super().__init__(synthetic_tree(tree_seed(0, split), self.difficulty.largest()), **inquiry)
        self.runtimes = RuntimeCache(self.embedder, self.prompts, scope="episode")

    def _choose_tree(self, trees: tuple[Tree, ...], episode_seed: int) -> Tree:
        """Return the tree of an episode; ``self.trees`` only shows how large it may be, for menus and features."""
        if trees is not self.trees:
            return super()._choose_tree(trees, episode_seed)
        return synthetic_tree(tree_seed(episode_seed, self.split), self.difficulty)


def synthetic_vector(num_envs: int, **inquiry: Any) -> InquiryVectorEnv:
    """Return ``num_envs`` synthetic inquiries that embed together; other keywords as of `SyntheticEnv`."""
    vector = InquiryVectorEnv(num_envs, make=SyntheticEnv, **inquiry)
    for env in vector.envs:
        assert isinstance(env, SyntheticEnv)
        env.runtimes = RuntimeCache(env.embedder, env.prompts, scope="episode")
    return vector
