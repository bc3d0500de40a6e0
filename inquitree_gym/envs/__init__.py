"""The environments and their spaces."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.envs.batch.env import InquiryBatchEnv
    from inquitree_gym.envs.inquiry import InquiryEnv
    from inquitree_gym.envs.runtime import Transition
    from inquitree_gym.envs.spaces import FreeText
    from inquitree_gym.envs.synthetic import SyntheticEnv
    from inquitree_gym.envs.vector import InquiryVectorEnv

__all__ = ["FreeText", "InquiryBatchEnv", "InquiryEnv", "InquiryVectorEnv", "SyntheticEnv", "Transition"]

__getattr__ = lazy(
    __name__,
    {
        "FreeText": "inquitree_gym.envs.spaces",
        "InquiryBatchEnv": "inquitree_gym.envs.batch.env",
        "InquiryEnv": "inquitree_gym.envs.inquiry",
        "InquiryVectorEnv": "inquitree_gym.envs.vector",
        "Transition": "inquitree_gym.envs.runtime",
        "SyntheticEnv": "inquitree_gym.envs.synthetic",
    },
)
