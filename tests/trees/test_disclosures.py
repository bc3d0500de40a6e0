"""Projection tasks: files, ids, and the rules of their linter, each of which fires alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.errors import TreeError, UnknownTreeError
from inquitree_gym.projection.tasks import load_task, parse_task
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.catalogue import is_task_file
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.disclosure_lint import lint_task
from tests.tasks import DISCLOSURE, make_task, task_document


def claims_with(**changes: Any) -> list[dict[str, Any]]:
    """Return the claims with fields of the first one replaced."""
    claims = copy.deepcopy(DISCLOSURE["claims"])
    claims[0] |= changes
    return list(claims)


CASES: list[tuple[str, dict[str, Any]]] = [
    ("T801", {"topic": "The bread dough of small bakeries"}),
    ("T801", {"question": "How do yeast and salt and water and heat affect dough?"}),
    ("T801", {"question": "How yeast affects dough."}),
    ("T802", {"claims": claims_with(relation="very probably increases without any doubt")}),
    ("T803", {"hypothesis": "Yeast raises dough."}),
    ("T803", {"null_hypothesis": "Dough stays as it is with no change."}),
    ("T803", {"null_hypothesis": "If dough has yeast, then it rises."}),
    ("T804", {"outcome": "This study finds that yeast raises dough. Salt does so, too."}),
    ("T804", {"outcome": "Yeast raises dough."}),
    ("T805", {"claims": claims_with(contraries=["Yeast in the dough increases the height of the dough."])}),
    ("T805", {"claims": claims_with(contraries=["Yeast lowers dough.", "Yeast lowers dough."])}),
]


@pytest.mark.parametrize(("code", "changes"), CASES, ids=[f"{code}-{next(iter(change))}" for code, change in CASES])
def test_a_rule_of_form_fires_alone(code: str, changes: dict[str, Any]):
    faults = lint_task(make_task(**changes))
    assert [fault.code for fault in faults] == [code]
    assert faults[0].path.startswith("disclosure.")


@pytest.mark.weights
def test_a_good_disclosure_is_clean(minilm: MiniLMEmbedder):
    assert lint_task(make_task(), minilm.embed) == []


@pytest.mark.weights
def test_claims_that_say_the_same_are_told(minilm: MiniLMEmbedder):
    claims = claims_with() + claims_with(id="p4", independent="more yeast in the dough")[:1]
    assert [(fault.code, fault.node) for fault in lint_task(make_task(claims=claims), minilm.embed)] == [("T806", "p4")]


@pytest.mark.weights
def test_a_step_that_reveals_a_claim_is_told(minilm: MiniLMEmbedder):
    claims = claims_with(contraries=["Bakers see the same loaf with and without a starter culture."])
    procedure = [*DISCLOSURE["procedure"], "Show that yeast in the dough increases its height."]
    faults = lint_task(make_task(procedure=procedure, claims=claims), minilm.embed)
    assert {(fault.code, fault.node) for fault in faults} == {("T807", "p1")}
    assert faults[0].value is not None
    assert faults[0].value > 0.1


def test_a_task_is_read_from_its_file_and_by_itself(tmp_path: Path):
    file = tmp_path / "bread.json"
    file.write_text(json.dumps(task_document()), encoding="utf-8")
    task = load_task(file)
    assert is_task_file(str(file))
    assert load_task(str(file)) == load_task(task) == task == make_task()
    assert task.digest != make_task(topic="Dough").digest
    assert [task.disclosure.texts_of(level)[-1] for level in LEVELS] == [
        DISCLOSURE["question"], DISCLOSURE["null_hypothesis"], DISCLOSURE["procedure"][-1],
    ]  # fmt: skip


def test_a_tree_without_a_disclosure_has_no_task():
    tree = load_tree("paper12").model_copy(update={"disclosure": None})
    with pytest.raises(UnknownTreeError, match="'paper12' has no disclosure, so there is nothing to project"):
        load_task(tree)


FAULTS: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("disclosure › claims: has 0 claims", lambda d: d["disclosure"].update(claims=[])),
    ("p1: needs 's9z', which has no support", lambda d: d["disclosure"]["claims"][0].update(evidence=["s9z"])),
    ("claims: several have the id p1", lambda d: d["disclosure"]["claims"][1].update(id="p1")),
    (
        "disclosure › p1 › contraries: has 0 contraries, needs at least 1",
        lambda d: d["disclosure"]["claims"][0].update(contraries=[]),
    ),
    ("disclosure › levels", lambda d: d["disclosure"].update(levels=["question", "question"])),
    ("disclosure › topic: needs", lambda d: d["disclosure"].update(topic=3)),
    ("disclosure › procedure: has 0 steps, needs at least 1", lambda d: d["disclosure"].update(procedure=[])),
]


@pytest.mark.parametrize(("fault", "break_it"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_a_broken_task_names_its_place(fault: str, break_it: Callable[[dict[str, Any]], object]):
    document = task_document()
    break_it(document)
    with pytest.raises(TreeError) as error:
        parse_task(json.dumps(document).encode())
    assert any(fault in str(each) for each in error.value.faults), list(map(str, error.value.faults))


@pytest.mark.parametrize("document", [b"", b"[]", b"{", b'{"format": "projection/1"}', b'{"format": "projection/2"}'])
def test_no_task_is_read_from_anything_else(document: bytes):
    with pytest.raises(TreeError):
        parse_task(document)
