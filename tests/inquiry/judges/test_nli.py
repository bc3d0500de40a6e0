"""The entailment judge: its rule on given probabilities, and the real loading code on tiny models made here."""

from __future__ import annotations

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
from inquitree_gym.inquiry.judges.nli import NLIJudge
from inquitree_gym.judging.claims import MAX_WORDS
from inquitree_gym.judging.nli import CONTRADICTS_AT, ENTAILS_AT, LABELS, CrossEncoderInference, Probabilities, TextPair
from inquitree_gym.judging.registry import make_judges
from inquitree_gym.trees.worlds import told_as
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

SEED = 5
PAIRS = [("the dough rises", "yeast makes gas"), ("gas", "the dough rises in the oven"), ("yeast", "yeast")]


class Table:
    """Answers pairs from a table; what stands not in it is neutral."""

    name = "table"

    def __init__(self, **said: dict[TextPair, float]) -> None:
        self._said = said

    def read(self, pairs: Sequence[TextPair]) -> Probabilities:
        rows = []
        for pair in pairs:
            row = {label: self._said.get(label, {}).get(pair, 0.0) for label in LABELS}
            row["neutral"] = 1 - row["entailment"] - row["contradiction"]
            rows.append([row[label] for label in LABELS])
        return np.array(rows, np.float64).reshape(-1, 3)


TREE = make_tree([[], [], []], [1, 1, 1])
OWN = [item.text for item in told_as(TREE).conclusions]
FALSE = [item.others[0] for item in told_as(TREE).conclusions]
CLAIM, GOOD, BAD = "It rose in every group.", "It rose as expected.", "It fell after all."
BOTH, STATED = f"1. {GOOD}\n2. {BAD}", {(GOOD, OWN[0]): 0.9}
CLOSE, TWO = {(CLAIM, OWN[0]): 0.9, (CLAIM, FALSE[0]): 0.8}, {(CLAIM, OWN[0]): 0.7, (CLAIM, OWN[2]): 0.8}
MANY = [f"This is claim number {i}." for i in range(MAX_WORDS // 5 + 1)]


@pytest.mark.parametrize(
    ("conclusion", "entailment", "contradiction", "scores"),
    [
        (f"1. {CLAIM}", {(CLAIM, OWN[1]): ENTAILS_AT}, {}, [0, 1, 0]),
        (f"1. {CLAIM}", {(CLAIM, OWN[1]): ENTAILS_AT - 0.01}, {}, [0, 0, 0]),
        (CLAIM, {(OWN[2], CLAIM): 0.8}, {}, [0, 0, 0.6]),
        (CLAIM, {(OWN[2], CLAIM): 0.49}, {}, [0, 0, 0]),
        (BOTH, STATED, {}, [1, 0, 0]),
        (BOTH, STATED, {(BAD, OWN[0]): CONTRADICTS_AT}, [0, 0, 0]),
        (BOTH, STATED | {(BAD, FALSE[0]): CONTRADICTS_AT}, {}, [0, 0, 0]),
        (f"1. {BAD}\n2. {GOOD}\n3. {GOOD}", STATED | {(BAD, FALSE[0]): 0.7}, {}, [0, 0, 0]),
        (CLAIM, CLOSE, {}, [1, 0, 0]),
        (CLAIM, CLOSE | {(CLAIM, FALSE[0]): 0.95}, {}, [0, 0, 0]),
        (CLAIM, TWO, {}, [0, 0, 1]),
        (CLAIM, TWO, {(CLAIM, OWN[1]): 0.9}, [0, 0, 0]),
        (
            "\n".join(f"{i}. {claim}" for i, claim in enumerate(MANY, 1)),
            {(MANY[1], OWN[0]): 0.9, (OWN[0], MANY[3]): 0.9, (MANY[-1], OWN[1]): 0.9}, {}, [1, 0, 0],
        ),
        ("Is it so?", {}, {}, [0, 0, 0]),
    ],
    ids=[
        "entails it", "hardly entails it", "follows from it", "hardly follows from it", "states it", "contradicted",
        "false variant", "said again", "entails the truth more", "entails the false variant more", "the least neutral",
        "contradicts the nearest", "only the first claims", "a question",
    ],
)  # fmt: skip
def test_claims_are_graded_by_what_they_entail_and_what_contradicts_them(conclusion, entailment, contradiction, scores):
    judge = NLIJudge(TREE, Table(entailment=entailment, contradiction=contradiction))
    assert [verdict.score for verdict in judge.judge(conclusion)] == scores
    assert judge.name == "nli:table"


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
def test_a_judge_scores_by_what_a_loaded_model_says(label: str, grade: float, tmp_path: Path):
    bias = [6.0 if name == label else 0.0 for name in LABELS]
    judge = NLIJudge(TREE, CrossEncoderInference(save(tmp_path, LABELS, bias)))
    verdicts = judge.judge("1. The dough rises.\n2. Yeast makes gas.")
    assert [verdict.score for verdict in verdicts] == [grade, 0, 0]
    assert verdicts[0].why.startswith("not claimed" if label == "neutral" else "entails")


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path):
    with pytest.raises(JudgeError, match="no cross-encoder can be loaded from"):
        CrossEncoderInference(str(tmp_path)).read(PAIRS)
    with pytest.raises(JudgeError, match="no-such-model"):
        CrossEncoderInference("no-such-owner/no-such-model").read(PAIRS)
    with pytest.raises(JudgeError, match="has the labels label_0, label_1, label_2; a judge needs a model"):
        CrossEncoderInference(save(tmp_path / "labels", ["LABEL_0", "LABEL_1", "LABEL_2"])).read(PAIRS)
    folder = save(tmp_path / "damaged", LABELS)
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(JudgeError, match="no cross-encoder can be loaded"):
        CrossEncoderInference(folder).read(PAIRS)


def test_a_model_that_gives_no_numbers_leaves_nothing_graded(tmp_path: Path):
    judge = NLIJudge(TREE, CrossEncoderInference(save(tmp_path, LABELS, [float("nan"), 0.0, 0.0])))
    with pytest.raises(JudgeError, match="returned probabilities that are no numbers"):
        judge.judge("1. The dough rises.")


def test_other_weights_in_a_folder_are_another_judge(tmp_path: Path):
    first = make_judges([f"nli:{save(tmp_path, LABELS, [6.0, 0.0, 0.0])}"])[0].config
    assert make_judges([f"nli:{save(tmp_path, LABELS, [6.0, 0.0, 0.0])}"])[0].config == first
    assert make_judges([f"nli:{save(tmp_path, LABELS, [0.0, 6.0, 0.0])}"])[0].config["digest"] != first["digest"]


HUB = """
from inquitree_gym.judging import make_judges
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
