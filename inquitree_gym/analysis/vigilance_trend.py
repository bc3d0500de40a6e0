"""Whether vigilance wears off: fakes and true results by showing, by position in the inquiry, by what was read before.

Only episodes with fakes count, and only results that left a choice. A later showing of a study's result, most often
after a redo, can be compared with the one before and is another task than a first one; so the two are kept apart, and
position and context are looked at over first showings alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from inquitree_gym.analysis.load import EpisodeFacts
from inquitree_gym.scoring import Estimate
from inquitree_gym.scoring.exposures import Showing
from inquitree_gym.scoring.vigilance import Counts, Trial, count, sensitivity, slopes

QUARTERS = 4
"""Parts into which the turns of an episode are cut."""
CONTEXTS = (0, 1, 2, 4, 8, 16, 32, 64)
"""Lower ends of the parts by context, in thousands of tokens; the last part has no upper end."""
PER = 1_000
"""Tokens that are one unit of context."""


class Part(NamedTuple):
    """The results of one part."""

    name: str
    middle: float
    """Where it is drawn; for parts by position a share of the inquiry."""
    counts: Counts
    """Over all trees."""
    estimates: dict[str, Estimate]


class Erosion(NamedTuple):
    """How the vigilance of one player depends on where a result stands."""

    by_showing: list[Part]
    by_position: list[Part]
    by_context: list[Part]
    counted: bool
    """Whether the context is the service's count of the prompt's tokens; else estimated from what was shown."""
    over_position: dict[str, Estimate]
    """Change of rates from the beginning of the inquiry (0) to its end (1)."""
    over_context: dict[str, Estimate]
    """Change of rates per 1,000 tokens."""


def erosion(episodes: Sequence[EpisodeFacts]) -> Erosion | None:
    """Return how vigilance depends on where a result stands; None where no episode with fakes left a choice."""
    shown = [(facts, each) for facts in episodes for each in _answered(facts)]
    first = [(facts, each) for facts, each in shown if not each.before]
    if not shown:
        return None
    counted = all(each.prompt_tokens is not None for _, each in first)
    of_position = [_trial(facts, each, each.turn / facts.score.path.turns) for facts, each in first]
    of_context = [_trial(facts, each, _context(each, counted)) for facts, each in first]
    return Erosion(
        by_showing=_parts([_trial(facts, each, float(each.before > 0)) for facts, each in shown], _showing),
        by_position=_parts(of_position, _quarter),
        by_context=_parts(of_context, _size),
        counted=counted,
        over_position=slopes(of_position),
        over_context=slopes(of_context),
    )


def _answered(facts: EpisodeFacts) -> Iterator[Showing]:
    return (each for each in facts.showings if facts.score.fake_level and each.redone is not None)


def _trial(facts: EpisodeFacts, showing: Showing, at: float) -> Trial:
    return Trial(facts.score.tree, showing.fake > 0, float(bool(showing.redone)), at, facts.score.fake_level)


def _context(showing: Showing, counted: bool) -> float:
    tokens = showing.prompt_tokens if counted else None
    return (showing.read if tokens is None else tokens) / PER


def _parts(trials: Sequence[Trial], part_of: Callable[[float], tuple[float, str]]) -> list[Part]:
    groups: dict[tuple[float, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault(part_of(trial.at), []).append(trial)
    return [_part(name, middle, groups[middle, name]) for middle, name in sorted(groups)]


def _part(name: str, middle: float, trials: Sequence[Trial]) -> Part:
    by_tree = count(trials)
    return Part(name, middle, sum(by_tree.values(), Counts()), sensitivity(by_tree))


def _showing(later: float) -> tuple[float, str]:
    return later, "later" if later else "first"


def _quarter(position: float) -> tuple[float, str]:
    number = min(int(position * QUARTERS), QUARTERS - 1)
    return (number + 0.5) / QUARTERS, f"{number / QUARTERS:.2f}–{(number + 1) / QUARTERS:.2f}"


def _size(thousands: float) -> tuple[float, str]:
    place = bisect_right(CONTEXTS, thousands) - 1
    low, *above = CONTEXTS[place : place + 2]
    return float(low), f"{low}–{above[0]}" if above else f"from {low}"
