"""The environments and their spaces."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.envs.spaces import FreeText
    from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
    from inquitree_gym.inquiry.env import InquiryEnv
    from inquitree_gym.inquiry.runtime import Transition
    from inquitree_gym.inquiry.vector import InquiryVectorEnv, SyntheticEnv
    from inquitree_gym.projection.arrays import ProjectionBatchEnv
    from inquitree_gym.projection.env import ProjectionEnv, ProjectionVectorEnv
    from inquitree_gym.projection.menu import ProjectionMenuEnv
    from inquitree_gym.projection.settings import ProjectionRules
    from inquitree_gym.projection.synthetic import SyntheticProjectionEnv

__all__ = [
    "FreeText",
    "InquiryBatchEnv",
    "InquiryEnv",
    "InquiryVectorEnv",
    "ProjectionBatchEnv",
    "ProjectionEnv",
    "ProjectionMenuEnv",
    "ProjectionRules",
    "ProjectionVectorEnv",
    "SyntheticEnv",
    "SyntheticProjectionEnv",
    "Transition",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "envs.spaces": "FreeText",
        "inquiry.arrays.env": "InquiryBatchEnv",
        "inquiry.env": "InquiryEnv",
        "inquiry.runtime": "Transition",
        "inquiry.vector": "SyntheticEnv InquiryVectorEnv",
        "projection.arrays": "ProjectionBatchEnv",
        "projection.env": "ProjectionEnv ProjectionVectorEnv",
        "projection.menu": "ProjectionMenuEnv",
        "projection.settings": "ProjectionRules",
        "projection.synthetic": "SyntheticProjectionEnv",
    },
)
