"""Real weights for every test; hashed words instead where ``-m "not weights"`` selects the fast tests."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Small models gain nothing from a second thread, and threads of parallel test processes wait for each other: one test
# took 195 s with the default and takes 12 s with one thread. It must be set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, load_embedder, registry
from inquitree_gym.files import CACHE_VARIABLE
from tests.hashing import HashingEmbedder
from tests.results.browser import CHROMIUM
from tests.results.drawing import drawing, one_drawing
from tests.servers import KEY, Service, close_clients

NEEDED = {
    "torch": (
        "embeddings/test_artifacts.py", "embeddings/test_local.py", "integrations/test_sb3.py",
        "inquiry/judges/test_nli.py", "test_examples.py",
    ),
    "mcp": ("integrations/test_mcp.py",),
    "trl": ("integrations/test_trl.py",),
    "verifiers": ("integrations/test_verifiers.py",),
    "datasets": ("cli/test_export.py",),
    "inspect_ai": ("integrations/test_inspect.py",),
    "openenv": ("integrations/test_openenv.py",),
    "pypdf": ("authoring/test_author.py", "authoring/test_extract.py"),
    "lxml": ("authoring/test_author.py", "authoring/test_extract.py"),
    "matplotlib": ("authoring/test_author.py", "authoring/test_extract.py"),
}  # fmt: skip
"""Modules that import a package when they are collected, and are left out where it, or what it needs, is missing."""
collect_ignore = [file for package, files in NEEDED.items() if find_spec(package) is None for file in files]
collect_ignore += ["results/test_browser.py"] * (CHROMIUM is None)

FAST = "not weights"
"""Marker expression of the fast tests."""
REST = "weights or e2e"
"""Marker expression of all others. Tests that are handed an embedder by `REAL` run with both."""
REAL = frozenset({"minilm", "reader"})
ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.(?:weights|e2e)\b", re.MULTILINE)
"""Lines of a module that holds no fast test; many of these modules import torch."""

# A timing never decides a test.
settings.register_profile("untimed", deadline=None, max_examples=40)
settings.register_profile("fast", deadline=None, max_examples=30)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests out of the user's cache, and let the fast ones run without the weights, on fewer examples."""
    share_cache(config)
    if config.option.markexpr == FAST:
        settings.load_profile("fast")
        for name in registry._NAMED:
            registry._NAMED[name] = lambda device, name=name: HashingEmbedder(name)


def share_cache(config: pytest.Config) -> None:
    """Name a temporary folder as the cache of all processes of the session, if none is named."""
    if not os.environ.get(CACHE_VARIABLE):
        os.environ[CACHE_VARIABLE] = folder = tempfile.mkdtemp(prefix="inquitree-cache-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.add_cleanup(lambda: os.environ.pop(CACHE_VARIABLE, None))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave helpers unread, which hold no test, and modules without a fast one where only the fast tests are wanted."""
    if collection_path.suffix != ".py":
        return None
    if not collection_path.name.startswith("test_"):
        return True
    if config.option.markexpr != FAST:
        return None
    return ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) is not None or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that take their time out of the fast ones, and let others that take an embedder join the rest."""
    if config.option.markexpr == REST:
        for item in items:
            if not REAL.isdisjoint(getattr(item, "fixturenames", ())):
                item.add_marker("weights")
    if config.option.markexpr == FAST:
        slow = [item for item in items if item.get_closest_marker("e2e")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


@pytest.fixture(scope="session", autouse=True)
def undrawn() -> Iterator[None]:
    """Draw one figure for all pages of the session, but for the tests that ask for `drawn`."""
    with one_drawing():
        yield


@pytest.fixture
def drawn() -> Iterator[None]:
    """Draw every figure."""
    with drawing():
        yield


@pytest.fixture(scope="session")
def minilm() -> Embedder:
    """MiniLM, loaded once: real weights, but for the fast tests."""
    return load_embedder("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def reader() -> Embedder:
    """The default embedder, loaded once: real weights, but for the fast tests."""
    return load_embedder(DEFAULT_EMBEDDER)


@pytest.fixture(scope="session")
def loopback() -> Iterator[Service]:
    """One server for all tests: litellm keeps a client for each address, and drops the oldest without closing it."""
    with Service() as started:
        yield started
    close_clients()


@pytest.fixture
def service(loopback: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server on loopback that speaks OpenAI's protocol, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loopback.begin()
    yield loopback
    loopback.release()
