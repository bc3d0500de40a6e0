"""Run studies of many episodes: here, concurrently, or on Ray."""

from inquitree_gym.runner.chats import Terms
from inquitree_gym.runner.models import ModelSettings
from inquitree_gym.runner.playing import Outcome
from inquitree_gym.runner.run import RunSummary, arun_study, run_study
from inquitree_gym.runner.study import Cell, Study

__all__ = [
    "Cell",
    "ModelSettings",
    "Outcome",
    "RunSummary",
    "Study",
    "Terms",
    "arun_study",
    "run_study",
]
