"""Papers: each reports one relation of a small causal model under one condition, in sentences from templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from inquitree_gym.exploration.building.records import Names, stream
from inquitree_gym.exploration.building.schemas import kind_of, paper_templates
from inquitree_gym.exploration.library import NAME, Document, LibrarySpec, PaperFacts, Place, Record, paged
from inquitree_gym.fiction.documents import SCIENCES, RandomStream

PART = 100
"""Number of the draws of papers, beyond those of the databases."""
SHARED = 4
"""Papers for each relation, in the mean."""
DECOYS = 0.3
"""Share of the papers whose abstract gives the samples enrolled in place of those that completed."""
PARAGRAPHS = (9, 14)
"""Paragraphs about the handling of samples, fewest and most."""
Direction = Literal[-1, 1]


@dataclass(frozen=True)
class ReportedRelation:
    """A compound that moves a quantity, up or down by condition."""

    science: str
    factor: str
    compound: str
    """Key of the factor in the index of compounds."""
    quantity: str
    things: tuple[str, ...]
    directions: tuple[Direction, ...]
    """Direction under each condition."""


def draw_relations(
    spec: LibrarySpec, names: Names, compounds: Mapping[str, Record], count: int
) -> list[ReportedRelation]:
    """Return the relations of a world. World n has relation n turned around, and all others as world 0."""
    draws, conditions = stream(spec, PART, "mechanisms"), paper_templates()["conditions"]
    relations = []
    for number in range(count):
        science = draws.choice(tuple(SCIENCES))
        about = SCIENCES[science]
        turned = -1 if spec.world and (spec.world - 1) % count == number else 1
        things = [draws.choice(about.things).form for _ in range(3)]
        directions = [turned if draws.chance(0.5) else -turned for _ in conditions]
        compound = draws.choice(tuple(compounds))
        relations.append(
            ReportedRelation(
                science=science,
                factor=str(compounds[compound][NAME]),
                compound=compound,
                quantity=draws.choice(about.quantities).phrase,
                things=tuple(_filled(form, names) for form in things),
                directions=tuple(1 if each > 0 else -1 for each in directions),
            )
        )
    return relations


def _filled(form: str, names: Names) -> str:
    name = names.new()
    return form.format(name, N=name.capitalize())


def draw_papers(
    spec: LibrarySpec, names: Names, records: Mapping[str, Mapping[str, Record]], count: int
) -> tuple[dict[str, PaperFacts], dict[str, Document]]:
    """Return the papers of a library and their documents, by id."""
    people = records["people"]
    relations = draw_relations(spec, names, records["compounds"], max(3, count // SHARED))
    draws, wording = stream(spec, PART, "items"), stream(spec, PART, "wording")
    papers: dict[str, PaperFacts] = {}
    documents: dict[str, Document] = {}
    titles: dict[str, int] = {}
    for number in range(count):
        relation = relations[number % len(relations)]
        paper = _drawn(f"W{number + 1:05}", relation, draws, list(papers), tuple(people))
        title, tool = _title(paper, wording, titles), wording.choice(SCIENCES[paper.science].tools)
        paper = replace(paper, title=title, tool=tool, tool_kind=kind_of("tools", tool).words[0])
        document, places = _written(paper, people, papers, wording)
        papers[paper.id] = replace(paper, places=places)
        documents[paper.id] = document
    return papers, documents


def _drawn(
    name: str, relation: ReportedRelation, draws: RandomStream, earlier: Sequence[str], people: Sequence[str]
) -> PaperFacts:
    """Return the facts of a paper, without title, tool and places."""
    templates = paper_templates()
    condition = draws.below(len(templates["conditions"]))
    enrolled = draws.between(24, 480)
    completed = enrolled - draws.between(2, enrolled // 4)
    decoy = draws.chance(DECOYS)
    cites = dict.fromkeys(draws.choice(earlier) for _ in range(draws.between(2, 9)) if earlier)
    return PaperFacts(
        id=name,
        title="",
        authors=tuple(dict.fromkeys(draws.choice(people) for _ in range(draws.between(1, 4)))),
        venue=draws.choice(templates["venues"]),
        year=draws.between(1994, 2025),
        science=relation.science,
        factor=relation.factor,
        compound=relation.compound,
        quantity=relation.quantity,
        thing=draws.choice(relation.things),
        tool="",
        tool_kind="",
        condition=templates["conditions"][condition],
        condition_kind=kind_of("conditions", templates["conditions"][condition]).words[0],
        direction=relation.directions[condition],
        change=draws.between(4, 60),
        enrolled=enrolled,
        completed=completed,
        abstract_number=enrolled if decoy else completed,
        figures=draws.between(2, 9),
        references=len(cites) + draws.between(8, 60),
        cites=tuple(cites),
        places={},
    )


def _title(paper: PaperFacts, wording: RandomStream, used: dict[str, int]) -> str:
    title = wording.choice(paper_templates()["titles"]).format(**_values(paper, ""))
    used[title] = used.get(title, 0) + 1
    return title if used[title] == 1 else f"{title} (part {used[title]})"


def _values(paper: PaperFacts, changed: str) -> dict[str, object]:
    """Return the values of the placeholders of a sentence."""
    values = {name: getattr(paper, name) for name in ("factor", "quantity", "thing", "condition", "tool")}
    values |= {name.capitalize(): values[name][:1].upper() + values[name][1:] for name in ("factor", "quantity")}
    values |= {"subject": SCIENCES[paper.science].subject, "changed": changed, "change": f"{paper.change} %"}
    return values | {"enrolled": paper.enrolled, "completed": paper.completed, "number": paper.abstract_number}


def _written(
    paper: PaperFacts, people: Mapping[str, Record], papers: Mapping[str, PaperFacts], wording: RandomStream
) -> tuple[Document, dict[str, Place]]:
    """Return the document of a paper, and the page on which each of its facts stands."""
    templates = paper_templates()
    changed = wording.choice(templates["rises" if paper.direction > 0 else "falls"])
    values = _values(paper, changed) | {"days": wording.between(3, 60)}

    def say(name: str) -> str:
        return wording.choice(templates[name]).format(**values)

    facts = {name: say(name) for name in ("abstract_numbers", "methods", "enrolled", "completed", "results")}
    facts["head"] = f"{paper.venue}, {paper.year}. {paper.figures} figures, {paper.references} references."
    authors = ", ".join(str(people[key][NAME]) for key in paper.authors)
    sections = [
        paper.title, authors, facts["head"], "",
        f"Abstract. {say('openings')} {facts['abstract_numbers']} {say('abstract_results')}", "",
        "Methods", facts["methods"], facts["enrolled"], *_handling(wording), "",
        "Results", facts["completed"], facts["results"], *_table(paper, wording), "",
        "Discussion", say("discussions"), *_handling(wording), "",
        "References", *(f"{papers[key].title}. {papers[key].venue}, {papers[key].year}." for key in paper.cites),
    ]  # fmt: skip
    pages = paged("\n".join(sections))
    places = {name: (paper.id, _page_with(sentence, pages)) for name, sentence in facts.items()}
    return Document(paper.id, paper.title, pages), places


def _handling(wording: RandomStream) -> list[str]:
    """Return paragraphs about the handling of samples, which hold no fact."""
    count = wording.between(*PARAGRAPHS)
    return [" ".join(wording.shuffled(paper_templates()["fillers"])[: wording.between(2, 4)]) for _ in range(count)]


def _table(paper: PaperFacts, wording: RandomStream) -> list[str]:
    """Return the table of the groups."""
    treated = paper.completed // 2
    reference = wording.between(20, 90)
    moved = reference * (100 + paper.direction * paper.change) / 100
    rows = [("none", paper.completed - treated, f"{reference}"), (paper.factor, treated, f"{moved:.1f}")]
    return ["| group | samples | mean |", *(f"| {group} | {samples} | {mean} |" for group, samples, mean in rows)]


def _page_with(sentence: str, pages: Sequence[str]) -> int:
    return next(number for number, page in enumerate(pages, 1) if sentence in page)
