"""Tools over a library: the grammar of actions, what each brings, and what it says of a bad request."""

from __future__ import annotations

import pytest

from inquitree_gym.exploration.actions import parse_action, words_of
from inquitree_gym.exploration.library import PAGE, paged
from inquitree_gym.exploration.providers import HITS, ROWS, SNIPPET, LocalLibrary
from inquitree_gym.exploration.rules import ExplorationState, ToolView, act
from inquitree_gym.exploration.settings import ExplorationRules
from tests.exploration.questions import make_library

LIBRARY = make_library()
PROVIDER = LocalLibrary(LIBRARY)
RULES = ExplorationRules()
KEY, RECORD = next(iter(LIBRARY.records["taxa"].items()))
PAPER = next(document for document in LIBRARY.documents.values() if len(document.pages) > 1)


def used(action: str, state: ExplorationState | None = None) -> ToolView:
    return act(state or ExplorationState(0), action, PROVIDER, RULES)[1]


def test_a_document_is_opened_page_by_page():
    first, second = used(f"OPEN {PAPER.id}"), used(f"open {PAPER.id} page 2\nmore lines are ignored")
    assert (first.shown, second.shown) == (((PAPER.id, 1),), ((PAPER.id, 2),))
    assert first.document is PAPER


@pytest.mark.parametrize("field", ["length", "pairs", "described"])
@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_a_lookup_compares_numbers_as_each_record_does(field: str, op: str):
    records = LIBRARY.records["taxa"]
    bound = RECORD[field]
    tests = {
        "=": lambda v: v == bound, "!=": lambda v: v != bound, "<": lambda v: v < bound,
        "<=": lambda v: v <= bound, ">": lambda v: v > bound, ">=": lambda v: v >= bound,
    }  # fmt: skip
    expected = [key for key, record in records.items() if record[field] is not None and tests[op](record[field])]
    listing = used(f"LOOKUP taxa: {field} {op} {bound}").listing
    assert listing is not None
    assert listing.total == len(expected)
    assert [key for key, _ in listing.records] == expected[:ROWS]


@pytest.mark.parametrize(("op", "passes"), [("=", str.__eq__), ("!=", str.__ne__), ("~", str.__contains__)])
@pytest.mark.parametrize("field", ["status", "describer", "name", "key"])
def test_a_lookup_compares_texts_in_small_letters_as_each_record_does(field: str, op: str, passes):
    cells = {key: (key if field == "key" else str(record[field])) for key, record in LIBRARY.records["taxa"].items()}
    wanted = cells[KEY] if op != "~" else cells[KEY][1:-1]
    expected = [key for key, cell in cells.items() if passes(cell.lower(), wanted.lower())]
    listing = used(f"LOOKUP taxa: {field} {op} {wanted.upper()}").listing
    assert listing is not None
    assert (listing.total, [key for key, _ in listing.records]) == (len(expected), expected[:ROWS])


def test_a_lookup_joins_tests_and_follows_links():
    key, record = next(iter(LIBRARY.records["specimens"].items()))
    listing = used(
        f"lookup SPECIMENS: taxon = {record['taxon']}; collected >= {record['collected']}; name ~ speci"
    ).listing
    assert listing is not None
    assert key in [each for each, _ in listing.records]
    assert used(f"LOOKUP specimens: key = {key}").listing == (1, ((key, record["name"]),), ())


def test_a_lookup_without_tests_tells_fields_and_units():
    listing = used("LOOKUP specimens").listing
    assert listing is not None
    assert listing.total == len(LIBRARY.records["specimens"])
    assert {"key", "name", "mass (mg)", "taxon (key in taxa)"} <= set(listing.fields)


def test_find_needs_an_open_document_and_lists_its_lines():
    assert "must be open" in used("FIND samples").fault
    state, _ = act(ExplorationState(0), f"OPEN {PAPER.id}", PROVIDER, RULES)
    view = used("FIND Same, SAMPLES", state)
    assert view.total > 0
    assert all({"same", "samples"} <= set(words_of(text)) for _, text in view.passages)
    assert used("FIND zzzz", state).total == 0


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        ("", "must start with one of SEARCH, OPEN, FIND, LOOKUP, ANSWER, got ''"),
        ("Hello there", "got 'Hello'"),
        ("SEARCH", "must have a word"),
        ("SEARCH ?!?", "must have a word"),
        ("OPEN", "must have the id"),
        ("OPEN W99999", "no document has the id 'W99999'"),
        (f"OPEN {PAPER.id} 0", "page must be from 1 to"),
        (f"OPEN {PAPER.id} 99", "page must be from 1 to"),
        (f"OPEN {PAPER.id} -1", "must be a whole number"),
        (f"OPEN {PAPER.id} ²", "must be a whole number"),
        ("LOOKUP", "database must be one of institutes"),
        ("LOOKUP stars: a = 1", "database must be one of institutes"),
        ("LOOKUP taxa: colour = red", "field must be one of key, name, describer"),
        ("LOOKUP taxa: length", "must be 'field op value', got 'length'"),
        ("LOOKUP taxa: length >", "must be 'field op value'"),
        ("LOOKUP taxa: length > much", "must be compared with a number"),
        ("LOOKUP taxa: length > nan", "must be compared with a number"),
        ("LOOKUP taxa: length ~ 3", "holds numbers"),
        ("LOOKUP taxa: status > rare", "holds texts"),
        ("LOOKUP taxa; DROP TABLE taxa", "database must be one of"),
    ],
)
def test_a_bad_request_says_what_it_must_be_and_costs_a_turn(action: str, fault: str):
    state, view = act(ExplorationState(0), action, PROVIDER, RULES)
    assert fault in view.fault
    assert (state.turn, state.phase) == (1, "explore")


def test_long_queries_are_cut():
    assert len(parse_action("SEARCH " + "word " * 4_000).text) <= 2_000


def test_pages_hold_every_word_of_a_text():
    text = "\n".join("word " * (n % 40) + str(n) for n in range(400))
    pages = paged(text)
    assert all(len(page) <= PAGE for page in pages)
    assert " ".join(pages).split() == text.split()
    assert paged("x" * 4_500) == ("x" * 2_000, "x" * 2_000, "x" * 500)


def test_the_tools_of_the_rules_are_the_only_ones():
    for tools, allowed in (("none", set()), ("search", {"OPEN"}), ("all", {"OPEN", "LOOKUP"})):
        rules = ExplorationRules(tools=tools)
        for action in (f"OPEN {KEY}", "LOOKUP taxa"):
            _, view = act(ExplorationState(0), action, PROVIDER, rules)
            assert bool(view.fault) == (action.split()[0] not in allowed)


class TestSearch:
    @pytest.fixture(autouse=True)
    def needs_the_index(self):
        pytest.importorskip("bm25s")

    def test_a_search_finds_what_has_the_words(self):
        view = used(f"SEARCH {RECORD['name']}")
        assert view.hits[0].id == KEY or RECORD["name"] in view.hits[0].snippet
        assert len(view.hits) <= HITS
        assert all(len(hit.snippet) <= SNIPPET for hit in view.hits)
        assert all(hit.id in LIBRARY.documents for hit in view.hits)

    def test_a_key_finds_the_records_that_link_to_it(self):
        record = next(iter(LIBRARY.records["trials"].values()))
        assert any(str(record["specimen"]) in hit.snippet or hit.id == record["specimen"]
                   for hit in used(f"SEARCH {record['specimen']}").hits)  # fmt: skip

    def test_words_of_no_document_find_nothing(self):
        assert used("SEARCH xyzzyx qqqqq").hits == ()

    def test_ties_are_in_the_order_of_the_library(self):
        order = {name: place for place, name in enumerate(LIBRARY.documents)}
        words = words_of("institute field work")
        scores = PROVIDER._index.get_scores(words)
        hits = [order[hit.id] for hit in used("SEARCH institute field work").hits]
        assert hits == sorted(range(len(order)), key=lambda place: (-scores[place], place))[:HITS]
