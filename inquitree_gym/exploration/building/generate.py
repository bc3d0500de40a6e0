"""Libraries from a seed and a world."""

from __future__ import annotations

from inquitree_gym.exploration.building.papers import draw_papers
from inquitree_gym.exploration.building.records import Names, draw_records, record_page, stream
from inquitree_gym.exploration.building.schemas import databases, glossaries
from inquitree_gym.exploration.library import NAME, Document, Library, LibrarySpec

_NAMES = 90
_PAGES = 91


def build_library(spec: LibrarySpec) -> Library:
    """Draw a library. The same specification has the same bytes on every platform."""
    names = Names(stream(spec, _NAMES, "names"))
    records = draw_records(spec, names)
    labelled = {key: str(record[NAME]) for table in records.values() for key, record in table.items()}
    wording = stream(spec, _PAGES, "wording")
    documents: dict[str, Document] = {}
    for name, table in records.items():
        for key, record in table.items():
            documents[key] = record_page(key, record, databases()[name], labelled, wording)
    documents |= glossaries()
    papers, written = draw_papers(spec, names, records, spec.size - len(documents))
    return Library(spec, databases(), records, papers, documents | written)
