"""TRL: the data set, the tool, and two steps of GRPO with a model that knows how to play."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from inquitree_gym.errors import ActionError, LogError, OptionError
from inquitree_gym.integrations.messages import message_row
from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.trl import TRLEpisode, TRLSpec
from inquitree_gym.log import read_episode
from inquitree_gym.trees import dump_tree
from tests.frames import FRAMES
from tests.integrations.memorised import conversation, memorise
from tests.strategies import make_tree

pytestmark = pytest.mark.weights


@pytest.fixture
def spec(tmp_path: Path) -> TRLSpec:
    return TRLSpec(
        ["paper8"], seeds=[5], fake_level=[4], max_turns=12, rules={"feedback": "reason"}, folder=tmp_path / "logs",
        embedder="hashed-words",
    )  # fmt: skip


def begun(spec: TRLSpec) -> tuple[TRLEpisode, str]:
    environment = spec.environment_factory()
    return environment, environment.reset(**spec.train_dataset[0])


def test_a_row_holds_a_task_and_an_empty_prompt(spec: TRLSpec):
    (task,) = spec.tasks
    (row,) = spec.train_dataset
    assert row["prompt"] == [{"role": "user", "content": ""}]
    assert (row["key"], row["task"], row["version"], row["seed"]) == (task.key, "paper8", task.version, 5)
    assert json.loads(row["cell"]) == {"fake_level": 4}
    assert json.loads(row["settings"])["rules"] == {"feedback": "reason"}


def test_the_moves_of_an_episode_leave_its_fingerprint_and_reward(spec: TRLSpec, tmp_path: Path):
    episode = play_task(spec.tasks[0], "oracle")
    environment, opening = begun(spec)
    with pytest.raises(ActionError, match="a move "):
        asyncio.run(environment.move(""))
    told = [opening, *(asyncio.run(environment.move(action)) for action in episode.actions)]
    assert told == [*(turn.observation for turn in episode.turns), episode.footer.observation]
    assert asyncio.run(environment.move("redo the study")) == episode.footer.observation  # after the end
    assert environment.get_reward() == episode.footer.episode_return > 0
    (file,) = (tmp_path / "logs").iterdir()
    assert read_episode(file).fingerprint == episode.fingerprint


def test_an_inquiry_without_a_conclusion_earns_nothing_and_a_fault_of_ours_is_not_counted(
    spec: TRLSpec, monkeypatch: pytest.MonkeyPatch
):
    environment, _ = begun(spec)
    asyncio.run(environment.move("What is it?"))
    assert environment.get_reward() == 0.0
    session = environment._session

    def fail(text: str) -> str:
        raise LogError("the disk is full")

    monkeypatch.setattr(session, "move", fail)
    with pytest.raises(LogError):
        asyncio.run(environment.move("What is it?"))
    assert environment.get_reward() is None
    environment.reset(**spec.train_dataset[0])  # the next rollout of the same instance
    assert environment.get_reward() == 0.0


def test_the_one_tool_is_described_and_the_factory_can_be_sent_elsewhere(spec: TRLSpec):
    environment = pickle.loads(pickle.dumps(spec.environment_factory))()
    public = {name for name, _ in inspect.getmembers(environment, inspect.ismethod) if not name.startswith("_")}
    assert public == {"reset", "move", "get_reward"}
    function = get_json_schema(environment.move)["function"]
    assert (function["name"], function["parameters"]["required"]) == ("move", ["text"])
    assert pickle.loads(pickle.dumps(environment)).reset(**spec.train_dataset[0]).startswith("You lead a research")


async def side_by_side(environment: TRLEpisode, *texts: str) -> list[Any]:
    """As `GRPOTrainer` calls the tools of one message."""
    return await asyncio.gather(*map(environment.move, texts), return_exceptions=True)


async def one_by_one(environment: TRLEpisode, *texts: str) -> list[Any]:
    """As `AsyncGRPOTrainer` calls the tools of one message."""
    told: list[Any] = []
    for text in texts:
        try:
            told.append(await environment.move(text))
        except ActionError as error:
            told.append(error)
    return told


@pytest.mark.parametrize("calls", [side_by_side, one_by_one])
def test_several_calls_of_one_message_play_one_move(calls: Any, spec: TRLSpec):
    episode = play_task(spec.tasks[0], "oracle")
    environment, _ = begun(spec)

    async def play() -> list[list[Any]]:
        told = []
        for action in episode.actions:
            told.append(await calls(environment, action, "draw conclusion", action))
            await asyncio.sleep(0)  # as long as a generation takes at least
        return told

    told = asyncio.run(play())
    shown = [*(turn.observation for turn in episode.turns[1:]), episode.footer.observation]
    assert [first for first, *_ in told] == shown
    refused = {str(other) for _, *others in told for other in others}
    assert refused == {"one move at a time; read the answer first"}
    assert environment._session.episode.fingerprint == episode.fingerprint


def test_a_framed_move_is_the_move(spec: TRLSpec):
    episode = play_task(spec.tasks[0], "oracle")
    environment, _ = begun(spec)
    frames = list(FRAMES.values())
    for place, action in enumerate(episode.actions):
        asyncio.run(environment.move(frames[place % len(frames)](action)))
    assert environment._session.episode.fingerprint == episode.fingerprint


def test_columns_that_were_dropped_are_named(spec: TRLSpec):
    row = {name: value for name, value in spec.train_dataset[0].items() if name not in ("seed", "cell")}
    with pytest.raises(OptionError, match=r"row must have the columns .*'settings'.*got none named \['seed', 'cell'\]"):
        spec.environment_factory().reset(**row)
    with pytest.raises(OptionError, match="Keep them in the data set"):
        spec.environment_factory().reset()


@pytest.mark.parametrize("row", [{"task": "/etc/shadow"}, {"settings": '{"privileged": true}'}], ids=["path", "option"])
def test_a_forged_row_is_refused(spec: TRLSpec, row: dict[str, str]):
    with pytest.raises(OptionError):
        spec.environment_factory().reset(**(spec.train_dataset[0] | row))


def test_without_the_extra_the_message_names_it():
    program = "import sys; sys.modules['datasets'] = None; from inquitree_gym.integrations.trl import TRLSpec"
    program += "; TRLSpec('paper8').train_dataset"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install -c constraints.txt '.[trl]'" in done.stderr


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")  # TRL's own calls
def test_a_model_that_plays_by_heart_is_rewarded_and_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    (tmp_path / "tiny.json").write_text(dump_tree(make_tree([[]], [1], tree_id="tiny")), encoding="utf-8")
    spec = TRLSpec("tiny", seeds=1, world="actual")
    model, tokenizer = memorise([conversation(spec.tasks[0])], steps=130)
    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"), use_cpu=True, bf16=False, max_steps=2, learning_rate=1e-5, seed=1,
        per_device_train_batch_size=8, num_generations=8, temperature=1.1, max_completion_length=1_500,
        logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model,
        args=settings,
        processing_class=tokenizer,
        train_dataset=spec.train_dataset,
        environment_factory=spec.environment_factory,
        reward_funcs=spec.reward_funcs,
    )
    trainer.train()
    first, second = (step for step in trainer.state.log_history if "loss" in step)
    for step in (first, second):
        assert step["tools/call_frequency"] > 0
        assert math.isfinite(step["loss"])
    assert max(step["rewards/TRLEpisode/mean"] for step in (first, second)) > 0
    assert first["loss"] or second["loss"]


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated:FutureWarning")  # TRL's own calls
def test_exported_messages_train_in_the_trainer_for_fine_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    tree = make_tree([[]], [1], tree_id="tiny")
    (tmp_path / "tiny.json").write_text(dump_tree(tree), encoding="utf-8")
    (task,) = TRLSpec("tiny", seeds=1).tasks
    model, tokenizer = memorise([conversation(task)], steps=1)
    settings = SFTConfig(
        output_dir=str(tmp_path / "out"), use_cpu=True, bf16=False, max_steps=2, logging_steps=1, save_strategy="no",
        report_to=[], disable_tqdm=True, max_length=None,
    )  # fmt: skip
    rows = Dataset.from_list([message_row(play_task(task))])
    trainer = SFTTrainer(model=model, args=settings, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    losses = [step["loss"] for step in trainer.state.log_history if "loss" in step]
    assert len(losses) == 2
    assert all(map(math.isfinite, losses))
    assert losses[1] < losses[0]
