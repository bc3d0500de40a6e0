"""The vectors of a tree: kept on disk whole or not at all, in memory within bounds, never needed to go on."""

from __future__ import annotations

import hashlib
import io
import logging
import multiprocessing
import os
import pickle
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, TreeVectors
from inquitree_gym.embeddings.vectors import CACHE_SIZE, cache_folder
from tests.strategies import make_tree, with_paraphrases

DIM = 64
TREE = make_tree([[], [0]], [1, 2])
OTHER_TREE = make_tree([[], [0]], [2, 1])
TEXTS = tuple(dict.fromkeys(TREE.texts().values()))
LOGGER = "inquitree_gym.embeddings.vectors"


class Counting:
    """An embedder of one's own that keeps what it was asked for."""

    name = "counting"
    dim = DIM
    threshold = None

    def __init__(self, digest: str = "0" * 64) -> None:
        self.digest = digest
        self.asked: list[tuple[str, ...]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(tuple(texts))
        digests = [hashlib.sha512(text.encode()).digest() for text in texts]
        rows = np.array([np.frombuffer(digest, np.uint8) for digest in digests], np.float32) - 127.5
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("INQUITREE_CACHE", str(folder))
    return folder


@pytest.fixture
def stored(cache: Path) -> Path:
    """The file of the tree's vectors."""
    TreeVectors(TREE, Counting()).of(TREE.topic)
    (file,) = cache.iterdir()
    return file


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_nothing_is_read_or_embedded_before_a_vector_is_wanted(cache: Path):
    embedder = Counting()
    TreeVectors(TREE, embedder)
    assert embedder.asked == []
    assert not cache.exists()


def test_the_texts_of_a_tree_are_embedded_once_and_then_read_from_the_disk(caplog: pytest.LogCaptureFixture):
    first, second = Counting(), Counting()
    fresh = TreeVectors(TREE, first).matrix(TEXTS)
    kept = TreeVectors(TREE, second).matrix(TEXTS)
    assert (first.asked, second.asked) == ([TEXTS], [])
    assert (kept.dtype, kept.shape, kept.tobytes()) == (np.float32, (len(TEXTS), DIM), fresh.tobytes())
    assert fresh.tobytes() == Counting().embed(TEXTS).tobytes()
    assert warnings(caplog) == []


@pytest.mark.parametrize(("tree", "digest"), [(OTHER_TREE, "0" * 64), (TREE, "1" * 64)])
def test_another_tree_or_other_weights_never_share_a_file(tree, digest: str, stored: Path):
    embedder = Counting(digest)
    TreeVectors(tree, embedder).of(tree.topic)
    assert len(embedder.asked) == 1
    assert len(list(stored.parent.iterdir())) == 2


def sealed(array: np.ndarray) -> bytes:
    """The content of a cache file that holds the array, as an earlier or a foreign program could have left it."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "short": lambda content: content[:20],
    "truncated": lambda content: content[: len(content) // 2],
    "one bit flipped": lambda content: content[:-5] + bytes([content[-5] ^ 4]) + content[-4:],
    "longer": lambda content: content + b"\0",
    "another format": lambda content: b"not vectors at all" * 10,
    "a row too few": lambda content: sealed(np.zeros((len(TEXTS) - 1, DIM), np.float32)),
    "a row too many": lambda content: sealed(np.zeros((len(TEXTS) + 1, DIM), np.float32)),
    "NaN": lambda content: sealed(np.full((len(TEXTS), DIM), np.nan, np.float32)),
    "infinity": lambda content: sealed(np.full((len(TEXTS), DIM), np.inf, np.float32)),
    "not of unit length": lambda content: sealed(np.ones((len(TEXTS), DIM), np.float32)),
    "no rows": lambda content: sealed(np.zeros((), np.float32)),
    "one dimension": lambda content: sealed(np.zeros(len(TEXTS), np.float32)),
    "words": lambda content: sealed(np.full((len(TEXTS), DIM), "word")),
    "pickled objects": lambda content: sealed(np.full((len(TEXTS), DIM), None, object)),
    "sealed nonsense": lambda content: hashlib.sha256(b"nonsense").digest() + b"nonsense",
    "sealed nothing": lambda content: hashlib.sha256(b"").digest(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_made_anew_with_a_warning(
    damage: Callable[[bytes], bytes], stored: Path, caplog: pytest.LogCaptureFixture
):
    whole = stored.read_bytes()
    stored.write_bytes(damage(whole))
    embedder = Counting()
    assert TreeVectors(TREE, embedder).matrix(TEXTS).tobytes() == Counting().embed(TEXTS).tobytes()
    assert embedder.asked == [TEXTS]
    assert stored.read_bytes() == whole
    (message,) = warnings(caplog)
    assert f"'{stored}' is damaged" in message
    assert "will be rebuilt" in message


def test_a_cache_folder_that_is_a_file_costs_a_warning_and_no_vector(cache: Path, caplog: pytest.LogCaptureFixture):
    cache.write_text("in the way")
    vectors = TreeVectors(TREE, Counting())
    assert vectors.matrix(TEXTS).tobytes() == Counting().embed(TEXTS).tobytes()
    (message,) = warnings(caplog)
    assert f"cannot write vectors to '{cache}'" in message
    assert cache.read_text() == "in the way"


def write_on_a_full_disk(folder: str) -> tuple[bytes, list[str], list[str]]:
    """Run in a process of its own, none of whose files may grow beyond a few bytes."""
    os.environ["INQUITREE_CACHE"] = folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
    messages = collected()
    vectors = TreeVectors(TREE, Counting()).matrix(TEXTS)
    return vectors.tobytes(), messages, os.listdir(folder)


def collected() -> list[str]:
    """Return a list that grows by every message logged from here on."""
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(LOGGER).addHandler(handler)
    return messages


def test_a_full_disk_costs_a_warning_and_leaves_no_torn_file(cache: Path):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        vectors, messages, left = pool.submit(write_on_a_full_disk, str(cache)).result()
    assert vectors == Counting().embed(TEXTS).tobytes()
    assert len(messages) == 1
    assert "File too large" in messages[0]
    assert left == []


class Marked(Counting):
    """Gives every row its own mark, so that a file written by two of them at once could be told."""

    dim = 2_048

    def __init__(self, mark: int) -> None:
        super().__init__()
        self.mark = mark

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile(np.eye(self.dim, dtype=np.float32)[self.mark], (len(texts), 1))


_together: Barrier


def meet(barrier: Barrier) -> None:
    global _together
    _together = barrier


def write_again_and_again(folder: str, mark: int) -> list[str]:
    """Write and read the same file as others do; return what is wrong with anything read."""
    os.environ["INQUITREE_CACHE"] = folder
    faults = collected()
    _together.wait(120)
    for _ in range(15):
        rows = TreeVectors(TREE, Marked(mark)).matrix(TEXTS)
        if len(marks := np.unique(rows.argmax(axis=1))) > 1:
            faults.append(f"rows of {marks} in one file")
        for file in Path(folder).glob("*.npy"):
            file.unlink(missing_ok=True)
    TreeVectors(TREE, Marked(mark)).of(TEXTS[0])
    return faults


@pytest.mark.e2e
def test_writers_at_once_leave_one_whole_readable_file(cache: Path, caplog: pytest.LogCaptureFixture):
    writers = 4
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(writers, context, initializer=meet, initargs=(context.Barrier(writers),)) as pool:
        jobs = [pool.submit(write_again_and_again, str(cache), mark) for mark in range(1, writers + 1)]
        assert [fault for job in jobs for fault in job.result()] == []
    assert [file.suffix for file in cache.iterdir()] == [".npy"]
    silent = Counting()
    assert len(np.unique(TreeVectors(TREE, silent).matrix(TEXTS).argmax(axis=1))) == 1
    assert silent.asked == []
    assert warnings(caplog) == []


def test_other_texts_are_embedded_alone_and_remembered():
    embedder = Counting()
    vectors = TreeVectors(TREE, embedder)
    first = vectors.of("something new")
    assert vectors.of("something new").tobytes() == first.tobytes() == Counting().embed(["something new"]).tobytes()
    assert embedder.asked == [TEXTS, ("something new",)]


def test_the_memory_of_other_texts_is_bounded():
    embedder = Counting()
    vectors = TreeVectors(TREE, embedder)
    texts = [f"text {i}" for i in range(CACHE_SIZE + 1)]
    for text in texts:
        vectors.of(text)
    embedder.asked.clear()
    vectors.of(texts[-1])
    vectors.of(texts[1])
    assert embedder.asked == []
    vectors.of(texts[0])
    assert embedder.asked == [(texts[0],)]


def test_a_candidate_is_the_unit_length_mean_of_its_text_and_its_paraphrases():
    tree = with_paraphrases(TREE, {"s1": ["One.", "Two."], "s2b": ["Three."]})
    vectors, embed = TreeVectors(tree, Counting()), Counting().embed
    mean = embed([tree.subtopics[0].text, "One.", "Two."]).mean(axis=0)
    np.testing.assert_allclose(vectors.subtopics[0], mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors.studies, axis=1), 1, atol=1e-6)
    mean = embed([tree.studies[2].text, "Three."]).mean(axis=0)
    np.testing.assert_allclose(vectors.studies[2], mean / np.linalg.norm(mean), atol=1e-6)
    plain = embed([tree.subtopics[1].text, *(study.text for study in tree.studies[:2])])
    assert (*vectors.subtopics[1:], *vectors.studies[:2])[0].tobytes() == plain[0].tobytes(), "as without paraphrases"
    assert vectors.studies[:2].tobytes() == plain[1:].tobytes()
    assert vectors.subtopics is vectors.subtopics
    assert (vectors.subtopics.dtype, vectors.studies.shape) == (np.float32, (3, DIM))


def test_opposite_wordings_make_a_candidate_that_is_like_nothing():
    class Signed(Counting):
        dim = 2

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            return np.array([[-1.0 if text == "No!" else 1.0, 0.0] for text in texts], np.float32)

    vectors = TreeVectors(with_paraphrases(TREE, {"s1": ["No!"]}), Signed(), lasting=False)
    assert vectors.subtopics.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_a_copy_from_a_pickle_gives_the_same_vectors(minilm: MiniLMEmbedder):
    vectors = TreeVectors(TREE, minilm)
    expected = vectors.of("something new").tobytes()
    assert pickle.loads(pickle.dumps(vectors)).of("something new").tobytes() == expected


def test_the_cache_stands_in_the_named_folder_or_in_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("INQUITREE_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("INQUITREE_CACHE")
    assert cache_folder() == Path(platformdirs.user_cache_dir("inquitree-gym"), "vectors")
