"""Results of logs: scores, summaries, comparisons, reports and pages of episodes."""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.inquiry.results import EpisodeScore
    from inquitree_gym.inquiry.trajectory import Trajectory, read_trajectory
    from inquitree_gym.results.comparison import PairedDifference, compare, compare_agents
    from inquitree_gym.results.load import ScoredRun, load_run
    from inquitree_gym.results.pages import write_report
    from inquitree_gym.results.report import ReportOptions
    from inquitree_gym.results.score import KindResults, Measure, Score, score_episode
    from inquitree_gym.results.statistics import Estimate, clustered_mean, paired_difference
    from inquitree_gym.results.summary import SettingSummary, summarise, summary_table
    from inquitree_gym.results.viewer import follow_run, view_log, view_run

__all__ = [
    "EpisodeScore",
    "Estimate",
    "KindResults",
    "Measure",
    "PairedDifference",
    "ReportOptions",
    "Score",
    "ScoredRun",
    "SettingSummary",
    "Trajectory",
    "clustered_mean",
    "compare",
    "compare_agents",
    "follow_run",
    "load_run",
    "paired_difference",
    "read_trajectory",
    "score_episode",
    "summarise",
    "summary_table",
    "view_log",
    "view_run",
    "write_report",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "inquiry.results": "EpisodeScore",
        "inquiry.trajectory": "Trajectory read_trajectory",
        "results.comparison": "PairedDifference compare compare_agents",
        "results.load": "ScoredRun load_run",
        "results.pages": "write_report",
        "results.report": "ReportOptions",
        "results.score": "KindResults Measure Score score_episode",
        "results.statistics": "Estimate clustered_mean paired_difference",
        "results.summary": "SettingSummary summarise summary_table",
        "results.viewer": "follow_run view_log view_run",
    },
)
