"""Trend of vigilance within an inquiry: by exposure, by position and by context read.

Only episodes with fakes count, and only results that left a choice. A repeated exposure of a study, usually after a
redo, can be compared with the previous one, which makes it another task. So kinds of showings are kept apart, and
position and context are analysed over first exposures alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from inquitree_gym.analysis.aggregate import grouped
from inquitree_gym.analysis.load import ScoredEpisode
from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.exposures import SHOWINGS, Exposure
from inquitree_gym.scoring.vigilance import Counts, Trial, count, sensitivity, slopes

QUARTERS = 4
"""Number of bins by position in the inquiry."""
CONTEXTS = (0, 1, 2, 4, 8, 16, 32, 64)
"""Lower ends of the bins by context, in thousands of tokens; the last bin has no upper end."""
TOKENS_PER_UNIT = 1_000
"""Tokens in one unit of context."""


@dataclass(frozen=True, slots=True)
class VigilanceBin:
    """Vigilance over the results of one bin."""

    name: str
    middle: float
    """Place of the bin on its axis; for a bin by position, a share of the inquiry."""
    counts: Counts
    """Counts over all trees."""
    estimates: dict[str, Estimate]
    """Hit rate, false-alarm rate, their difference, d′ and c; see `sensitivity`."""


@dataclass(frozen=True, slots=True)
class VigilanceTrend:
    """Trend of one player's vigilance."""

    by_showing: list[VigilanceBin]
    """One bin per kind of showing that occurs; see `SHOWINGS`."""
    by_position: list[VigilanceBin]
    by_context: list[VigilanceBin]
    counted: bool
    """True if context is the service's count of prompt tokens, False if it is estimated from the observations."""
    over_position: dict[str, Estimate]
    """Change of rates from the start of the inquiry (0) to its end (1)."""
    over_context: dict[str, Estimate]
    """Change of rates per 1,000 tokens."""


def vigilance_trend(episodes: Sequence[ScoredEpisode]) -> VigilanceTrend | None:
    """Return the trend over some episodes; None if no episode with fakes left a choice."""
    answered = [
        (episode, exposure)
        for episode in episodes
        for exposure in episode.exposures
        if episode.score.fake_level and exposure.redone is not None
    ]
    if not answered:
        return None
    first = [(episode, exposure) for episode, exposure in answered if not exposure.before]
    counted = all(exposure.prompt_tokens is not None for _, exposure in first)
    of_position = [_trial(episode, each, each.turn / episode.score.trajectory.turns) for episode, each in first]
    of_context = [_trial(episode, each, _context(each, counted)) for episode, each in first]
    return VigilanceTrend(
        by_showing=[
            _bin(name, place, trials)
            for place, (name, counts) in enumerate(SHOWINGS.items())
            if (trials := [_trial(episode, each, place) for episode, each in answered if counts(each)])
        ],
        by_position=_bins(of_position, _quarter),
        by_context=_bins(of_context, _context_range),
        counted=counted,
        over_position=slopes(of_position),
        over_context=slopes(of_context),
    )


def _trial(episode: ScoredEpisode, exposure: Exposure, at: float) -> Trial:
    score = episode.score
    return Trial(score.tree, exposure.fake > 0, float(bool(exposure.redone)), at, score.fake_level)


def _context(exposure: Exposure, counted: bool) -> float:
    tokens = exposure.prompt_tokens if counted else None
    return (exposure.tokens_read if tokens is None else tokens) / TOKENS_PER_UNIT


def _bins(trials: Sequence[Trial], bin_of: Callable[[float], tuple[float, str]]) -> list[VigilanceBin]:
    """Return the bins in order; ``bin_of`` maps a place on the axis to the middle and the name of its bin."""
    groups = grouped(trials, lambda trial: bin_of(trial.at))
    return [_bin(name, middle, groups[middle, name]) for middle, name in sorted(groups)]


def _bin(name: str, middle: float, trials: Iterable[Trial]) -> VigilanceBin:
    by_tree = count(trials)
    return VigilanceBin(name, middle, sum(by_tree.values(), Counts()), sensitivity(by_tree))


def _quarter(position: float) -> tuple[float, str]:
    number = min(int(position * QUARTERS), QUARTERS - 1)
    return (number + 0.5) / QUARTERS, f"{number / QUARTERS:.2f}–{(number + 1) / QUARTERS:.2f}"


def _context_range(thousands: float) -> tuple[float, str]:
    place = bisect_right(CONTEXTS, thousands) - 1
    low, *above = CONTEXTS[place : place + 2]
    return float(low), f"{low}–{above[0]}" if above else f"from {low}"
