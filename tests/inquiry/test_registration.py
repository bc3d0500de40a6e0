"""Ids on import: the shipped trees, the user's own, and nothing heavy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym import InquiryEnv, load_tree
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.errors import UnknownTreeError
from inquitree_gym.trees import Tree, builtin_ids, dump_tree
from inquitree_gym.trees.catalogue import CATALOGUE, RESTRICTED, WITHHELD_ENTRY_POINT
from tests.contract.command_line import inquitree
from tests.inquiry.test_batch import LETTERS
from tests.strategies import make_tree

IMPORT = """
import json, os, sys, warnings
import gymnasium as gym
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import inquitree_gym
"""
REPORT = """
print(json.dumps({
    "ids": [
        name for name, spec in gym.registry.items()
        if name.startswith("InquiTree-") and spec.entry_point != "inquitree_gym.trees.catalogue:refuse"
    ],
    "warnings": [str(warning.message) for warning in caught],
    **globals().get("found", {}),
}))
"""
PLAY_MINE = """
os.chdir("/")
env = gym.make("InquiTree-mine-v0", fake_level=10, max_turns="11n")
observation, _ = env.reset(seed=1)
steps = [env.step(action) for action in json.loads(os.environ["ACTIONS"])]
found = {
    "tree": env.unwrapped.tree.digest, "observation": observation, "states": [step[4]["state"] for step in steps],
    "reward": [step[1] for step in steps],
}
"""


def in_new_process(code: str, **variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def put(folder: Path, name: str, tree: Tree) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(dump_tree(tree), encoding="utf-8")


@pytest.fixture(scope="module")
def shipped() -> list[str]:
    return in_new_process(IMPORT + REPORT, INQUITREE_TREES="")["ids"]


@pytest.mark.e2e
def test_make_imports_the_package_by_a_colon_and_loads_nothing_heavy():
    code = """
import json, sys
import gymnasium as gym
env = gym.make("inquitree_gym:InquiTree-paper12-v0", max_turns=3)
env.reset(seed=1)
heavy = {"torch", "transformers", "sentence_transformers", "litellm", "sklearn", "matplotlib", "huggingface_hub"}
print(json.dumps({"id": env.spec.id, "tree": env.unwrapped.tree.id, "heavy": sorted(heavy & set(sys.modules))}))
"""
    assert in_new_process(code) == {"id": "InquiTree-paper12-v0", "tree": "paper12", "heavy": []}


@pytest.mark.weights
def test_user_trees_are_registered_and_faulty_ones_left_out_with_a_warning(tmp_path, monkeypatch, reader, shipped):
    mine = make_tree([[], [0]], [1, 1], tree_id="mine")
    put(tmp_path / "own", "mine", mine)
    put(tmp_path / "own", "paper12", load_tree("paper12"))
    put(tmp_path / "own", "renamed", make_tree([[]], [1], tree_id="original"))
    (tmp_path / "own" / "torn\x1b[31m.json").write_text(dump_tree(mine)[:400], encoding="utf-8")
    (tmp_path / "own" / "cyclic.json").write_text(
        dump_tree(make_tree([[], [0]], [1, 1], tree_id="cyclic")).replace(
            '"prerequisites": []', '"prerequisites": [{"id": "s2", "because": "It needs it."}]'
        )
    )
    for taken in ("synthetic", "menu", "mine-menu"):
        put(tmp_path / "own", taken, make_tree([[]], [1], tree_id=taken))
    (tmp_path / "own" / "folder.json").mkdir()
    (tmp_path / "own" / "notes.txt").write_text("no tree")
    put(tmp_path / "other", "mine", make_tree([[]], [1], tree_id="mine"))
    put(tmp_path / "other", "second", make_tree([[]], [2], tree_id="second"))
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "vectors"))
    TreeVectors(mine, reader).of(mine.topic)
    actions = [
        *("", mine.subtopics[0].text, mine.studies[0].text, "explore new subtopic"),
        *(mine.subtopics[1].text, mine.studies[1].text, "draw conclusion", "1. It is.", "1 A"),
    ]
    monkeypatch.chdir(tmp_path)
    found = in_new_process(
        IMPORT + PLAY_MINE + REPORT,
        INQUITREE_TREES=os.pathsep.join(["own", "missing", "", str(tmp_path / "other")]),
        ACTIONS=json.dumps(actions),
    )
    assert set(found["ids"]) - set(shipped) == {
        *("InquiTree-mine-v0", "InquiTree-mine-menu-v0"),
        *("InquiTree-second-v0", "InquiTree-second-menu-v0"),
    }
    assert set(shipped) <= set(found["ids"])
    told = {
        "paper12.json": "has the id of a shipped tree; rename the file and its id",
        "renamed.json": "holds the id 'original'; file name and id have to agree",
        r"torn\u001b[31m.json": "is not JSON at line",
        "cyclic.json": "prerequisites form a cycle",
        "folder.json": "no tree file",
        **{
            f"{taken}.json": f"'{taken}' would take the name of another" for taken in ("synthetic", "menu", "mine-menu")
        },
    }
    for file, fault in told.items():
        assert any(
            text.startswith("a tree in INQUITREE_TREES is left out") and file in text and fault in text
            for text in found["warnings"]
        ), found["warnings"]
    assert "INQUITREE_TREES names 'missing', which is not a folder" in found["warnings"]
    assert found["tree"] == mine.digest, "the first folder wins"
    assert mine.topic in found["observation"]
    assert found["states"] == [
        *("topic", "subtopic", "result", "topic", "subtopic", "result", "conclusion", "exam", "end")
    ]  # fmt: skip
    assert found["reward"][:-1] == [0.0] * 8
    assert found["reward"][-1] != 0, "an answer, right or wrong, to what a proposal of its own has found"


def test_without_folders_nothing_is_told(shipped):
    assert in_new_process(IMPORT + REPORT, INQUITREE_TREES="") == {"ids": shipped, "warnings": []}
    trees = [f"InquiTree-{name}" for name in builtin_ids()]
    views = [f"{name}{view}" for name in ("InquiTree", *trees) for view in ("-v0", "-menu-v0")]
    assert [name for name in shipped if "synthetic" not in name] == views


MAKERS = (gym.make, gym.make_vec, partial(gym.make_vec, vectorization_mode="vector_entry_point"))


def ids_of(paper: str) -> list[str]:
    """The ids of a paper that cannot be played."""
    return [f"InquiTree-{paper}-v0", f"InquiTree-{paper}-menu-v0", f"ProjectionBench-{paper}-v0"]


@pytest.mark.parametrize("paper", RESTRICTED)
def test_a_paper_without_a_tree_says_why_however_it_is_asked_for(paper: str):
    with pytest.raises(UnknownTreeError) as caught:
        load_tree(paper)
    told = str(caught.value)
    assert f"'{paper}' is in the paper pool but its tree may not be distributed; write a tree file of your own" in told
    for load in (partial(gym.make, "InquiTree-v0"), InquiryEnv):
        with pytest.raises(UnknownTreeError, match=re.escape(told)):
            load(**{"tree": paper})
    for make, name in product(MAKERS, ids_of(paper)):
        with pytest.raises(UnknownTreeError, match=f"^{re.escape(told)}$"):
            make(name, privileged=True)
    assert told in " ".join(inquitree("show", paper).said.split())


def test_papers_without_a_tree_are_listed_apart():
    listed = gym.pprint_registry(disable_print=True)
    (apart,) = re.findall(r"===== catalogue =====\n([^=]*)", listed)
    assert set(apart.split()) == {name for paper in RESTRICTED for name in ids_of(paper)}
    rest = gym.pprint_registry(exclude_namespaces=["catalogue"], disable_print=True)
    assert not any(f"-{name}-" in rest for name in RESTRICTED)
    assert all(f"InquiTree-{name}-v0" in rest for name in set(CATALOGUE) - set(RESTRICTED))


@pytest.mark.e2e
def test_ones_own_file_takes_the_id_of_a_paper_without_a_tree(tmp_path: Path):
    put(tmp_path, "paper6", make_tree([[], []], [1, 1], tree_id="paper6"))
    code = 'found = {"made": [gym.make(f"InquiTree-paper6{view}-v0").unwrapped.spec.id for view in ("", "-menu")]}'
    found = in_new_process(IMPORT + code + REPORT, INQUITREE_TREES=str(tmp_path))
    assert found["made"] == ["InquiTree-paper6-v0", "InquiTree-paper6-menu-v0"]
    assert set(found["made"]) <= set(found["ids"])
    assert found["warnings"] == []
    late = "os.environ['INQUITREE_TREES'] = os.environ['LATE']\ntry:\n    gym.make('InquiTree-paper6-v0')\n"
    late += "except inquitree_gym.InquiTreeError as error:\n    found = {'told': str(error)}"
    told = in_new_process(IMPORT + late + REPORT, INQUITREE_TREES="", LATE=str(tmp_path))["told"]
    assert "when inquitree_gym is imported, got it later. Start Python again." in told


REGISTERED = [
    name
    for name, spec in gym.registry.items()
    if name.startswith("InquiTree") and spec.entry_point != WITHHELD_ENTRY_POINT
]


ONE_OF_EACH = {re.sub("paper[0-9]+", "paper", name): name for name in REGISTERED}.values()
"""One id of each form, since the ids of papers differ in nothing but the tree."""


@pytest.mark.parametrize("name", REGISTERED)
def test_every_registered_id_names_its_tree(name: str):
    found = re.fullmatch("InquiTree-(paper[0-9]+)?(synthetic)?(-?menu)?-?v0", name)
    assert found, name
    paper, synthetic, _ = found.groups()
    assert gym.spec(name).kwargs.get("tree") == (paper or (None if synthetic else list(builtin_ids())))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_registered_ids_can_be_made_and_played(name: str, reader):
    env = gym.make(name, embedder=LETTERS, max_turns=2)
    _, info = env.reset(seed=0)
    terminated, turns = False, [0]
    while not terminated:
        words = "1 A" if info["state"] == "exam" else "draw conclusion"
        action = int(info["action_mask"].argmax()) if "-menu-" in name else words
        _, _, terminated, truncated, info = env.step(action)
        turns.append(info["turn"])
    assert (info["state"], truncated) == ("end", False)
    assert (turns[:3], turns[-1]) == ([0, 1, 2], 4 if "-menu-" in name else 3)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if gym.spec(name).vector_entry_point])
def test_registered_vectors_can_be_made_and_played(name: str, reader):
    env = gym.make_vec(name, 2, vectorization_mode="vector_entry_point", embedder=LETTERS, max_turns=1)
    env.reset(seed=0)
    ends = sum(env.step([0, 0] if "-menu-" in name else ["1 A draw conclusion"] * 2)[2] for _ in range(20))
    assert ends.all()
    env.close()
