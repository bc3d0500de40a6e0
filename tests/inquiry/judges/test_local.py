"""The local judge on real trees and real weights."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

from inquitree_gym.embeddings import Embedder, TreeVectors, load_embedder
from inquitree_gym.inquiry.judges.local import SETTINGS, LocalJudge, judge_vectors, local_judge
from inquitree_gym.judging.sense import JUDGE_EMBEDDER
from inquitree_gym.trees import Tree, builtin_ids, load_tree

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
def judge(paper: Tree) -> LocalJudge:
    return local_judge(paper)


def scores(judge: LocalJudge, *claims: str) -> list[float | None]:
    return [verdict.score for verdict in judge.judge("\n".join(f"{i}. {claim}" for i, claim in enumerate(claims, 1)))]


def lower(text: str) -> str:
    return text[0].lower() + text[1:]


@pytest.mark.weights
@shipped
def test_an_item_in_its_own_words_scores_and_denied_or_turned_it_does_not(name: str):
    tree = load_tree(name)
    judge, items = local_judge(tree), [item.text for item in tree.conclusions]
    assert scores(judge, *items) == [1] * len(items)
    assert scores(judge, *(item.false_variants[0] for item in tree.conclusions)) == [0] * len(items)
    denied = [denial.format(lower(text)) for text, denial in zip(items, cycle(DENIALS), strict=False)]
    assert sum(scores(judge, *denied)) < 0.5 * len(items)


@pytest.mark.weights
@shipped
def test_pasted_results_state_the_items_and_pasted_fakes_do_not(name: str):
    tree = load_tree(name)
    judge = local_judge(tree)
    true = sum(scores(judge, *(study.result for study in tree.studies)))
    assert true >= 0.55 * len(tree.conclusions)
    for side in (0, -1):
        assert sum(scores(judge, *(study.fakes[side].text for study in tree.studies))) < 0.5 * true
    both = [text for study in tree.studies for text in (study.result, study.fakes[0].text)]
    assert sum(scores(judge, *both)) < 0.6 * true


def test_an_item_asserted_together_with_its_false_variant_is_nothing(judge: LocalJudge, paper: Tree):
    item, other = paper.conclusions[0], paper.conclusions[1]
    for claims in ([item.text, item.false_variants[0]], [item.false_variants[0], item.text]):
        assert scores(judge, *claims, other.text)[:2] == [0, 1]
    assert scores(judge, f"{item.text[:-1]}, and {lower(item.false_variants[0])}")[0] == 0


@pytest.mark.weights
def test_a_sentence_of_a_fake_denies_its_result_and_a_sentence_that_truth_and_fake_share_is_no_evidence():
    judge = local_judge(load_tree("paper2"))
    fake = judge.hear("Inference errors were larger in people leaning on space (r = 0.43).")
    assert [judge.statements[k].true[0][:30] for k in np.flatnonzero(fake.denies)] == ["Never-sampled monsters of high"]
    true = judge.hear("Inference errors were smaller in people leaning on space (r = −0.43).")
    assert np.flatnonzero(true.says).tolist() == np.flatnonzero(fake.denies).tolist()


@pytest.mark.weights
def test_evidence_states_an_item_in_part_and_in_full(judge: LocalJudge, paper: Tree):
    results = {study.id: study.result for study in paper.studies}
    item = next(each for each in paper.conclusions if len(each.needs) > 1)
    index = paper.conclusions.index(item)
    stated = [results[group[0]] for group in item.needs]
    assert scores(judge, *stated)[index] == 1
    assert scores(judge, stated[0])[index] == 0.6


@pytest.mark.weights
def test_a_fake_of_its_evidence_contradicts_an_item_unless_the_true_result_is_said_too(judge: LocalJudge, paper: Tree):
    studies = {study.id: study for study in paper.studies}
    item = next(each for each in paper.conclusions if len(each.needs) > 1)
    index, (first, second) = paper.conclusions.index(item), [studies[group[0]] for group in item.needs[:2]]
    assert scores(judge, first.fakes[0].text, second.result)[index] == 0
    assert scores(judge, first.fakes[0].text, first.result, second.result)[index] == 0.6


def test_a_claim_that_leaves_its_item_open_neither_helps_nor_hurts(judge: LocalJudge, paper: Tree):
    item = paper.conclusions[0].text
    assert scores(judge, EITHER.format(item))[0] == 0
    assert scores(judge, EITHER.format(item), item)[0] == 1


@shipped
def test_what_the_tree_asks_and_does_is_no_conclusion(name: str):
    tree = load_tree(name)
    assert sum(scores(local_judge(tree), *(node.text for node in (*tree.subtopics, *tree.studies)))) == 0


def test_a_claim_about_something_else_counts_for_nothing(judge: LocalJudge, paper: Tree):
    assert scores(judge, "Bread is baked from flour and water.") == [0] * len(paper.conclusions)
    assert {verdict.why for verdict in judge.judge("")} == {"not claimed"}


@pytest.mark.weights
@pytest.mark.parametrize(
    ("said", "setting", "value", "score"),
    [
        *(("item", *case) for case in (
            ("item_at", 1.01, 0), ("full_at", 1.01, 0.6), ("says_item", 1e3, 0), ("asserts_at", 1.01, 0),
            ("denies_item", -1e3, 1), ("denies_near_item", -1e3, 0), ("asked_at", 1e6, 0), ("near", -0.1, 0),
            ("result_at", 1.01, 1),
        )),
        *(("result", *case) for case in (
            ("result_at", 1.01, 0), ("says_result", 1e3, 0), ("says_item", 1e3, 1), ("denies_result", -1e3, 0),
        )),
    ],
)  # fmt: skip
def test_settings_are_its_own(paper: Tree, said: str, setting: str, value: float, score: float):
    text = "A handful of neurons is enough: a suitably tuned ring of four units can hold every angle."
    settings = SETTINGS._replace(result_at=1.01)
    if said == "result":  # s2b is all the evidence that the first item needs
        text, settings = next(study.result for study in paper.studies if study.id == "s2b"), SETTINGS
    vectors = judge_vectors(paper)
    assert scores(LocalJudge(vectors), text)[0] == 1
    assert scores(LocalJudge(vectors, settings=settings._replace(**{setting: value})), text)[0] == score


class _Batched(TreeVectors):
    """Vectors as a batch gives them: off in the last bits, until they are settled."""

    def __init__(self, tree: Tree, embedder: Embedder, off: float) -> None:
        super().__init__(tree, embedder)
        self.settled = 0
        self._off = off

    def batch(self, text: str) -> None:
        self.take(text, self.embedder.embed([text])[0] + np.float32(self._off))

    def settle(self, text: str) -> np.ndarray:
        self.settled += 1
        return super().settle(text)


@pytest.mark.weights
def test_a_vector_of_a_batch_is_settled_only_where_its_last_bits_could_decide(paper: Tree, judge: LocalJudge):
    claim = "A ring of few neurons is able to represent every heading."
    heard = judge.hear(claim)
    similarity = float(heard.similarity[: len(paper.conclusions)].max())
    for item_at, settles in ((SETTINGS.item_at, 0), (similarity + 1e-6, 1)):
        vectors = _Batched(paper, load_embedder(JUDGE_EMBEDDER), 1e-8)
        vectors.batch(claim)
        LocalJudge(vectors, settings=SETTINGS._replace(item_at=item_at)).judge(claim)
        assert vectors.settled == settles
