"""A corpus of scientific English: sentences from the docstrings of two packages that are installed anyway."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

PACKAGES = ("scipy", "sklearn")
SEED = 0
"""Seed of the order of files."""
PER_FILE = 8
"""Sentences per file, so that no topic dominates."""
WORDS = range(8, 46)
_SENTENCE = re.compile(r"[A-Z][A-Za-z ,;'()\-]{40,300}\.")
"""Plain prose without code, formulas or markup."""
_END = re.compile(r"(?<=[.!?]) +(?=[A-Z])")


def scientific_sentences(count: int) -> list[str]:
    """Return up to ``count`` distinct sentences, the same for the same versions of the packages."""
    found: dict[str, None] = {}
    files = _files()
    while len(found) < count and (file := next(files, None)):
        found.update(dict.fromkeys(islice(_sentences(file), PER_FILE)))
    return list(islice(found, count))


def _files() -> Iterator[Path]:
    files = [file for name in PACKAGES for file in sorted(_root(name).rglob("*.py")) if "tests" not in file.parts]
    order = np.random.default_rng(SEED).permutation(len(files))
    return (files[index] for index in order)


def _root(package: str) -> Path:
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    assert places, f"{package} is a dependency of this package"
    return Path(places[0])


def _sentences(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                for sentence in _END.split(" ".join(paragraph.split())):
                    if _SENTENCE.fullmatch(sentence) and len(sentence.split()) in WORDS:
                        yield sentence
