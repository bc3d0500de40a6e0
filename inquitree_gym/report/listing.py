"""Page that lists episodes, to sort, filter and search them, and to open two side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from inquitree_gym.analysis.logs import LOG_SUFFIX
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.runner.folder import EPISODES
from inquitree_gym.scoring import EpisodeScore

INDEX = "index.html"
VIEW = "view"
"""Folder of a run for its pages."""


class Columns(NamedTuple):
    """Headings of a list of episodes of one kind of environment; one-word headings can be filtered by an address."""

    settings: tuple[str, ...]
    """The task first, the seed last."""
    values: tuple[str, ...]
    """Results."""


INQUIRY_COLUMNS = Columns(("tree", "agent", "fakes", "seed"), ("coverage", "unaided", "turns L", "hints", "Q/|C|"))


@dataclass(frozen=True, slots=True)
class ListedEpisode:
    """Line of the list."""

    settings: tuple[str | int, ...]
    """In the order of `Columns.settings`."""
    status: str
    """``concluded``, ``truncated``, ``abandoned``, or that of a `MissingEpisode`."""
    page: str = ""
    """Address of its page, relative to the list; empty without one."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Results by heading; empty for an episode that is not scored."""
    judged_by: str = ""
    """Name and version of the judge of the results; empty without one."""
    run: str = ""
    """Name of the run, where the list has several."""


class DrawnEpisode(NamedTuple):
    """Episode whose page has been written."""

    task: str
    """Id of its tree or projection task."""
    status: str
    values: Mapping[str, object]
    judged_by: str


def inquiry_values(score: EpisodeScore | None) -> dict[str, object]:
    """Return the results of an inquiry by heading of the list; none without a score."""
    if score is None:
        return {}
    path = score.trajectory
    results = (path.coverage, path.unaided_coverage, path.turns, path.hints, score.quality_share)
    return dict(zip(INQUIRY_COLUMNS.values, results, strict=True))


def write_list(
    file: Path,
    title: str,
    lines: Sequence[ListedEpisode],
    *,
    columns: Columns = INQUIRY_COLUMNS,
    back: str = "",
    live: bool = False,
) -> None:
    """Write the page of a list, and the page that shows two of its episodes side by side (``X-pair.html``).

    Args:
        file: file of the list.
        title: heading of the page.
        lines: the episodes.
        columns: headings.
        back: address of a page to link to; empty for none.
        live: True if the run is being played: the page reloads itself every few seconds.

    Raises:
        OptionError: a file cannot be written.
    """
    pair = file.with_name(f"{file.stem}-pair.html")
    judged_by = ", ".join(dict.fromkeys(line.judged_by for line in lines if line.judged_by))
    page = render(
        "index.html",
        styles=("base.css", "index.css"),
        script="index.js",
        title=title,
        lines=lines,
        columns=columns,
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


def viewed_page(file: Path, folder: Path, log: Path | None) -> str:
    """Return the address by which a list links to the page of a log of a run; empty unless the page was written."""
    page = None if log is None else episode_page(folder, log)
    return address(file, page) if page is not None and page.is_file() else ""


def pages_of(index: Path) -> Path:
    """Return the folder with the pages of a list."""
    return index.with_name(f"{index.stem}-episodes")


def page_name(log: str) -> str:
    """Return the name of the page of a log, in the folders that the name of the log has."""
    return f"{log.removesuffix(LOG_SUFFIX)}.html"


def address(page: Path, target: Path) -> str:
    """Return the address by which ``page`` links to ``target``, relative and escaped."""
    return quote(os.fsencode(os.path.relpath(target, page.parent)))
