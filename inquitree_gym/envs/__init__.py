"""The environments and their spaces."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.envs.batch.env import InquiryBatchEnv
    from inquitree_gym.envs.inquiry import InquiryEnv
    from inquitree_gym.envs.projection.batch import ProjectionBatchEnv
    from inquitree_gym.envs.projection.env import ProjectionEnv
    from inquitree_gym.envs.projection.menu import ProjectionMenuEnv
    from inquitree_gym.envs.projection.rules import ProjectionRules
    from inquitree_gym.envs.projection.synthetic import SyntheticProjectionEnv
    from inquitree_gym.envs.projection.vector import ProjectionVectorEnv
    from inquitree_gym.envs.runtime import Transition
    from inquitree_gym.envs.spaces import FreeText
    from inquitree_gym.envs.synthetic import SyntheticEnv
    from inquitree_gym.envs.vector import InquiryVectorEnv

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

__getattr__ = lazy(
    __name__,
    {
        "spaces": "FreeText",
        "batch.env": "InquiryBatchEnv",
        "inquiry": "InquiryEnv",
        "projection.batch": "ProjectionBatchEnv",
        "projection.env": "ProjectionEnv",
        "projection.menu": "ProjectionMenuEnv",
        "projection.rules": "ProjectionRules",
        "projection.synthetic": "SyntheticProjectionEnv",
        "projection.vector": "ProjectionVectorEnv",
        "vector": "InquiryVectorEnv",
        "runtime": "Transition",
        "synthetic": "SyntheticEnv",
    },
)
