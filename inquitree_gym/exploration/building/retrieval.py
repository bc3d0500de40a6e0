"""T2, ambiguous retrieval: a paper by broader words for its method, and by what only verifies it.

Papers are found by sets of keys per constraint. `proofs` finds them again without this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from inquitree_gym.exploration.building import navigation
from inquitree_gym.exploration.building.navigation import Hop, Index
from inquitree_gym.exploration.building.records import stream
from inquitree_gym.exploration.building.schemas import glossary_name, kind_of, openings
from inquitree_gym.exploration.gold import AnswerGold, Part
from inquitree_gym.exploration.library import JOIN, METHOD, NAME, PAPERS, PaperFacts, Record
from inquitree_gym.exploration.providers import LocalLibrary
from inquitree_gym.exploration.schema import Condition, ExplorationTask, GoldFact
from inquitree_gym.fiction.documents import RandomStream

AMBIGUOUS = 8
"""Papers that the words leave at least, and that the other constraints leave."""
FIRST_AUTHOR = "first_author"
_PART = 3_000
"""Number of the draws of the first task, beyond those of T4."""
_SAID = {
    "year": "was published after {}",
    "references": "lists more than {} works",
    "figures": "has exactly {} pictures",
    "venue": "is from a journal with the initials {}",
    "surnames": "has an author called {}",
}
"""Claim of a question about each column."""
_ASKS = {NAME: "What is its title?", FIRST_AUTHOR: "Who is its first author?"}
_HELP = "See the glossary of its discipline for terms."
_FEWEST = {"year": 1997, "references": 16}
"""Low ends of constraints at least, so that each leaves something out."""


def retrieval_task(provider: LocalLibrary, number: int) -> ExplorationTask:
    """Return the first drawing that is ambiguous in each half, has one answer, and is found by terms of a glossary.

    Every fourth question names an author, and each third of the others asks for one.

    Raises:
        RuntimeError: none of many drawings has.
    """
    library = provider.library
    index, draws = Index(library), stream(library.spec, _PART + number, "shape")
    named = number % 4 == 0
    asked = FIRST_AUTHOR if number % 3 == 2 and not named else NAME
    for _ in range(navigation.DRAWS):
        paper = library.papers[draws.choice(tuple(library.papers))]
        record = library.facts[PAPERS][paper.id]
        words = [Condition(column=column, op="=", value=str(record[column])) for column in METHOD]
        others = _constraints(record, draws, named=named)
        if _is_proof(index, Hop(PAPERS, paper.id, [*words, *others]), len(words)):
            kinds = kind_of("tools", paper.tool), kind_of("conditions", paper.condition)
            said = [draws.choice(kind.words) for kind in kinds]
            if path := _path(provider, paper, said):
                question = _question(said, others, asked, draws)
                return _written(provider, paper, (*words, *others), asked, question, path, number)
    raise RuntimeError(f"{library.spec.name} must have a paper to find, got none in {navigation.DRAWS} drawings")


def _constraints(record: Record, draws: RandomStream, *, named: bool) -> list[Condition]:
    """Return an author's surname and one constraint more, or three constraints."""
    surname = draws.choice(str(record["surnames"]).split(JOIN))
    found = [Condition(column="surnames", op="has", value=surname)] if named else []
    for column in draws.shuffled(["year", "references", "figures", "venue"])[: 1 if named else 3]:
        value = record[column]
        if column in ("figures", "venue"):
            found.append(Condition(column=column, op="=", value=value or 0))
        else:
            low = max(float(value or 0) - draws.below(20), _FEWEST[column])
            found.append(Condition(column=column, op=">=", value=low))
    return found


def _is_proof(index: Index, hop: Hop, words: int) -> bool:
    """Return whether a paper is the only answer, has near misses, and neither half of the constraints says too much."""
    met = index.meeting(hop.database, hop.where)
    halves = (set.intersection(*half) for half in (met[:words], met[words:]))
    return index.settle(hop, met) and hop.answers == {hop.key} and min(map(len, halves)) >= AMBIGUOUS


def _path(provider: LocalLibrary, paper: PaperFacts, said: Sequence[str]) -> list[str]:
    """Return the actions that find a paper: the terms are read in a glossary. Empty if a search does not list it."""
    glossary = glossary_name(paper.science)
    searches = {f"glossary {said[0]}": glossary, f"{paper.tool} {paper.condition}": paper.id}
    if any(name not in {hit.id for hit in provider.search(words)} for words, name in searches.items()):
        return []
    pages = dict.fromkeys(paper.places[name] for name in ("head", "methods"))
    steps = [step for words, name in searches.items() for step in (f"SEARCH {words}", f"OPEN {name}")]
    return [*steps[:-1], *(f"OPEN {name} {page}" for name, page in pages)]


def _question(said: Sequence[str], others: Sequence[Condition], asked: str, draws: RandomStream) -> str:
    """Return the question: the method in broader words, what verifies the paper, and what to answer."""
    tool, condition = said
    *rest, last = (_SAID[each.column].format(_end(each)) for each in others)
    holds = f"{', '.join(rest)} and {last}"
    return f"{draws.choice(openings()).format(tool=tool, condition=condition)} It {holds}. {_ASKS[asked]} {_HELP}"


def _end(condition: Condition) -> str:
    """Return the value of a constraint as a question says it: what is exceeded, a number, initials, or a surname."""
    if isinstance(condition.value, str):
        name = condition.value
        return "".join(filter(str.isupper, name)) if condition.column == "venue" else name
    return f"{condition.value - (condition.op == '>='):g}"


def _written(
    provider: LocalLibrary,
    paper: PaperFacts,
    where: tuple[Condition, ...],
    asked: str,
    question: str,
    path: Sequence[str],
    number: int,
) -> ExplorationTask:
    """Return the task of a paper."""
    library = provider.library
    gold = AnswerGold(kind="T2", parts=(Part(entity=str(library.facts[PAPERS][paper.id][asked])),))
    places = [(each.column, paper.places["methods" if each.column in METHOD else "head"]) for each in where]
    return ExplorationTask(
        id=f"t2-s{library.spec.seed}-{number + 1:02}",
        kind="T2",
        library=library.spec,
        question=question,
        query=Hop(PAPERS, paper.id, list(where)).query,
        asked=(asked,),
        gold=gold,
        evidence=tuple(GoldFact(document=name, page=page, fact=column) for column, (name, page) in places),
        path=(*path, f"ANSWER {gold.written()}"),
    )
