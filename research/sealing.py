"""Writing of folders of derived models: their manifest comes last, so that a torn folder is never loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from inquitree_gym.embeddings import MiniLMEmbedder, ReaderEmbedder
from inquitree_gym.embeddings.derived import MANIFEST, SOURCES, Kind, Manifest
from inquitree_gym.embeddings.local import MINILM, file_digest
from inquitree_gym.errors import EmbedderError


def load_source(name: str, threads: int) -> MiniLMEmbedder:
    """Return the model that another is derived from.

    Raises:
        EmbedderError: nothing can be derived from it.
    """
    if name not in SOURCES:
        raise EmbedderError(f"nothing can be derived from '{name}'; --embedder is one of {', '.join(SOURCES)}")
    return MiniLMEmbedder(threads=threads) if name == MINILM else ReaderEmbedder(threads=threads)


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        yield
    except (OSError, SafetensorError) as error:
        raise EmbedderError(f"cannot write into '{folder}' ({error}); name another folder with --out") from error
