"""The parts of every kind: they are found by name, loaded on first use, and one that fails breaks nothing else."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from pydantic import ValidationError

from inquitree_gym import kinds
from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.log import Setup, TurnEvent
from tests.contract.conftest import CASES, SITE, KindCase


def in_new_process(code: str, *folders: Path) -> Any:
    """Return what a process prints as JSON, in which the kinds in some folders are installed."""
    path = os.pathsep.join(map(str, [*folders, Path(__file__).parents[2]]))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kind_has_its_parts_and_is_pickled_by_its_name(kind_case: KindCase):
    kind = kind_case.kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert issubclass(kind.event, TurnEvent)
    assert issubclass(kind.setup, Setup)
    assert kind_case.make().kind == kind.name
    assert kind.tasks.noun
    assert {each.name for each in kinds.kinds()} == set(CASES)


def test_a_task_is_loaded_from_the_file_that_it_was_written_to(kind_case: KindCase, tmp_path: Path):
    tasks, task = kind_case.kind.tasks, kind_case.task
    file = tmp_path / f"{task.id}.json"
    file.write_bytes(tasks.dump(task))
    again = tasks.load(file)
    assert (again, again.digest, again.id, again.version) == (task, task.digest, task.id, task.version)
    assert isinstance(again.group, str)
    assert isinstance(again.published, str)
    assert tasks.load(task) is task
    assert isinstance(again, tasks.schema)
    assert list(tasks.lint(task)) == list(tasks.lint(again))


def test_names_of_tasks_are_expanded_and_each_is_loaded_once(kind_case: KindCase, tmp_path: Path):
    tasks = kind_case.kind.tasks
    names = tasks.expand(["all"])
    assert names == tasks.expand(["all", *names])
    assert len(names) > 1
    assert tasks.load(names[0]).id == names[0]
    with pytest.raises(OptionError, match="would share their logs; rename one of the files"):
        tasks.expand([names[0], str(tmp_path / f"{names[0]}.json")])


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"id": 1}', b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_task_is_refused_by_name(kind_case: KindCase, tmp_path: Path, content: bytes):
    file = tmp_path / "wrong.json"
    file.write_bytes(content)
    with pytest.raises(TreeError, match=r"wrong\.json"):
        kind_case.kind.tasks.load(file)
    with pytest.raises(TreeError, match="nowhere"):
        kind_case.kind.tasks.load("nowhere")


def test_settings_cross_the_values_of_the_grid_and_reach_the_episode(kind_case: KindCase):
    model = kind_case.kind.settings
    settings = model(**kind_case.settings)
    assert model(**settings.model_dump(mode="json")) == settings
    assert all(field.description for field in model.model_fields.values())
    assert set(model.grid) <= set(model.model_fields)
    cells = settings.cells()
    assert len(cells) == 2 ** len(model.grid)
    assert len(model().cells()) == 1
    assert set(settings.all_rules()) >= set(model.grid)
    env = kind_case.make()
    for cell in cells:
        env.reset(seed=0, options=settings.options(cell, kind_case.task) or None)
        header = env.records.header(agent={}, versions={}, started="")
        assert cell.items() <= header.rules.items()
        assert header.rules.keys() == settings.all_rules().keys()
    with pytest.raises(ValidationError, match="gravity"):
        model(gravity=9.81)


def test_an_id_is_registered_for_any_task(kind_case: KindCase):
    name = {
        "inquiry": "InquiTree-v0",
        "projection": "ProjectionBench-v0",
        "exploration": "SciExplore-v0",
        "toy": "Toy-v0",
    }[kind_case.name]
    assert gym.spec(name).kwargs


HEAVY = ("numpy", "inquitree_gym.embeddings", "inquitree_gym.trees.schema")


@pytest.mark.e2e
def test_settings_load_no_task_and_events_nothing_that_plays(kind_case: KindCase):
    code = (
        "import json, sys; from inquitree_gym.kinds import kind; one = kind({!r}); "
        "before = set(sys.modules); one.{}; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = in_new_process(code.format(kind_case.name, "settings.model_fields"), SITE)
    assert not [name for name in loaded if name.startswith(HEAVY)]
    loaded = in_new_process(code.format(kind_case.name, "event"), SITE)
    playing = ("inquitree_gym.envs", "inquitree_gym.wrappers", "inquitree_gym.baselines", "inquitree_gym.runner")
    assert not [name for name in loaded if name.startswith(playing)]


BROKEN = {
    "raises": {"__init__": "raise RuntimeError('out of order')"},
    "leaves": {"__init__": "raise SystemExit(3)"},
    "partial": {"__init__": "", "ids": "def register(): pass", "settings": "", "tasks": ""},
    "stumbles": {"__init__": "", **dict.fromkeys(kinds.PARTS, ""), "ids": "def register(): 1 / 0"},
    "inquiry": {"__init__": ""},
}
TOLD = {
    "raises": "RuntimeError: out of order",
    "leaves": "SystemExit: 3",
    "partial": "must have the module events, got none",
    "stumbles": "ZeroDivisionError: division by zero",
    "inquiry": "has the name of a kind of this package",
    "absent": "ModuleNotFoundError",
    "twin": "have the same name; uninstall one of them",
}


@pytest.mark.e2e
def test_kinds_that_cannot_be_used_are_named_and_left_out_and_all_others_work(tmp_path: Path):
    entries = {name: [f"kind_{name}"] for name in BROKEN} | {"absent": ["kind_absent"], "twin": ["one", "other"]}
    for name, modules in BROKEN.items():
        (tmp_path / f"kind_{name}").mkdir()
        for module, source in modules.items():
            (tmp_path / f"kind_{name}" / f"{module}.py").write_text(source)
    for number in range(2):
        info = tmp_path / f"broken_{number}-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: broken-{number}\nVersion: 0\n")
        lines = [f"{name} = {packages[number]}" for name, packages in entries.items() if number < len(packages)]
        (info / "entry_points.txt").write_text("\n".join(["[inquitree_gym.kinds]", *lines]))
    code = f"""
import json, warnings
import inquitree_gym
from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import kind, kinds
import gymnasium as gym
told = {{}}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    kinds()
for name in {sorted(TOLD)!r}:
    try:
        told[name] = kind(name).package
    except OptionError as error:
        told[name] = str(error)
observation, _ = gym.make("Toy-v0").reset()
print(json.dumps({{
    "kinds": [each.name for each in kinds()], "told": told, "observation": observation,
    "warnings": [str(each.message) for each in caught],
}}))
"""
    found = in_new_process(code, SITE, tmp_path)
    assert found["kinds"] == list(CASES)
    assert "0 of 4 words" in found["observation"]
    assert len(found["warnings"]) == len(TOLD)
    for name, reason in TOLD.items():
        assert any(f"'{name}' is left out: " in text and reason in text for text in found["warnings"]), name
        assert reason in found["told"][name] if name != "inquiry" else found["told"][name] == "inquitree_gym.inquiry"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "projectoin",
            r"is called 'projectoin' \(did you mean 'projection'\?\); known: inquiry, projection, exploration, toy",
        ),
        ("", "known: inquiry, projection, exploration, toy"),
    ],
)
def test_an_unknown_kind_is_refused_with_the_known_ones(name: str, told: str):
    with pytest.raises(OptionError, match=told):
        kinds.kind(name)


def test_a_part_that_is_missing_is_named_when_it_is_used():
    with pytest.raises(OptionError, match=r"kind 'lean' must have the module tests\.contract\.play, got none"):
        _ = kinds.Kind("lean", "tests.contract").play
    with pytest.raises(OptionError, match=r"tests\.toy\.tasks of kind 'odd' must define RESULTS, got none"):
        kinds.Kind("odd", "tests.toy")._part("tasks", "RESULTS")
