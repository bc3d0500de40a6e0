"""Run studies of many episodes, in this process or on Ray."""

from inquitree_gym.runner.models import ModelSettings, RunOptions, StopConditions
from inquitree_gym.runner.run import Outcome, RunSummary, arun_study, run_study
from inquitree_gym.runner.study import EpisodeSpec, StudyConfig, make_study, read_study

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
