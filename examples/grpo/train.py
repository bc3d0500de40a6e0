"""A language model trained with GRPO by TRL on small synthetic inquiries, after a warm start from the oracle's moves.

python examples/grpo/train.py --config examples/grpo/cpu.toml --out runs/grpo

Writes ``curve.svg``, and for each seed a folder with ``log.jsonl`` and, if ``test_trees`` is above 0, ``test.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import tomllib
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import gymnasium as gym
import torch
import trl
from datasets import Dataset
from serve import load
from transformers import TrainerCallback, set_seed
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from trl.chat_template_utils import parse_response

import inquitree_gym as inquitree
from inquitree_gym.errors import ActionError
from inquitree_gym.trees import Tree, synthetic_tree, tree_seed

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja"
"""Chat template for models whose own knows no tools."""


SECOND = "one move at a time; read the answer first"
"""Answer to all calls of a message but the first."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides a run. The defaults are the smallest one."""

    model: str = "smollm2"
    seeds: tuple[int, ...] = (0,)
    trees: int = 1
    """Trees to train on."""
    test_trees: int = 0
    """Trees that were never trained on, and at most as many of the others, in worlds kept for the test."""
    subtopics: int = 4
    """Subtopics of a tree. The worlds ``train`` and ``test`` need 4 or more."""
    studies: int = 1
    """Own studies of a subtopic."""
    max_turns: int | str = 2
    """Turn limit. Conclusion and exam come after it."""
    fake_level: int = 0
    embedder: str = "hashed-words"
    warm_steps: int = 8
    """Steps of imitation of the oracle, which knows the tree."""
    warm_rate: float = 5e-4
    """Learning rate of the first of them. It falls in a line to 0."""
    updates: int = 20
    generations: int = 2
    """Inquiries of a group, all from one opening."""
    batch: int = 2
    """Inquiries of one backward pass. Divides ``generations``."""
    groups: int = 1
    """Groups per update, each of inquiries of its own."""
    learning_rate: float = 1e-5
    temperature: float = 1.0
    max_tokens: int = 1_200
    """Most tokens of an inquiry after its opening, observations included."""
    move_tokens: int = 96
    """Most tokens of a move in the test."""
    upper_layers: int = 0
    """Layers that are trained, from the top. 0 trains all weights."""
    calls: int = 5
    """Moves of an inquiry at most. Conclusion and exam are two of them."""
    minutes: float = 20.0
    """Time after which no further update begins, without the warm start."""

    @classmethod
    def read(cls, file: Path) -> Settings:
        """Return the settings of a TOML file. Those that it leaves out have their defaults."""
        given = tomllib.loads(file.read_text(encoding="utf-8"))
        return cls(**given | ({"seeds": tuple(given["seeds"])} if "seeds" in given else {}))

    def tree(self, split: str, number: int) -> Tree:
        """Return a tree for training or for the test; none is in both."""
        return synthetic_tree(tree_seed(number, split), {"subtopics": self.subtopics, "studies": self.studies})

    def environment(self, tree: Tree, **keywords: Any) -> gym.Env[Any, Any]:
        """Return an environment of the tree."""
        return gym.make(
            "InquiTree-v0", tree=tree, max_turns=self.max_turns, fake_level=self.fake_level, embedder=self.embedder,
            **keywords,
        )  # fmt: skip


class Inquiry:
    """The environment of one rollout, in TRL's form: `move` is the one tool of the model."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def reset(self, *, number: int, seed: int, **_: Any) -> str:
        """Begin an inquiry into the training tree of this number and return its opening."""
        self._env = self._settings.environment(
            self._settings.tree("train", number), world="train", reward="exam-expected"
        )
        self._said, _ = self._env.reset(seed=seed)
        self._earned, self._over, self._moving = 0.0, False, False
        return str(self._said)

    async def move(self, text: str) -> str:  # TRL runs the calls of one message side by side, and others after them
        """Make one move, as the last message asks for it.

        Args:
            text: The move, in plain words.

        Returns:
            What follows the move, and what to do next.
        """
        if self._moving:
            raise ActionError(SECOND)  # TRL shows the message to the model
        self._moving = True
        asyncio.get_running_loop().call_soon(setattr, self, "_moving", False)
        if not self._over:
            self._said, reward, terminated, truncated, _ = self._env.step(text)
            self._earned += float(reward)
            self._over = terminated or truncated
        return str(self._said)

    def get_reward(self) -> float:
        """Return the reward so far, in [-1, 1]. It comes after the exam."""
        return self._earned


def lesson(settings: Settings, number: int, seed: int) -> dict[str, Any]:
    """Return an inquiry of the oracle as a chat in which each move is a call of the tool."""
    env = settings.environment(settings.tree("train", number), world="train", privileged=True)
    env.reset(seed=seed)
    episode = inquitree.play(env, inquitree.make_agent("oracle", env), seed=seed)
    messages: list[dict[str, Any]] = []
    for turn in episode.turns:
        role = {"role": "tool", "name": "move"} if messages else {"role": "user"}
        call = {"type": "function", "function": {"name": "move", "arguments": {"text": turn.action}}}
        messages += [{**role, "content": turn.observation}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    return {"messages": messages, "tools": [get_json_schema(Inquiry(settings).move)]}


def warm_start(settings: Settings, model: Any, tokenizer: Any, seed: int, out: Path) -> list[float]:
    """Imitate the oracle on the training trees and return the losses."""
    if not settings.warm_steps:
        return []
    rows = [lesson(settings, step % settings.trees, 10_000 + step) for step in range(settings.warm_steps)]
    arguments = SFTConfig(
        output_dir=str(out), max_steps=settings.warm_steps, learning_rate=settings.warm_rate, max_length=None,
        per_device_train_batch_size=1, assistant_only_loss=True, lr_scheduler_type="linear", **common(seed),
    )  # fmt: skip
    trainer = SFTTrainer(model=model, args=arguments, processing_class=tokenizer, train_dataset=Dataset.from_list(rows))
    trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def common(seed: int) -> dict[str, Any]:
    """Return the arguments of both trainers that no setting decides."""
    fast = torch.cuda.is_available()
    return {
        "seed": seed, "use_cpu": not fast, "bf16": fast, "gradient_checkpointing": fast, "logging_steps": 1,
        "save_strategy": "no", "report_to": [], "disable_tqdm": True,
    }  # fmt: skip


LOGGED = {
    "loss": "loss", "gradient": "grad_norm", "reward": "reward", "spread": "reward_std",
    "calls": "tools/call_frequency", "tokens": "completions/mean_length",
}  # fmt: skip
"""Names in the log, and TRL's."""


class Record(TrainerCallback):
    """Writes a line for each update, and ends the training when its time is over."""

    def __init__(self, file: Path, minutes: float) -> None:
        self.rows: list[dict[str, float]] = []
        self._file, self._end, self._last = file, time.monotonic() + 60 * minutes, time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **_: Any) -> None:
        if "loss" not in logs:
            return
        now = time.monotonic()
        row = {"update": state.global_step, "seconds": round(now - self._last, 1)}
        row |= {name: logs[theirs] for name, theirs in LOGGED.items()}
        self._last = now
        self.rows.append(row)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(" ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)
        control.should_training_stop = now > self._end


def prepare(settings: Settings) -> tuple[Any, Any]:
    """Return the model, with the layers frozen that are not trained, and a tokenizer that knows tools."""
    model, tokenizer = load(settings.model)
    if "tool_call" not in (tokenizer.chat_template or ""):
        tokenizer.chat_template = TEMPLATE.read_text(encoding="utf-8")
    if tokenizer.pad_token_id in (None, tokenizer.eos_token_id):  # TRL would take every end of a turn for padding
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(0)
    if settings.upper_layers:
        model.requires_grad_(False)
        model.model.layers[-settings.upper_layers :].requires_grad_(True)
        model.model.norm.requires_grad_(True)
    return model, tokenizer


def train(settings: Settings, seed: int, out: Path) -> tuple[Any, Any, list[dict[str, float]]]:
    """Train with one seed and return the model, its tokenizer and a row per update."""
    set_seed(seed)
    model, tokenizer = prepare(settings)
    began = time.monotonic()
    losses = warm_start(settings, model, tokenizer, seed, out)
    print(f"warm start: losses {losses}, {time.monotonic() - began:.0f} s", flush=True)
    rows = [
        {"prompt": [{"role": "user", "content": ""}], "number": i % settings.trees, "seed": i}
        for i in range(settings.updates * settings.groups)
    ]
    passes = settings.generations * settings.groups // settings.batch
    arguments = GRPOConfig(
        output_dir=str(out), max_steps=settings.updates, learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch, gradient_accumulation_steps=passes,
        num_generations=settings.generations, temperature=settings.temperature,
        max_completion_length=settings.max_tokens, max_tool_calling_iterations=settings.calls, **common(seed),
    )  # fmt: skip
    record = Record(out / "log.jsonl", settings.minutes)
    trainer = GRPOTrainer(
        model=model, args=arguments, processing_class=tokenizer, train_dataset=Dataset.from_list(rows),
        environment_factory=partial(Inquiry, settings), callbacks=[record],
    )  # fmt: skip
    trainer.train()
    return model, tokenizer, record.rows


def play(model: Any, tokenizer: Any, settings: Settings, env: gym.Env[Any, Any], seed: int) -> float:
    """Return what the likeliest moves of the model earn in one inquiry."""
    tools = [get_json_schema(Inquiry(settings).move)]
    told, _ = env.reset(seed=seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": told}]
    earned = 0.0
    model.eval()
    for _ in range(settings.calls):
        given = tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=True, return_dict=True, return_tensors="pt"
        ).to(model.device)
        with torch.inference_mode():
            whole = model.generate(**given, do_sample=False, max_new_tokens=settings.move_tokens)
        read = given["input_ids"][0].tolist()
        answer = parse_response(tokenizer, whole[0, len(read) :].tolist(), prefix=read, tools=tools)
        texts = [call["function"]["arguments"] for call in answer.get("tool_calls") or []]
        if not texts or not isinstance(texts[0], dict) or not isinstance(texts[0].get("text"), str):
            return earned
        told, reward, terminated, truncated, _ = env.step(texts[0]["text"])
        earned += float(reward)
        if terminated or truncated:
            return earned
        messages += [answer, {"role": "tool", "name": "move", "content": told}]
        messages += [{"role": "tool", "name": "move", "content": str({"error": SECOND})} for _ in texts[1:]]
    return earned


def test(model: Any, tokenizer: Any, settings: Settings, seed: int) -> dict[str, dict[str, float]]:
    """Return the mean return of the model and of two reference agents in worlds kept for the test, by trees."""
    found = {}
    counts = {
        "trained on": ("train", min(settings.trees, settings.test_trees)),
        "unseen": ("test", settings.test_trees),
    }
    for name, (split, count) in counts.items():
        returns: dict[str, list[float]] = {"model": [], "cover": [], "bayes": []}
        for number in range(count):
            env = settings.environment(settings.tree(split, number), world="test", privileged=True)
            returns["model"].append(play(model, tokenizer, settings, env, seed))
            for agent in ("cover", "bayes"):
                episode = inquitree.play(env, inquitree.make_agent(agent, env), seed=seed)
                returns[agent].append(episode.footer.episode_return)
        found[name] = {player: mean(values) for player, values in returns.items()}
    return found


def draw(runs: list[list[dict[str, float]]], file: Path) -> None:
    """Draw the mean reward of each update, a line for each seed."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
    for rows in runs:
        axis.plot([row["update"] for row in rows], [row["reward"] for row in rows], "o-", color="#0072B2", alpha=0.7)
    axis.axhline(0, color="#555555", linewidth=0.8)
    axis.set(xlabel="update", ylabel="mean reward of the group")
    figure.savefig(file)


def main() -> None:
    """Train with each seed, test if the settings ask for it, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/grpo"))
    given = parser.parse_args()
    settings = Settings.read(given.config)
    runs = []
    for seed in settings.seeds:
        out = given.out / f"seed{seed}"
        out.mkdir(parents=True, exist_ok=True)
        (out / "log.jsonl").write_text(json.dumps(asdict(replace(settings, seeds=(seed,)))) + "\n")
        model, tokenizer, rows = train(settings, seed, out)
        runs.append(rows)
        if settings.test_trees:
            found = test(model, tokenizer, settings, seed)
            (out / "test.json").write_text(json.dumps(found, indent=2))
            print(json.dumps(found))
    draw(runs, given.out / "curve.svg")
    for seed, rows in zip(settings.seeds, runs, strict=True):
        rewards, pace = [row["reward"] for row in rows], mean(row["seconds"] for row in rows)
        first, last = mean(rewards[:5]), mean(rewards[-5:])
        print(
            f"seed {seed}: {len(rows)} updates, {pace:.1f} s each; mean reward of the first five groups {first:.3f}, "
            f"of the last five {last:.3f}"
        )


if __name__ == "__main__":
    main()
