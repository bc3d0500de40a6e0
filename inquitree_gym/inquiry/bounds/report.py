"""Tables, plain values and figure of the turns of the random agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import InquiTreeError, require
from inquitree_gym.inquiry.bounds.distribution import TurnDistribution
from inquitree_gym.inquiry.bounds.traversal import FLOOR, HELD, RANDOM, AgentTurns
from inquitree_gym.results.statistics import Estimate, clustered_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTILES = (0.05, 0.5, 0.95)
"""Quantiles of the tables."""
TITLES = {
    RANDOM: "random: L of a full traversal",
    FLOOR: "random-menu: L as played",
    HELD: "random-menu, held: L if it concludes only after the full traversal",
}
LEGEND = (
    "L: turns up to the decision to conclude, with no turn limit.\n"
    "method: an exact distribution, or the number of episodes per tree.\n"
    "±: 95 %; for one tree the sampling error, for several the t interval over tree means, from five trees on.\n"
    "above: share of episodes with L > n(2H+3). P(full): every subtopic is visited before the conclusion.\n"
    "analytic: mean L of a random agent whose every draw hits with the same probability."
)
COLOURS = {RANDOM: "#2b6cb0", FLOOR: "#b7791f", HELD: "#c53030"}
TOPOLOGY_COLOURS = {
    "independent": "#718096",
    "chain": "#1a202c",
    "dag": "#2f855a",
    "layered": "#6b46c1",
    "mixed": "#2b6cb0",
}
BAND = "#e2e8f0"
WIDTH, MIN_HEIGHT, TREE_HEIGHT = 6.4, 4.6, 0.42
"""Size of one part of the figure, and the height of one tree in it, in inches."""
TICKS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Ticks of an axis of turns."""

_NEGLIGIBLE = 1e-9
_HIDDEN = "_"
"""Label that Matplotlib leaves out of legends."""


def bounds_table(agent: str, found: Sequence[AgentTurns]) -> Iterator[list[str]]:
    """Yield the rows of one agent's table, headings first."""
    more = {RANDOM: ["analytic"], FLOOR: ["above", "P(full)"], HELD: ["above"]}[agent]
    yield ["", "n", "[3n, n(2H+3)]", "method", "mean", "sd", *(f"{share:.0%}" for share in QUANTILES), *more]
    for each in (each for each in found if each.agent == agent):
        law = each.distribution
        shown = {"analytic": _short(each.analytic), "above": f"{each.above:.1%}", "P(full)": _short(each.full, 3)}
        yield [
            each.subject,
            str(each.n),
            f"[{each.fewest_turns}, {each.most_turns}]",
            _method(each),
            _short(each.mean),
            f"{law.sd:.1f}",
            *(str(law.quantile(share)) for share in QUANTILES),
            *(shown[column] for column in more),
        ]


def bounds_summary(found: Sequence[AgentTurns]) -> Iterator[list[str]]:
    """Yield the rows of a table of means over trees, headings first. Stretch is 0 at 3n and 1 at n(2H + 3)."""
    yield ["agent", "trees", "L/n", "stretch", "above", "P(full)"]
    for agent in dict.fromkeys(each.agent for each in found):
        columns = zip(*(_relative(each) for each in found if each.agent == agent), strict=True)
        estimates = [clustered_mean(column) for column in columns]
        yield [agent, str(estimates[0].trees), *(_short(each, 2) for each in estimates)]


def bounds_as_plain(each: AgentTurns) -> dict[str, Any]:
    """Return one measurement as plain values, for JSON. None for an undefined value."""
    law = each.distribution
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
        "quantiles": {f"{share:g}": law.quantile(share) for share in QUANTILES},
        "quantile_intervals": {f"{share:g}": list(law.quantile_interval(share)) for share in QUANTILES}
        if one
        else None,
        "above_most_turns": each.above,
        "full": each.full.mean,
        "full_interval": _interval(each.full),
        "full_exact": all(part.full_exact for part in each.parts),
        "analytic_mean": each.analytic.mean if each.agent == RANDOM else None,
    }


def check_figure(file: Path) -> None:
    """Check that a figure can be written to ``file``, before anything is measured.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        InquiTreeError: the folder does not exist, or the suffix of ``file`` names no format.
    """
    known = require("matplotlib.figure", "plots").Figure().canvas.get_supported_filetypes()
    if file.suffix[1:] not in known:
        raise InquiTreeError(f"cannot draw '{file}': its ending is none of {', '.join(sorted(known))}")
    if not file.parent.is_dir():
        raise InquiTreeError(f"cannot draw '{file}': there is no folder '{file.parent}'; make it first")


def draw_bounds(file: Path, trees: Sequence[AgentTurns], topologies: Sequence[AgentTurns]) -> None:
    """Draw the turns by tree, by topology, or both side by side, in the format of the file's suffix.

    An SVG has the same bytes for the same content.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        InquiTreeError: the file cannot be written.
    """
    check_figure(file)
    parts = [each for each in (trees, topologies) if each]
    rows = len({each.subject for each in trees})
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": file.name}):
        figure = require("matplotlib.figure", "plots").Figure(
            figsize=(WIDTH * len(parts), max(MIN_HEIGHT, 1.4 + TREE_HEIGHT * rows)), layout="constrained"
        )
        places = iter(figure.subfigures(1, len(parts), squeeze=False)[0])
        if trees:
            draw_trees(next(places).subplots(), trees)
        if topologies:
            agents = [agent for agent in (RANDOM, HELD) if any(each.agent == agent for each in topologies)]
            panels = next(places).subplots(len(agents), 1, squeeze=False)[:, 0]
            for axes, agent in zip(panels, agents, strict=True):
                _draw_topologies(axes, agent, [each for each in topologies if each.agent == agent])
        try:
            figure.savefig(file, facecolor="white", metadata={"Date": None} if file.suffix == ".svg" else None)
        except OSError as error:
            raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error


def draw_trees(axes: Axes, found: Sequence[AgentTurns], columns: int = 4) -> None:
    """Draw one row per tree: its bounds as a band, and the quantiles of the agents. ``columns`` are of the legend."""
    names = list(dict.fromkeys(each.subject for each in found))
    agents = list(dict.fromkeys(each.agent for each in found))
    for each in found:
        row, place = names.index(each.subject), agents.index(each.agent)
        if not place:
            span = each.most_turns - each.fewest_turns
            label = _HIDDEN if row else "[3n, n(2H + 3)]"
            axes.barh(row, span, left=each.fewest_turns, height=0.86, color=BAND, label=label)
        y = row + 0.26 * (place - (len(agents) - 1) / 2)
        _draw_quantiles(axes, y, each.distribution, COLOURS[each.agent], _HIDDEN if row else each.agent)
    sizes = {each.subject: each.n for each in found}
    axes.set_yticks(range(len(names)), [f"{name} (n = {sizes[name]})" for name in names])
    axes.set(xscale="log", xlabel="turns L up to the decision to conclude", ylim=(len(names) - 0.4, -0.6))
    _set_ticks(axes.xaxis)
    axes.set_title("By tree: 5–95 %, middle half, median", loc="left", fontsize=10)
    axes.figure.legend(
        *axes.get_legend_handles_labels(), frameon=False, ncols=columns, loc="outside upper center", fontsize=9
    )
    axes.spines[["top", "right"]].set_visible(False)


def _draw_quantiles(axes: Axes, y: float, law: TurnDistribution, colour: str, label: str) -> None:
    axes.hlines(y, law.quantile(0.05), law.quantile(0.95), color=colour, linewidth=1)
    axes.hlines(y, law.quantile(0.25), law.quantile(0.75), color=colour, linewidth=4, label=label)
    axes.plot(law.quantile(0.5), y, "o", color="white", markeredgecolor=colour, markersize=4)


def _draw_topologies(axes: Axes, agent: str, found: Sequence[AgentTurns]) -> None:
    """Draw L/n against n, one line per topology."""
    for name in dict.fromkeys(each.subject for each in found):
        laws = {each.n: each.distribution for each in found if each.subject == name}
        x = sorted(laws)
        low, middle, high = ([laws[n].quantile(share) / n for n in x] for share in QUANTILES)
        colour = TOPOLOGY_COLOURS[name]
        axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(x, middle, "o-", color=colour, linewidth=2, markersize=4, label=name)
    bounds = [value / found[0].n for value in (found[0].fewest_turns, found[0].most_turns)]
    axes.axhspan(*bounds, color=BAND, zorder=0, label="[3, 2H + 3]")
    axes.set(xlabel="subtopics n", ylabel="L/n", xticks=sorted({each.n for each in found}))
    if agent == HELD:
        axes.set(yscale="log")
        _set_ticks(axes.yaxis)
    axes.set_title(f"{agent}, by topology: median, 5–95 %", loc="left", fontsize=10)
    axes.legend(facecolor="white", edgecolor="white", framealpha=1, fontsize=8, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)


def _set_ticks(axis: Any) -> None:
    ticker = require("matplotlib.ticker", "plots")
    axis.set_major_locator(ticker.FixedLocator(TICKS))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:.0f}"))
    axis.set_minor_locator(ticker.NullLocator())


def _relative(each: AgentTurns) -> list[tuple[str, float | None]]:
    """Return the values to average over trees, each with the name of its tree."""
    mean = each.distribution.mean
    stretch = (mean - each.fewest_turns) / (each.most_turns - each.fewest_turns)
    return [(each.subject, value) for value in (mean / each.n, stretch, each.above, each.full.mean)]


def _method(each: AgentTurns) -> str:
    """Return the source of a row: exact, the episodes of one tree, or trees by exact × episodes."""
    sampled = [part.distribution.episodes for part in each.parts if part.distribution.episodes is not None]
    exact = len(each.parts) - len(sampled)
    if len(each.parts) == 1:
        return f"{sampled[0]:,}" if sampled else "exact"
    kinds = [f"{exact} × exact"] * bool(exact) + [f"{len(sampled)} × {sampled[0]:,}" for _ in sampled[:1]]
    return ", ".join(kinds)


def _interval(estimate: Estimate) -> list[float | None] | None:
    return None if estimate.low is None else [estimate.low, estimate.high]


def _short(estimate: Estimate, digits: int = 1) -> str:
    """Return a mean with half its interval, which is symmetric here."""
    half = 0.0 if estimate.high is None or estimate.mean is None else estimate.high - estimate.mean
    return f"{estimate.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if half > _NEGLIGIBLE else "")
