"""Tree that is being written: the replies of a model so far, and the document that they make.

The paper's finding is the first pole of every axis until the document is complete; then the order of poles is drawn.
Ids are given by place: ``a1``, ``s1``, ``s1a``, ``c1``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from string import ascii_lowercase
from typing import Annotated, Any, Literal

from pydantic import Field

from inquitree_gym.authoring.extract import PaperDocument
from inquitree_gym.authoring.findings import Quotation
from inquitree_gym.errors import OptionError
from inquitree_gym.seeds import draw_orders, hash_text
from inquitree_gym.trees.disclosure import Disclosure
from inquitree_gym.trees.document import MAX_AXES, MAX_PARAPHRASES, MAX_WORDINGS, Name
from inquitree_gym.trees.fields import CANARY, HINT_LEVELS, FrozenModel, Identifier, Paper, Text

MAX_QUOTATION, MIN_QUOTATION = 200, 20
"""Longest and shortest quotation, in characters."""
MAX_FACTS = 99
"""Largest number of facts that ids of two digits can name."""
OPENING = 5_000
"""Characters in which the title of a paper is looked for."""
MIN_SHARED = 0.8
"""Smallest share of the words of a title that its paper's beginning has."""
MISSING = "not in the paper"
LEADS = {"subtopic": "Ask: ", "study": "Run the study: "}
"""Beginning of the last hint of a node, before its text."""

Quoted = Annotated[str, Field(min_length=MIN_QUOTATION, max_length=MAX_QUOTATION)]
Wordings = Annotated[tuple[Text, ...], Field(min_length=1, max_length=MAX_WORDINGS)]
Least = Annotated[tuple[Text, ...], Field(min_length=HINT_LEVELS - 1, max_length=HINT_LEVELS - 1)]


class OutlinedAxis(FrozenModel):
    """An axis whose first pole is what the paper reports."""

    question: Text
    poles: tuple[Text, ...] = Field(min_length=2, max_length=3)
    settled_by: Literal["data", "simulation", "paper"]


class OutlinedSubtopic(FrozenModel):
    """A question of the inquiry and its short name."""

    name: Name
    text: Text


class PaperOutline(FrozenModel):
    """Reply to the first pass: the paper's record, the topic, axes and subtopics."""

    experiment: bool
    """False for a text that is no paper with a study of its own."""
    title: Text
    authors: tuple[Text, ...] = Field(min_length=1)
    journal: Text
    published: str
    """Year, month or day, as far as the paper states it. Empty if it does not."""
    doi: str
    licence: Text
    topic: Text
    axes: tuple[OutlinedAxis, ...] = Field(min_length=1, max_length=MAX_AXES)
    subtopics: tuple[OutlinedSubtopic, ...] = Field(min_length=1, max_length=99)


class PlannedStudy(FrozenModel):
    """A study with what the paper found, and the words of the paper that say so."""

    subtopic: Identifier
    text: Text
    axes: tuple[Identifier, ...] = Field(max_length=2)
    wordings: Wordings
    support: Literal["sheet", "inferred"]
    quotation: Quoted


class Studies(FrozenModel):
    """Reply to the second pass."""

    studies: tuple[PlannedStudy, ...] = Field(min_length=1, max_length=MAX_FACTS)


class Contraries(FrozenModel):
    """Reply about one subtopic: wordings of the results of its studies under the other poles, by study and key."""

    results: dict[str, dict[str, Wordings]]


class PlannedItem(FrozenModel):
    """A conclusion item."""

    axes: tuple[Identifier, ...] = Field(min_length=1, max_length=2)
    texts: dict[str, Text]
    needs: tuple[Annotated[tuple[Identifier, ...], Field(min_length=1)], ...] = Field(min_length=1)


class Items(FrozenModel):
    """Reply about the conclusions."""

    conclusions: tuple[PlannedItem, ...] = Field(min_length=1)


class Edge(FrozenModel):
    """A subtopic, one that has to come before it, and why."""

    subtopic: Identifier
    needs: Identifier
    because: Text


class Edges(FrozenModel):
    """Reply about the prerequisites."""

    edges: tuple[Edge, ...]


class Ladder(FrozenModel):
    """Hints of a node, without the last one that names it, and paraphrases."""

    hints: Least
    paraphrases: tuple[Text, ...] = Field(min_length=1, max_length=MAX_PARAPHRASES)


class Ladders(FrozenModel):
    """Reply about one subtopic: ladders of it and its studies, by id."""

    nodes: dict[str, Ladder]


class Evidence(FrozenModel):
    """Reply about a disclosure: the studies that show each claim."""

    evidence: dict[str, Annotated[tuple[Identifier, ...], Field(min_length=1)]]


@dataclass(frozen=True, slots=True)
class Draft:
    """The replies so far. What is missing is filled with placeholders, so that the rest can be checked."""

    document: PaperDocument
    paper: Paper
    tree_id: str
    model: str
    """Name of the model that writes."""
    outline: PaperOutline
    studies: tuple[PlannedStudy, ...] = ()
    contraries: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    items: tuple[PlannedItem, ...] = ()
    edges: tuple[Edge, ...] = ()
    ladders: Mapping[str, Ladder] = field(default_factory=dict)
    disclosure: Disclosure | None = None

    @property
    def subtopics(self) -> dict[str, OutlinedSubtopic]:
        """The subtopics by id."""
        return {f"s{i}": each for i, each in enumerate(self.outline.subtopics, 1)}

    @property
    def axes(self) -> dict[str, OutlinedAxis]:
        """The axes by id."""
        return {f"a{i}": each for i, each in enumerate(self.outline.axes, 1)}

    @property
    def named_studies(self) -> dict[str, PlannedStudy]:
        """The studies by id, subtopic by subtopic."""
        found: dict[str, PlannedStudy] = {}
        for subtopic in self.subtopics:
            own = [each for each in self.studies if each.subtopic == subtopic]
            found |= {f"{subtopic}{letter}": each for letter, each in zip(ascii_lowercase, own, strict=False)}
        return found

    def keys(self, axes: Sequence[str]) -> list[str]:
        """Return every combination of the poles of some axes, that of the paper first. Unknown axes have two poles."""
        known = self.axes
        poles = [range(len(known[axis].poles) if axis in known else 2) for axis in axes]
        return ["".join(map(str, each)) for each in product(*poles)]

    def fact(self, study: str) -> str:
        """Return the id of the fact behind a study."""
        return f"F{list(self.named_studies).index(study) + 1}"


def tree_document(draft: Draft) -> dict[str, Any]:
    """Return the document of a draft as JSON values, the paper's finding as the first pole of every axis."""
    studies = draft.named_studies
    return {
        "format": "inquitree/2",
        "id": draft.tree_id,
        "version": 1,
        "canary": CANARY,
        "reviewed": False,
        "paper": draft.paper.model_dump(mode="json"),
        "topic": draft.outline.topic,
        "axes": [{"id": name, **axis.model_dump(mode="json"), "actual": 0} for name, axis in draft.axes.items()],
        "subtopics": [_subtopic(draft, name, studies) for name in draft.subtopics],
        "conclusions": _items(draft, studies),
        "disclosure": draft.disclosure and draft.disclosure.model_dump(mode="json"),
        "provenance": _provenance(draft, studies),
    }


def with_drawn_poles(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose poles are in an order drawn by its id and topic, so that none tells the paper's."""
    axes = document["axes"]
    drawn = draw_orders([len(axis["poles"]) for axis in axes], hash_text(f"{document['id']}\n{document['topic']}"))
    orders = {axis["id"]: order for axis, order in zip(axes, drawn, strict=True)}

    def keyed(reader: dict[str, Any]) -> dict[str, Any]:
        places = [orders[axis] for axis in reader["axes"]]
        texts = {
            "".join(str(order.index(int(pole))) for order, pole in zip(places, key, strict=True)): text
            for key, text in reader["texts"].items()
        }
        return reader | {"texts": dict(sorted(texts.items()))}

    for axis in axes:
        order = orders[axis["id"]]
        axis |= {"poles": [axis["poles"][pole] for pole in order], "actual": order.index(0)}
    for subtopic in document["subtopics"]:
        for study in subtopic["studies"]:
            study["result"] = keyed(study["result"])
    document["conclusions"] = [keyed(item) for item in document["conclusions"]]
    return document


def quotations(draft: Draft) -> dict[str, tuple[Quotation, ...]]:
    """Return the quotation behind each study with its fact and its place, or `MISSING` if it is not in the paper."""
    return {
        name: (Quotation(fact=draft.fact(name), quotation=words, place=draft.document.place(words) or MISSING),)
        for name, words in ((name, study.quotation) for name, study in draft.named_studies.items())
    }


def shown(draft: Draft) -> str:
    """Return what is written so far as JSON, for the prompts of the later passes."""
    studies = draft.named_studies
    subtopics = {
        name: {
            "question": subtopic.text,
            "studies": {
                each: {"protocol": study.text, "axes": study.axes, "results": _results(draft, each)}
                for each, study in studies.items()
                if study.subtopic == name
            },
        }
        for name, subtopic in draft.subtopics.items()
    }
    axes = {
        name: {"question": axis.question, "poles": dict(enumerate(axis.poles))} for name, axis in draft.axes.items()
    }
    return json.dumps(
        {"topic": draft.outline.topic, "axes": axes, "subtopics": subtopics}, ensure_ascii=False, indent=1
    )


def _results(draft: Draft, study: str) -> dict[str, Any]:
    planned = draft.named_studies[study]
    return {draft.keys(planned.axes)[0]: planned.wordings, **draft.contraries.get(study, {})}


def _subtopic(draft: Draft, name: str, studies: Mapping[str, PlannedStudy]) -> dict[str, Any]:
    outlined = draft.subtopics[name]
    own = {each: study for each, study in studies.items() if study.subtopic == name}
    return {
        "id": name,
        "text": outlined.text,
        "name": outlined.name,
        "prerequisites": [{"id": e.needs, "because": e.because} for e in draft.edges if e.subtopic == name],
        **_ladder(draft, name, outlined.text, LEADS["subtopic"]),
        "studies": [_study(draft, *each) for each in own.items()] or [_placeholder(name)],
    }


def _study(draft: Draft, name: str, study: PlannedStudy) -> dict[str, Any]:
    actual, *others = draft.keys(study.axes)
    texts: dict[str, Sequence[str]] = {actual: study.wordings}
    texts |= draft.contraries.get(name, dict.fromkeys(others, study.wordings))
    return {
        "id": name,
        "text": study.text,
        **_ladder(draft, name, study.text, LEADS["study"]),
        "result": {"axes": study.axes, "texts": texts, "support": study.support},
    }


def _placeholder(subtopic: str) -> dict[str, Any]:
    text = f"study of {subtopic} that is not written"
    hints = [f"hint {level} for {text}" for level in range(HINT_LEVELS)]
    result = {"axes": [], "texts": {"": ["a result"]}, "support": "sheet"}
    return {"id": f"{subtopic}a", "text": text, "hints": hints, "result": result}


def _ladder(draft: Draft, name: str, text: str, lead: str) -> dict[str, Any]:
    if ladder := draft.ladders.get(name):
        return {"hints": [*ladder.hints, lead + text], "paraphrases": ladder.paraphrases}
    return {"hints": [text] * HINT_LEVELS}


def _items(draft: Draft, studies: Mapping[str, PlannedStudy]) -> list[dict[str, Any]]:
    if draft.items:
        return [{"id": f"c{i}", **item.model_dump(mode="json")} for i, item in enumerate(draft.items, 1)]
    first = next(iter(studies), f"{next(iter(draft.subtopics))}a")
    keys = {axis: draft.keys([axis]) for axis in draft.axes}
    return [
        {"id": f"c{i}", "axes": [axis], "texts": {key: f"pole {key}" for key in keys[axis]}, "needs": [[first]]}
        for i, axis in enumerate(draft.axes, 1)
    ]


def _provenance(draft: Draft, studies: Mapping[str, PlannedStudy]) -> dict[str, Any]:
    """Return sources and support. A node rests on the facts of its studies, and on none if one is not in the paper."""
    doi, name = draft.paper.doi, draft.document.file
    address = f"https://doi.org/{doi}" if doi else name
    rests = {"topic": list(studies)}
    for subtopic in draft.subtopics:
        own = [each for each, study in studies.items() if study.subtopic == subtopic]
        rests |= {subtopic: own} | {each: [each] for each in own}
    for i, item in enumerate(draft.items, 1):
        rests[f"c{i}"] = [each for group in item.needs for each in group if each in studies]
    found = {each: draft.document.place(study.quotation) for each, study in studies.items()}
    note = f"Written by {draft.model}, with quotations that a program found in the text; nobody has checked it."
    support = [
        {
            "node": node,
            "sources": ["S1"],
            "facts": list(dict.fromkeys(map(draft.fact, own))),
            "strength": "full_text" if own and all(found[each] for each in own) else "unconfirmed",
            "note": note,
        }
        for node, own in rests.items()
    ]
    source = {"id": "S1", "address": address, "what": f"the paper, as read by {draft.model}"}
    return {"tier": "A", "sources": [source], "support": support}


def check_words(title: str, document: PaperDocument) -> None:
    """Check that a text is the paper with a title: most long words of the title stand in its beginning.

    Raises:
        OptionError: fewer than `MIN_SHARED` of them do.
    """
    wanted = {word for word in _words(title) if len(word) > 3}
    found = wanted & set(_words(document.text[:OPENING]))
    if len(found) < MIN_SHARED * len(wanted):
        raise OptionError(
            f"'{document.file}' must be the paper '{title}', got a text that begins '{document.title:.100}' and has "
            f"{len(found)} of the {len(wanted)} words of that title. Give the paper's text, or another --paper."
        )


def _words(text: str) -> list[str]:
    return "".join(each if each.isalnum() else " " for each in text.casefold()).split()
