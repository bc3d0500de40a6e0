"""Inquiries in free text in a vector, and `SyntheticEnv`, which plays a new generated tree in every episode."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from inquitree_gym import trees as made  # the generator loads with its first use
from inquitree_gym.envs.asking import shared_judge
from inquitree_gym.envs.text_vector import TextVectorEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.env import InquiryEnv, TreeLike
from inquitree_gym.inquiry.keywords import InquiryKeywords, unpack_keywords
from inquitree_gym.inquiry.llm_matcher import LOCAL, load_reader
from inquitree_gym.trees import Tree


class InquiryVectorEnv(TextVectorEnv):
    """A `TextVectorEnv` of inquiries."""

    @unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
    def __init__(
        self,
        num_envs: int,
        *,
        tree: TreeLike | Sequence[TreeLike] | None = None,
        trees: Sequence[TreeLike] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        env_fn: Callable[..., InquiryEnv] = InquiryEnv,
        **keywords: Unpack[InquiryKeywords],
    ) -> None:
        """Make inquiries that are stepped together.

        Args:
            num_envs: number of inquiries.
            tree: as in `InquiryEnv`, for every inquiry.
            trees: one tree for each inquiry, in place of ``tree``.
            autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
            env_fn: constructor of one inquiry.
            **keywords: those of `InquiryEnv`.

        Raises:
            OptionError: ``num_envs`` below 1, ``trees`` of another length, an unknown ``autoreset_mode``, or any error
                of `InquiryEnv`.
        """
        # Readers and judges are loaded once, so that all inquiries share their requests.
        keywords["reader"] = load_reader(keywords.get("reader", LOCAL)) or LOCAL
        keywords["judge"] = shared_judge(keywords.get("judge"), InquiryEnv.kind)
        make = partial(env_fn, **keywords)
        super().__init__(num_envs, make, option="tree", task=tree, tasks=trees, autoreset_mode=autoreset_mode)


def split_trees(
    tree: TreeLike | Sequence[TreeLike] | None, trees: Sequence[TreeLike] | None
) -> tuple[TreeLike | Sequence[TreeLike], NDArray[np.int64] | None]:
    """Return the distinct trees, and with one tree per environment the index of each."""
    if trees is None:
        if tree is None:
            raise OptionError("pass tree, for all inquiries, or trees, one for each")
        return tree, None
    if nested := [entry for entry in trees if not isinstance(entry, str | os.PathLike | Tree)]:
        raise OptionError(f"each of trees must be an id, a path or a Tree, got {nested[0]!r:.80}")
    numbers = {distinct: number for number, distinct in enumerate(dict.fromkeys(trees))}
    return list(numbers), np.array([numbers[own] for own in trees])


class SyntheticEnv(InquiryEnv):
    """An `InquiryEnv` that generates the tree of every episode from the episode's seed.

    ## Arguments
    ``split``: ``"train"`` or ``"test"``. No tree is in both. ``difficulty``: a `Difficulty`, or its settings by name.
    All others are those of `InquiryEnv`, without ``tree``. ``reset(options={"tree": ...})`` plays another tree for one
    episode.

    ## Episodes
    After ``reset(seed=s)`` the tree is ``synthetic_tree(tree_seed(s, split), difficulty)``. The seeds of the episodes
    after it, and so their trees, are hashes of ``s`` and their number.

    ## Version history
    v0: first release.
    """

    @unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
    def __init__(
        self,
        *,
        split: str = "train",
        difficulty: made.Difficulty | Mapping[str, Any] | None = None,
        **keywords: Unpack[InquiryKeywords],
    ) -> None:
        """See the class for the arguments.

        Raises:
            OptionError: an unknown split, setting or keyword, or a value out of range.
        """
        self.split = split
        self.difficulty = made.Difficulty.of(difficulty)
        super().__init__(made.synthetic_tree(made.tree_seed(0, split), self.difficulty.largest()), **keywords)
        self.runtimes = self.runtimes.within("episode")

    def _choose(self, choices: tuple[Tree, ...], episode_seed: int) -> Tree:
        """Return the tree of an episode. ``self.tasks`` only shows menus and features how large it may be."""
        if choices is not self.tasks:
            return super()._choose(choices, episode_seed)
        return made.synthetic_tree(made.tree_seed(episode_seed, self.split), self.difficulty)


@unpack_keywords(InquiryEnv.__init__, InquiryKeywords)
def synthetic_vector(
    num_envs: int,
    *,
    split: str = "train",
    difficulty: made.Difficulty | Mapping[str, Any] | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **keywords: Unpack[InquiryKeywords],
) -> InquiryVectorEnv:
    """Return an `InquiryVectorEnv` of ``num_envs`` synthetic inquiries. See `SyntheticEnv` for the other arguments."""
    make = partial(SyntheticEnv, split=split, difficulty=difficulty)
    return InquiryVectorEnv(num_envs, env_fn=make, autoreset_mode=autoreset_mode, **keywords)
