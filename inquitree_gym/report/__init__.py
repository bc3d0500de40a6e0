"""Reports of runs, the viewer of episodes, and archives of runs for others."""

from inquitree_gym.report.pack import PackSummary, pack_run
from inquitree_gym.report.pages import write_report
from inquitree_gym.report.viewer import follow_run, view_log, view_run

__all__ = ["PackSummary", "follow_run", "pack_run", "view_log", "view_run", "write_report"]
