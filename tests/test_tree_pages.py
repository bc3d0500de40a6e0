"""The pages in docs/trees are those that the script makes from the trees, and their links lead somewhere."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from inquitree_gym.trees import CANARY, builtin_ids, load_tree

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "trees"
IDS = builtin_ids()
MEND = "run: python scripts/tree_pages.py"
REVIEW_HEAD = ["pass", "node", "finding", "change"]


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


def kept(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def words(svg: str) -> str:
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return " ".join("".join(text.itertext()) for text in texts)


def same_matplotlib() -> bool:
    return f"matplotlib=={importlib.metadata.version('matplotlib')}\n" in (ROOT / "constraints.txt").read_text()


@pytest.mark.e2e
def test_there_is_a_page_and_a_picture_for_every_shipped_tree_and_nothing_else(made: dict[str, str]) -> None:
    wanted = {"README.md"} | {f"{name}.md" for name in IDS} | {f"figures/{name}.svg" for name in IDS}
    there = {path.relative_to(FOLDER).as_posix() for path in (*FOLDER.glob("*.md"), *FOLDER.glob("figures/*"))}
    assert set(made) == wanted
    assert there == wanted, MEND


@pytest.mark.parametrize("name", ["README", *IDS])
def test_a_page_is_what_the_script_makes_now(made: dict[str, str], name: str) -> None:
    assert kept(f"{name}.md") == made[f"{name}.md"], MEND


@pytest.mark.skipif(not same_matplotlib(), reason="the bytes of a picture hold for the pinned Matplotlib")
@pytest.mark.parametrize("name", IDS)
def test_a_picture_is_what_the_script_makes_now(made: dict[str, str], name: str) -> None:
    assert kept(f"figures/{name}.svg") == made[f"figures/{name}.svg"], MEND


@pytest.mark.parametrize("name", IDS)
def test_a_picture_names_every_subtopic(name: str) -> None:
    shown = words(kept(f"figures/{name}.svg"))
    for subtopic in load_tree(name).subtopics:
        # A name may be broken at its hyphens, and then reads with a space after them.
        assert re.sub(r"-\s?", "-", f"{subtopic.id} {subtopic.name}") in re.sub(r"-\s?", "-", shown)


@pytest.mark.parametrize("name", ["README", *IDS])
def test_a_page_starts_with_its_origin_and_the_canary(name: str) -> None:
    first, _, third = kept(f"{name}.md").splitlines()[:3]
    assert first.startswith("> Generated from ")
    assert "python scripts/tree_pages.py" in first
    assert third == f"> {CANARY}"


@pytest.mark.parametrize("name", IDS)
def test_results_fakes_and_conclusions_are_folded_away(name: str) -> None:
    text = kept(f"{name}.md").partition("## Provenance")[0]
    folded = "".join(re.findall(r"<details>.*?</details>", text, re.DOTALL))
    shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    tree = load_tree(name)
    assert folded.count("**result**") == len(tree.studies)
    assert folded.count("| fake ") == sum(len(study.fakes) for study in tree.studies)
    assert all(f"\n| {item.id} |" in folded for item in tree.conclusions)
    assert not re.search(r"\*\*result\*\*|\| fake |\| c\d+ \|", shown)


@pytest.mark.parametrize("name", IDS)
def test_every_table_row_has_as_many_cells_as_its_head(name: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", kept(f"{name}.md"), re.MULTILINE):
        assert len({len(cells(row)) for row in table.splitlines()}) == 1, table


@pytest.mark.parametrize("name", IDS)
def test_the_review_table_is_filled_and_covers_both_passes(script: ModuleType, name: str) -> None:
    head, _, *rows = map(cells, script.review_rows(name))
    assert head == REVIEW_HEAD
    assert len(rows) >= 5
    assert {row[0] for row in rows} >= {"content", "structure", "audit"}
    assert all(all(row) for row in rows)
    assert CANARY in kept(f"reviews/{name}.md")


@pytest.mark.parametrize("name", IDS)
def test_every_node_that_states_something_has_its_provenance_on_the_page(name: str) -> None:
    tree = load_tree(name)
    table = kept(f"{name}.md").partition("## Provenance")[2].partition("### Sources")[0]
    nodes = {"topic", *(node.id for node in (*tree.subtopics, *tree.studies, *tree.conclusions))}
    assert {cells(row)[0] for row in table.splitlines() if row.startswith("|")} - {"node", "---"} == nodes


@pytest.mark.parametrize("name", ["README", *IDS])
def test_every_relative_link_resolves(name: str) -> None:
    page = FOLDER / f"{name}.md"
    links = [link for link in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", kept(page.name)) if "://" not in link]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
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


@pytest.mark.parametrize("text", ["a|b", "*a* _b_ `c`", "[x](y) <z> ~d~ $e$", "back\\slash"])
def test_text_reaches_the_page_as_it_is(script: ModuleType, text: str) -> None:
    escaped = script._plain(text)
    assert re.sub(r"\\(.)", r"\1", escaped) == text
    assert not re.search(r"(?<!\\)[|*_`<>\[\]~$]", escaped)
