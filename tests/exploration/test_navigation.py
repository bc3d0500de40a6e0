"""T1 tasks and their proofs, which share no code with the builder."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from inquitree_gym.exploration import proofs
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.navigation import HOPS
from inquitree_gym.exploration.gold import AnswerGold, Part
from inquitree_gym.exploration.library import LibrarySpec
from inquitree_gym.exploration.proofs import proof_faults
from inquitree_gym.exploration.providers import LocalLibrary
from inquitree_gym.exploration.schema import Condition, ExplorationTask
from tests.exploration.questions import navigation_tasks

LIBRARY = build_library(LibrarySpec(seed=1, size=200))
PROVIDER = LocalLibrary(LIBRARY)
TASKS = navigation_tasks(LIBRARY)
NOBODY = AnswerGold(kind="T1", parts=(Part(entity="nobody"),))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_every_task_is_proved(task: ExplorationTask) -> None:
    assert proof_faults(task, LIBRARY, PROVIDER) == []


@pytest.mark.parametrize("seed", range(2, 12))
def test_tasks_of_other_libraries_are_proved(seed: int) -> None:
    library = build_library(LibrarySpec(seed=seed, size=200))
    provider = LocalLibrary(library)
    assert [fault for task in navigation_tasks(library) for fault in proof_faults(task, library, provider)] == []


def test_the_tasks_have_the_hops_of_the_paper() -> None:
    assert Counter(task.hops for task in TASKS) == Counter(HOPS) == {2: 9, 3: 10, 4: 8, 5: 8, 6: 4}


def test_a_third_of_the_deeper_tasks_branch() -> None:
    deep = [task for task in TASKS if task.hops > 2]
    assert sum(task.query.branches for task in deep) >= len(deep) / 3


def test_answers_are_numbers_names_and_lists() -> None:
    tasks = [task for seed in range(1, 6) for task in navigation_tasks(build_library(LibrarySpec(seed=seed)))]
    assert {(len(task.gold.parts) > 1, len(task.asked), bool(task.gold.parts[0].entity)) for task in tasks} >= {
        (False, 1, True), (False, 1, False), (True, 2, True),
    }  # fmt: skip
    assert {part.tolerance > 0 for task in tasks for part in task.gold.parts if part.unit} == {True, False}


def test_tasks_are_the_same_each_time() -> None:
    assert [task.digest for task in navigation_tasks(LIBRARY)] == [task.digest for task in TASKS]


def test_a_task_survives_its_file() -> None:
    assert ExplorationTask.model_validate_json(TASKS[0].model_dump_json()) == TASKS[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, "must be gold"),
        ({}, "end with the right answer"),
        ({"path": TASKS[0].path[:-1]}, "end with the right answer"),
        ({"path": TASKS[0].path[-1:]}, "show all evidence"),
        ({"path": (*TASKS[0].path[:1] * 30, *TASKS[0].path)}, "at most 30 turns"),
        ({"question": f"Of {next(iter(LIBRARY.records[TASKS[0].query.database]))}?"}, "name no record"),
    ],
)
def test_a_poor_task_is_not_proved(change: dict[str, object], fault: str) -> None:
    task = TASKS[0].model_copy(update={"asked": ("name",), "gold": NOBODY} | change)
    assert any(fault in found for found in proof_faults(task, LIBRARY, PROVIDER))


def test_a_query_with_two_answers_is_not_proved() -> None:
    task = TASKS[0]
    wide = Condition(column=task.query.where[0].column, op="=", value=task.query.where[0].value)
    query = task.query.model_copy(update={"where": (wide.model_copy(update={"op": ">=", "value": -1e9}),), "links": ()})
    if isinstance(wide.value, str):
        pytest.skip("the first constraint is no number")
    assert any(
        "must be gold" in each for each in proof_faults(task.model_copy(update={"query": query}), LIBRARY, PROVIDER)
    )


def test_proofs_use_nothing_of_the_builder() -> None:
    tree = ast.parse(Path(proofs.__file__).read_text(encoding="utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert imported
    assert not [name for name in imported if "building" in name]
