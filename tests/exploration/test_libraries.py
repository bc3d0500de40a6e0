"""Libraries: functions of seed and world, and their documents."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.schemas import database_of, glossaries
from inquitree_gym.exploration.library import PAGE, Library, LibrarySpec

DIGEST = "37cac0d77aaae712c90d4c773bca593c83ea08f00a5141d7484e9433266fc6fe"


@pytest.fixture(scope="module")
def library() -> Library:
    return build_library(LibrarySpec(seed=1, size=200))


def test_a_library_is_the_same_bytes_in_every_process(library: Library) -> None:
    assert library.digest == DIGEST
    code = (
        "from inquitree_gym.exploration.building.generate import build_library as b\n"
        "from inquitree_gym.exploration.library import LibrarySpec as S\n"
        "print(b(S(seed=1, size=200)).digest)"
    )
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert again.stdout.strip() == DIGEST


def test_another_seed_is_another_library(library: Library) -> None:
    assert build_library(LibrarySpec(seed=3, size=200)).digest != library.digest


@pytest.mark.parametrize("size", [100, 200, 2_000])
def test_a_library_has_the_size_that_was_asked_for(size: int) -> None:
    library = build_library(LibrarySpec(seed=1, size=size))
    counts = sorted(len(records) for records in library.records.values())
    assert len(library.documents) == size
    assert len(library.records) == 8
    assert sum(counts) + len(library.papers) + len(glossaries()) == size
    assert counts[-1] >= 5 * counts[0]


def test_links_lead_to_records_of_the_database_that_they_name(library: Library) -> None:
    for name, records in library.records.items():
        for column in library.databases[name].links:
            assert {record[column.name] for record in records.values()} <= set(library.records[column.to])


def test_every_page_fits(library: Library) -> None:
    pages = [page for document in library.documents.values() for page in document.pages]
    assert all(0 < len(page) <= PAGE for page in pages)
    assert all(len(library.documents[key].pages) == 1 for records in library.records.values() for key in records)


def test_databases_and_pages_differ_in_their_conventions(library: Library) -> None:
    pages = [library.documents[key].pages[0] for key in library.records["trials"]]
    assert {"Dose", "Amount given"} == {line.split(":")[0] for page in pages for line in page.splitlines()} & {
        "Dose", "Amount given",
    }  # fmt: skip
    assert any(" min\n" in page for page in pages)
    assert any(" h\n" in page for page in pages)
    assert any(": –" in page for page in pages)


def test_the_abstract_of_three_papers_in_ten_has_another_number_than_the_body() -> None:
    library = build_library(LibrarySpec(seed=1, size=2_000))
    decoys = [paper for paper in library.papers.values() if paper.abstract_number != paper.completed]
    assert 0.25 < len(decoys) / len(library.papers) < 0.35
    for paper in decoys[:20]:
        place, page = paper.places["completed"]
        abstract = next(line for line in library.documents[place].pages[0].splitlines() if line.startswith("Abstract"))
        assert paper.abstract_number == paper.enrolled
        assert str(paper.enrolled) in abstract
        assert str(paper.completed) in library.documents[place].pages[page - 1]


def test_the_numbers_of_some_papers_stand_beyond_the_first_page(library: Library) -> None:
    assert any(paper.places["completed"][1] > 1 for paper in library.papers.values())


def test_a_world_turns_one_relation_around_and_nothing_else(library: Library) -> None:
    other = build_library(LibrarySpec(seed=1, size=200, world=2))
    assert other.records == library.records
    changed = [name for name, paper in library.papers.items() if other.papers[name].direction != paper.direction]
    kept = [name for name in library.papers if name not in changed]
    assert 0 < len(changed) < len(kept)
    assert len({(library.papers[name].factor, library.papers[name].quantity) for name in changed}) == 1
    assert all(other.documents[name] == library.documents[name] for name in kept)
    assert all(other.papers[name].title == library.papers[name].title for name in changed)


def test_the_digest_covers_every_page(library: Library) -> None:
    documents = dict(library.documents)
    name, document = next(iter(documents.items()))
    documents[name] = type(document)(document.id, document.title, (document.pages[0] + "!",))
    other = Library(library.spec, library.databases, library.records, library.papers, documents)
    assert other.digest != library.digest
    assert "canary" in library.canary
    assert json.loads(library.spec.model_dump_json())["seed"] == 1


@pytest.mark.parametrize("size", [200, 20_000])
def test_an_id_tells_the_database_of_its_document(size: int) -> None:
    library = build_library(LibrarySpec(seed=1, size=size))
    tables = {**library.records, "papers": library.papers}
    named = {key: name for name, table in tables.items() for key in table}
    assert {key: database_of(key) for key in named} == named
    assert {database_of(key) for key in library.documents.keys() - named.keys()} == {"glossaries"}
