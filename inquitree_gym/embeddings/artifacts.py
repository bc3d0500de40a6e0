"""Models made on this machine from the default one: where they are kept, and how their files are sealed.

Such a model is a folder whose `MANIFEST` names every file with its SHA-256. It is written last and compared when the
model is loaded, so a folder that was left half-written or touched since is never used.
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
"""Environment variable: folder of the models made here."""
MANIFEST = "inquitree.json"

Kind = Literal["onnx", "static"]
COMMANDS: dict[Kind, str] = {"onnx": "inquitree export-onnx", "static": "inquitree distill"}
"""The command that makes each kind."""


class Manifest(BaseModel):
    """What a model is, and which files it has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    source: str
    """SHA-256 of the weights that it was made from."""
    threshold: float = Field(ge=-1, le=1)
    """τ of this model."""
    files: dict[str, str] = Field(min_length=1)
    """SHA-256 by file name."""
    evidence: dict[str, Any] = {}
    """What was measured when it was made."""

    @property
    def digest(self) -> str:
        """SHA-256 over the names and digests of the files."""
        return files_digest(self.files)


def models_folder() -> Path:
    """Return the folder of the models made here: `INQUITREE_MODELS`, or one in the user's data folder."""
    named = os.environ.get(MODELS_VARIABLE)
    return Path(named).expanduser() if named else Path(platformdirs.user_data_dir("inquitree-gym"), "models")


def made_folder(kind: Kind, model: str) -> Path:
    """Return where the command keeps its model of that kind unless told otherwise."""
    return models_folder() / kind / model


def read_manifest(folder: Path, kind: Kind) -> Manifest:
    """Return what a folder says of its model.

    Raises:
        EmbedderError: no such model is there, or the manifest is at fault.
    """
    try:
        content = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise EmbedderError(
            f"there is no {kind} model in '{folder}' ({MANIFEST}: {error.strerror}); run: {COMMANDS[kind]}, and name "
            f"another folder than the usual one as {kind}:FOLDER"
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
        EmbedderError: one is missing or differs.
    """
    for name, expected in files.items():
        file = folder / name
        if not file.is_file():
            raise _damaged(folder, kind, f"'{name}' is missing")
        if (found := file_digest(file)) != expected:
            raise _damaged(folder, kind, f"'{name}' is not the file that was made: expected {expected}, found {found}")


def seal(folder: Path, kind: Kind, source: str, threshold: float, names: tuple[str, ...], **evidence: Any) -> Manifest:
    """Write the manifest of a folder whose other files are written."""
    files = {name: file_digest(folder / name) for name in names}
    manifest = Manifest(kind=kind, source=source, threshold=threshold, files=files, evidence=evidence)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Make a folder if need be, take its manifest away, and let its files be written.

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
    """Return the SHA-256 of a file's content, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_digest(files: dict[str, str]) -> str:
    """Return one SHA-256 over the names and digests of files, whatever their order."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _damaged(folder: Path, kind: Kind, what: str) -> EmbedderError:
    return EmbedderError(f"the {kind} model in '{folder}' is damaged: {what}; make it again: {COMMANDS[kind]}")
