"""Shipped trees are built without validation, and equal what validation gives."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib import resources

import pytest

from inquitree_gym.errors import TreeError
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.catalogue import builtin_file, builtin_ids
from inquitree_gym.trees.descriptions import described_schema
from inquitree_gym.trees.load import CHECKED, dump_tree, parse_tree, shipped_tree


@pytest.mark.parametrize("name", builtin_ids())
def test_a_shipped_tree_equals_its_validated_file(name: str):
    document = builtin_file(name).read_bytes()
    fast, slow = shipped_tree(document, name), parse_tree(document, name)
    assert fast is not None, "the file changed after its SHA-256 was recorded; run: python -m research.shipped_vectors"
    assert fast == slow
    assert (fast.digest, hash(fast), fast.model_fields_set) == (slow.digest, hash(slow), slow.model_fields_set)
    assert dump_tree(fast) == dump_tree(slow) == document.decode()
    assert fast.texts() == slow.texts()
    assert fast.studies == slow.studies
    assert [type(each) for each in fast.axes] == [type(each) for each in slow.axes]
    assert fast.model_copy(update={"version": 99}) == slow.model_copy(update={"version": 99})


def test_a_changed_file_is_validated():
    document = builtin_file("paper8").read_bytes()
    assert shipped_tree(document + b" ", "paper8") is None
    assert shipped_tree(document, "paper12") is None
    assert load_tree("paper8") == parse_tree(document)
    with pytest.raises(TreeError, match="unknown field"):
        parse_tree(document.replace(b'"topic"', b'"topics"', 1))


def test_every_shipped_tree_is_on_record():
    recorded = json.loads(resources.files("inquitree_gym.trees").joinpath(CHECKED).read_bytes())
    assert recorded == {name: hashlib.sha256(builtin_file(name).read_bytes()).hexdigest() for name in builtin_ids()}


def test_the_schema_describes_fields_by_their_docstrings():
    schema = described_schema(Tree)
    assert schema["properties"]["constants"]["description"].startswith("Findings that hold in every world")
    assert "A control reads none" not in schema["$defs"]["Finding"]["properties"]["axes"].get("description", "")
    assert schema["$defs"]["Prerequisite"]["properties"]["because"]["description"].startswith("Reason why")
    assert "description" not in schema["$defs"]["Prerequisite"]["properties"]["id"]


def test_playing_a_shipped_tree_imports_no_event_loop_and_no_torch():
    code = (
        "import sys, gymnasium, inquitree_gym; env = gymnasium.make('InquiTree-paper12-v0'); env.reset(seed=0); "
        "env.step(env.unwrapped.tree.subtopics[0].text); print(*{'asyncio', 'torch', 'litellm'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
