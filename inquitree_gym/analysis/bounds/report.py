"""What `measure` found, as tables and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from inquitree_gym.analysis.bounds.measure import Bounds
from inquitree_gym.analysis.bounds.play import FLOOR, HELD, RANDOM
from inquitree_gym.scoring import Estimate, clustered_mean

SHARES = (0.05, 0.5, 0.95)
"""Quantiles that are shown."""
TITLES = {
    RANDOM: "random: L of a full traversal",
    FLOOR: "random-menu: L as played",
    HELD: "random-menu, held: L without a conclusion before the full traversal",
}
LEGEND = (
    "L: turns up to the decision to conclude, no limit set. how: an exact law, or so many episodes a tree.\n"
    "±: 95 %; for one tree what sampling leaves open, for several over trees (t over tree means, from five on).\n"
    "above: share of episodes with L > n(2H+3). P(full): every subtopic visited before the conclusion.\n"
    "analytic: mean of a random agent whose every draw hits with one and the same probability."
)
_NEGLIGIBLE = 1e-9


def lines(agent: str, found: Sequence[Bounds]) -> Iterator[list[str]]:
    """Yield the table of one agent, its heading first."""
    more = {RANDOM: ["analytic"], FLOOR: ["above", "P(full)"], HELD: ["above"]}[agent]
    yield ["", "n", "[3n, n(2H+3)]", "how", "mean", "sd", *(f"{share:.0%}" for share in SHARES), *more]
    for each in (each for each in found if each.agent == agent):
        law = each.lengths
        shown = {"analytic": _short(each.analytic), "above": f"{each.above:.1%}", "P(full)": _short(each.full, 3)}
        yield [
            each.subject,
            str(each.n),
            f"[{each.fewest_turns}, {each.most_turns}]",
            _how(each),
            _short(each.mean),
            f"{law.sd:.1f}",
            *(str(law.quantile(share)) for share in SHARES),
            *(shown[column] for column in more),
        ]


def summary(found: Sequence[Bounds]) -> Iterator[list[str]]:
    """Yield means over trees, one line per agent, the heading first. Stretch: 0 at 3n, 1 at n(2H + 3)."""
    yield ["agent", "trees", "L/n", "stretch", "above", "P(full)"]
    for agent in dict.fromkeys(each.agent for each in found):
        columns = zip(*(_relative(each) for each in found if each.agent == agent), strict=True)
        estimates = [clustered_mean(column) for column in columns]
        yield [agent, str(estimates[0].trees), *(_short(each, 2) for each in estimates)]


def as_plain(each: Bounds) -> dict[str, Any]:
    """Return one measurement as plain values; None where a value is not defined."""
    law = each.lengths
    one = len(each.parts) == 1
    return {
        "subject": each.subject,
        "n": each.n,
        "agent": each.agent,
        "fewest_turns": each.fewest_turns,
        "most_turns": each.most_turns,
        "trees": len(each.parts),
        "exact": law.episodes is None,
        "episodes": law.episodes,
        "mean": each.mean.mean,
        "mean_interval": _interval(each.mean),
        "sd": law.sd,
        "quantiles": {f"{share:g}": law.quantile(share) for share in SHARES},
        "quantile_intervals": {f"{share:g}": list(law.quantile_interval(share)) for share in SHARES} if one else None,
        "above_most_turns": each.above,
        "full": each.full.mean,
        "full_interval": _interval(each.full),
        "full_exact": all(part.full_exact for part in each.parts),
        "analytic_mean": each.analytic.mean if each.agent == RANDOM else None,
    }


def _relative(each: Bounds) -> list[tuple[str, float | None]]:
    """Return what is averaged over trees, each beside the name of its tree."""
    mean = each.lengths.mean
    stretch = (mean - each.fewest_turns) / (each.most_turns - each.fewest_turns)
    return [(each.subject, value) for value in (mean / each.n, stretch, each.above, each.full.mean)]


def _how(each: Bounds) -> str:
    """Say how many trees there are, and how many episodes were played on each of those without an exact law."""
    sampled = [part.lengths.episodes for part in each.parts if part.lengths.episodes is not None]
    exact = len(each.parts) - len(sampled)
    if len(each.parts) == 1:
        return f"{sampled[0]:,}" if sampled else "exact"
    said = [f"{exact} × exact"] * bool(exact) + [f"{len(sampled)} × {sampled[0]:,}" for _ in sampled[:1]]
    return ", ".join(said)


def _interval(estimate: Estimate) -> list[float | None] | None:
    return None if estimate.low is None else [estimate.low, estimate.high]


def _short(estimate: Estimate, digits: int = 1) -> str:
    """Return a mean with half its interval, which is symmetric in all that stands here."""
    half = 0.0 if estimate.high is None or estimate.mean is None else estimate.high - estimate.mean
    return f"{estimate.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if half > _NEGLIGIBLE else "")
