"""Registered projections: every shipped task, any task, and those of the user."""

from __future__ import annotations

import inspect
import json
import typing
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.projection.ids import ENTRY_POINT
from inquitree_gym.projection.observations import projection_prompts
from inquitree_gym.trees import builtin_ids, dump_tree
from tests.inquiry.test_registration import IMPORT, in_new_process, put
from tests.projection.tasks import WORDS
from tests.projection.test_projection import RULES
from tests.strategies import make_tree
from tests.tasks import DISCLOSURE, TASK, make_task

IDS = sorted(name for name, spec in gym.registry.items() if spec.entry_point == ENTRY_POINT)
PLAY = """
env = gym.make("ProjectionBench-bread-v0")
observation, _ = env.reset(seed=1)
for action in ["1 A " * 5_000] * 6:
    _, _, over, _, _ = env.step(action)
assert over
heavy = {"torch", "transformers", "sentence_transformers", "litellm", "matplotlib", "huggingface_hub"}
print(json.dumps({
    "ids": [name for name in gym.registry if name.startswith(("InquiTree-", "ProjectionBench-"))],
    "warnings": [str(warning.message) for warning in caught],
    "observation": observation, "task": env.unwrapped.task.digest, "heavy": sorted(heavy & set(sys.modules)),
}))
"""


def test_there_is_an_id_for_every_shipped_task_and_one_for_any():
    assert set(IDS) == {"ProjectionBench-v0", *(f"ProjectionBench-{name}-v0" for name in builtin_ids())}
    menus = [name for name in gym.registry if name.startswith("ProjectionBench") and "menu" in name]
    assert menus == ["ProjectionBench-synthetic-menu-v0"]
    assert [task.id for task in gym.make("ProjectionBench-v0").unwrapped.tasks] == list(builtin_ids())


@pytest.mark.parametrize("name", [IDS[0], IDS[-1]])
def test_an_id_passes_the_checker_without_a_warning(name: str, capsys):
    check_env(gym.make(name).unwrapped)
    assert "ProjectionBench" not in capsys.readouterr().err


@pytest.mark.parametrize("name", IDS)
def test_a_spec_survives_json(name: str):
    spec = gym.spec(name)
    again = EnvSpec.from_json(spec.to_json())
    assert again == spec
    made = gym.make(name, privileged=True, **RULES)
    copy = gym.make(EnvSpec.from_json(made.spec.to_json())).unwrapped
    assert (copy.tasks, copy.rules) == (made.unwrapped.tasks, made.unwrapped.rules)


@pytest.mark.parametrize("maker", [ProjectionEnv, ProjectionVectorEnv])
def test_every_keyword_is_spelled_out_and_reaches_the_environment(maker: Any, tmp_path):
    found, expected = inspect.signature(maker).parameters, inspect.signature(ProjectionEnv).parameters
    shared = [name for name, each in expected.items() if each.kind is each.KEYWORD_ONLY]
    assert {*shared} == {*RULES, "judge", "prompts", "privileged", "render_mode"}
    assert [found[name] for name in shared] == [expected[name] for name in shared]
    hints = typing.get_type_hints(maker.__init__)
    assert Any not in [hints[name] for name in shared]
    (tmp_path / "projection_end.md").write_text("Bye.")
    where: dict[str, Any] = {"task": make_task(), **({"num_envs": 2} if "num_envs" in found else {})}
    rules = RULES | {"reward": "judge"}
    made = maker(**where, **rules, judge=WORDS, prompts=tmp_path, privileged=True, render_mode="ansi")
    for each in made.envs if isinstance(made, ProjectionVectorEnv) else [made]:
        assert each.rules.as_dict() == {**rules, "levels": list(RULES["levels"])}
        assert (each.judging.judge, each.privileged, each.render_mode) == (WORDS, True, "ansi")
        assert each.prompts.digest == projection_prompts(tmp_path).digest
    with pytest.raises(OptionError, match=r"unknown option 'leves' \(did you mean 'levels'\?\)"):
        maker(**where, leves=3)


@pytest.mark.e2e
def test_user_trees_and_tasks_are_registered_and_faulty_ones_left_out_with_a_warning(tmp_path):
    bare = make_tree([[]], [1], tree_id="bare")
    put(tmp_path, "bare", bare)
    disclosed = json.loads(dump_tree(make_tree([[]], [3], tree_id="whole")))
    studies = [study["id"] for study in disclosed["subtopics"][0]["studies"]]
    claims = [each | {"evidence": [study]} for each, study in zip(DISCLOSURE["claims"], studies, strict=True)]
    disclosed["disclosure"] = DISCLOSURE | {"claims": claims}
    (tmp_path / "whole.json").write_text(json.dumps(disclosed), encoding="utf-8")
    (tmp_path / "bread.json").write_text(json.dumps(TASK), encoding="utf-8")
    (tmp_path / "renamed.json").write_text(json.dumps(TASK), encoding="utf-8")
    (tmp_path / "synthetic.json").write_text(json.dumps(TASK | {"id": "synthetic"}), encoding="utf-8")
    (tmp_path / "empty.json").write_text(
        json.dumps(TASK | {"id": "empty", "disclosure": DISCLOSURE | {"claims": []}}), encoding="utf-8"
    )
    found = in_new_process(IMPORT + PLAY, INQUITREE_TREES=str(tmp_path))
    mine = ("bare", "whole", "bread", "renamed", "empty")
    own = [name for name in found["ids"] if any(part in name for part in mine)]
    assert own == [
        "InquiTree-bare-v0", "InquiTree-bare-menu-v0", "InquiTree-whole-v0", "InquiTree-whole-menu-v0",
        "ProjectionBench-bread-v0", "ProjectionBench-whole-v0",
    ]  # fmt: skip
    assert found["task"] == make_task().digest
    assert DISCLOSURE["question"] in found["observation"]
    assert found["heavy"] == []
    told = {"renamed.json": "have to agree", "synthetic.json": "the name of another", "empty.json": "claims"}
    assert len(found["warnings"]) == len(told)
    for file, fault in told.items():
        assert any(file in text and fault in text for text in found["warnings"]), found["warnings"]
