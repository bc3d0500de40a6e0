"""HTML pages: the report of runs, and the viewer of episodes."""

from inquitree_gym.report.pages import write_report
from inquitree_gym.report.viewer import view_log, view_run

__all__ = ["view_log", "view_run", "write_report"]
