"""The eight databases, what papers are written with, and the glossaries of their methods, from data files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from inquitree_gym.exploration.library import PAPERS, Database, Document, paged
from inquitree_gym.fiction.documents import SCIENCES

_NUMBER = re.compile(r"\d+")


class MethodKind(NamedTuple):
    """A kind of tool or of condition."""

    words: tuple[str, ...]
    """Broader words, each as good as the others."""
    members: tuple[str, ...]
    """Terms that papers use."""


def _data(name: str) -> dict[str, Any]:
    file = resources.files("inquitree_gym").joinpath("exploration", "building", "data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def databases() -> dict[str, Database]:
    """Return the databases by name, each after those that its links lead to."""
    return {name: Database.model_validate_json(json.dumps(schema)) for name, schema in _data("schemas").items()}


@cache
def _forms() -> dict[str, str]:
    return {_NUMBER.sub("0", schema.key.format(0)): name for name, schema in databases().items()}


def database_of(document: str) -> str:
    """Return the database of a document by its id, or ``papers`` or ``glossaries``.

    >>> database_of("TX-00012"), database_of("GLO-physics"), database_of("W00001")
    ('taxa', 'glossaries', 'papers')
    """
    other = "glossaries" if document.startswith(glossary_name("")) else PAPERS
    return _forms().get(_NUMBER.sub("0", document), other)


@cache
def paper_templates() -> dict[str, tuple[str, ...]]:
    """Return the sentences of papers by what they say, several wordings of each."""
    return {name: tuple(wordings) for name, wordings in _data("papers").items()}


@cache
def kinds(of: str) -> tuple[MethodKind, ...]:
    """Return the kinds of ``tools`` or ``conditions``, or the other words for ``quantities`` or ``settings``."""
    return tuple(MethodKind(tuple(each["words"]), tuple(each["members"])) for each in _data("methods")[of])


def kind_of(of: str, member: str) -> MethodKind:
    """Return the kind that a term of papers belongs to."""
    return next(kind for kind in kinds(of) if member in kind.members)


@cache
def openings() -> tuple[str, ...]:
    """Return the sentences of questions about the method of a paper."""
    return tuple(_data("methods")["openings"])


def glossary_name(science: str) -> str:
    """Return the id of the glossary of a science."""
    return f"GLO-{science}"


def glossaries() -> dict[str, Document]:
    """Return a page for every science: the broader words, and the terms of its papers that they stand for."""
    terms = {name: {*about.tools, *(each.phrase for each in about.quantities)} for name, about in SCIENCES.items()}
    return {glossary_name(science): _glossary(science, own) for science, own in terms.items()}


def _glossary(science: str, own: Collection[str]) -> Document:
    """Return the glossary of a science, with terms of its own and all conditions."""
    name, title = glossary_name(science), f"Glossary of {science}"
    lines = [f"{title} ({name})", "Broader words: terms in papers of this science", ""]
    shared = {term for kind in (*kinds("conditions"), *kinds("settings")) for term in kind.members}
    for kind in (*kinds("tools"), *kinds("conditions"), *kinds("settings"), *kinds("quantities")):
        terms = [term for term in kind.members if term in shared or term in own]
        lines += [f"{' / '.join(kind.words)}: {'; '.join(terms)}"] if terms else []
    return Document(name, title, paged("\n".join(lines)))
