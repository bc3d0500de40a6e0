"""Verbs that merge runs and take them elsewhere: merge, pack, unpack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from inquitree_gym.cli.output import MAX_NAMES, JsonOption, ScoredByOption, note, plural, print_json
from inquitree_gym.errors import OptionError, PackError
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.report.pack import DEFAULT_LICENCE, check_rows, pack_run
from inquitree_gym.runner.archive import PACK_MANIFEST
from inquitree_gym.runner.archive import unpack as unpack_archive
from inquitree_gym.runner.merge import merge_runs

app = typer.Typer()


@app.command()
def merge(
    run_folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs, two or more.")],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the new run; it must not exist.")],
    as_json: JsonOption = False,
) -> None:
    """Merge runs into a new one. Every episode is taken once, with its tree and its judgements."""
    summary = merge_runs(run_folders, out_folder)
    if summary.doubles:
        note(f"{plural(summary.doubles, 'episode')} held by several runs; each counts once")
    for name in summary.damaged:
        note(f"damaged, and left out: {name}")
    unfinished = f", {summary.unfinished} unfinished" if summary.unfinished else ""
    note(f"written: {out_folder}, {plural(summary.episodes, 'episode')}{unfinished}")
    if as_json:
        print_json({"folder": str(out_folder), **asdict(summary)})


@app.command()
def pack(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out_file: Annotated[Path | None, typer.Option("--out", help="The archive; RUN.zip by default.")] = None,
    judge: ScoredByOption = None,
    licence: Annotated[str, typer.Option(help="Licence in the card, as dataset hubs name it.")] = DEFAULT_LICENCE,
    as_json: JsonOption = False,
) -> None:
    """Write a run as one archive, with a table of its episodes and a card, ready for a dataset hub."""
    folder = run_folder.resolve()
    file = folder.with_name(f"{folder.name}.zip") if out_file is None else out_file
    summary = pack_run(folder, file, judge or LOCAL, licence)
    _note_names("without a row in the table", summary.unscored)
    _note_names("a secret was removed from", summary.scrubbed)
    note(f"written: {file}, {plural(summary.episodes, 'episode')}, {plural(len(summary.manifest.files), 'file')}")
    if as_json:
        counts = {"episodes": summary.episodes, "unscored": summary.unscored, "scrubbed": summary.scrubbed}
        print_json({"file": str(file), **counts, "files": summary.manifest.model_dump()["files"]})


@app.command()
def unpack(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An archive of inquitree pack.")],
    out_folder: Annotated[Path | None, typer.Option("--out", help="New folder of the run.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Also score the episodes again and compare.")] = False,
) -> None:
    """Check every file of an archive and unpack it. With --check alone, nothing is kept."""
    if out_folder is not None:
        _unpack(file, out_folder, check)
        note(f"written: {out_folder}")
    elif check:
        with TemporaryDirectory() as scratch:
            _unpack(file, Path(scratch) / "run", check)
    else:
        raise OptionError("unpack takes --out with a new folder, --check to check the archive only, or both")


def _unpack(file: Path, folder: Path, check: bool) -> None:
    """Unpack an archive, and report what was checked.

    Raises:
        PackError: the archive is damaged or unsafe, or its scores are not those of its episodes.
    """
    manifest = unpack_archive(file, folder)
    note(f"checked: {plural(len(manifest.files), 'file')} as {PACK_MANIFEST} lists them")
    if check:
        if differing := check_rows(folder):
            more = f"; and {len(differing) - MAX_NAMES} more" if len(differing) > MAX_NAMES else ""
            raise PackError(f"the episodes have other scores than the table: {'; '.join(differing[:MAX_NAMES])}{more}")
        note("checked: the episodes have the scores of the table")


def _note_names(what: str, names: Iterable[str]) -> None:
    names = list(names)
    if names:
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        note(f"{what}: {', '.join(names[:MAX_NAMES])}{more}")
