"""T2 and T3 tasks, about papers: their proofs, what a search with the question finds, worlds, guesses and failures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from inquitree_gym.baselines import make_agent
from inquitree_gym.exploration.actions import words_of
from inquitree_gym.exploration.building import navigation
from inquitree_gym.exploration.building.citations import citation_task
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.retrieval import retrieval_task
from inquitree_gym.exploration.building.schemas import glossaries, kinds
from inquitree_gym.exploration.citing import work_of
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.failures import contradicted, invented, unchecked
from inquitree_gym.exploration.gold import CitationGold, Slot
from inquitree_gym.exploration.library import METHOD, PAPERS, LibrarySpec
from inquitree_gym.exploration.proofs import answers, proof_faults, shared_words
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.tasks import frozen_tasks
from inquitree_gym.fiction.documents import SCIENCES
from inquitree_gym.rollout import play

pytest.importorskip("bm25s")
FROZEN = {kind: [task for task in frozen_tasks().values() if task.kind == kind] for kind in ("T1", "T2", "T3")}
ONE, TEXT = FROZEN["T2"][1], FROZEN["T3"][2]
LIBRARY, OF_TEXT = (local_library(task.library).library for task in (ONE, TEXT))
(KEY,) = answers(ONE.query, LIBRARY)
WORDS = tuple(each for each in ONE.query.where if each.column in METHOD)
OTHERS = ONE.query.where[len(WORDS) :]
SLOT, *SLOTS = TEXT.query.slots
OTHER = next(name for name in OF_TEXT.papers if name not in answers(SLOT, OF_TEXT))
DRAW = {"T2": retrieval_task, "T3": citation_task}


def faults_of(task: ExplorationTask) -> list[str]:
    provider = local_library(task.library)
    return proof_faults(task, provider.library, provider)


def gold_papers(task: ExplorationTask) -> set[str]:
    queries = task.query.slots if task.kind == "T3" else (task.query,)
    return {key for query in queries for key in answers(query, local_library(task.library).library)}


def cited(*works: str) -> CitationGold:
    """Return the gold of the text with other works in its first slot."""
    slot = Slot(number=1, works=tuple(work_of(name, OF_TEXT) for name in works))
    return CitationGold(slots=(slot, *TEXT.gold.slots[1:]))


@pytest.mark.parametrize("kind", ["T2", "T3"])
def test_the_frozen_tasks_are_proved(kind: str) -> None:
    assert [fault for task in FROZEN[kind] for fault in faults_of(task)] == []
    assert len({task.library.seed for task in FROZEN[kind]}) == 5


@pytest.mark.parametrize("kind", DRAW)
def test_tasks_of_other_libraries_are_proved(kind: str) -> None:
    providers = [local_library(LibrarySpec(seed=seed, size=2_000)) for seed in (2, 4)]
    tasks = [DRAW[kind](provider, number) for provider in providers for number in range(6)]
    assert [fault for task in tasks for fault in faults_of(task)] == []


@pytest.mark.parametrize("kind", DRAW)
def test_a_library_without_a_task_says_so(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(navigation, "DRAWS", 2)
    with pytest.raises(RuntimeError, match=r"library-s2-w0-n100 must have a .*, got none in 2 drawings"):
        DRAW[kind](local_library(LibrarySpec(seed=2, size=100)), 0)


def test_tasks_have_the_shapes_that_the_paper_shows() -> None:
    assert {task.asked[0] for task in FROZEN["T2"]} == {"name", "first_author"}
    columns = {each.column for task in FROZEN["T2"] for each in task.query.where}
    assert columns == {*METHOD, "year", "references", "figures", "venue", "surnames"}
    assert {len(task.gold.slots) for task in FROZEN["T3"]} == {3, 4, 5}
    assert {len(slot.works) for task in FROZEN["T3"] for slot in task.gold.slots} == {1, 2}


@pytest.mark.parametrize("kind", DRAW)
def test_a_question_shares_few_words_with_its_papers_and_does_not_find_them(kind: str) -> None:
    ranks = []
    for task in FROZEN[kind]:
        provider = local_library(task.library)
        documents = provider.library.documents
        scores = dict(zip(documents, provider._scores(words_of(task.question)), strict=True))
        ranks += [sum(score > scores[key] for score in scores.values()) for key in gold_papers(task)]
        assert max(shared_words(task.question, documents[key]) for key in gold_papers(task)) <= 0.2
    assert sum(rank < 10 for rank in ranks) <= 0.2 * len(ranks)


def test_glossaries_have_every_term_of_their_science() -> None:
    for science, document in zip(SCIENCES.values(), glossaries().values(), strict=True):
        terms = {*science.tools, *(each.phrase for each in science.quantities)}
        terms |= {term for of in ("conditions", "settings") for kind in kinds(of) for term in kind.members}
        assert all(term in document.pages[0] for term in terms)
        assert LIBRARY.documents[document.id] == document


def test_a_flipped_link_changes_what_a_text_must_cite() -> None:
    place = list(OF_TEXT.papers).index(next(iter(answers(SLOT, OF_TEXT)))) % (len(OF_TEXT.papers) // 4)
    worlds = [build_library(LibrarySpec(seed=TEXT.library.seed, world=world, size=2_000)) for world in (0, place + 1)]
    before, after = ([answers(slot, library) for slot in TEXT.query.slots] for library in worlds)
    assert before[0] != after[0]
    assert before[1:] == after[1:]


@pytest.mark.parametrize(
    ("task", "change", "fault"),
    [
        (ONE, {"query": {"where": WORDS}}, "must be gold"),
        (ONE, {"query": {"where": WORDS}}, "other constraints of the question must leave"),
        (ONE, {"query": {"where": OTHERS}}, "the words of the question must leave"),
        (ONE, {"question": LIBRARY.papers[KEY].title}, "name no record"),
        (ONE, {"question": LIBRARY.documents[KEY].pages[0][200:600].strip()}, "share at most 20% of its content words"),
        (ONE, {"path": (f"SEARCH {LIBRARY.papers[KEY].factor}", *ONE.path)}, "search with words of the question"),
        (ONE, {"path": (f"OPEN {KEY}", *ONE.path)}, "open what a tool or a page names"),
        (TEXT, {"gold": cited(OTHER)}, "slot 1 must have the 1 to 2 papers"),
        (TEXT, {"gold": CitationGold(slots=TEXT.gold.slots[:-1])}, "must have the 4 slots"),
        (TEXT, {"question": TEXT.question.replace("[ref.2]", "")}, "each in the question"),
        (TEXT, {"question": f"{TEXT.question} {OF_TEXT.papers[OTHER].factor}"}, "name no record"),
        (
            TEXT,
            {"query": {"slots": (SLOT.model_copy(update={"where": SLOT.where[:1]}), *SLOTS)}},
            "report the opposite",
        ),
    ],
)
def test_a_poor_task_is_not_proved(task: ExplorationTask, change: dict[str, object], fault: str) -> None:
    changed = {key: task.query.model_copy(update=new) if key == "query" else new for key, new in change.items()}
    assert any(fault in found for found in faults_of(task.model_copy(update=changed)))


@pytest.mark.parametrize(("agent", "most"), [("random", 0.02), ("first-hit", 0.1)])
def test_guesses_earn_next_to_nothing(agent: str, most: float) -> None:
    env = ExplorationEnv([*FROZEN["T2"], *FROZEN["T3"]])
    returns = [play(env, make_agent(agent, env), seed=seed).footer.episode_return for seed in range(60)]
    assert sum(returns) / len(returns) <= most


def test_a_paper_named_unread_is_unchecked_and_one_that_breaks_a_constraint_premature() -> None:
    paper = next(paper for name, paper in LIBRARY.papers.items() if name != KEY and paper.year < 1998)
    pages = {*paper.places.values()}
    for answer, shown, expected in ((paper.title, set(), (True, False)), (paper.title, pages, (False, True))):
        detail = SimpleNamespace(answer=answer, shown=shown)
        assert (unchecked(detail, ONE, LIBRARY), contradicted(detail, ONE, LIBRARY)) == expected
    assert not unchecked(SimpleNamespace(answer="x", shown=set()), FROZEN["T1"][0], LIBRARY)


def test_invented_works_and_papers_of_other_claims_are_named() -> None:
    works = work_of(OTHER, OF_TEXT).written(), TEXT.gold.slots[0].works[0].written(), "Per Lund. Dry gels. 2001."
    for work, expected in zip(works, ((0, True), (0, False), (1, False)), strict=True):
        detail = SimpleNamespace(answer=f"[ref.1: {work}]", shown={(name, 1) for name in OF_TEXT.facts[PAPERS]})
        assert (invented(detail, TEXT, OF_TEXT), contradicted(detail, TEXT, OF_TEXT)) == expected
