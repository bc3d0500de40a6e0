"""Frames that models and servers leave around a move, and a model that puts each of its moves into another one."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.servers import Body

DRAFT = "or\nACTION: a\n"
FRAMES: dict[str, Callable[[str], str]] = {
    **{
        tag: lambda move, tag=tag: f"<{tag}>{DRAFT}</{tag}>ACTION: {move}" for tag in ("think", "thinking", "reasoning")
    },
    "[THINK]": lambda move: f"[THINK]{DRAFT}[/THINK]ACTION: {move}",
    "channels": lambda move: (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>"
        f"ACTION: {move}<|return|>"
    ),
    "channels without tokens": lambda move: f"analysis{DRAFT}assistantfinalACTION: {move}",
    "closing tag": lambda move: f"{DRAFT}</think>\n\nACTION: {move}",
    "observation": lambda move: f"ACTION: {move}\nObservation: it rose.\nTHOUGHT: so\nACTION: a",
    **{
        end: lambda move, end=end: f"ACTION: {move}{end}\nuser\nACTION: a"
        for end in ("<|im_end|>", "</s>", "<|eot_id|>")
    },
    "fence": lambda move: f"```\nTHOUGHT: hm\nACTION: {move}\n```",
    "fenced move": lambda move: f"ACTION:\n```\n{move}\n```",
    "JSON": lambda move: json.dumps({"thought": "hm", "action": move}),
    "fenced JSON": lambda move: f"So:\n```json\n{json.dumps({'Thought': 'hm', 'Action': move}, indent=1)}\n```",
    "bullets": lambda move: f"- THOUGHT: hm\n- ACTION: {move}",
    "numbers": lambda move: f"1. **THOUGHT:** hm\n2. **ACTION:** {move}",
}


class Framed:
    """A model that says what another one says, with each move in the next frame from ``first`` on."""

    def __init__(self, model: Callable[[Body], str], first: int = 0) -> None:
        self._model, self._first = model, first

    def __call__(self, body: Body) -> str:
        frame = list(FRAMES.values())[(self._first + len(body["messages"]) // 2) % len(FRAMES)]
        return frame(self._model(body).partition("ACTION: ")[2])
