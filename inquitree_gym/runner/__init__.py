"""Run studies of many episodes, in this process or on Ray."""

from inquitree_gym.runner.archive import PackManifest, unpack
from inquitree_gym.runner.merge import MergeSummary, merge_runs
from inquitree_gym.runner.models import ModelSettings, RunOptions, StopConditions
from inquitree_gym.runner.run import Outcome, RunSummary, arun_study, run_study
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig, make_study, read_study

__all__ = [
    "EpisodeSpec",
    "MergeSummary",
    "ModelSettings",
    "Outcome",
    "PackManifest",
    "RunOptions",
    "RunSummary",
    "StopConditions",
    "StudyConfig",
    "arun_study",
    "make_study",
    "merge_runs",
    "read_study",
    "run_study",
    "unpack",
]
