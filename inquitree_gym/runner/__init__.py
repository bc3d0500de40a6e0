"""Run studies of many episodes, in this process or on Ray."""

from inquitree_gym.runner.check import make_study, read_study
from inquitree_gym.runner.run import Outcome, RunSummary, arun_study, run_study
from inquitree_gym.runner.services import RunOptions, StopConditions
from inquitree_gym.runs.specs import EpisodeSpec, ModelSettings
from inquitree_gym.runs.study import StudyConfig

__all__ = [
    "EpisodeSpec",
    "ModelSettings",
    "Outcome",
    "RunOptions",
    "RunSummary",
    "StopConditions",
    "StudyConfig",
    "arun_study",
    "make_study",
    "read_study",
    "run_study",
]
