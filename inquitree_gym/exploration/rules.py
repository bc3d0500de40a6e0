"""Engine of an exploration: what an action does to the state of an episode. Pure, without text of observations."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from inquitree_gym.exploration.actions import Action, Tool, parse_action, words_of
from inquitree_gym.exploration.library import Document, Place
from inquitree_gym.exploration.providers import Hit, Listing, Provider, ToolFault, snippet
from inquitree_gym.exploration.settings import ExplorationRules, Tools

Phase = Literal["explore", "answer", "end"]
"""Tools may be used, only an answer is taken, or the episode is over."""
ALLOWED: dict[Tools, tuple[Tool, ...]] = {
    "all": ("search", "open", "find", "lookup", "answer"),
    "search": ("search", "open", "answer"),
    "none": ("answer",),
}
NOTHING_OPEN = "a document must be open for FIND, got none. OPEN one."
PASSAGES = 10
"""Passages that FIND lists."""


class ExplorationState(NamedTuple):
    """State of an episode after some turns."""

    seed: int
    turn: int = 0
    phase: Phase = "explore"
    document: str = ""
    """Id of the open document. Empty for none."""


class ToolView(NamedTuple):
    """Outcome of an action: one of the fields after ``tool``, by tool. A fault leaves the others empty."""

    tool: Tool
    fault: str = ""
    hits: tuple[Hit, ...] = ()
    document: Document | None = None
    page: int = 0
    passages: tuple[tuple[int, str], ...] = ()
    """Pages with a passage each, and `total` of them."""
    listing: Listing | None = None
    total: int = 0
    answer: str | None = None
    """The answer, in the last turn."""

    @property
    def shown(self) -> tuple[Place, ...]:
        """The page that was shown whole. Empty for none."""
        return ((self.document.id, self.page),) if self.document is not None else ()


def act(
    state: ExplorationState, text: str, provider: Provider, rules: ExplorationRules
) -> tuple[ExplorationState, ToolView]:
    """Return state and view after an action. In the phase ``answer`` every text is one."""
    action = parse_action(text)
    if state.phase == "answer" and action.tool != "answer":
        action = Action("answer", text.strip())
    turn = state.turn + 1
    if action.tool == "answer":
        return state._replace(turn=turn, phase="end"), ToolView("answer", answer=action.text)
    view = _used(action, state, provider, rules)
    opened = view.document.id if view.document is not None else state.document
    phase: Phase = "answer" if rules.max_turns is not None and turn >= rules.max_turns else "explore"
    return ExplorationState(state.seed, turn, phase, opened), view


def _used(action: Action, state: ExplorationState, provider: Provider, rules: ExplorationRules) -> ToolView:
    """Return what a tool brings, or the fault of an action."""
    if action.tool == "invalid":
        return ToolView("invalid", action.text)
    if action.tool not in ALLOWED[rules.tools]:
        return ToolView("invalid", f"{action.tool.upper()} is not among the tools of this task.")
    try:
        if action.tool == "search":
            return ToolView("search", hits=tuple(provider.search(action.text)))
        if action.tool == "open":
            return _opened(provider.open(action.text), action.page)
        if action.tool == "find":
            return (
                _found(provider.open(state.document), action.text) if state.document else ToolView("find", NOTHING_OPEN)
            )
        return ToolView("lookup", listing=provider.lookup(action.text, action.tests))
    except ToolFault as fault:
        return ToolView(action.tool, str(fault))


def _opened(document: Document, page: int) -> ToolView:
    if not 1 <= page <= len(document.pages):
        return ToolView("open", f"page must be from 1 to {len(document.pages)} for {document.id}, got {page}.")
    return ToolView("open", document=document, page=page)


def _found(document: Document, text: str) -> ToolView:
    """Return the lines of a document that hold all of some words."""
    wanted = set(words_of(text))
    lines = [(number, line) for number, line, words in _lines(document) if wanted <= words]
    return ToolView(
        "find", passages=tuple((number, snippet(line, 0)) for number, line in lines[:PASSAGES]), total=len(lines)
    )


@lru_cache(maxsize=256)
def _lines(document: Document) -> tuple[tuple[int, str, frozenset[str]], ...]:
    """Return the lines of a document with their pages and words."""
    return tuple(
        (number, line, frozenset(words_of(line)))
        for number, page in enumerate(document.pages, 1)
        for line in page.splitlines()
    )
