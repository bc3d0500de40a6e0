"""Studies of many episodes: what to run, running it, and what came out."""

from inquitree_gym.experiments.reports.report import Row, read_scores, report_table, rows
from inquitree_gym.experiments.runs.chats import Terms
from inquitree_gym.experiments.runs.models import ModelSettings
from inquitree_gym.experiments.runs.playing import Outcome
from inquitree_gym.experiments.runs.runner import RunSummary, arun_study, run_study
from inquitree_gym.experiments.runs.study import Cell, Study

__all__ = [
    "Cell",
    "ModelSettings",
    "Outcome",
    "Row",
    "RunSummary",
    "Study",
    "Terms",
    "arun_study",
    "read_scores",
    "report_table",
    "rows",
    "run_study",
]
