"""The local judge on real trees and real weights, and its claims without an embedder: splitting, negation, copies."""

from __future__ import annotations

from itertools import cycle
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.embeddings import MiniLMEmbedder, TreeVectors, tree_vectors
from inquitree_gym.judges.local import (
    ADDED_WORDS,
    CLAIMS_PER_ITEM,
    TURNED_PLACES,
    WEIGHTS,
    ClaimFeatures,
    LocalJudge,
    is_copy,
    is_negated,
    is_open,
    local_judge,
    split_claims,
    stems,
    turn,
)
from inquitree_gym.matching import MAX_ACTION_LENGTH
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from tests.strategies import make_tree

ITEM = "Small networks hold every heading only when their excitation is tuned with great precision."
shipped = pytest.mark.parametrize("name", builtin_ids())
DENIALS = (
    "There is no evidence that {}", "It is not the case that {}", "Our results refute the idea that {}",
    "It is wrong to say that {}",
)  # fmt: skip
EITHER = "{} However, the reverse is just as likely."


@pytest.fixture(scope="module")
def paper() -> Tree:
    return load_tree("paper12")


@pytest.fixture(scope="module")
def judge(paper: Tree, minilm: MiniLMEmbedder) -> LocalJudge:
    return LocalJudge(tree_vectors(paper, minilm))


def scores(judge: LocalJudge, *claims: str) -> list[float | None]:
    return [verdict.score for verdict in judge.judge("\n".join(f"{i}. {claim}" for i, claim in enumerate(claims, 1)))]


def lower(text: str) -> str:
    return text[0].lower() + text[1:]


@shipped
def test_an_item_in_its_own_words_scores_and_denied_or_turned_it_does_not(name: str, minilm: MiniLMEmbedder):
    tree = load_tree(name)
    judge = LocalJudge(tree_vectors(tree, minilm))
    items = [item.text for item in tree.conclusions]
    count = len(items)
    assert scores(judge, *items) == [1] * count
    assert scores(judge, *(item.false_variants[0] for item in tree.conclusions)) == [0] * count
    denied = [denial.format(lower(text)) for text, denial in zip(items, cycle(DENIALS), strict=False)]
    assert scores(judge, *denied) == [0] * count


def test_an_item_asserted_together_with_its_false_variant_is_nothing(judge: LocalJudge, paper: Tree):
    item, other = paper.conclusions[0], paper.conclusions[1]
    for claims in ([item.text, item.false_variants[0]], [item.false_variants[0], item.text]):
        assert scores(judge, *claims, other.text)[:2] == [0, 1]


def test_a_claim_that_leaves_its_item_open_neither_helps_nor_hurts(judge: LocalJudge, paper: Tree):
    item = paper.conclusions[0].text
    assert scores(judge, EITHER.format(item))[0] == 0
    assert scores(judge, EITHER.format(item), item)[0] == 1


@shipped
def test_what_the_tree_asks_and_does_is_no_conclusion(name: str, minilm: MiniLMEmbedder):
    tree = load_tree(name)
    judge = LocalJudge(tree_vectors(tree, minilm))
    menu = [node.text for node in (*tree.subtopics, *tree.studies)]
    for start in range(0, len(menu), len(tree.conclusions)):
        assert sum(scores(judge, *menu[start : start + len(tree.conclusions)])) == 0


def test_an_item_that_is_open_itself_may_be_claimed_as_it_is(minilm: MiniLMEmbedder):
    document = make_tree([[], []], [1, 1]).model_dump(mode="json")
    document["conclusions"][0]["text"] = "Question number 1 is decided by rising, or by standing still for long."
    tree = Tree.model_validate_json(__import__("json").dumps(document))
    judge = LocalJudge(tree_vectors(tree, minilm))
    assert scores(judge, tree.conclusions[0].text) == [1, 0]


def test_only_the_first_claims_count(judge: LocalJudge, paper: Tree):
    padding = ["Bread is baked from flour and water."] * (CLAIMS_PER_ITEM * len(paper.conclusions) - 1)
    item = paper.conclusions[2].text
    assert scores(judge, *padding, item)[2] == 1
    assert scores(judge, *padding, padding[0], item)[2] == 0
    assert len(judge.claims("\n".join(f"- {claim}" for claim in [*padding, item, item]))) == len(padding) + 1


def test_a_claim_about_something_else_counts_for_nothing(judge: LocalJudge, paper: Tree):
    assert scores(judge, "Bread is baked from flour and water.") == [0] * len(paper.conclusions)
    assert {verdict.why for verdict in judge.judge("")} == {"not claimed"}


def test_the_verdict_names_the_claim_and_its_numbers(judge: LocalJudge, paper: Tree):
    text = paper.conclusions[0].text
    assert judge.judge(text)[0].why.startswith("similarity 1.000, sense +")
    assert text[:100] in judge.judge(text)[0].why


@pytest.mark.weights
def test_thresholds_and_weights_are_its_own(paper: Tree, minilm: MiniLMEmbedder):
    vectors = tree_vectors(paper, minilm)
    text = paper.conclusions[0].text
    paraphrase = "A ring of few neurons is able to represent every heading."
    assert scores(LocalJudge(vectors, claim_at=0.99), text)[0] == 1
    assert scores(LocalJudge(vectors), paraphrase)[0] == 1
    assert scores(LocalJudge(vectors, claim_at=0.99), paraphrase)[0] == 0
    assert scores(LocalJudge(vectors, weights=ClaimFeatures(*(-weight for weight in WEIGHTS))), text)[0] == 0
    assert scores(LocalJudge(vectors, weights=ClaimFeatures(0.0, 0.0, 0.0, 0.0)), text)[0] == 0.6


@pytest.mark.weights
def test_leads_point_to_the_text_that_a_claim_repeats(judge: LocalJudge, paper: Tree):
    for index, item in enumerate(paper.conclusions):
        own, false = judge.features(item.text, index), judge.features(item.false_variants[0], index)
        assert own.meaning > 0 > false.meaning
        assert own.wording > 0 > false.wording
        assert own.turning > 0
    turned = [judge.features(item.text.replace(" ", " not ", 1), index) for index, item in enumerate(paper.conclusions)]
    plain = [judge.features(item.text, index) for index, item in enumerate(paper.conclusions)]
    assert fmean(leads.turning for leads in turned) < fmean(leads.turning for leads in plain) - 0.02


class _Batched(TreeVectors):
    """Vectors as a batch gives them: off in the last bits, until they are settled."""

    def __init__(self, tree: Tree, embedder: MiniLMEmbedder, off: float) -> None:
        super().__init__(tree, embedder)
        self.settled = 0
        self._off = off

    def batch(self, text: str) -> None:
        self.take(text, self.embedder.embed([text])[0] + np.float32(self._off))

    def settle(self, text: str) -> np.ndarray:
        self.settled += 1
        return super().settle(text)


@pytest.mark.weights
def test_a_vector_of_a_batch_is_settled_only_where_its_last_bits_could_decide(paper: Tree, minilm: MiniLMEmbedder):
    claim = "A ring of few neurons is able to represent every heading."
    alone = LocalJudge(tree_vectors(paper, minilm))
    similarity = max(
        float(tree_vectors(paper, minilm).of(item.text) @ minilm.embed([claim])[0]) for item in paper.conclusions
    )
    for claim_at, settles in ((0.6, 0), (similarity + 1e-6, 1)):
        vectors = _Batched(paper, minilm, 1e-8)
        vectors.batch(claim)
        judge = LocalJudge(vectors, claim_at=claim_at)
        judge.judge(claim)
        assert vectors.settled == settles
    assert alone.judge(claim)[0].score == 1


def test_the_judge_of_rewards_is_one_object_on_the_default_embedder(paper: Tree):
    assert local_judge(paper) is local_judge(paper)
    assert local_judge(paper).vectors.embedder.name == "all-MiniLM-L6-v2"


# Claims


def test_a_conclusion_is_split_at_numbers_bullets_and_sentences_before_them():
    text = "We found two things. They do agree.\n1. It rose in all. By a lot.\n(2) It fell at night.\n- And so on, too."
    assert split_claims(text) == [
        "We found two things.",
        "They do agree.",
        "It rose in all. By a lot.",
        "It fell at night.",
        "And so on, too.",
    ]


def test_headings_and_questions_claim_nothing():
    assert split_claims("# Findings\n1. Does it rise at night?\n2. It does.\n3. It rises at night.") == [
        "It rises at night."
    ]


@pytest.mark.parametrize(
    "claim",
    [
        "The dough rises by yeast, or steam lifts it.",
        "The map is kept by fixed cells, or else by changing ones.",
        "Timing matters here, though it is equally possible that heat does.",
        "Both kinds contribute, but it may just as well be one of them.",
        "Yeast drives the rise; or it is driven by it.",
        "Cells follow behaviour or possibly lead it.",
        "It reads from left to right, or the other way round.",
    ],
)
def test_a_claim_that_leaves_two_things_open(claim: str):
    assert is_open(claim)


@pytest.mark.parametrize(
    "claim",
    [
        "Yeast may make the dough rise.",
        "It rises with sugar, warmth, or time.",
        "In mice, rats or humans the signal is the same.",
        "The rise is seen in wheat and rye or in blends of the two.",
        "It could also explain the rise at night.",
        "Two accounts describe it equally well.",
        "Whether warm or cold, the dough rises.",
    ],
)
def test_a_claim_that_is_careful_or_lists_things_is_not_open(claim: str):
    assert not is_open(claim)


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("It rises.", False), ("It does not rise.", True), ("It doesn't rise.", True), ("It doesn’t rise.", True),
        ("It never fails to rise.", False), ("There is no evidence that it rises.", True),
        ("Our data refute that it rises.", True), ("Nothing in it rises.", True), ("It hardly rises.", True),
        ("A note on knots and nodes.", False), ("Without salt it rises, and not without yeast.", True),
    ],
)  # fmt: skip
def test_an_odd_number_of_negations_negates(text: str, negated: bool):
    assert is_negated(text) == negated


def test_a_copy_holds_nearly_all_words_and_few_others():
    assert is_copy(ITEM, ITEM)
    assert is_copy(ITEM.upper(), ITEM)
    assert is_copy(f"There is no evidence that {ITEM.lower()}", ITEM)
    assert not is_copy(f"{ITEM} {'more ' * (ADDED_WORDS + 1)}", ITEM)
    assert not is_copy("Small networks hold every heading.", ITEM)
    assert not is_copy("Anything.", "…")


def test_words_are_the_same_from_their_beginning():
    assert stems("Predicts prediction PREDICTED; cat") == {"predi", "cat"}
    assert stems("") == frozenset()


@given(st.lists(st.text(st.characters(categories=("L",)), min_size=1, max_size=8), min_size=1, max_size=60))
def test_a_text_is_turned_by_one_word_at_a_time(words: list[str]):
    text = " ".join(words)
    turned = turn(text)
    assert 1 <= len(turned) <= TURNED_PLACES
    assert len(set(turned)) == len(turned) or "not" in words
    for each in turned:
        found = each.split()
        assert len(found) == len(words) + 1
        assert any(found[:i] + found[i + 1 :] == words for i, word in enumerate(found) if word == "not")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    for claim in split_claims(text):
        is_open(claim)
        is_negated(claim)
        is_copy(claim, text)


def test_only_what_is_read_is_split():
    assert (
        len(split_claims("It rises at night. " * MAX_ACTION_LENGTH))
        <= MAX_ACTION_LENGTH // len("It rises at night. ") + 1
    )
