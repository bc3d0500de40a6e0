"""`InquiryVectorEnv`: inquiries in free text whose actions are embedded in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from inquitree_gym.envs.inquiry import InquiryEnv, TreeLike
from inquitree_gym.envs.keywords import InquiryKeywords, unpack_keywords
from inquitree_gym.envs.text_vector import TextVectorEnv, check_vector_arguments
from inquitree_gym.errors import OptionError
from inquitree_gym.judges.registry import LOCAL as LOCAL_JUDGE
from inquitree_gym.judges.registry import load_judge
from inquitree_gym.readers import LOCAL, load_reader
from inquitree_gym.trees import Tree


class InquiryVectorEnv(TextVectorEnv):
    """A `TextVectorEnv` of inquiries.

    ## Arguments
    ``num_envs``: number of inquiries. ``tree``: as in `InquiryEnv`, for every inquiry; ``trees``: instead, one tree for
    each. ``autoreset_mode``: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium. ``env_fn``: constructor
    of one inquiry. All others are those of `InquiryEnv`.
    """

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
        """See the class for the arguments.

        Raises:
            OptionError: ``num_envs`` below 1, ``trees`` of another length, an unknown ``autoreset_mode``, or any error
                of `InquiryEnv`.
        """
        mode = check_vector_arguments(num_envs, trees, autoreset_mode)
        # Once, so that all inquiries share their requests.
        keywords["reader"] = load_reader(keywords.get("reader", LOCAL)) or LOCAL
        if (judge := keywords.get("judge", LOCAL_JUDGE)) != LOCAL_JUDGE:
            keywords["judge"] = load_judge(judge)
        shared = {} if tree is None else {"tree": tree}
        each = [shared] * num_envs if trees is None else [{"tree": one} for one in trees]
        super().__init__([env_fn(**one, **keywords) for one in each], mode)


def split_trees(
    tree: TreeLike | Sequence[TreeLike] | None, trees: Sequence[TreeLike] | None
) -> tuple[TreeLike | Sequence[TreeLike], NDArray[np.int64] | None]:
    """Return the distinct trees, and with one tree per environment the index of each one's."""
    if trees is None:
        if tree is None:
            raise OptionError("pass tree, for all inquiries, or trees, one for each")
        return tree, None
    if nested := [each for each in trees if not isinstance(each, str | os.PathLike | Tree)]:
        raise OptionError(f"each of trees is an id, a path or a Tree, not {nested[0]!r:.80}")
    numbers = {each: number for number, each in enumerate(dict.fromkeys(trees))}
    return list(numbers), np.array([numbers[each] for each in trees])
