"""Page that lists episodes, to sort, filter and search them, and to open two side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from inquitree_gym.kinds import kind
from inquitree_gym.protocols import Scalar
from inquitree_gym.results.logs import LOG_SUFFIX
from inquitree_gym.results.report import pages_of, shown_of
from inquitree_gym.results.score import KindResults, Score
from inquitree_gym.results.summary import axis_name, value_of
from inquitree_gym.results.templating import render, write_text
from inquitree_gym.runs.folder import EPISODES

INDEX = "index.html"
VIEW = "view"
"""Folder of a run for its pages."""
UNSCORED = "unscored"


class Columns(NamedTuple):
    """Columns of a list of episodes."""

    noun: str
    grid: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def of_kind(cls, name: str, results: KindResults[Any, Any] | None = None, unscored: bool = False) -> Self:
        """Return the columns of a kind, with its ``results`` if not the usual ones, and with unscored texts."""
        chosen = kind(name).results if results is None else results
        values = (*listed_of(name, chosen), *([UNSCORED] if unscored else []))
        return cls(chosen.clusters.removesuffix("s"), tuple(kind(name).settings.grid), values)

    @classmethod
    def of_kinds(cls, names: Iterable[str], unscored: bool = False) -> Self:
        """Return the columns of the episodes of some kinds, with the last measure of each if there are several."""
        names = list(names)
        if len(names) == 1:
            return cls.of_kind(names[0], unscored=unscored)
        grid = dict.fromkeys(name for each in names for name in cls.of_kind(each).grid)
        values = dict.fromkeys(cls.of_kind(each).values[-1] for each in names)
        return cls("task", tuple(grid), tuple(values))


@dataclass(frozen=True, slots=True)
class ListedEpisode:
    """Line of the list."""

    kind: str
    task: str
    agent: str
    cell: Mapping[str, Scalar]
    seed: int
    status: str
    """``concluded``, ``truncated``, ``abandoned``, or the status of a `Missing`."""
    page: str = ""
    """Address of its page, relative to the list. Empty without one."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Results by heading. Empty for an episode that is not scored."""
    judged_by: str = ""
    """Name and version of the judge of the results. Empty without one."""
    run: str = ""
    """Name of the run, where the list has several."""


def listed_of(name: str, results: KindResults[Any, Any]) -> tuple[str, ...]:
    """Return the measures of a kind that a list of episodes shows."""
    return pages_of(name).listed or shown_of(results)


def listed_values(score: Score[Any], results: KindResults[Any, Any] | None = None) -> dict[str, object]:
    """Return the results of an episode by heading of the list. ``results`` are those of its kind, if not the usual."""
    chosen = kind(score.kind).results if results is None else results
    names = listed_of(score.kind, chosen)
    values = {measure.name: value_of(measure, score) for measure in chosen.measures if measure.name in names}
    return {**values, UNSCORED: score.unscored}


def write_list(
    file: Path, title: str, lines: Sequence[ListedEpisode], columns: Columns, *, back: str = "", live: bool = False
) -> None:
    """Write the page of a list, and the page that shows two of its episodes side by side (``X-pair.html``).

    ``back`` is the address of a page to link to. A ``live`` page reloads itself every few seconds.
    """
    pair = file.with_name(f"{file.stem}-pair.html")
    several = {name: len({getattr(line, name) for line in lines}) > 1 for name in ("run", "kind")}
    first = [name for name, shown in several.items() if shown]
    heads = [columns.noun, "agent", *map(axis_name, columns.grid), "seed"]
    rows = [_row(line, columns, first) for line in lines]
    page = render(
        "index.html",
        styles=("base.css", "index.css"),
        script="index.js",
        title=title,
        rows=rows,
        first=first,
        heads=heads,
        filters=[*first, *heads[:-1], "status"],
        values=columns.values,
        judged_by=", ".join(dict.fromkeys(line.judged_by for line in lines if line.judged_by)),
        pair=quote(pair.name),
        back=back,
        live=live,
    )
    write_text(file, page)
    styles, back = ("base.css", "pair.css"), quote(file.name)
    write_text(pair, render("pair.html", styles=styles, script="pair.js", title=title, back=back, frames=True))


def _row(line: ListedEpisode, columns: Columns, first: Sequence[str]) -> dict[str, object]:
    """Return what the template shows of a line."""
    cell = [line.cell.get(name) for name in columns.grid]
    return {
        "first": [getattr(line, name) for name in first],
        "settings": [line.task, line.agent, *cell, line.seed],
        "page": line.page,
        "status": line.status,
        "values": line.values,
    }


def episode_page(folder: Path, log: Path) -> Path:
    """Return the page that `view_run` of ``folder`` writes for a log in it, unless told otherwise."""
    name = log.name if log.parent == folder / EPISODES else os.path.relpath(log, folder)
    return folder_of(folder / VIEW / INDEX) / page_name(name)


def viewed_page(file: Path, folder: Path, log: Path | None) -> str:
    """Return the address by which a list links to the page of a log of a run. Empty unless the page was written."""
    page = None if log is None else episode_page(folder, log)
    return address(file, page) if page is not None and page.is_file() else ""


def folder_of(index: Path) -> Path:
    """Return the folder with the pages of a list."""
    return index.with_name(f"{index.stem}-episodes")


def page_name(log: str) -> str:
    """Return the name of the page of a log, in the same folders as the log."""
    return f"{log.removesuffix(LOG_SUFFIX)}.html"


def address(page: Path, target: Path) -> str:
    """Return the address by which ``page`` links to ``target``, relative and escaped."""
    return quote(os.fsencode(os.path.relpath(target, page.parent)))
