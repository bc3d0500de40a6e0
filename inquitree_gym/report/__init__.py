"""Pages to look at: the report of runs, and the viewer of episodes."""

from inquitree_gym.report.report_page import write_report
from inquitree_gym.report.views import view_log, view_run

__all__ = ["view_log", "view_run", "write_report"]
