"""Compare two runs, paired by tree and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inquitree_gym.analysis.aggregate import MEASURES, grouped, in_cell
from inquitree_gym.errors import OptionError
from inquitree_gym.scoring import EpisodeScore, Estimate, paired_difference

SHOWN = ("coverage", "unaided", "Q/|C|", "turns L", "redo", "hits", "false alarms")
"""Measures in the difference table of a report."""
NARROW = ("coverage", "unaided", "Q/|C|", "hits", "false alarms")
"""Measures in the difference table of a terminal."""
_VARIED = ("agent", "limit", "reading")
"""Settings that may differ between the runs unless one of the runs has several values."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The second run minus the first, for one pair of settings."""

    name: str
    """The paired settings that differ, or of which a run has several values."""
    fake_level: int
    pairs: int
    """Pairs of tree and seed in both runs."""
    estimates: dict[str, Estimate]
    """By measure, the mean of second − first, clustered by tree."""


def compare(first: Sequence[EpisodeScore], second: Sequence[EpisodeScore]) -> list[PairedDifference]:
    """Return the paired differences of two runs, one per fake level and paired setting.

    A setting (agent, turn limit, reading) may differ between the runs if each run has a single value of it. Otherwise
    only equal values are paired.

    Raises:
        OptionError: the runs share no episode.
    """
    matched = [field for field in _VARIED if any(len({getattr(s, field) for s in run}) > 1 for run in (first, second))]
    ours, theirs = (
        grouped(run, lambda score: (*(getattr(score, field) for field in matched), score.fake_level))
        for run in (first, second)
    )
    differences = [_difference(ours[key], theirs[key], matched) for key in ours if key in theirs]
    if not any(each.pairs for each in differences):
        kinds = " | ".join(
            "; ".join(sorted({f"{score.agent} at level {score.fake_level}" for score in run}))
            for run in (first, second)
        )
        raise OptionError(f"the runs share no agent, fake level, tree and seed, so nothing can be paired: {kinds}")
    return [each for each in differences if each.pairs]


def differences_table(differences: Sequence[PairedDifference]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first."""
    yield ["pair", "fakes", "pairs", *NARROW]
    for each in differences:
        estimates = [in_cell(each.estimates[name]) for name in NARROW]
        yield [each.name, str(each.fake_level), str(each.pairs), *estimates]


def _difference(
    first: Sequence[EpisodeScore], second: Sequence[EpisodeScore], matched: Sequence[str]
) -> PairedDifference:
    before, after = ({(score.tree, score.seed): score for score in run} for run in (first, second))
    estimates = {
        name: paired_difference(
            {key: measure(score) for key, score in after.items()},
            {key: measure(score) for key, score in before.items()},
        )
        for name, measure in MEASURES.items()
    }
    name = _name(first[0], second[0], matched)
    return PairedDifference(name, first[0].fake_level, len(before.keys() & after.keys()), estimates)


def _name(first: EpisodeScore, second: EpisodeScore, matched: Sequence[str]) -> str:
    """Name a pair by its matched settings and those that differ."""
    values = {field: (getattr(first, field), getattr(second, field)) for field in _VARIED}
    shown = [field for field, (before, after) in values.items() if field in matched or before != after] or ["agent"]
    pairs = [values[field] for field in shown]
    return ", ".join(str(before) if before == after else f"{after} − {before}" for before, after in pairs)
