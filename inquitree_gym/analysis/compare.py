"""Two runs side by side, paired by tree and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inquitree_gym.analysis.summary import MEASURES, written
from inquitree_gym.errors import OptionError
from inquitree_gym.scoring import EpisodeScore, Estimate, paired_difference

_VARIED = ("agent", "limit", "reading")
"""What may differ between two runs that are compared: where a run has several, equal ones are paired."""


SHOWN = ("coverage", "unaided", "Q/|C|", "turns L", "redo", "hits", "false alarms")
"""Measures that tables of differences show; the others are there too."""
NARROW = ("coverage", "unaided", "Q/|C|", "hits", "false alarms")
"""Those for which a terminal has room."""


class Difference(NamedTuple):
    """The second run minus the first, for one pair of settings."""

    name: str
    """What was paired: the settings in which the runs have several values, or which differ."""
    fake_level: int
    pairs: int
    """Episodes that both runs have, by tree and seed."""
    estimates: dict[str, Estimate]
    """Per measure the mean of second − first, clustered by tree."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self._asdict(), "estimates": {name: value._asdict() for name, value in self.estimates.items()}}


def compare(first: Sequence[EpisodeScore], second: Sequence[EpisodeScore]) -> list[Difference]:
    """Return the paired differences of two runs, per fake level that both have.

    A setting (agent, turn limit, reading) of which each run has just one value may differ between them; one of which a
    run has several is paired by equality.

    Raises:
        OptionError: no episode of one run has a partner in the other.
    """
    fixed = [field for field in _VARIED if max(len(_values(first, field)), len(_values(second, field))) > 1]
    ones, others = _grouped(first, fixed), _grouped(second, fixed)
    found = [_difference(ones[key], others[key], fixed) for key in ones if key in others]
    if not any(difference.pairs for difference in found):
        kinds = " | ".join("; ".join(sorted({_setting(score) for score in scores})) for scores in (first, second))
        raise OptionError(f"the runs share no agent, fake level, tree and seed, so nothing can be paired: {kinds}")
    return [difference for difference in found if difference.pairs]


def differences_table(differences: Sequence[Difference]) -> Iterator[list[str]]:
    """Yield the cells of a text table: a heading line, then one line per difference."""
    yield ["pair", "fakes", "pairs", *NARROW]
    for each in differences:
        estimates = ["\n".join(filter(None, written(each.estimates[name]))) for name in NARROW]
        yield [each.name, str(each.fake_level), str(each.pairs), *estimates]


def _grouped(scores: Sequence[EpisodeScore], fixed: Sequence[str]) -> dict[tuple[Any, ...], list[EpisodeScore]]:
    found: dict[tuple[Any, ...], list[EpisodeScore]] = {}
    for score in scores:
        found.setdefault((*(getattr(score, field) for field in fixed), score.fake_level), []).append(score)
    return found


def _difference(ones: list[EpisodeScore], others: list[EpisodeScore], fixed: Sequence[str]) -> Difference:
    cells = {(score.tree, score.seed) for score in ones} & {(score.tree, score.seed) for score in others}
    estimates = {}
    for name, measure in MEASURES.items():
        before, after = ({(score.tree, score.seed): measure(score) for score in side} for side in (ones, others))
        estimates[name] = paired_difference(after, before)
    return Difference(_name(ones[0], others[0], fixed), ones[0].fake_level, len(cells), estimates)


def _name(one: EpisodeScore, other: EpisodeScore, fixed: Sequence[str]) -> str:
    """Name a pair by what had to be equal and by what differs."""
    shown = [field for field in _VARIED if field in fixed or getattr(one, field) != getattr(other, field)]
    parts = []
    for field in shown or ["agent"]:
        before, after = getattr(one, field), getattr(other, field)
        parts.append(str(before) if before == after else f"{after} − {before}")
    return ", ".join(parts)


def _values(scores: Sequence[EpisodeScore], field: str) -> set[str]:
    return {getattr(score, field) for score in scores}


def _setting(score: EpisodeScore) -> str:
    return f"{score.agent} at level {score.fake_level}"
