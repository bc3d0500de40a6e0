"""Vectors of the texts of the shipped trees, kept in the package, so that no model is loaded for them.

Files are named after the model and rows after the text, so a changed text or another model finds nothing here and is
embedded. ``python -m research.shipped_vectors`` writes them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import EmbedderError

Vector = NDArray[np.float32]

PARTS: dict[str, type[np.floating]] = {"trees": np.float32, "observations": np.float16}
"""Precision by part. Texts of trees decide readings and keep all bits; observations become features and need fewer."""
KEY = np.dtype("<u8")


def shipped_file(part: str, digest: str) -> Path:
    """Return the file of a part for the model of that digest."""
    return Path(str(resources.files(__package__).joinpath("data", f"{part}-{digest[:24]}.npz")))


def text_key(text: str) -> int:
    """Return the key of a text: the first 8 bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[: KEY.itemsize], "little")


def shipped_vector(text: str, digest: str) -> Vector | None:
    """Return the shipped vector of a text under the model of that digest, shape ``(dim,)``. None if there is none.

    Raises:
        EmbedderError: the file is damaged.
    """
    for part in PARTS:
        rows = shipped_rows(part, digest)
        if rows and (row := rows.get(text_key(text))) is not None:
            return row.astype(np.float32)
    return None


@lru_cache(maxsize=16)
def shipped_rows(part: str, digest: str) -> dict[int, NDArray[np.floating]]:
    """Return the rows of a part by key, in the precision of the file. Empty for a model without a file.

    Raises:
        EmbedderError: the file is damaged.
    """
    file = shipped_file(part, digest)
    if not file.is_file():
        return {}
    try:
        with np.load(file) as stored:  # compares checksums
            return dict(zip(stored["keys"].tolist(), stored["rows"], strict=True))
    except (BadZipFile, ValueError, KeyError, OSError) as error:
        raise EmbedderError(f"'{file}' must hold vectors of texts, got {error}. Install inquitree-gym again.") from error
