"""What a person sees of an episode: text, a terminal panel, a picture of the tree with the path so far."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Event
from inquitree_gym.trees import Tree
from inquitree_gym.trees.drawing import figure


def as_text(tree: Tree, event: Event, observation: str) -> str:
    """Return the moment as plain text: a status line and the observation."""
    state = event.state
    seen = f"{state.visited.bit_count()} of {len(state.visits)} subtopics"
    status = f"{tree.id} · turn {state.turn} · {state.phase.name.lower()} · {seen}"
    return f"{status}\n{'─' * len(status)}\n{observation}\n"


def to_terminal(text: str) -> None:
    """Show the text of `as_text` in the terminal."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    status, _, rest = text.partition("\n")
    body = rest.partition("\n")[2].rstrip()
    Console().print(Panel(Text(body), title=Text(status), title_align="left", width=min(110, Console().width)))


def picture(tree: Tree, event: Event) -> NDArray[np.uint8]:
    """Return the tree with the path so far as an array of shape (height, width, 3).

    Visited subtopics are green, the one under study amber. Hint targets are not shown: the agent must not see them.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    state = event.state
    marks = {subtopic.id: "visited" for i, subtopic in enumerate(tree.subtopics) if state.visited >> i & 1}
    if state.subtopic >= 0:
        marks[tree.subtopics[state.subtopic].id] = "current"
    canvas = figure(tree, marks)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="rgba", facecolor="white", dpi=canvas.dpi)
    width, height = (round(length * canvas.dpi) for length in canvas.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)
    return pixels[..., :3].copy()
