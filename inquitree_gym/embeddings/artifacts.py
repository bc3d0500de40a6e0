"""Folders of models that were derived from MiniLM or the reader on this machine.

The `MANIFEST` of a folder lists every file with its SHA-256. It is written last and checked at every load, so an
incomplete or modified folder is never used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inquitree_gym.errors import EmbedderError

MODELS_VARIABLE = "INQUITREE_MODELS"
"""Environment variable that names the folder of derived models."""
MANIFEST = "inquitree.json"

Kind = Literal["onnx", "static"]
SOURCES = ("inquitree-reader-1", "all-MiniLM-L6-v2")
"""Names of the models that others are derived from."""
COMMANDS: dict[Kind, str] = {"onnx": "inquitree export-onnx", "static": "inquitree distill"}
"""Command that makes each kind."""


class Manifest(BaseModel):
    """Description of a derived model: source, threshold, files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    source: str
    """SHA-256 of the weights that it was derived from."""
    threshold: float = Field(ge=-1, le=1)
    """τ of this model."""
    files: dict[str, str] = Field(min_length=1)
    """SHA-256 by file name."""
    evidence: dict[str, Any] = {}
    """Measurements from the time it was made."""

    @property
    def digest(self) -> str:
        """SHA-256 over the names and digests of the files."""
        return files_digest(self.files)


def models_folder() -> Path:
    """Return the folder of derived models: `INQUITREE_MODELS`, or one in the data folder of the user."""
    named = os.environ.get(MODELS_VARIABLE)
    return Path(named).expanduser() if named else Path(platformdirs.user_data_dir("inquitree-gym"), "models")


def made_folder(kind: Kind, model: str) -> Path:
    """Return the default folder of a derived model."""
    return models_folder() / kind / model


def model_folder(kind: Kind, model: str) -> Path:
    """Return the folder of ``model``: the default one of a name in `SOURCES`, otherwise ``model`` itself."""
    return made_folder(kind, model) if model in SOURCES else Path(model).expanduser()


def read_manifest(folder: Path, kind: Kind) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        EmbedderError: the folder holds no model of that kind, or the manifest is invalid.
    """
    try:
        content = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise EmbedderError(
            f"there is no {kind} model in '{folder}' ({MANIFEST}: {error.strerror}); run: {COMMANDS[kind]}; if you "
            f"wrote it to a folder of your own, name it {kind}:FOLDER"
        ) from error
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise _damaged(folder, kind, f"{MANIFEST}: {fault['msg']} at {fault['loc']}") from error
    if manifest.kind != kind:
        raise EmbedderError(f"'{folder}' holds a model of the kind {manifest.kind}; name it {manifest.kind}:{folder}")
    return manifest


def verify_files(folder: Path, kind: Kind, files: dict[str, str]) -> None:
    """Compare files with their SHA-256.

    Raises:
        EmbedderError: a file is missing or differs.
    """
    for name, expected in files.items():
        file = folder / name
        if not file.is_file():
            raise _damaged(folder, kind, f"'{name}' is missing")
        if (found := file_digest(file)) != expected:
            raise _damaged(folder, kind, f"'{name}' was changed: expected {expected}, found {found}")


def seal(folder: Path, kind: Kind, source: str, threshold: float, names: tuple[str, ...], **evidence: Any) -> Manifest:
    """Write the manifest of a folder, after its other files."""
    files = {name: file_digest(folder / name) for name in names}
    manifest = Manifest(kind=kind, source=source, threshold=threshold, files=files, evidence=evidence)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Create a folder if necessary and remove its manifest, so that its files can be written.

    Raises:
        EmbedderError: the folder cannot be written.
    """
    from safetensors import SafetensorError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        yield
    except (OSError, SafetensorError) as error:
        raise EmbedderError(f"cannot write into '{folder}' ({error}); name another folder with --out") from error


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_digest(files: dict[str, str]) -> str:
    """Return one SHA-256 over the names and digests of files, independent of their order."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _damaged(folder: Path, kind: Kind, what: str) -> EmbedderError:
    return EmbedderError(f"the {kind} model in '{folder}' is damaged: {what}; make it again with: {COMMANDS[kind]}")
