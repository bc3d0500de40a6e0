"""HTML pages: the report of runs, and the viewer of episodes."""

from inquitree_gym.report.pages import write_report
from inquitree_gym.report.viewer import follow_run, view_log, view_run

__all__ = ["follow_run", "view_log", "view_run", "write_report"]
