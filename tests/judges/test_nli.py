"""The entailment judge: its rule on given probabilities, and the real loading code on tiny models made here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from inquitree_gym.errors import JudgeError
from inquitree_gym.judges import make_judges
from inquitree_gym.judges.claims import MAX_WORDS
from inquitree_gym.judges.nli import (
    CONTRADICTS_AT,
    ENTAILS_AT,
    LABELS,
    CrossEncoderInference,
    NLIJudge,
    Probabilities,
    TextPair,
)
from inquitree_gym.trees import Tree
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

SEED = 5
PAIRS = [("the dough rises", "yeast makes gas"), ("gas", "the dough rises in the oven"), ("yeast", "yeast")]


class Table:
    """Answers pairs from a table; what stands not in it is neutral."""

    name = "table"

    def __init__(self, **said: dict[TextPair, float]) -> None:
        self._said = said
        self.asked: list[TextPair] = []

    def read(self, pairs: Sequence[TextPair]) -> Probabilities:
        self.asked += pairs
        rows = []
        for pair in pairs:
            row = {label: self._said.get(label, {}).get(pair, 0.0) for label in LABELS}
            row["neutral"] = 1 - row["entailment"] - row["contradiction"]
            rows.append([row[label] for label in LABELS])
        return np.array(rows, np.float64).reshape(-1, 3)


@pytest.fixture
def tree() -> Tree:
    return make_tree([[], [], []], [1, 1, 1])


def scores(tree: Tree, conclusion: str, **said: dict[TextPair, float]) -> list[float | None]:
    return [verdict.score for verdict in NLIJudge(tree, Table(**said)).judge(conclusion)]


def own(tree: Tree, index: int) -> str:
    return tree.conclusions[index].text


def false(tree: Tree, index: int) -> str:
    return tree.conclusions[index].false_variants[0]


CLAIM = "It rose in every group."


def test_a_claim_that_entails_the_item_states_it_in_full(tree: Tree):
    assert scores(tree, f"1. {CLAIM}", entailment={(CLAIM, own(tree, 1)): ENTAILS_AT}) == [0, 1, 0]
    assert scores(tree, f"1. {CLAIM}", entailment={(CLAIM, own(tree, 1)): ENTAILS_AT - 0.01}) == [0, 0, 0]


def test_a_claim_that_follows_from_the_item_states_a_part(tree: Tree):
    assert scores(tree, CLAIM, entailment={(own(tree, 2), CLAIM): 0.8}) == [0, 0, 0.6]
    assert scores(tree, CLAIM, entailment={(own(tree, 2), CLAIM): 0.49}) == [0, 0, 0]


def test_a_claim_that_contradicts_or_entails_a_false_variant_takes_the_credit_away(tree: Tree):
    good, bad = "It rose as expected.", "It fell after all."
    both = f"1. {good}\n2. {bad}"
    stated = {(good, own(tree, 0)): 0.9}
    assert scores(tree, both, entailment=stated) == [1, 0, 0]
    assert scores(tree, both, entailment=stated, contradiction={(bad, own(tree, 0)): CONTRADICTS_AT}) == [0, 0, 0]
    assert scores(tree, both, entailment=stated | {(bad, false(tree, 0)): CONTRADICTS_AT}) == [0, 0, 0]
    # The order of the claims makes no difference, nor does a third one that says it again.
    again = f"1. {bad}\n2. {good}\n3. {good}"
    assert scores(tree, again, entailment=stated | {(bad, false(tree, 0)): 0.7}) == [0, 0, 0]


def test_what_it_entails_more_counts(tree: Tree):
    close = {(CLAIM, own(tree, 0)): 0.9, (CLAIM, false(tree, 0)): 0.8}
    assert scores(tree, CLAIM, entailment=close) == [1, 0, 0]
    assert scores(tree, CLAIM, entailment=close | {(CLAIM, false(tree, 0)): 0.95}) == [0, 0, 0]


def test_one_claim_speaks_of_the_item_that_it_is_least_neutral_to(tree: Tree):
    both = {(CLAIM, own(tree, 0)): 0.7, (CLAIM, own(tree, 2)): 0.8}
    assert scores(tree, CLAIM, entailment=both) == [0, 0, 1]
    assert scores(tree, CLAIM, entailment=both, contradiction={(CLAIM, own(tree, 1)): 0.9}) == [0, 0, 0]


def test_only_the_first_claims_count_and_the_best_grade_of_an_item_stays(tree: Tree):
    claims = [f"This is claim number {i}." for i in range(MAX_WORDS // 5 + 1)]
    said = {(claims[1], own(tree, 0)): 0.9, (own(tree, 0), claims[3]): 0.9, (claims[-1], own(tree, 1)): 0.9}
    assert scores(tree, "\n".join(f"{i}. {claim}" for i, claim in enumerate(claims, 1)), entailment=said) == [1, 0, 0]


def test_nothing_claimed_is_nothing_and_asks_nothing(tree: Tree):
    table = Table()
    assert [verdict.score for verdict in NLIJudge(tree, table).judge("Is it so?")] == [0, 0, 0]
    assert table.asked == []
    assert NLIJudge(tree, table).name == "nli:table"


def test_the_verdict_says_why(tree: Tree):
    judge = NLIJudge(tree, Table(entailment={(CLAIM, own(tree, 1)): 0.75}))
    assert [verdict.why for verdict in judge.judge(CLAIM)] == [
        "not claimed",
        f"entails 0.75, follows 0.00, against 0.00: {CLAIM}",
        "not claimed",
    ]


# The real loading code, on models that are tiny and know nothing


def save(folder: Path, labels: Sequence[str], bias: Sequence[float] | None = None) -> str:
    """Write a cross-encoder of random weights; with ``bias`` its head says only that, whatever it reads."""
    words = sorted(
        {word for pair in PAIRS for text in pair for word in text.split()} | set("abcdefghijklmnopqrstuvwxyz")
    )
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").parent.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, num_labels=len(labels), id2label=dict(enumerate(labels)), initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        model = BertForSequenceClassification(config)
    if bias is not None:
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.copy_(torch.tensor(bias))
    model.save_pretrained(folder)
    return str(folder)


def test_a_model_is_loaded_and_reads_pairs(tmp_path: Path):
    inference = CrossEncoderInference(save(tmp_path, LABELS), batch_size=2)
    read = inference.read(PAIRS)
    assert read.shape == (3, 3)
    assert read.sum(axis=1) == pytest.approx([1, 1, 1])
    assert np.abs(read - read[0]).max() > 1e-3, "it reads the texts"
    assert inference.read([PAIRS[1]])[0] == pytest.approx(read[1], abs=1e-5)
    assert inference.read([]).shape == (0, 3)


def test_the_order_of_the_labels_comes_from_the_configuration(tmp_path: Path):
    mixed = ("Contradiction", "ENTAILMENT", "neutral")
    plain = CrossEncoderInference(save(tmp_path / "plain", LABELS)).read(PAIRS)
    other = CrossEncoderInference(save(tmp_path / "mixed", mixed)).read(PAIRS)
    assert other == pytest.approx(plain[:, [1, 2, 0]])


@pytest.mark.parametrize(("label", "grade"), [("entailment", 1), ("neutral", 0), ("contradiction", 0)])
def test_a_judge_scores_by_what_a_loaded_model_says(label: str, grade: float, tree: Tree, tmp_path: Path):
    bias = [6.0 if name == label else 0.0 for name in LABELS]
    judge = NLIJudge(tree, CrossEncoderInference(save(tmp_path, LABELS, bias)))
    verdicts = judge.judge("1. The dough rises.\n2. Yeast makes gas.")
    assert [verdict.score for verdict in verdicts] == [grade, 0, 0]
    assert verdicts[0].why.startswith("not claimed" if label == "neutral" else "entails")


def test_a_model_with_other_labels_is_refused(tmp_path: Path):
    with pytest.raises(JudgeError, match="has the labels label_0, label_1, label_2; a judge needs a model"):
        CrossEncoderInference(save(tmp_path, ["LABEL_0", "LABEL_1", "LABEL_2"])).read(PAIRS)


def test_a_folder_without_a_model_and_an_unknown_name_are_refused(tmp_path: Path):
    with pytest.raises(JudgeError, match="no cross-encoder can be loaded from"):
        CrossEncoderInference(str(tmp_path)).read(PAIRS)
    with pytest.raises(JudgeError, match="no-such-model"):
        CrossEncoderInference("no-such-owner/no-such-model").read(PAIRS)


def test_a_model_that_gives_no_numbers_leaves_nothing_graded(tree: Tree, tmp_path: Path):
    judge = NLIJudge(tree, CrossEncoderInference(save(tmp_path, LABELS, [float("nan"), 0.0, 0.0])))
    with pytest.raises(JudgeError, match="returned probabilities that are no numbers"):
        judge.judge("1. The dough rises.")


def test_damaged_weights_are_refused(tmp_path: Path):
    folder = save(tmp_path, LABELS)
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(JudgeError, match="no cross-encoder can be loaded"):
        CrossEncoderInference(folder).read(PAIRS)
    assert json.loads((tmp_path / "config.json").read_text())["id2label"]["0"] == LABELS[0]


def test_other_weights_in_a_folder_are_another_judge(tmp_path: Path):
    first = make_judges([f"nli:{save(tmp_path, LABELS, [6.0, 0.0, 0.0])}"])[0].config
    assert make_judges([f"nli:{save(tmp_path, LABELS, [6.0, 0.0, 0.0])}"])[0].config == first
    assert make_judges([f"nli:{save(tmp_path, LABELS, [0.0, 6.0, 0.0])}"])[0].config["digest"] != first["digest"]


HUB = """
from inquitree_gym.judges import make_judges
print(make_judges(["nli:owner/tiny-nli"])[0].config["digest"])
"""


def test_a_hub_model_is_named_by_its_commit(tmp_path: Path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--owner--tiny-nli"
    save(repository / "snapshots" / commit, LABELS)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    env = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", HUB], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == commit, done.stderr
