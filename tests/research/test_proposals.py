"""The tool that measures how labelled proposals about a tree of one's own are read."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from inquitree_gym.trees import dump_tree
from research.proposals import app
from tests.contract.command_line import run_tool
from tests.strategies import make_tree

measure = partial(run_tool, app)

WRITTEN = [
    {"target": "s1", "kind": "right", "text": "What decides question number 1?"},
    {"target": "s2", "also": ["s1"], "kind": "right", "text": "What decides question number 1, please?"},
    {"target": "s3", "kind": "right", "text": "What decides question number 1 or so?", "author": "second"},
    {"target": "s3", "kind": "right", "text": "Grid cells."},
    {"at": "topic", "kind": "foreign", "text": "What decides question number 2 in bread?", "author": "second"},
    {"at": "s1", "kind": "vague", "text": "Look at it."},
]


@pytest.mark.weights
def test_labelled_proposals_about_ones_own_tree_are_measured(tmp_path: Path):
    tree, proposals = tmp_path / "mine.json", tmp_path / "proposals.json"
    tree.write_text(dump_tree(make_tree([[], [], []], [2, 1, 1], tree_id="mine")))
    proposals.write_text(json.dumps({"tree": "mine", "proposals": WRITTEN}))
    found = json.loads(measure(tree, proposals, "--embedder", "all-MiniLM-L6-v2", "--json").out)
    assert (found["tree"], found["embedder"], found["threshold"]) == ("mine", "all-MiniLM-L6-v2", 0.45)
    assert list(found["shares"]) == ["all", "author first", "author second"]
    everyone = {name: share["mean"] for name, share in found["shares"]["all"].items() if isinstance(share, dict)}
    assert everyone == {
        "nearest_subtopic": 0.75, "nearest_study": None, "understood": 0.5, "misread": 0.25, "refused": 0.25,
        "foreign": 1, "vague": 0, "near_miss": None, "off_target": None,
    }  # fmt: skip
    assert found["shares"]["author second"]["misread"]["mean"] == 1
    wrong = [(each["kind"], each["meant"], each["read"]) for each in found["wrong"]]
    assert wrong == [("right", ["s3"], "s1"), ("right", ["s3"], None), ("foreign", [], "s2")]
    done = measure(tree, proposals)
    assert done.status == 0
    assert "understood" in done.out
    assert "Grid cells." in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("paper8", "{file}"), "holds proposals about paper2, not about paper8"),
        (("paper2", "{file}", "--embedder", "litellm:text-embedding-3-small"), "no threshold has been"),
        (("paper2", "no.json"), "no file of proposals at"),
    ],
)
def test_proposals_need_an_embedder_and_a_file_about_the_tree(arguments: tuple[str, ...], said: str, tmp_path: Path):
    file = tmp_path / "proposals.json"
    file.write_text(json.dumps({"tree": "paper2", "proposals": WRITTEN[:1]}))
    done = measure(*(each.format(file=file) for each in arguments))
    assert (done.status, done.out) == (2, "")
    assert said in done.said
