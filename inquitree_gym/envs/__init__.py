"""The environments and their spaces."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.envs.inquiry import InquiryEnv, Step
    from inquitree_gym.envs.spaces import FreeText

__all__ = ["FreeText", "InquiryEnv", "Step"]

__getattr__ = lazy(
    __name__,
    {
        "FreeText": "inquitree_gym.envs.spaces",
        "InquiryEnv": "inquitree_gym.envs.inquiry",
        "Step": "inquitree_gym.envs.inquiry",
    },
)
