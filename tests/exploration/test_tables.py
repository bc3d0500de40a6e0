"""T4 tasks: their proofs, which share no code with the builder, and what a table earns."""

from __future__ import annotations

import pytest

from inquitree_gym.exploration.building.navigation import Index
from inquitree_gym.exploration.building.tables import table_task
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.gold import TableGold
from inquitree_gym.exploration.graders import grade
from inquitree_gym.exploration.library import NAME, LibrarySpec
from inquitree_gym.exploration.proofs import proof_faults
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.tasks import frozen_tasks

FROZEN = [task for task in frozen_tasks().values() if task.kind == "T4"]
TASK = FROZEN[1]
"""A task whose rows lead to one record."""
ROWS = TASK.gold.rows


def faults_of(task: ExplorationTask) -> list[str]:
    provider = local_library(task.library)
    return proof_faults(task, provider.library, provider)


def with_rows(task: ExplorationTask, rows: tuple[tuple[str, ...], ...]) -> TableGold:
    return task.gold.model_copy(update={"rows": rows})


def test_the_frozen_tables_are_proved() -> None:
    assert [fault for task in FROZEN for fault in faults_of(task)] == []
    assert len({task.library.seed for task in FROZEN}) == 5
    assert max(len(task.path) for task in FROZEN) <= 60


def test_tables_of_other_libraries_are_proved() -> None:
    indexes = [
        Index(local_library(LibrarySpec(seed=seed, size=size)).library) for seed in (2, 3) for size in (200, 2_000)
    ]
    assert [fault for index in indexes for number in range(4) for fault in faults_of(table_task(index, number))] == []


def test_tables_have_the_shape_that_the_paper_shows() -> None:
    golds = [task.gold for task in FROZEN]
    assert all(3 <= len(gold.headers) <= 7 and 8 <= len(gold.rows) <= 20 for gold in golds)
    assert all(gold.vocabularies for gold in golds)
    assert {"-", "low", "high"} <= {cell for gold in golds for row in gold.rows for cell in row}
    assert {tolerance for gold in golds for tolerance in gold.tolerances.values()} == {0.0}
    assert {"Founded", "Staff"} & {header for gold in golds for header in gold.tolerances}
    assert all(len({fact.document for fact in task.evidence}) > len(task.gold.rows) for task in FROZEN)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"gold": with_rows(TASK, ROWS[:-1])}, "the rows must be the"),
        ({"gold": with_rows(TASK, (("nobody", *ROWS[0][1:]), *ROWS[1:]))}, "the rows must be the"),
        ({"gold": with_rows(TASK, ((ROWS[0][0], "else", *ROWS[0][2:]), *ROWS[1:]))}, " | else | "),
        (
            {"gold": TASK.gold.model_copy(update={"vocabularies": dict.fromkeys(TASK.gold.vocabularies, ("x", "-"))})},
            "the columns of the query",
        ),
        ({"question": "List all."}, "ask for every header"),
        ({"evidence": TASK.evidence[1:]}, "the page that shows it"),
        ({"path": TASK.path[-1:]}, "show all evidence"),
        ({"path": (*TASK.path[:1] * 60, *TASK.path)}, "at most 60 turns"),
    ],
)
def test_a_poor_table_is_not_proved(change: dict[str, object], fault: str) -> None:
    assert any(fault in found for found in faults_of(TASK.model_copy(update=change)))


def test_gold_and_query_must_be_of_the_kind_of_the_task() -> None:
    with pytest.raises(ValueError, match="must be of a T1 task"):
        ExplorationTask.model_validate_json(TASK.model_dump_json().replace('"T4","library"', '"T1","library"'))


def dump(task: ExplorationTask) -> str:
    """Return a table with a row for every record of the library. Those of gold are right, the others full of words."""
    gold = {row[0]: row for row in task.gold.rows}
    tables = local_library(task.library).library.records.values()
    names = [str(record[NAME]) for records in tables for record in records.values()]
    return with_rows(
        task, tuple(gold.get(name, (name, *["x"] * (len(task.gold.headers) - 1))) for name in names)
    ).written()


def test_a_table_of_the_whole_library_has_every_item_and_next_to_no_f1() -> None:
    found = [grade(task.gold, dump(task)) for task in FROZEN]
    assert {each.score for each in found} == {1.0}
    assert max(each.items().f1 for each in found) <= 0.05


def test_the_reward_of_a_table_is_item_f1_and_its_score_item_recall() -> None:
    env = ExplorationEnv(TASK)
    env.reset(seed=1)
    reward, recall = env.step(f"ANSWER\n{with_rows(TASK, ROWS[:4]).written()}")[1], 4 / len(ROWS)
    assert (env.last.grade.score, reward) == (pytest.approx(recall), pytest.approx(2 * recall / (1 + recall)))


def test_an_episode_of_a_table_has_twice_the_turns() -> None:
    env = ExplorationEnv(["t1-s1-01", TASK])
    assert {env.reset(seed=seed)[0].count("Turn 1 of 120.") for seed in range(8)} == {0, 1}
    env.reset(seed=0, options={"max_turns": 5})
    assert env.episode_rules.max_turns == 5
