"""Models derived from another, of each kind: found by name, checked before use, and read without torch."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from inquitree_gym.embeddings import MiniLMEmbedder, OnnxEmbedder, StaticEmbedder
from inquitree_gym.embeddings.derived import COMMANDS, read_manifest
from inquitree_gym.errors import EmbedderError, MissingExtraError
from tests.embeddings.conftest import STATIC_THRESHOLD

pytestmark = pytest.mark.weights

TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?")


class Derived(NamedTuple):
    """A kind of derived models."""

    make: type[OnnxEmbedder] | type[StaticEmbedder]
    fixture: str
    package: str
    threshold: float
    needed: tuple[str, ...]
    """What cannot be known without the model."""


KINDS = {
    "onnx": Derived(OnnxEmbedder, "exported", "onnxruntime", MiniLMEmbedder.threshold, ("digest", "embed")),
    "static": Derived(
        StaticEmbedder, "distilled", "model2vec", STATIC_THRESHOLD, ("digest", "embed", "threshold", "dim")
    ),
}
ASKS: dict[str, Callable[[OnnxEmbedder | StaticEmbedder], object]] = {
    "threshold": lambda embedder: embedder.threshold,
    "digest": lambda embedder: embedder.digest,
    "dim": lambda embedder: embedder.dim,
    "embed": lambda embedder: embedder.embed(TEXTS),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def folder(kind: str, request: pytest.FixtureRequest) -> Path:
    """A model of the kind. Not to be changed."""
    return request.getfixturevalue(KINDS[kind].fixture)


def test_name_threshold_dimension_and_digest_are_those_of_the_folder(kind: str, folder: Path):
    embedder = KINDS[kind].make(str(folder))
    assert embedder.name == f"{kind}:{folder}"
    assert (embedder.threshold, embedder.dim) == (KINDS[kind].threshold, 384)
    assert re.fullmatch("[0-9a-f]{64}", embedder.digest)
    assert embedder.digest == read_manifest(folder, kind).digest != MiniLMEmbedder().digest


def test_the_usual_name_finds_what_was_written_there(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "all-MiniLM-L6-v2").symlink_to(folder)
    usual, named = KINDS[kind].make(), KINDS[kind].make(str(folder))
    assert (usual.name, usual.digest) == (f"{kind}:all-MiniLM-L6-v2", named.digest)
    assert usual.embed(TEXTS).tobytes() == named.embed(TEXTS).tobytes()


@pytest.mark.parametrize(("kind", "what"), [(kind, what) for kind, derived in KINDS.items() for what in derived.needed])
def test_a_model_that_was_never_made_is_told_with_the_command(
    kind: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    for model in ("all-MiniLM-L6-v2", str(tmp_path / "elsewhere")):
        with pytest.raises(EmbedderError, match=rf"there is no {kind} model in .*; run: {COMMANDS[kind]}"):
            ASKS[what](KINDS[kind].make(model))


def test_a_file_that_was_changed_is_refused_with_both_digests(kind: str, folder: Path, linked: Callable[[Path], Path]):
    copy = linked(folder)
    for name, expected in read_manifest(folder, kind).files.items():
        changed = (folder / name).read_bytes()[:-1] + b"!"
        (copy / name).unlink()
        (copy / name).write_bytes(changed)
        found = hashlib.sha256(changed).hexdigest()
        with pytest.raises(EmbedderError, match=f"'{name}' was changed.*{expected}.*{found}") as caught:
            KINDS[kind].make(str(copy)).embed(TEXTS)
        assert str(copy) in str(caught.value)
        assert f"make it again with: {COMMANDS[kind]}" in str(caught.value)
        (copy / name).unlink()
        (copy / name).symlink_to(folder / name)


def test_without_the_extra_the_message_names_it(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    package = KINDS[kind].package
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"This needs '{package}', which is not installed.*'\.\[{kind}\]'"):
        KINDS[kind].make(str(folder)).embed(TEXTS)


PLAYED = """
import sys
import gymnasium as gym
import inquitree_gym
env = gym.make("InquiTree-paper2-v0", embedder=sys.argv[1])
env.reset(seed=0)
env.step("How do the animals find their way, and which cells tell them?")
print([name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
"""


def test_a_process_that_reads_through_it_imports_no_torch(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", PLAYED, f"{kind}:{folder}"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
