"""The shelf: the shipped papers as a library, and tasks on it that a program proves."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import gymnasium as gym
import pytest

from inquitree_gym import load_tree
from inquitree_gym.exploration.building.synthetic import spec_of
from inquitree_gym.exploration.gold import CitationGold
from inquitree_gym.exploration.proofs import answers, proof_faults
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import ShelfSpec, TextQuery
from inquitree_gym.exploration.tasks import TASKS, frozen_tasks, shelf_tasks
from inquitree_gym.trees.worlds import actual_world, in_world
from tests.contract.command_line import inquitree

SHELF = local_library(ShelfSpec(shelf=1))
LIBRARY = SHELF.library


def test_every_paper_subtopic_and_study_has_a_document():
    trees = [load_tree(name) for name in LIBRARY.records["papers"]]
    assert len(trees) == 18
    assert len(LIBRARY.documents) == 18 + sum(len(tree.subtopics) + len(tree.studies) for tree in trees)


def test_a_study_shows_the_result_that_the_paper_reports():
    tree = load_tree("paper12")
    results = {study.id: study.results[0] for study in in_world(tree, actual_world(tree)).studies}
    for study in tree.studies:
        text = "\n".join(LIBRARY.documents[f"paper12-{study.id}"].pages)
        assert text.endswith(f"Result: {results[study.id]}")
        assert study.text in text


def test_its_databases_and_documents_are_searched():
    found = SHELF.lookup("papers", ())
    assert (found.total, found.fields[3]) == (
        18,
        "venue (Communications Biology, Nature Communications, Nature Neuroscience)",
    )
    pytest.importorskip("bm25s")
    assert SHELF.search("Compass in darkness fly bump")[0].id.startswith("paper12")


def test_there_are_six_tasks_of_each_type():
    assert Counter(task.kind for task in shelf_tasks().values()) == {"T1": 6, "T2": 6, "T3": 6, "T4": 6}
    assert TASKS.expand(["shelf"]) == tuple(shelf_tasks())
    assert not {*TASKS.expand(["all"])} & {*shelf_tasks()}


@pytest.mark.parametrize("name", shelf_tasks())
def test_a_task_is_proved_as_far_as_so_few_papers_allow(name: str):
    task = shelf_tasks()[name]
    assert proof_faults(task, LIBRARY, SHELF) == []
    if isinstance(task.query, TextQuery) and isinstance(task.gold, CitationGold):
        found = [
            {LIBRARY.records["papers"][key]["name"] for key in answers(slot, LIBRARY)} for slot in task.query.slots
        ]
        assert found == [{work.title for work in slot.works} for slot in task.gold.slots]


def test_a_wrong_answer_is_found_by_the_proofs():
    task = shelf_tasks()["shelf-t1-1"]
    gold = task.gold.model_copy(update={"parts": (task.gold.parts[0].model_copy(update={"number": 4.0}),)})
    faults = proof_faults(task.model_copy(update={"gold": gold}), LIBRARY, SHELF)
    assert [fault.split(",")[0] for fault in faults] == [
        "the answer of the query must be gold", "the path must end with the right answer",
    ]  # fmt: skip


def test_the_oracle_solves_all_and_silence_nothing(tmp_path: Path):
    agents = "oracle,silent,random"
    done = inquitree("run", "--env", "exploration", "--agent", agents, "--papers", "shelf", "--seeds", "1",
                     "--out", tmp_path / "run")  # fmt: skip
    assert done.status == 0, done.err
    scores = inquitree("score", tmp_path / "run", "--json").json
    of = {agent: [each["values"] for each in scores if each["agent"] == agent] for agent in ("oracle", "silent")}
    assert [(values["score"], values["p"]) for values in of["oracle"]] == [(1.0, 1.0)] * 24
    assert [values["score"] for values in of["silent"]] == [0.0] * 24
    assert inquitree("report", tmp_path / "run", "--out", tmp_path / "report.html").status == 0


def test_the_shelf_is_not_called_invented():
    observation, _ = gym.make("SciExplore-v0", task="shelf").reset(seed=0)
    assert "invented" not in observation


def test_list_shows_the_shelf_and_says_how_drawn_questions_are_named():
    listed = {entry["id"]: entry for entry in inquitree("list", "--env", "exploration", "--json").json}
    assert listed.keys() == frozen_tasks().keys() | shelf_tasks().keys()
    assert listed["shelf-t4-1"]["title"] == shelf_tasks()["shelf-t4-1"].question
    text = inquitree("list", "--env", "exploration").out
    named = re.findall(r"synthetic-\S+", text)
    assert [spec_of(name + last) is not None for name in named for last in ("", "-n2000", "-h4")] == [True] * 3
    assert "-n2000" in text
    assert "-h4" in text
    assert "synthetic" not in inquitree("list", "--env", "projection").out
