"""T3, missing references: a text whose claims about compounds are each reported by one or two papers.

Papers are found by sets of keys per constraint. `proofs` finds them again without this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inquitree_gym.exploration.building import navigation
from inquitree_gym.exploration.building.navigation import Hop, Index
from inquitree_gym.exploration.building.records import stream
from inquitree_gym.exploration.building.schemas import glossary_name, kind_of
from inquitree_gym.exploration.citing import work_of
from inquitree_gym.exploration.gold import CitationGold, Slot
from inquitree_gym.exploration.library import CLAIM, NAME, PAPERS, Library, PaperFacts, Place
from inquitree_gym.exploration.providers import LocalLibrary
from inquitree_gym.exploration.schema import USUAL_TURNS, Condition, ExplorationTask, GoldFact, TextQuery
from inquitree_gym.fiction.documents import RandomStream

SLOTS = (3, 5)
TRIES = 10
"""Drawings for each paper at most."""
WORKS = 2
"""Papers of a slot at most."""
_PART = 4_000
"""Number of the draws of the first task, beyond those of T2."""
_VERBS = {1: "heightened", -1: "lessened"}
_TASK = "Find the works that a text cites: each [ref.i] is for every work, one or two, with the claim before it. Text:"
_FORM = (
    "See the glossary of each discipline for terms. Answer with a line for each work: [ref.i: authors. title. venue. "
    "year.]"
)


def citation_task(provider: LocalLibrary, number: int) -> ExplorationTask:
    """Return the first drawing whose claims each have works, near misses and a short path.

    Raises:
        RuntimeError: none of many drawings has.
    """
    library = provider.library
    index, draws = Index(library), stream(library.spec, _PART + number, "shape")
    count, claims = draws.between(*SLOTS), dict[str, Hop]()
    tries = min(navigation.DRAWS, TRIES * len(library.papers))
    for _ in range(tries):
        paper = library.papers[draws.choice(tuple(library.papers))]
        if paper.compound not in claims and (hop := _claim(index, paper, draws)) is not None:
            claims[paper.compound] = hop
        if len(claims) == count:
            slots = tuple(claims.values())
            if path := _path(provider, slots):
                return _written(library, slots, path, f"t3-s{library.spec.seed}-{number + 1:02}", draws)
            claims.clear()
    raise RuntimeError(f"{library.spec.name} must have a text with references, got none in {tries} drawings")


def _claim(index: Index, paper: PaperFacts, draws: RandomStream) -> Hop | None:
    """Return the claim of a paper. None if many report it, none the opposite, or none the same elsewhere."""
    below = Hop("compounds", paper.compound)
    if not navigation.constrain(index, below, draws) or below.answers != {below.key}:
        return None
    record = index.library.facts[PAPERS][paper.id]
    where = [Condition(column=column, op="=", value=record[column] or 0) for column in CLAIM]
    hop = Hop(PAPERS, paper.id, where, {"compound": below})
    met = index.meeting(PAPERS, where) + index.leading(hop)
    quantity, condition, direction, compound = met
    alike = quantity & compound
    near = alike - direction and (alike & direction) - condition
    return hop if near and index.settle(hop, met) and len(hop.answers) <= WORKS else None


def _works(library: Library, hop: Hop) -> list[PaperFacts]:
    """Return the papers of a claim, in the order of the library."""
    return [paper for name, paper in library.papers.items() if name in hop.answers]


def _places(paper: PaperFacts) -> tuple[Place, ...]:
    """Return the pages that show what a paper reports, and how to cite it."""
    return tuple(dict.fromkeys(paper.places[name] for name in ("head", "results")))


def _path(provider: LocalLibrary, slots: Sequence[Hop]) -> list[str]:
    """Return the actions that find all works. Empty if a search does not list one, or half of the turns are too few."""
    path, library = list[str](), provider.library
    for hop in slots:
        paper, works = library.papers[hop.key], _works(library, hop)
        glossary = glossary_name(paper.science)
        searches = [f"glossary {_said('quantities', paper.quantity)}"] if f"OPEN {glossary}" not in path else []
        searches.append(f"{paper.factor} {paper.quantity} {paper.condition}")
        listed = {hit.id for words in searches for hit in provider.search(words)} | {each.split()[1] for each in path}
        if not {glossary, *(each.id for each in works)} <= listed:
            return []
        path += [step for words in searches[:-1] for step in (f"SEARCH {words}", f"OPEN {glossary}")]
        path += [navigation.lookup_text(hop.links["compound"]), f"SEARCH {searches[-1]}"]
        path += [f"OPEN {name} {page}" for each in works for name, page in _places(each)]
    return path if len(path) < USUAL_TURNS // 2 else []


def _said(of: str, term: str) -> str:
    """Return the other words for a term of papers."""
    return kind_of(of, term).words[0]


def _sentences(library: Library, slots: Sequence[Hop], draws: RandomStream) -> Iterator[str]:
    """Yield what the databases say of the compound of each claim, and the claim."""
    for number, hop in enumerate(slots, 1):
        paper, (below,) = library.papers[hop.key], hop.links.values()
        letters = {id(below): chr(ord("A") + number - 1)}
        claim = f"compound {letters[id(below)]} {_VERBS[paper.direction]} {_said('quantities', paper.quantity)}"
        yield navigation.sentence(library, below, letters, draws)
        yield f"{_said('settings', paper.condition).capitalize()}, {claim} [ref.{number}]."


def _written(
    library: Library, slots: Sequence[Hop], path: Sequence[str], name: str, draws: RandomStream
) -> ExplorationTask:
    """Return the task of a text."""
    works = [_works(library, hop) for hop in slots]
    cited = [tuple(work_of(paper.id, library) for paper in each) for each in works]
    gold = CitationGold(slots=tuple(Slot(number=number, works=each) for number, each in enumerate(cited, 1)))
    return ExplorationTask(
        id=name,
        kind="T3",
        library=library.spec,
        question=f"{_TASK} {' '.join(_sentences(library, slots, draws))} {_FORM}",
        query=TextQuery(slots=tuple(hop.query for hop in slots)),
        asked=(NAME,),
        gold=gold,
        evidence=tuple(
            GoldFact(document=paper.id, page=paper.places["results"][1], fact=", ".join(CLAIM))
            for each in works
            for paper in each
        ),
        path=(*path, f"ANSWER\n{gold.written()}"),
    )
