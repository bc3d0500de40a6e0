"""Page on which a person plays one episode of any kind in a browser. See `loopback`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from inquitree_gym.errors import OptionError
from inquitree_gym.integrations.session import EpisodeSession, check_move
from inquitree_gym.loopback import FRAMED_BY_NONE, PageServer
from inquitree_gym.results.report import KindPages, pages_of
from inquitree_gym.results.tables import Table
from inquitree_gym.results.templating import render
from inquitree_gym.results.viewer import write_view
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.sheets import LETTERS, lettered_items
from inquitree_gym.text_limits import MAX_ACTION_LENGTH

VIEW = "view"
"""Address of the page of the episode, which exists from its end on."""


T = TypeVar("T")


def page_state(session: EpisodeSession, observer: bool = False) -> dict[str, Any]:
    """Return what the page shows, as plain values: the texts that an agent would have, and what they told.

    From the end of the episode on, or with ``observer``, the beliefs of the ideal observer come along.
    """
    episode, pages, over = session.episode, pages_of(session.task.kind), session.over
    found = pages.found(episode, session.task.load())
    beliefs = pages.beliefs(episode, session.task.load()) if over or observer else None
    score = session.score()
    items = [] if over else lettered_items(session.observation)
    return {
        "task": session.task.task,
        "turn": session.turn,
        "left": session.turns_left,
        "place": session.info.get("state", ""),
        "turns": [[turn.observation, turn.action] for turn in episode.turns],
        "observation": session.observation,
        "items": [[number, list(zip(LETTERS, statements, strict=False))] for number, statements in items],
        "over": over,
        "found": None if found is None else asdict(found),
        "observer": type(pages).beliefs is not KindPages.beliefs,
        "beliefs": None if beliefs is None else _plain(beliefs),
        "score": None if score is None else {"reward": score.reward, **score.metrics},
        "log": str(session.file),
    }


def _plain(table: Table) -> dict[str, Any]:
    lines = [[cell.text for cell in line] for line in table.lines]
    return {"caption": table.caption, "heads": table.heads, "lines": lines, "labels": table.labels}


class PlayServer(PageServer):
    """Server of the page. The episode begins when the page first asks for it, so that the page is there at once."""

    def __init__(self, make: Callable[[], EpisodeSession], title: str, port: int = 0) -> None:
        """Listen on a port. See `PageServer` for the errors.

        Args:
            make: returns the session, which logs into a file. Its errors are shown on the page.
            title: heading of the page.
            port: port, 0 for a free one.
        """
        self._make, self._title = make, title
        self._session: EpisodeSession | None = None
        super().__init__(port)

    @property
    def log(self) -> Path | None:
        """Log of the episode. None before it has begun."""
        return None if self._session is None else self._session.file

    def page(self, name: str) -> tuple[str, str] | None:
        """See `PageServer.page`. The page of the episode is that of ``inquitree view``."""
        if name == VIEW:
            return (_call(self._viewed), FRAMED_BY_NONE)
        styles = ("base.css", "episode.css", "play.css")
        values: dict[str, Any] = {"title": self._title, "longest": MAX_ACTION_LENGTH}
        page = render("play.html", styles=styles, script="play.js", connects=True, **values)
        return (page, FRAMED_BY_NONE) if not name else None

    def state(self) -> dict[str, Any]:
        """Return the state of the page. See `page_state`, and `EpisodeSession.begin` for the errors."""
        return _call(lambda: page_state(self._begun()))

    def act(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order of the page: move, look at the beliefs of the observer, or finish.

        Raises:
            OptionError: the order is none, or comes from a page that has not seen the newest turn.
            ActionError: see `check_move`.
            LogError: the turn cannot be logged.
        """
        match order:
            case {"do": "move", "turn": int(turn), "text": text}:
                return _call(self._moved, turn, text)
            case {"do": "look"}:
                return _call(lambda: page_state(self._begun(), observer=True))
            case {"do": "finish"}:
                self.end()
                return {}
            case _:
                raise OptionError("an order must be move, look or finish; reload the page")

    def close(self) -> None:
        """Close the log. An unfinished one can be resumed."""
        if self._session is not None:
            _call(self._session.close)

    def _begun(self) -> EpisodeSession:
        if self._session is None:
            session = self._make()
            session.begin()
            self._session = session
        return self._session

    def _moved(self, turn: int, text: object) -> dict[str, Any]:
        session = self._begun()
        if session.over:
            raise OptionError("the episode is over; start the command again to play another one")
        if turn != session.turn:
            raise OptionError("another page has played on; this page now shows the newest turn. Make your move again")
        session.move(check_move(text))
        return page_state(session)

    def _viewed(self) -> str:
        session = self._begun()
        if not session.over or session.file is None:
            raise OptionError("the page of the episode is there when the episode is over; play it to its end")
        page = session.file.with_suffix(".html")
        write_view(session.episode, session.task.load(), page)
        return page.read_text(encoding="utf-8")


def _call(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in the thread in which environments step. See `in_step_thread`."""
    found: T = asyncio.run(in_step_thread(function, *arguments))
    return found
