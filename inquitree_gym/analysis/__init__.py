"""Turn the logs of runs into scores, comparisons and estimates."""

from inquitree_gym.analysis.summary import Row, read_scores, report_table, rows

__all__ = ["Row", "read_scores", "report_table", "rows"]
