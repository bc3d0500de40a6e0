"""Pages of the episodes of a run, with an index; or of one log alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from inquitree_gym.analysis.load import RecordedJudges, recorded_judges
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Episode, has_header, read_episode
from inquitree_gym.report.viewer import Entry, Panel, write_index, write_view
from inquitree_gym.runner.folder import EPISODES, MANIFEST, read_manifest
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.trees import Tree, load_tree

INDEX = "index.html"
VIEW = "view"
"""Folder of a run where pages go unless another place is named."""


def view_log(file: Path, out: Path | None = None) -> Path:
    """Write the page of one log, by default beside it; return the page.

    Raises:
        LogError: the log cannot be read, or was played on another version of its tree.
        TreeError: the tree cannot be found.
        OptionError: the page cannot be written.
    """
    episode = read_episode(file)
    tree, page = _tree_of(file, episode), out or file.with_suffix(".html")
    run = _run_of(file)
    panel = None if run is None else _panel(recorded_judges(run), file.name, tree)
    write_view(episode, tree, page, panel=panel)
    return page


def view_run(
    folder: Path, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda cell: True,
    progress: Callable[[EpisodeSpec], None] | None = None,
) -> Path:  # fmt: skip
    """Write the pages of the wanted episodes of a run; return the index, or the page where only one is wanted.

    Args:
        folder: of the run.
        out: an ``.html`` file or a folder; by default the folder `VIEW` of the run. Beside an index its pages lie in a
            folder of their own.
        wanted: which episodes.
        progress: told each cell once its page is there.

    Raises:
        LogError: the folder is no run, or the one log that is wanted is damaged; an index tells which ones are.
        OptionError: no episode is wanted that has been begun, or a page cannot be written.
    """
    cells = [cell for cell in read_manifest(folder).specs() if wanted(cell)]
    begun = [cell for cell in cells if has_header(folder / EPISODES / cell.file_name)]
    if not begun:
        raise OptionError(f"'{folder}' holds no episode of that kind: {len(cells)} match, none has been begun")
    out = folder / VIEW if out is None else out
    is_page = out.suffix.lower() in (".html", ".htm")
    if len(cells) == 1:
        return view_log(folder / EPISODES / begun[0].file_name, out if is_page else out / _page_name(begun[0]))
    index = out if is_page else out / INDEX
    write_index(f"Episodes of {folder.name}", _entries(folder, cells, index, progress), index)
    return index


def _entries(
    folder: Path, cells: Sequence[EpisodeSpec], index: Path, progress: Callable[[EpisodeSpec], None] | None
) -> list[Entry]:
    """Write the page of every cell that has been begun and return what the index says of each."""
    trees = {name: load_tree(name) for name in {cell.tree for cell in cells}}
    recorded = recorded_judges(folder)
    pages = index.with_name(f"{index.stem}-episodes")
    back = quote(os.path.relpath(index, pages))
    entries = []
    for cell in cells:
        episode, score, address = _episode(folder / EPISODES / cell.file_name), None, ""
        if isinstance(episode, Episode):
            panel = _panel(recorded, cell.file_name, trees[cell.tree])
            score = write_view(episode, trees[cell.tree], pages / _page_name(cell), back, panel)
            address = quote(f"{pages.name}/{_page_name(cell)}")
        status = episode.status if isinstance(episode, Episode) else episode
        entries.append(Entry(address, trees[cell.tree].id, cell.player, cell.fake_level, cell.seed, status, score))
        if progress is not None:
            progress(cell)
    return entries


def _episode(file: Path) -> Episode | Literal["missing", "damaged"]:
    try:
        return read_episode(file) if has_header(file) else "missing"
    except LogError:
        return "damaged"


def _page_name(cell: EpisodeSpec) -> str:
    return Path(cell.file_name).with_suffix(".html").name


def _tree_of(file: Path, episode: Episode) -> Tree:
    """Return the tree of a log: of the run that it lies in, else by its id."""
    name, run = episode.header.tree.id, _run_of(file)
    if run is None:
        return load_tree(name)
    trees = {tree.id: tree for tree in map(load_tree, read_manifest(run).trees)}
    if name not in trees:
        raise LogError(f"'{file}' was played on {name}, which is no tree of the run in '{run}'")
    return trees[name]


def _run_of(file: Path) -> Path | None:
    """Return the folder of the run that a log lies in; None for one that lies elsewhere."""
    episodes = file.resolve().parent
    return episodes.parent if episodes.name == EPISODES and (episodes.parent / MANIFEST).is_file() else None


def _panel(recorded: RecordedJudges, log: str, tree: Tree) -> Panel:
    return Panel(recorded.local(log, tree), recorded.panel(log, tree))
