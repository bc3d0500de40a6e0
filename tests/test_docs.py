"""The docs say what is so: their Python runs, their links lead somewhere, and they leave nothing out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs" / "trees").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the source of every block in one language."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found.group(1) == language:
            yield text.count("\n", 0, found.start(2)), found.group(2)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # the async example forks
@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python"))], ids=name)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with mock.patch.dict(os.environ):
        for line, source in blocks(page, "python"):
            # Blank lines before it, so that a traceback names the line of the page.
            exec(compile("\n" * line + source, name(page), "exec"), names)
