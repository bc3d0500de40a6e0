"""Views of an episode for people: plain text, a terminal panel, a picture of the tree."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.text import under_status
from inquitree_gym.inquiry.engine import Event, ObservationKind, Phase
from inquitree_gym.trees import HINT_LEVELS, Tree
from inquitree_gym.trees.drawing import COLOURS, LINE, PAD, diagram, draw_mark, draw_text, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGINS = (76, 60)
"""Pixels above the tree for the status, and below it for the legend."""
MIN_WIDTH = 480
"""Pixels that the status and the legend need."""
_CHARACTER = 7.7
"""Mean width of a character, in pixels."""
FAKE_COLOUR = "#c24e00"
_NOT_RUN, _SEEN, _TRUE, _FAKE = ("o", "#ffffff"), ("o", "#1f2430"), ("o", "#007a5a"), ("X", FAKE_COLOUR)
"""Marker and colour of a study by its last result."""


def as_text(tree: Tree, event: Event, observation: str) -> str:
    """Return the observation as plain text below a status line."""
    state = event.state
    seen = f"{state.visited.bit_count()} of {len(state.visits)} subtopics"
    return under_status(f"{tree.id} · turn {state.turn} · {state.phase.name.lower()} · {seen}", observation)


def picture(
    tree: Tree, events: Sequence[Event], turn_limit: int | None, *, privileged: bool = False, score: float | None = None
) -> NDArray[np.uint8]:
    """Return the tree with the course of the episode as an array of shape (height, width, 3).

    It shows turn, turn limit and hints, the order in which subtopics were entered, the studies run, and the score. All
    pictures of a tree have one shape. Hint targets are never shown, and fake results look like true ones unless
    ``privileged`` is set.

    Args:
        tree: the tree of the episode.
        events: all events since the reset, its own first.
        turn_limit: turns after which the conclusion is due. None without a limit.
        privileged: True to tell fake results from true ones.
        score: Q/|C| in [0, 1] of an episode that is over.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    state = events[-1].state
    marks = {subtopic.id: "visited" for i, subtopic in enumerate(tree.subtopics) if state.visited >> i & 1}
    if state.phase in (Phase.SUBTOPIC, Phase.STUDY, Phase.RESULT):
        marks[tree.subtopics[state.subtopic].id] = "current"
    canvas = figure(tree, marks, margins=MARGINS, width=MIN_WIDTH)
    (axes,) = canvas.axes
    for row, line in enumerate(status(tree, events, turn_limit, score)):
        draw_text(axes, (axes.get_xlim()[0] + PAD, 22 + 20 * row - MARGINS[0]), line, align="left", bold=not row)
    _draw_course(axes, tree, events, privileged)
    _draw_legend(axes, diagram(tree).height, privileged)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="rgba", facecolor="white", dpi=canvas.dpi)
    width, height = (round(length * canvas.dpi) for length in canvas.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)
    return pixels[..., :3].copy()


def status(tree: Tree, events: Sequence[Event], turn_limit: int | None, score: float | None) -> Iterator[str]:
    """Yield the lines above the tree. See `picture` for the arguments."""
    state, hints = events[-1].state, sum(event.hint_level > 0 for event in events)
    limit = "no limit" if turn_limit is None else f"limit {turn_limit}"
    result = "" if score is None else f" · Q/|C| = {score:.2f}"
    yield f"{tree.id} · turn {state.turn} ({limit}) · {state.phase.name.lower()}{result}"
    entered, run = state.visited.bit_count(), sum(shown >= 0 for shown in state.shown)
    yield f"{entered} of {len(tree.subtopics)} subtopics entered · {run} of {len(tree.studies)} studies run"
    now = f", now level {events[-1].hint_level} of {HINT_LEVELS}" if events[-1].hint_level else ""
    yield f"hints given: {hints}{now}"


def visit_order(tree: Tree, events: Sequence[Event]) -> dict[str, str]:
    """Return the ordinals of the visits by subtopic id, only the first and the last of more than two."""
    visits: list[int] = []
    for event in events:
        if event.kind == ObservationKind.SUBTOPIC:
            visits.append(event.node)
        elif event.kind == ObservationKind.DECLINED:
            visits.pop()
    order: dict[str, list[str]] = {}
    for i, node in enumerate(visits, 1):
        order.setdefault(tree.subtopics[node].id, []).append(str(i))
    return {name: ", ".join(every if len(every) < 3 else (every[0], f"… {every[-1]}")) for name, every in order.items()}


def _draw_course(axes: Axes, tree: Tree, events: Sequence[Event], privileged: bool) -> None:
    """Write the order of visits into the boxes, and mark the studies by their last result."""
    order = visit_order(tree, events)
    shown = dict(zip((study.id for study in tree.studies), events[-1].state.shown, strict=True))
    drawn = diagram(tree)
    for box in drawn.boxes:
        draw_text(axes, (box.x - drawn.box_width / 2 + PAD, box.y + 22), order.get(box.id, ""), align="left")
        for dot in box.dots:
            draw_mark(axes, (dot.x, dot.y), *_result_mark(shown[dot.id], privileged))


def _result_mark(shown: int, privileged: bool) -> tuple[str, str]:
    if shown < 0:
        return _NOT_RUN
    if not privileged:
        return _SEEN
    return _FAKE if shown else _TRUE


def _draw_legend(axes: Axes, top: float, privileged: bool) -> None:
    seen = [(*_TRUE, "last result true"), (*_FAKE, "last result fake")] if privileged else [(*_SEEN, "result seen")]
    rows = (
        [("s", COLOURS["visited"], "entered"), ("s", COLOURS["current"], "under study")],
        [(*_NOT_RUN, "study not run"), *seen],
    )
    for row, entries in enumerate(rows):
        x, y = axes.get_xlim()[0] + PAD + 6, top + 20 + row * (LINE + 3)
        for marker, colour, label in entries:
            draw_mark(axes, (x, y - 5), marker, colour)
            draw_text(axes, (x + PAD, y), label, align="left")
            x += 2 * PAD + 18 + _CHARACTER * len(label)
        if not row:
            draw_text(axes, (x, y), "1, 2, …  order of visits", align="left")
