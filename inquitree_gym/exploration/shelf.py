"""The shelf: the shipped papers as a library of their trees, a page for each paper, subtopic and study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inquitree_gym.exploration.library import JOIN, NAME, Column, Database, Document, Library, Record, paged
from inquitree_gym.exploration.schema import ShelfSpec
from inquitree_gym.trees import Tree
from inquitree_gym.trees.catalogue import CATALOGUE
from inquitree_gym.trees.document import Subtopic
from inquitree_gym.trees.load import load_tree
from inquitree_gym.trees.worlds import actual_world, in_world

_SCHEMAS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "papers": ("paper", {"year": "year", "venue": "category", "first_author": "category", "team": "number",
                         "subtopics": "number", "studies": "number"}),
    "subtopics": ("subtopic", {"paper": "papers", "studies": "number", "prerequisites": "number"}),
    "studies": ("study", {"subtopic": "subtopics"}),
}  # fmt: skip
"""Noun and columns of the databases: the kind of a column, or the database that it leads to."""


class Shelf(Library):
    """The library of the shipped papers. All of its facts stand in records."""

    @property
    def facts(self) -> Mapping[str, Mapping[str, Record]]:
        """Records by database and key."""
        return self.records


def build_shelf(spec: ShelfSpec) -> Shelf:
    """Return the library of all shipped papers, from their trees: what papers hold in the world that they report."""
    trees = {name: load_tree(name) for name, entry in CATALOGUE.items() if entry.distributable}
    records: dict[str, dict[str, Record]] = {name: {} for name in _SCHEMAS}
    documents: dict[str, Document] = {}
    for name, tree in trees.items():
        paper = tree.paper
        records["papers"][name] = {
            NAME: paper.title,
            "year": paper.year,
            "venue": paper.journal,
            "first_author": paper.authors[0],
            "authors": JOIN.join(paper.authors),
            "team": len(paper.authors),
            "subtopics": len(tree.subtopics),
            "studies": len(tree.studies),
        }
        for subtopic in tree.subtopics:
            key = f"{name}-{subtopic.id}"
            counts = {"studies": len(subtopic.studies), "prerequisites": len(subtopic.prerequisites)}
            records["subtopics"][key] = {NAME: subtopic.name, "paper": name, **counts}
            records["studies"] |= {
                f"{name}-{study.id}": {NAME: study.text, "subtopic": key} for study in subtopic.studies
            }
        documents |= {document.id: document for document in _documents(name, tree)}
    databases = {name: _database(name, table) for name, table in records.items()}
    return Shelf(spec=spec, databases=databases, records=records, papers={}, documents=documents)


def _database(name: str, table: Mapping[str, Record]) -> Database:
    noun, columns = _SCHEMAS[name]
    return Database(title=name.capitalize(), noun=noun, key="", weight=0, name="", columns=tuple(
        _column(each, kind, {str(record[each]) for record in table.values()}) for each, kind in columns.items()
    ))  # fmt: skip


def _column(name: str, kind: str, values: set[str]) -> Column:
    """Return a column. Only a category has its values as choices."""
    label = name.replace("_", " ")
    if kind in _SCHEMAS:
        return Column(name=name, kind="link", labels=(label,), asks="belongs to", to=kind)
    own = (
        {"units": ((label, 1.0),)}
        if kind == "number"
        else {"choices": tuple(sorted(values))}
        if kind == "category"
        else {}
    )
    return Column.model_validate({"name": name, "kind": kind, "labels": (label,), "asks": "has", **own})


def _documents(name: str, tree: Tree) -> Iterator[Document]:
    """Yield the documents of a paper: its own, and those of its subtopics and their studies."""
    paper, world = tree.paper, in_world(tree, actual_world(tree))
    results = {study.id: study.results[0] for study in world.studies}
    yield Document(name, paper.title, paged("\n".join([
        paper.title,
        f"{', '.join(paper.authors)}. {paper.journal}. {paper.year}.",
        f"Number of authors: {len(paper.authors)}",
        f"Question: {tree.topic}",
        f"Studies: {len(tree.studies)}. Subtopics: {len(tree.subtopics)}, which are:",
        *(f"{name}-{each.id} · {each.name}" for each in tree.subtopics),
        "Conclusions:",
        *(item.text for item in world.conclusions),
    ])))  # fmt: skip
    for subtopic in tree.subtopics:
        yield Document(f"{name}-{subtopic.id}", subtopic.name, paged("\n".join(_subtopic_lines(name, tree, subtopic))))
        for study in subtopic.studies:
            text = (
                f"Subtopic: {name}-{subtopic.id} · {subtopic.name}\nProtocol: {study.text}\nResult: {results[study.id]}"
            )
            yield Document(f"{name}-{study.id}", f"Study {study.id} of {subtopic.name}", paged(text))


def _subtopic_lines(name: str, tree: Tree, subtopic: Subtopic) -> Iterator[str]:
    yield subtopic.name
    yield f"Paper: {name} · {tree.paper.title}"
    yield f"Question: {subtopic.text}"
    yield f"Prerequisites: {len(subtopic.prerequisites)}"
    yield from (f"  {name}-{each}" for each in subtopic.prerequisites)
    yield f"Studies: {len(subtopic.studies)}, which are:"
    yield from (f"{name}-{study.id} · {study.text}" for study in subtopic.studies)
