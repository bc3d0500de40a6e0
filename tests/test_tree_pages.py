"""The pages about trees, which the site makes from the trees, are whole, and their links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from inquitree_gym.trees import builtin_ids, load_tree

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "trees"
IDS = builtin_ids()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tree_pages", ROOT / "scripts" / "tree_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(script: ModuleType) -> dict[str, str]:
    return script.pages()


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def words(svg: str) -> str:
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return " ".join("".join(text.itertext()) for text in texts)


@pytest.mark.e2e
def test_there_is_a_page_and_a_picture_for_every_shipped_tree_and_nothing_else(made: dict[str, str]) -> None:
    assert set(made) == {"README.md"} | {f"{name}.md" for name in IDS} | {f"figures/{name}.svg" for name in IDS}


@pytest.mark.parametrize("name", IDS)
def test_a_picture_names_every_subtopic(made: dict[str, str], name: str) -> None:
    shown = words(made[f"figures/{name}.svg"])
    for subtopic in load_tree(name).subtopics:
        # A name may be broken at its hyphens, and then reads with a space after them.
        assert re.sub(r"-\s?", "-", f"{subtopic.id} {subtopic.name}") in re.sub(r"-\s?", "-", shown)


@pytest.mark.parametrize("name", IDS)
def test_results_fakes_and_conclusions_are_folded_away(made: dict[str, str], name: str) -> None:
    text = made[f"{name}.md"].partition("## Provenance")[0]
    folded = "".join(re.findall(r"<details>.*?</details>", text, re.DOTALL))
    shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    tree = load_tree(name)
    assert all(folded.count(f"\n| {study.id} |") >= len(study.outcomes) for study in tree.studies)
    assert all(f"\n| {item.id} |" in folded for item in tree.conclusions)
    assert not re.search(r"\*\*result\*\*|\| fake |, wording \d|\| c\d+ \|", shown)


@pytest.mark.parametrize("name", ["README", *IDS])
def test_every_relative_link_resolves(made: dict[str, str], name: str) -> None:
    page = f"{name}.md"
    links = [link for link in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", made[page]) if "://" not in link]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        target = (FOLDER / path).resolve()
        assert (path or page) in made or (target.is_file() and target.is_relative_to(ROOT)), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", made[path or page], re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_tables_of_all_trees_add_up(made: dict[str, str]) -> None:
    rows = [cells(row) for row in made["README.md"].splitlines() if row.startswith(("| [paper", "| all "))]
    shapes, shares = rows[: len(IDS) + 1], rows[len(IDS) + 1 :]
    assert (
        [row[0] for row in shapes] == [row[0] for row in shares] == [*(f"[{name}]({name}.md)" for name in IDS), "all"]
    )
    for shape, (_, _, *parts, weak) in zip(shapes, shares, strict=True):
        # Each share is rounded by itself.
        assert sum(map(int, parts)) == pytest.approx(100, abs=3)
        assert int(weak) == pytest.approx(sum(map(int, parts[3:])), abs=2)
        assert shape[-1] == weak
    for table, column in ((shapes, 5), (shapes, 6), (shares, 1)):
        assert sum(int(row[column]) for row in table[:-1]) == int(table[-1][column])
