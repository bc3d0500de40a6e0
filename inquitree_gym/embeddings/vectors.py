"""Vectors of the texts of a tree or projection task, shipped or cached on disk, and of actions, cached in memory.

Those of the shipped trees are in the package. Files are named after the model and rows after the text, so another model
or a changed text finds nothing there and is embedded. ``python -m research.shipped_vectors`` writes them.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import platformdirs
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import are_sound, embedded
from inquitree_gym.errors import EmbedderError
from inquitree_gym.files import CACHE_VARIABLE, write_whole
from inquitree_gym.trees.document import Candidate
from inquitree_gym.trees.schema import centroids, wordings

if TYPE_CHECKING:
    from inquitree_gym.embeddings.protocol import Embedder, Vectors
    from inquitree_gym.trees import Tree

CACHE_SIZE = 4_096
"""Number of action texts whose vectors stay in memory."""

Vector = NDArray[np.float32]

_logger = logging.getLogger(__name__)


class TextVectors:
    """Vectors by text. Some texts come from the disk cache. Other texts are embedded alone and remembered."""

    def __init__(self, source: str, texts: tuple[str, ...], embedder: Embedder, *, lasting: bool = True) -> None:
        """Bind texts of a document to an embedder. They are embedded on first use, in one call.

        Args:
            source: digest of the document that the texts come from. Names the file of their vectors.
            texts: the texts.
            embedder: the embedder.
            lasting: store their vectors on disk.
        """
        self.embedder = embedder
        self._source = source
        self.lasting = lasting
        self._texts = texts
        self._known: dict[str, Vector] = {}
        self._recent: OrderedDict[str, Vector] = OrderedDict()
        self._rough: OrderedDict[str, Vector] = OrderedDict()

    def of(self, text: str) -> Vector:
        """Return the vector of one text, shape ``(dim,)``."""
        known = self._find(text)
        return self.settle(text) if known is None else known

    def knows(self, text: str) -> bool:
        """Return True if the vector of ``text`` is known."""
        return self._find(text) is not None

    def take(self, text: str, vector: Vector) -> None:
        """Store a vector from a batch. Its last bits may differ from those of a text embedded alone."""
        _remember(self._rough, text, vector)

    def is_rough(self, text: str) -> bool:
        """Return True if the vector comes from a batch, so that `settle` may change its last bits."""
        return text in self._rough

    def settle(self, text: str) -> Vector:
        """Embed a text alone, store that vector in place of one from a batch, and return it, shape ``(dim,)``."""
        self._rough.pop(text, None)
        vector: Vector = embedded(self.embedder, [text])[0]
        _remember(self._recent, text, vector)
        return vector

    def matrix(self, texts: tuple[str, ...]) -> Vectors:
        """Return the vectors of several texts, shape ``(len(texts), dim)``."""
        return np.stack([self.of(text) for text in texts])

    def _groups(self) -> Iterable[Iterable[str]]:
        """Return the texts to embed, in groups of which each is embedded in one call."""
        return (self._texts,)

    @cached_property
    def _pending(self) -> list[tuple[str, ...]]:
        """Groups of texts that are not embedded yet. Each group is embedded in one call on first use."""
        return [tuple(dict.fromkeys(group)) for group in self._groups()]

    def _find(self, text: str) -> Vector | None:
        if self._pending:
            self._load_group(text)
        for known in (self._known, self._recent, self._rough):
            if (vector := known.get(text)) is not None:
                return vector
        return shipped_vector(text, self.embedder.digest)

    def _load_group(self, text: str) -> None:
        for group in self._pending:
            if self.lasting or text in group:
                self._known |= zip(group, self.stored(group), strict=True)
                self._pending.remove(group)
                return

    def stored(self, texts: tuple[str, ...]) -> Vectors:
        """Return the vectors of texts of the document, shape ``(len(texts), dim)``.

        They come from the package. Those that it lacks come from the disk cache or are embedded in one call.
        """
        found = {text: shipped_vector(text, self.embedder.digest) for text in texts}
        missing = tuple(text for text in texts if found[text] is None)
        if len(missing) == len(texts):
            return self._cached(texts)
        if missing:
            found |= zip(missing, self._cached(missing), strict=True)
        return np.stack([vector for text in texts if (vector := found[text]) is not None])

    def _cached(self, texts: tuple[str, ...]) -> Vectors:
        """Return vectors from the disk cache or embedded in one call, shape ``(len(texts), dim)``."""
        if not self.lasting:
            return embedded(self.embedder, texts)
        order = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        file = cache_folder() / f"{self._source[:24]}-{order[:8]}-{self.embedder.digest[:24]}.npy"
        rows = _read(file, len(texts))
        if rows is None:
            rows = embedded(self.embedder, texts)
            _write(file, rows)
        return rows


class TreeVectors(TextVectors):
    """Vectors of the texts of a tree, of its candidates, and of actions."""

    def __init__(
        self, tree: Tree, embedder: Embedder, *, lasting: bool = True, texts: tuple[str, ...] | None = None
    ) -> None:
        """Bind a tree to an embedder. Texts are embedded on first use.

        Args:
            tree: the tree.
            embedder: the embedder.
            lasting: embed all texts of the tree in one call and store the vectors on disk. False is for a tree that is
                played once: it writes nothing, embeds subtopics and studies when the first action is matched, and other
                texts alone when they are needed.
            texts: the texts to embed and store at once, for a use that needs few of them. None for all.
        """
        super().__init__(tree.digest, texts or (), embedder, lasting=lasting)
        self.tree = tree

    def _groups(self) -> Iterable[Iterable[str]]:
        if self._texts:
            return super()._groups()
        if self.lasting:
            return (self.tree.texts().values(),)
        return ([text for node in (*self.tree.subtopics, *self.tree.studies) for text in wordings(node)],)

    @cached_property
    def subtopics(self) -> Vectors:
        """Vectors that proposals are matched with: the centroid of each subtopic, in tree order."""
        return self._candidates(self.tree.subtopics)

    @cached_property
    def studies(self) -> Vectors:
        """Vectors that designs are matched with: the centroid of each study, in tree order."""
        return self._candidates(self.tree.studies)

    def _candidates(self, nodes: Sequence[Candidate]) -> Vectors:
        found = centroids(nodes, lambda texts: self.matrix(tuple(texts)))
        found.flags.writeable = False
        return found


def _remember(memory: OrderedDict[str, Vector], text: str, vector: Vector) -> None:
    memory[text] = vector
    if len(memory) > CACHE_SIZE:
        memory.popitem(last=False)


@lru_cache(maxsize=256)
def tree_vectors(tree: Tree, embedder: Embedder) -> TreeVectors:
    """Return the vectors of a tree, the same object each time, so that environments share it."""
    return TreeVectors(tree, embedder)


def cache_folder() -> Path:
    """Return the folder of the vector cache: `INQUITREE_CACHE`, or the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("inquitree-gym"), "vectors")


def _read(file: Path, rows: int) -> Vectors | None:
    """Return the stored vectors, or None if there are none or the file is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    vectors = _unsealed(content)
    if vectors is None or vectors.ndim != 2 or len(vectors) != rows or not are_sound(vectors).all():
        _logger.warning("the vector cache '%s' is damaged; it will be rebuilt", file)
        return None
    return vectors


def _unsealed(content: bytes) -> Vectors | None:
    seal, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != seal:
        return None
    try:
        return np.asarray(np.lib.format.read_array(io.BytesIO(body), allow_pickle=False), np.float32)
    except ValueError:
        return None


def _write(file: Path, vectors: Vectors) -> None:
    """Store vectors with a checksum, atomically, because several processes may write. A failure only warns."""
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    body = buffer.getvalue()
    try:
        write_whole(file, hashlib.sha256(body).digest() + body)
    except OSError as error:
        _logger.warning("cannot write vectors to '%s' (%s); they will be embedded again next time", file.parent, error)


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
        raise EmbedderError(f"'{file}' must hold vectors, got {error}. Install inquitree-gym again.") from error
