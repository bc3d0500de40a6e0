"""The built wheel by itself: whatever users need works from it, in an empty folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from inquitree_gym.embeddings.local import ADAPTER_DIGEST, READER, ReaderEmbedder
from inquitree_gym.embeddings.vectors import PARTS, shipped_file

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.weights, pytest.mark.e2e]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel alone was unpacked."""
    built, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("installed")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(built)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def inquitree(installed: Path, folder: Path, *arguments: object) -> str:
    """Run a command of the wheel in an empty folder, and return what it printed."""
    program = "import inquitree_gym.cli; inquitree_gym.cli.main()"
    environment = os.environ | {"PYTHONPATH": str(installed), "INQUITREE_MODELS": str(folder / "models")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_alone(installed: Path):
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {"inquitree_gym"}
    program = [sys.executable, "-P", "-c", "import inquitree_gym; print(inquitree_gym.__file__)"]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    found = subprocess.run(program, cwd=installed.parent, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(installed)


def test_the_wheel_holds_the_adapter_of_the_reader(installed: Path):
    files = sorted((installed / "inquitree_gym" / "embeddings" / "data").iterdir())
    adapters = [file for file in files if file.suffix == ".safetensors"]
    digests = {file.stem: hashlib.sha256(file.read_bytes()).hexdigest() for file in adapters}
    assert digests == {READER: ADAPTER_DIGEST}
    assert {file.name for file in files} - {file.name for file in adapters} == {
        shipped_file(part, ReaderEmbedder.digest).name for part in PARTS
    }


def test_a_shipped_tree_is_checked(installed: Path, tmp_path: Path):
    assert inquitree(installed, tmp_path, "check", "8").startswith("paper8: 16 notes\n")


def test_bounds_are_measured(installed: Path, tmp_path: Path):
    assert "paper8" in inquitree(installed, tmp_path, "bounds", "8", "--episodes", "100")
