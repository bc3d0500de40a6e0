"""Analysis of the logs of runs: scores, comparisons and estimates."""

from inquitree_gym.analysis.aggregate import PairedDifference, SettingSummary, compare, summarise, summary_table
from inquitree_gym.analysis.load import ScoredEpisode, ScoredRun, load_run

__all__ = [
    "PairedDifference",
    "ScoredEpisode",
    "ScoredRun",
    "SettingSummary",
    "compare",
    "load_run",
    "summarise",
    "summary_table",
]
