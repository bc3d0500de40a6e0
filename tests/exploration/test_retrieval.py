"""T2 tasks: their proofs, which share no code with the builder, what a search with the question finds, and failures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from inquitree_gym.exploration.actions import words_of
from inquitree_gym.exploration.building.retrieval import draw_retrievals, retrieval_task
from inquitree_gym.exploration.building.schemas import glossaries, kinds
from inquitree_gym.exploration.failures import contradicted, unchecked
from inquitree_gym.exploration.library import METHOD, PAPERS, LibrarySpec
from inquitree_gym.exploration.proofs import answers, proof_faults, shared_words
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import Condition, ExplorationTask
from inquitree_gym.exploration.tasks import frozen_tasks
from inquitree_gym.fiction.documents import SCIENCES

pytest.importorskip("bm25s")
FROZEN = [task for task in frozen_tasks().values() if task.kind == "T2"]
TASK = FROZEN[1]
LIBRARY = local_library(TASK.library).library
(KEY,) = answers(TASK.query, LIBRARY)
WORDS = tuple(each for each in TASK.query.where if each.column in METHOD)
OTHERS = TASK.query.where[len(WORDS) :]


def faults_of(task: ExplorationTask) -> list[str]:
    provider = local_library(task.library)
    return proof_faults(task, provider.library, provider)


def test_the_frozen_papers_are_proved_and_what_the_builder_draws_today() -> None:
    assert draw_retrievals() == FROZEN
    assert [fault for task in FROZEN for fault in faults_of(task)] == []
    assert len({task.library.seed for task in FROZEN}) == 5
    assert max(len(task.path) for task in FROZEN) <= 30


def test_papers_of_other_libraries_are_proved() -> None:
    providers = [local_library(LibrarySpec(seed=seed, size=2_000)) for seed in (2, 4)]
    assert [
        fault for each in providers for number in range(8) for fault in faults_of(retrieval_task(each, number))
    ] == []


def test_a_library_without_a_paper_to_find_says_so() -> None:
    with pytest.raises(RuntimeError, match="must have a paper to find"):
        retrieval_task(local_library(LibrarySpec(seed=2, size=100)), 0)


def test_each_half_of_a_question_is_ambiguous_and_both_are_not() -> None:
    counts = []
    for task in FROZEN:
        papers = local_library(task.library).library.facts[PAPERS].values()
        words = [all(record[each.column] == each.value for each in task.query.where[:2]) for record in papers]
        rest = [all(_holds(record[each.column], each) for each in task.query.where[2:]) for record in papers]
        counts.append((sum(words), sum(rest), sum(a and b for a, b in zip(words, rest, strict=True))))
    assert min(words for words, *_ in counts) >= 8
    assert min(rest for _, rest, _ in counts) >= 8
    assert {both for *_, both in counts} == {1}


def _holds(value: object, condition: Condition) -> bool:
    if condition.op == "has":
        return condition.value in str(value).split("; ")
    return value >= condition.value if condition.op == ">=" else value == condition.value


def test_answers_are_titles_and_first_authors_and_constraints_of_five_sorts() -> None:
    assert {task.asked[0] for task in FROZEN} == {"name", "first_author"}
    columns = {each.column for task in FROZEN for each in task.query.where}
    assert columns == {*METHOD, "year", "references", "figures", "venue", "surnames"}
    assert not [task.id for task in FROZEN if task.gold.parts[0].entity.split()[-1] in task.question]


def test_a_question_shares_few_words_with_its_paper_and_does_not_find_it() -> None:
    shares, found, first = [], 0, 0
    for task in FROZEN:
        provider = local_library(task.library)
        documents = provider.library.documents
        (key,) = answers(task.query, provider.library)
        shares.append(shared_words(task.question, documents[key]))
        scores = dict(zip(documents, provider._scores(words_of(task.question)), strict=True))
        rank = sum(score > scores[key] for score in scores.values())
        found, first = found + (rank < 10), first + (rank == 0)
    assert max(shares) <= 0.2
    assert found <= 0.2 * len(FROZEN)
    assert first <= 0.1 * len(FROZEN)


def test_glossaries_have_a_line_for_every_tool_and_condition_of_their_science() -> None:
    members = {term for of in ("tools", "conditions") for kind in kinds(of) for term in kind.members}
    assert {tool for science in SCIENCES.values() for tool in science.tools} <= members
    for science, document in zip(SCIENCES.values(), glossaries().values(), strict=True):
        assert all(f"{tool}" in document.pages[0] for tool in (*science.tools, "in darkness", "after a wet season"))
        assert LIBRARY.documents[document.id] == document


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"query": TASK.query.model_copy(update={"where": WORDS})}, "must be gold"),
        ({"query": TASK.query.model_copy(update={"where": WORDS})}, "other constraints of the question must leave"),
        ({"query": TASK.query.model_copy(update={"where": (*WORDS[:1], *OTHERS)})}, "must be gold"),
        ({"query": TASK.query.model_copy(update={"where": OTHERS})}, "the words of the question must leave"),
        ({"question": LIBRARY.papers[KEY].title}, "name no record"),
        ({"question": LIBRARY.documents[KEY].pages[0][200:600].strip()}, "share at most 20% of its content words"),
        ({"path": (f"SEARCH {LIBRARY.papers[KEY].factor}", *TASK.path)}, "search with words of the question"),
        ({"path": (f"OPEN {KEY}", *TASK.path)}, "open what a tool or a page names"),
    ],
)
def test_a_poor_question_is_not_proved(change: dict[str, object], fault: str) -> None:
    assert any(fault in found for found in faults_of(TASK.model_copy(update=change)))


def test_a_paper_named_unread_is_unchecked_and_one_that_breaks_a_constraint_premature() -> None:
    other = next(name for name, paper in LIBRARY.papers.items() if name != KEY and paper.year < 1998)
    title, pages = LIBRARY.papers[other].title, {*LIBRARY.papers[other].places.values()}
    for answer, shown, expected in (
        (title, set(), (True, False)),
        (title, pages, (False, True)),
        ("No such paper", pages, (False, False)),
    ):
        detail = SimpleNamespace(answer=answer, shown=shown)
        assert (unchecked(detail, TASK, LIBRARY), contradicted(detail, TASK, LIBRARY)) == expected
    task = next(task for task in frozen_tasks().values() if task.kind == "T1")
    assert not unchecked(SimpleNamespace(answer="x", shown=set()), task, LIBRARY)
