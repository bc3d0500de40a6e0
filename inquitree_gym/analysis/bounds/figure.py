"""The picture of chance between the bounds of L."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.analysis.bounds.measure import Bounds
from inquitree_gym.analysis.bounds.play import FLOOR, HELD, RANDOM
from inquitree_gym.analysis.bounds.turn_distribution import Lengths
from inquitree_gym.errors import InquiTreeError, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {RANDOM: "#2b6cb0", FLOOR: "#b7791f", HELD: "#c53030"}
TOPOLOGY_COLOURS = {
    "independent": "#718096",
    "chain": "#1a202c",
    "dag": "#2f855a",
    "layered": "#6b46c1",
    "mixed": "#2b6cb0",
}
BAND = "#e2e8f0"
WIDTH, LEAST_HEIGHT, TREE_HEIGHT = 6.4, 4.6, 0.42
"""Of one part of the picture, and of one tree in it; in inches."""
TURNS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Marks of an axis of turns."""
HIDDEN = "_"
"""A label that no legend shows."""


def check_figure(file: Path) -> None:
    """Find out before anything is measured whether it could be drawn to ``file``.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        InquiTreeError: there is no such folder, or the ending of ``file`` names no format.
    """
    known = require("matplotlib.figure", "plots").Figure().canvas.get_supported_filetypes()
    if file.suffix[1:] not in known:
        raise InquiTreeError(f"cannot draw '{file}': its ending is none of {', '.join(sorted(known))}")
    if not file.parent.is_dir():
        raise InquiTreeError(f"cannot draw '{file}': there is no folder '{file.parent}'; make it first")


def draw_bounds(file: Path, trees: Sequence[Bounds], topologies: Sequence[Bounds]) -> None:
    """Draw what was measured by tree, by topology, or both side by side; the ending of ``file`` says the format.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        InquiTreeError: the file cannot be written.
    """
    check_figure(file)
    parts = [each for each in (trees, topologies) if each]
    rows = len({each.subject for each in trees})
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": file.name}):
        canvas = require("matplotlib.figure", "plots").Figure(
            figsize=(WIDTH * len(parts), max(LEAST_HEIGHT, 1.4 + TREE_HEIGHT * rows)), layout="constrained"
        )
        places = iter(canvas.subfigures(1, len(parts), squeeze=False)[0])
        if trees:
            _draw_trees(next(places).subplots(), trees)
        if topologies:
            agents = [agent for agent in (RANDOM, HELD) if any(each.agent == agent for each in topologies)]
            panels = next(places).subplots(len(agents), 1, squeeze=False)[:, 0]
            for axes, agent in zip(panels, agents, strict=True):
                _draw_topologies(axes, agent, [each for each in topologies if each.agent == agent])
        _save(canvas, file)


def _draw_trees(axes: Axes, found: Sequence[Bounds]) -> None:
    """One row per tree: its bounds as a band, the agents' quantiles in it."""
    names = list(dict.fromkeys(each.subject for each in found))
    agents = list(dict.fromkeys(each.agent for each in found))
    for each in found:
        row, place = names.index(each.subject), agents.index(each.agent)
        span = each.most_turns - each.fewest_turns
        if not place:
            label = HIDDEN if row else "[3n, n(2H + 3)]"
            axes.barh(row, span, left=each.fewest_turns, height=0.86, color=BAND, label=label)
        y = row + 0.26 * (place - (len(agents) - 1) / 2)
        _quantile_bar(axes, y, each.lengths, COLOURS[each.agent], HIDDEN if row else each.agent)
    sizes = {each.subject: each.n for each in found}
    axes.set_yticks(range(len(names)), [f"{name} (n = {sizes[name]})" for name in names])
    axes.set(xscale="log", xlabel="turns L up to the decision to conclude", ylim=(len(names) - 0.4, -0.6))
    _mark_turns(axes.xaxis)
    axes.set_title("By tree: 5–95 %, middle half, median", loc="left", fontsize=10)
    axes.figure.legend(
        *axes.get_legend_handles_labels(), frameon=False, ncols=4, loc="outside upper center", fontsize=9
    )
    _bare(axes)


def _quantile_bar(axes: Axes, y: float, law: Lengths, colour: str, label: str) -> None:
    axes.hlines(y, law.quantile(0.05), law.quantile(0.95), color=colour, linewidth=1)
    axes.hlines(y, law.quantile(0.25), law.quantile(0.75), color=colour, linewidth=4, label=label)
    axes.plot(law.quantile(0.5), y, "o", color="white", markeredgecolor=colour, markersize=4)


def _draw_topologies(axes: Axes, agent: str, found: Sequence[Bounds]) -> None:
    """L/n against n, one line per topology."""
    for name in dict.fromkeys(each.subject for each in found):
        laws = {each.n: each.lengths for each in found if each.subject == name}
        x = sorted(laws)
        low, middle, high = ([laws[n].quantile(share) / n for n in x] for share in (0.05, 0.5, 0.95))
        colour = TOPOLOGY_COLOURS[name]
        axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(x, middle, "o-", color=colour, linewidth=2, markersize=4, label=name)
    bounds = [value / found[0].n for value in (found[0].fewest_turns, found[0].most_turns)]
    axes.axhspan(*bounds, color=BAND, zorder=0, label="[3, 2H + 3]")
    axes.set(xlabel="subtopics n", ylabel="L/n", xticks=sorted({each.n for each in found}))
    if agent == HELD:
        axes.set(yscale="log")
        _mark_turns(axes.yaxis)
    axes.set_title(f"{agent}, by topology: median, 5–95 %", loc="left", fontsize=10)
    axes.legend(facecolor="white", edgecolor="white", framealpha=1, fontsize=8, ncols=2)
    _bare(axes)


def _mark_turns(axis: Any) -> None:
    ticker = require("matplotlib.ticker", "plots")
    axis.set_major_locator(ticker.FixedLocator(TURNS))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:.0f}"))
    axis.set_minor_locator(ticker.NullLocator())


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def _save(canvas: Any, file: Path) -> None:
    """Write the picture, an SVG with the same bytes for the same content."""
    try:
        canvas.savefig(file, facecolor="white", metadata={"Date": None} if file.suffix == ".svg" else None)
    except OSError as error:
        raise InquiTreeError(f"cannot write '{file}': {error.strerror}") from error
