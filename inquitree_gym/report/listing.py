"""Page that lists episodes, to sort, filter and search them, and to open two side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from inquitree_gym.analysis.logs import LOG_SUFFIX
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.runner.folder import EPISODES
from inquitree_gym.scoring import EpisodeScore

INDEX = "index.html"
VIEW = "view"
"""Folder of a run for its pages."""


@dataclass(frozen=True, slots=True)
class ListedEpisode:
    """Line of the list."""

    run: str
    """Name of the run, where the list has several."""
    agent: str
    fake_level: int
    seed: int
    tree: str
    status: str
    """``concluded``, ``truncated``, ``abandoned``, ``torn``, ``failed``, ``missing``, ``damaged`` or ``other tree``."""
    page: str
    """Address of its page, relative to the list; empty without one."""
    score: EpisodeScore | None
    """None for an episode that is not scored."""


def write_list(file: Path, title: str, lines: Sequence[ListedEpisode], *, back: str = "", live: bool = False) -> None:
    """Write the page of a list, and the page that shows two of its episodes side by side (``X-pair.html``).

    Args:
        file: of the list.
        title: heading of the page.
        lines: the episodes.
        back: address of a page to link to; empty for none.
        live: True if the run is being played: the page reloads itself every few seconds.

    Raises:
        OptionError: a file cannot be written.
    """
    pair = file.with_name(f"{file.stem}-pair.html")
    judged_by = ", ".join(dict.fromkeys(line.score.judged_by for line in lines if line.score is not None))
    page = render(
        "index.html",
        styles=("base.css", "index.css"),
        script="index.js",
        title=title,
        lines=lines,
        judged_by=judged_by,
        pair=quote(pair.name),
        back=back,
        live=live,
    )
    write_text(file, page)
    write_text(pair, render("pair.html", styles=("base.css", "pair.css"), script="pair.js", title=title, frames=True))


def episode_page(folder: Path, log: Path) -> Path:
    """Return the page that `view_run` of ``folder`` writes for a log in it, unless told otherwise."""
    name = log.name if log.parent == folder / EPISODES else os.path.relpath(log, folder)
    return pages_of(folder / VIEW / INDEX) / page_name(name)


def pages_of(index: Path) -> Path:
    """Return the folder with the pages of a list."""
    return index.with_name(f"{index.stem}-episodes")


def page_name(log: str) -> str:
    """Return the name of the page of a log, in the folders that the name of the log has."""
    return f"{log.removesuffix(LOG_SUFFIX)}.html"


def address(page: Path, target: Path) -> str:
    """Return the address by which ``page`` links to ``target``, relative and escaped."""
    return quote(os.fsencode(os.path.relpath(target, page.parent)))
