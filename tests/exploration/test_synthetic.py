"""`SciExplore-synthetic-v0`: a new library and question in every episode, found again by the id in a log."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from inquitree_gym import make_agent, play
from inquitree_gym.errors import OptionError, UnknownTreeError
from inquitree_gym.exploration.building.synthetic import KEPT, question_spec, spec_of, synthetic_question
from inquitree_gym.exploration.proofs import proof_faults
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.synthetic import SyntheticExplorationEnv
from inquitree_gym.exploration.tasks import TASKS
from inquitree_gym.log import read_episode
from inquitree_gym.wrappers import LogEpisodes
from tests.contract.command_line import inquitree

pytest.importorskip("bm25s")


@pytest.mark.parametrize("seed", range(24))
def test_a_question_is_proved_and_loaded_by_its_id(seed: int) -> None:
    task = synthetic_question(question_spec(seed))
    provider = local_library(task.library)
    assert proof_faults(task, provider.library, provider) == []
    assert (task.library.seed % 2, task.library.size) == (seed % 2, 200)
    assert TASKS.load(task.id).digest == task.digest


@pytest.mark.parametrize("kind", ["T1", "T2", "T3", "T4"])
def test_every_type_is_drawn_from_large_libraries(kind: str) -> None:
    task = synthetic_question(question_spec(8, size=2000, kind=kind))
    provider = local_library(task.library)
    assert (task.id, task.kind, task.library.size) == (f"synthetic-{kind.lower()}-8-n2000", kind, 2_000)
    assert proof_faults(task, provider.library, provider) == []
    assert TASKS.load(task.id).digest == task.digest


@pytest.mark.parametrize("hops", [2, 3, 4, 5, 6])
def test_the_number_of_records_can_be_chosen(hops: int) -> None:
    env = SyntheticExplorationEnv(kind="T1", hops=hops)
    env.reset(seed=4)
    assert (env.task.id, env.task.hops) == (f"synthetic-t1-8-h{hops}", hops)
    assert TASKS.load(env.task.id).digest == env.task.digest


def test_the_type_is_drawn_unless_it_is_chosen() -> None:
    assert {question_spec(seed).kind for seed in range(40)} == {"T1", "T3", "T4"}
    assert {question_spec(seed, size=2000).kind for seed in range(40)} == {"T1", "T2", "T3", "T4"}
    assert {question_spec(seed, kind="T4").kind for seed in range(9)} == {"T4"}


def test_train_and_test_share_no_library() -> None:
    seeds: dict[str, set[int]] = {}
    for split in ("train", "test"):
        env = SyntheticExplorationEnv(split=split)
        env.reset(seed=1)
        seeds[split] = {env.task.library.seed}
        for _ in range(8):
            env.reset()
            seeds[split].add(env.task.library.seed)
        assert len(seeds[split]) == 9
    assert {seed % 2 for seed in seeds["train"]} == {0}
    assert {seed % 2 for seed in seeds["test"]} == {1}


def test_only_the_last_libraries_are_kept_and_one_seed_is_one_question() -> None:
    env, other = SyntheticExplorationEnv(), SyntheticExplorationEnv()
    seen = {seed: (env.reset(seed=seed), env.task.digest) for seed in range(KEPT + 3)}
    assert len(env.libraries) == KEPT
    assert len(other.libraries) < KEPT
    for seed, expected in reversed(seen.items()):
        assert (other.reset(seed=seed), other.task.digest) == expected


def test_an_option_plays_another_task_for_one_episode() -> None:
    env = SyntheticExplorationEnv()
    env.reset(seed=1, options={"task": "t1-s1-01", "max_turns": 9})
    assert (env.task.id, env.episode_rules.max_turns) == ("t1-s1-01", 9)
    env.reset(seed=1)
    assert env.task.id.startswith("synthetic-")


@pytest.mark.filterwarnings("error")
def test_gymnasium_finds_no_fault() -> None:
    check_env(gym.make("SciExplore-synthetic-v0").unwrapped, skip_render_check=True)


def test_an_episode_is_logged_and_its_task_found_by_commands(tmp_path: Path) -> None:
    env = gym.make("SciExplore-synthetic-v0", privileged=True, kind="T4", size=200)
    play(LogEpisodes(env, tmp_path), make_agent("oracle", env), seed=3)
    (file,) = tmp_path.glob("*.jsonl")
    assert read_episode(file).header.task.id == "synthetic-t4-6"
    (score,) = inquitree("score", file, "--json").json
    assert (score["task"], score["values"]["score"], score["values"]["p"]) == ("synthetic-t4-6", 1.0, 1.0)


def test_a_run_names_synthetic_questions(tmp_path: Path) -> None:
    done = inquitree("run", "--env", "exploration", "--agent", "oracle", "--papers", "synthetic-t1-17,synthetic-t3-5",
                     "--seeds", "1", "--out", tmp_path / "run")  # fmt: skip
    assert done.status == 0, done.err
    scores = inquitree("score", tmp_path / "run", "--json").json
    assert {each["task"]: each["values"]["score"] for each in scores} == {"synthetic-t1-17": 1, "synthetic-t3-5": 1}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"size": 300}, "size must be 200 or 2000"),
        ({"kind": "T5"}, "kind must be T1, T2, T3, T4 or None"),
        ({"kind": "T2"}, "must have size=2000"),
        ({"hops": 3}, "hops must be 2 to 6 with kind='T1'"),
        ({"kind": "T1", "hops": 7}, "hops must be 2 to 6"),
        ({"split": "both"}, "split must be one of"),
        ({"task": "T1"}, "draws its own tasks"),
        ({"provider": None}, "libraries of its own"),
        ({"sise": 200}, "unknown option 'sise'"),
    ],
)
def test_choices_without_questions_are_refused(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        SyntheticExplorationEnv(**keywords)


@pytest.mark.parametrize(
    "name", ["synthetic", "synthetic-t1", "synthetic-t5-1", "synthetic-t1-01", "synthetic-t1-1-h9", "synthetic-t2-1",
             "synthetic-t3-1-h2", "synthetic-t1-9999999999999999999"],
)  # fmt: skip
def test_other_ids_are_no_questions(name: str) -> None:
    assert spec_of(name) is None
    with pytest.raises(UnknownTreeError, match="synthetic-t1-17"):
        TASKS.load(name)
