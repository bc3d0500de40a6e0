"""Matplotlib figures as inline SVG that takes its colours from the page, so that it follows light and dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from inquitree_gym.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, RULE = "#1f2430", "#d5d9e0"
SERIES = ("#0072b2", "#c24e00", "#007a5a", "#a8327e", "#8a5a00", "#5b5fc7", "#5f6368")
"""Colours of the light scheme, told apart by colour-blind eyes too; markers and dashes differ as well."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
WIDTH = 5.0
"""Inches; a panel is read on a phone without scrolling."""

_VARIABLES = {INK: "--ink", RULE: "--rule"} | {colour: f"--c{i}" for i, colour in enumerate(SERIES, 1)}
_COLOUR = re.compile("|".join(_VARIABLES), re.IGNORECASE)
_STYLE = {
    "svg.fonttype": "none", "text.parse_math": False, "font.family": "sans-serif", "font.size": 10,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": INK,
    "axes.facecolor": "none", "grid.color": RULE,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.linewidth": 0.8,
    "axes.axisbelow": True, "lines.linewidth": 1.8, "legend.frameon": False,
}  # fmt: skip


class Panel:
    """One picture: what it is called, what it says to those who cannot see it, and how it is drawn."""

    def __init__(self, name: str, caption: str, draw: Callable[[Axes], None], height: float = 3.2) -> None:
        """``name`` is a word that is unique on the page; ``height`` is in inches."""
        self.name = name
        self.caption = caption
        self._draw = draw
        self._height = height

    def svg(self) -> Markup:
        """Return the picture as part of a page; equal content gives equal bytes under one Matplotlib.

        Raises:
            MissingExtraError: Matplotlib is not installed.
        """
        return _inlined(self._drawn("none"), self.name, self.caption)

    def document(self) -> str:
        """Return the picture as an SVG document of its own, on white; see `svg` for the errors."""
        return self._drawn("white")

    def _drawn(self, paper: str) -> str:
        matplotlib = require("matplotlib", "plots")
        buffer = io.StringIO()
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": self.name}), warnings.catch_warnings():
            # The browser's fonts hold what Matplotlib's may lack.
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            canvas = require("matplotlib.figure", "plots").Figure(figsize=(WIDTH, self._height), layout="constrained")
            self._draw(canvas.add_subplot())
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            canvas.savefig(buffer, format="svg", metadata=nothing, facecolor=paper)
        return buffer.getvalue()


def _inlined(document: str, name: str, caption: str) -> Markup:
    """Make a document part of a page: ids of its own, colours of the page, a size that follows the page."""
    body = re.sub(r"<!--.*?-->", "", document[document.index("<svg") :], flags=re.DOTALL)
    head, body = body.split(">", 1)
    box = re.search(r'viewBox="[\d. ]+"', head)
    assert box is not None, "Matplotlib gives every figure a view box"
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(url\(#|xlink:href="#)', rf"\1{name}-", body)
    body = _COLOUR.sub(lambda found: f"var({_VARIABLES[found.group().lower()]})", body)
    label = escape(caption)
    return Markup(f'<svg {box.group()} role="img" aria-label="{label}" class="panel">{body}')
