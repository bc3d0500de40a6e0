"""Studies of many episodes: what to run, running it, and what came out."""

from inquitree_gym.experiments.report import Row, read_scores, report_table, rows
from inquitree_gym.experiments.runner import RunSummary, run_study
from inquitree_gym.experiments.study import Cell, Study

__all__ = ["Cell", "Row", "RunSummary", "Study", "read_scores", "report_table", "rows", "run_study"]
