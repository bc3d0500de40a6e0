"""Packages that are not installed: every message names a command that works from a clone, for every extra."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import gymnasium as gym
import pytest

from inquitree_gym import load_tree, make_agent
from inquitree_gym.authoring import extract
from inquitree_gym.authoring.sources import SpringerNature
from inquitree_gym.cli import harnesses
from inquitree_gym.cluster import LOCAL, connected
from inquitree_gym.embeddings import derived, load_embedder
from inquitree_gym.embeddings.local import MiniLMEmbedder
from inquitree_gym.errors import InquiTreeError, install_advice
from inquitree_gym.inquiry.bounds.report import check_figure
from inquitree_gym.integrations.trl import TRLSpec
from inquitree_gym.llm import ChatModel, run_sync
from inquitree_gym.llm.litellm import load_litellm
from inquitree_gym.results.figures import Chart
from inquitree_gym.trees.drawing import figure
from research.onnx.graph import export_onnx
from tests.contract.command_line import inquitree
from tests.inquiry.test_batch import LETTERS

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
COMMAND = re.compile(r"In a clone of the repository(, and in a separate environment)?, run: pip install (.*)")
SHARED = re.compile(r"-c (constraints\.txt) '\.\[(\w+)\]'")
SEPARATE = re.compile(r"-c (constraints-\w+\.txt) '\.\[(\w+),offline\]'")


def advised(message: str) -> str:
    """Return the extra of the command in a message, after checking that the command works in a clone."""
    told = COMMAND.search(message)
    assert told is not None, message
    command = (SEPARATE if told[1] else SHARED).fullmatch(told[2])
    assert command is not None, message
    pins, extra = command.groups()
    assert (ROOT / pins).is_file()
    assert extra in EXTRAS
    assert pins == ("constraints.txt" if not told[1] else f"constraints-{extra}.txt")
    return extra


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_for_an_extra_takes_its_own_constraints(extra: str):
    assert advised(install_advice(extra)) == extra
    alone = (ROOT / f"constraints-{extra}.txt").is_file()
    assert alone == ("in a separate environment" in install_advice(extra))


def sources() -> list[Path]:
    return [file for package in ("inquitree_gym", "research") for file in sorted((ROOT / package).rglob("*.py"))]


def asked() -> tuple[set[tuple[str, str]], set[str]]:
    """Return the packages that the code asks for with their extras, and the files that name either by a variable."""
    pairs, others = set(), set()
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
                module, extra = node.args
                if isinstance(module, ast.Constant) and isinstance(extra, ast.Constant):
                    pairs.add((module.value.partition(".")[0], extra.value))
                else:
                    others.add(file.name)
    return pairs, others


class Absent:
    """Finder that hides a package and its modules."""

    def __init__(self, package: str):
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Absence(NamedTuple):
    """A package that is not installed, and the extra that brings it."""

    package: str
    extra: str
    door: Callable[[Path], Any]
    """Call that needs the package, with an empty folder at hand."""


def connect(folder: Path) -> None:
    with connected(LOCAL):
        pass


def from_command(*words: str) -> Callable[[Path], None]:
    """Return a call of a verb that raises its error."""

    def door(folder: Path) -> None:
        done = inquitree(*words)
        assert done.status == 2
        raise InquiTreeError(done.said)

    return door


ADAPTERS = [f"inquitree_gym.integrations.{name}" for name in ("inspect", "mcp", "openenv", "sb3", "verifiers")]


def adapter(name: str) -> Callable[[Path], Any]:
    return lambda folder: import_module(f"inquitree_gym.integrations.{name}")


def saved(**data: Any) -> Callable[[Path], Any]:
    """Return a call that loads a saved model whose settings are ``data``."""

    def door(folder: Path) -> Any:
        with ZipFile(folder / "model.zip", "w") as archive:
            archive.writestr("data", json.dumps(data))
        return make_agent(f"policy:{folder / 'model.zip'}", gym.make("InquiTree-paper2-v0", embedder=LETTERS))

    return door


def static(folder: Path) -> Any:
    (folder / "weights").write_bytes(b"")
    about = {"kind": "static", "source": "", "threshold": 0.5, "files": {"weights": hashlib.sha256(b"").hexdigest()}}
    (folder / derived.MANIFEST).write_text(json.dumps(about), "utf-8")
    return load_embedder(f"static:{folder}").dim


def chat(folder: Path) -> Any:
    return run_sync(ChatModel("openai/any", base_url="http://127.0.0.1:9").complete([{"role": "user", "content": "a"}]))


def searched() -> Any:
    env = gym.make("SciExplore-T1-v0")
    env.reset(seed=0)
    return env.step("SEARCH mass")


SB3, CONTRIB = ({"policy_class": {"__module__": name}, "clip_range": 0} for name in ("policies", "maskable.policies"))
DOORS = [
    Absence("matplotlib", "plots", lambda folder: figure(load_tree("paper8"))),
    Absence("matplotlib", "plots", lambda folder: check_figure(folder / "bounds.svg")),
    Absence("matplotlib", "plots", lambda folder: Chart("a", "a", print, 1).files()),
    Absence("ray", "ray", connect),
    Absence("litellm", "llm", chat),
    Absence("openai", "llm", chat),
    Absence("litellm", "llm", lambda folder: load_embedder("litellm:openai/any").embed(["a"])),
    Absence("openai", "llm", lambda folder: load_embedder("litellm:openai/any").embed(["a"])),
    Absence("httpx", "llm", lambda folder: SpringerNature("key")._get("json", "a", 1)),
    Absence("stable_baselines3", "rl", adapter("sb3")),
    Absence("stable_baselines3", "rl", saved(**SB3)),
    Absence("sb3_contrib", "rl", saved(**CONTRIB)),
    Absence("onnxruntime", "onnx", lambda folder: derived._session(folder / "model.onnx", 1, "cpu")),
    Absence("tokenizers", "onnx", lambda folder: derived._tokenizer(folder / "tokenizer.json")),
    Absence("model2vec", "static", static),
    Absence("bm25s", "explore", lambda folder: searched()),
    Absence("pypdf", "author", lambda folder: extract._pdf(b"%PDF-", folder)),
    Absence("lxml", "author", lambda folder: extract._html(b"<html>", folder)),
    Absence("onnx", "test", lambda folder: export_onnx(folder, MiniLMEmbedder())),
    Absence("datasets", "trl", lambda folder: TRLSpec("paper8").train_dataset),
    Absence("verifiers", "verifiers", adapter("verifiers")),
    Absence("mcp", "mcp", adapter("mcp")),
    Absence("mcp", "mcp", from_command("mcp", "paper2")),
    Absence("uvicorn", "mcp", lambda folder: harnesses._serve(None, None, "mcp")),
    Absence("inspect_ai", "inspect", adapter("inspect")),
    Absence("openenv", "openenv", adapter("openenv")),
    Absence("openenv", "openenv", from_command("serve")),
    Absence("uvicorn", "openenv", lambda folder: harnesses._serve(None, None, "openenv")),
]


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("absence", DOORS, ids=lambda absence: f"{absence.package}-{absence.extra}")
def test_a_package_that_is_not_installed_is_named_with_a_command(
    absence: Absence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if absence.package == "openai":
        load_litellm()  # which needs it, too
    package = absence.package
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}.") or name in ADAPTERS:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(package), *sys.meta_path])
    with pytest.raises(InquiTreeError) as caught:
        absence.door(tmp_path)
    assert f"This needs '{absence.package}', which is not installed. In a clone of the repository" in str(caught.value)
    assert advised(str(caught.value)) == absence.extra


def test_every_package_that_the_code_asks_for_is_tried():
    pairs, others = asked()
    assert pairs < {(absence.package, absence.extra) for absence in DOORS}
    assert others == {"harnesses.py", "policy.py"}, "these ask for uvicorn, and for the package of a saved model"


def test_one_place_writes_the_command():
    told = {file.name for file in sources() if "pip install" in file.read_text("utf-8")}
    assert told == {"errors.py"}
    assert not [file.name for file in sources() if "inquitree-gym[" in file.read_text("utf-8")]


def test_the_pages_install_from_a_clone_with_constraints():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")]
    lines = [line for page in pages for line in page.read_text("utf-8").splitlines() if "pip install" in line]
    lines = [line for line in lines if "pip install --no-deps " not in line]  # packages with pins of their own
    assert lines
    assert [line for line in lines if not re.search(r"pip install -c constraints(-\w+)?\.txt (-e )?'\.\[", line)] == []


def test_the_readme_names_the_extra_of_each_row():
    tables = re.findall(r"^\| you .*?(?=\n\n)", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(tables) == 2
    for head, _, *rows in map(str.splitlines, tables):
        assert head.endswith("| extra |")
        for row in rows:
            cell = row.split(" | ")[-1]
            named = set(re.findall(r"`(\w+)`", cell))
            assert named <= set(EXTRAS), row
            alone = [extra for extra in named if (ROOT / f"constraints-{extra}.txt").is_file()]
            assert ("in a separate environment" in cell) == bool(alone), row
