"""Archives of runs: ZIP files with a manifest of SHA-256 digests, checked before anything is unpacked.

An archive from elsewhere is data that nobody vouches for: names, kinds, numbers and sizes of its entries are checked
against the manifest and against bounds, and a folder appears only after every byte has been checked.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inquitree_gym import __version__
from inquitree_gym.errors import PackError
from inquitree_gym.runner.folder import new_folder
from inquitree_gym.trees.fields import CANARY

PACK_MANIFEST = "manifest.json"
MAX_ENTRIES = 100_000
MAX_BYTES = 4 * 2**30
"""Largest sum of the unpacked sizes."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size; logs reach about 20."""
_MAX_READ = 16 * 2**20
"""Largest piece that is read at once: the directory of `MAX_ENTRIES` entries with names of usual length."""
MAX_PATH = 240
"""Most characters of a path."""
_CHUNK = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|]')


class PackedFile(BaseModel):
    """Digest and size of one file of an archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: int = Field(ge=0, le=MAX_BYTES)
    """Bytes."""


class PackManifest(BaseModel):
    """Content of `PACK_MANIFEST`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["inquitree-pack/1"] = "inquitree-pack/1"
    canary: str = CANARY
    version: str = __version__
    """Release that made the archive."""
    files: dict[str, PackedFile]
    """Every other file by its path."""


def write_archive(file: Path, contents: Iterable[tuple[str, bytes]]) -> PackManifest:
    """Write an archive of files, given by path and content; equal contents give equal bytes.

    Raises:
        PackError: the file exists or cannot be written, or a path or the number of files is not allowed.
    """
    part = file.with_name(f".{file.name}-{os.getpid()}.part")
    files: dict[str, PackedFile] = {}
    try:
        if file.exists():
            raise PackError(f"'{file}' exists already; nothing is overwritten: choose another file with --out")
        file.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "x") as archive:
            for name, content in contents:
                files[name] = PackedFile(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
                _add(archive, name, content)
            _check_names(file, files)
            manifest = PackManifest(files=files)
            _add(archive, PACK_MANIFEST, (manifest.model_dump_json(indent=2) + "\n").encode())
        part.replace(file)
    except OSError as error:
        raise PackError(f"cannot write '{file}': {error.strerror}; choose another file with --out") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def unpack(file: Path, out: Path) -> PackManifest:
    """Check an archive and unpack it into a new folder.

    Raises:
        PackError: the archive is damaged or unsafe.
        LogError: ``out`` exists or cannot be written.
    """
    try:
        stream = _GuardedFile(file)
    except OSError as error:
        raise PackError(f"cannot read '{file}': {error.strerror}; name an archive of inquitree pack") from error
    with stream, new_folder(out) as part:
        return _read(file, stream, lambda name: _new_file(part / name))


def _new_file(file: Path) -> io.BufferedWriter:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.open("xb")


def _read(file: Path, stream: _GuardedFile, open_file: Callable[[str], io.BufferedWriter]) -> PackManifest:
    """Check every file of an archive while writing it to what ``open_file`` returns for its path."""
    try:
        with zipfile.ZipFile(stream) as archive:
            manifest = _checked_manifest(file, archive)
            for name, expected in manifest.files.items():
                with open_file(name) as target:
                    _copy(file, archive, name, expected, target)
            with open_file(PACK_MANIFEST) as target:
                target.write(archive.read(PACK_MANIFEST))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _damaged(file, str(error)) from error
    return manifest


class _GuardedFile(io.FileIO):
    """File that is never read in pieces of a size that only a bomb has, such as the directory of a million entries."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_READ:
            needed = f"more than {MAX_ENTRIES:,} files need"
            raise _unsafe(Path(str(self.name)), f"its directory has {size:,} bytes, {needed}")
        return super().read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if offset < 0 and whence == os.SEEK_SET:
            raise zipfile.BadZipFile("an entry lies before the beginning of the file")
        return super().seek(offset, whence)


def _checked_manifest(file: Path, archive: zipfile.ZipFile) -> PackManifest:
    """Return the manifest of an archive once its entries are exactly those that the manifest lists."""
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise _unsafe(file, f"it has {len(entries):,} entries; at most {MAX_ENTRIES:,} are unpacked")
    by_name = {entry.filename: entry for entry in entries}
    if len(by_name) < len(entries):
        raise _unsafe(file, "two entries have the same path")
    _check_names(file, by_name)
    for entry in entries:
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG) or entry.is_dir():
            raise _unsafe(file, f"'{entry.filename}' is no file; links and folders are not unpacked")
    sizes = sum(entry.file_size for entry in entries)
    if sizes > min(MAX_BYTES, MAX_RATIO * (file.stat().st_size + _CHUNK)):
        raise _unsafe(file, f"it would unpack to {sizes:,} bytes, too many for its {file.stat().st_size:,}")
    listed = by_name.pop(PACK_MANIFEST, None)
    if listed is None or listed.file_size > _MAX_READ:
        raise _damaged(file, f"it has no {PACK_MANIFEST} of a usual size")
    try:
        manifest = PackManifest.model_validate_json(archive.read(listed))
    except ValidationError as error:
        raise _damaged(file, f"its {PACK_MANIFEST} is not one that this release can read") from error
    if odd := sorted(by_name.keys() ^ manifest.files.keys()):
        raise _damaged(file, f"'{odd[0]}' is in only one of the archive and its {PACK_MANIFEST}")
    return manifest


def _copy(file: Path, archive: zipfile.ZipFile, name: str, expected: PackedFile, target: io.BufferedWriter) -> None:
    digest, size = hashlib.sha256(), 0
    with archive.open(name) as source:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            target.write(chunk)
    if (digest.hexdigest(), size) != (expected.sha256, expected.size):
        raise _damaged(file, f"'{name}' is not what its {PACK_MANIFEST} lists")


def _check_names(file: Path, names: Iterable[str]) -> None:
    """Raise `PackError` unless every path stays in its folder, on any system, and no two are one there."""
    seen: set[str] = set()
    for name in names:
        parts = name.split("/")
        if len(name) > MAX_PATH or _UNSAFE.search(name) or any(not part or part[-1] in ". " for part in parts):
            raise _unsafe(file, f"the path {name[:80]!r} could leave the folder or is no file name")
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            raise _unsafe(file, f"the path {name[:80]!r} is the same as another one on some systems")
        seen.add(key)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = 3  # Unix, wherever the archive is made
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _unsafe(file: Path, reason: str) -> PackError:
    return PackError(f"'{file}' is not unpacked: {reason}")


def _damaged(file: Path, reason: str) -> PackError:
    return PackError(f"'{file}' is no whole archive of inquitree pack: {reason}; fetch it again")
