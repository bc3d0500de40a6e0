"""Does it learn? PPO over several seeds beside constant, random and random-masked policies and the oracle.

python examples/learning_study.py --out runs/learning

Writes ``learning.json``, ``learning.md`` and ``learning.svg`` (extra ``plots``), and a log of every episode that a
trained policy played.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ppo import Policy, Settings, train

import inquitree_gym as inquitree
from inquitree_gym.inquiry.agents.policy import PolicyAgent
from inquitree_gym.inquiry.vigilance import ALL, Counts
from inquitree_gym.results.statistics import Estimate, clustered_mean

EPISODES = 512
"""Episodes behind every mean return."""
LOGGED = 30
"""Episodes that a trained policy plays in free text, logged and scored."""

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From features and masks, a row for each inquiry, to actions."""


def mean_return(settings: Settings, act: Act, seed: int = 10_000_000) -> float:
    """Return the mean return of one episode in each of `EPISODES` inquiries, with seeds that training never meets."""
    env = gym.make_vec(
        f"InquiTree-{settings.tree}-menu-v0", EPISODES, vectorization_mode="vector_entry_point",
        max_turns=settings.turns, fake_level=settings.fake_level, infos=False,
    )  # fmt: skip
    rows, _ = env.reset(seed=seed)
    returns = np.full(EPISODES, np.nan)
    while np.isnan(returns).any():
        rows, rewards, over, _, _ = env.step(act(rows, env.action_masks()))
        first = over & np.isnan(returns)
        returns[first] = rewards[first]
    env.close()
    return float(returns.mean())


def greedy(policy: Policy, masked: bool) -> Act:
    """Return the trained policy at its best."""

    def act(rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        open_actions = torch.as_tensor(masks if masked else np.ones_like(masks))
        with torch.no_grad():
            return policy.distribution(torch.as_tensor(rows), open_actions).probs.argmax(-1).numpy()

    return act


def chance(settings: Settings) -> dict[str, float]:
    """Return what is earned without learning: the best constant action, any action, any open action."""
    rng = np.random.default_rng(0)
    actions = gym.make(f"InquiTree-{settings.tree}-menu-v0").action_space.n

    def open_ones(rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return (rng.random(masks.shape) * masks).argmax(axis=1)

    constant = [mean_return(settings, lambda rows, masks, a=a: np.full(len(rows), a)) for a in range(actions)]
    return {
        "best constant": max(constant),
        "random": mean_return(settings, lambda rows, masks: rng.integers(actions, size=len(rows))),
        "random masked": mean_return(settings, open_ones),
    }


def oracle_return(settings: Settings) -> float:
    """Return what the oracle earns under the same rules."""
    env = inquitree.InquiryEnv(settings.tree, max_turns=settings.turns, fake_level=settings.fake_level, privileged=True)
    env.reset(seed=0)
    agent = inquitree.make_agent("oracle", env)
    episodes = [inquitree.play(env, agent, seed) for seed in range(LOGGED)]
    return float(np.mean([episode.footer.episode_return for episode in episodes]))


def vigilance(settings: Settings, policy: Policy, folder: Path) -> tuple[float | None, float | None]:
    """Let the policy play in free text, log it, and return hit rate on fakes and false-alarm rate on true results."""
    env = inquitree.InquiryEnv(settings.tree, max_turns=settings.turns, fake_level=settings.fake_level)
    env.reset(seed=0)
    act = greedy(policy, settings.masked)
    agent = PolicyAgent(env.vectors, lambda row, mask, rng: int(act(row[None], mask[None])[0]), name="ppo")
    paths = []
    for seed in range(LOGGED):
        task = f"{settings.tree}_f{settings.fake_level}" + ("" if settings.masked else "_unmasked")
        file = folder / f"{task}_s{settings.seed}_{seed}.jsonl"
        file.unlink(missing_ok=True)
        score = inquitree.score_episode(inquitree.play(env, agent, seed, file=file), env.tree)
        paths.append(score.detail.trajectory)
    shown = sum((path.showings[ALL] for path in paths), Counts())
    return shown.hit_rate, shown.false_alarm_rate


def study(name: str, seeds: int, folder: Path, **changes: Any) -> dict[str, Any]:
    """Train with every seed, and measure beside the policies that learn nothing."""
    curves, returns, hits, alarms = [], [], [], []
    for seed in range(1, seeds + 1):
        settings = Settings(seed=seed, **changes)
        policy, curve = train(settings)
        returns.append(mean_return(settings, greedy(policy, settings.masked)))
        hit, alarm = vigilance(settings, policy, folder / "episodes")
        hits.append(hit)
        alarms.append(alarm)
        curves.append(curve)
        print(f"{name}, seed {seed}: return {returns[-1]:.3f}, hits {hit}, false alarms {alarm}", flush=True)
    over_seeds = {"return": _over_seeds(returns), "hits": _over_seeds(hits), "false alarms": _over_seeds(alarms)}
    return {"name": name, "changes": changes, "curves": curves, "oracle": oracle_return(settings)} | {
        "chance": chance(settings), "estimates": {key: list(value) for key, value in over_seeds.items()},
        "table": {key: str(value) for key, value in over_seeds.items()},
    }  # fmt: skip


def _over_seeds(values: list[float | None]) -> Estimate:
    return clustered_mean((str(seed), value) for seed, value in enumerate(values))


def draw(studies: list[dict[str, Any]], file: Path) -> None:
    """Draw the curves: one line a seed, their mean, and what is earned without learning."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(studies), figsize=(4.6 * len(studies), 3.8), sharey=True, layout="constrained")
    for axis, found in zip(np.atleast_1d(axes), studies, strict=True):
        curves = np.array(found["curves"])
        steps = curves[0, :, 0] / 1000
        axis.plot(steps, curves[:, :, 1].T, color="#0072B2", alpha=0.25, linewidth=0.8)
        axis.plot(steps, np.nanmean(curves[:, :, 1], axis=0), color="#0072B2", label=f"PPO, {len(curves)} seeds")
        lines = {"oracle": found["oracle"], **found["chance"]}
        for (label, value), style in zip(lines.items(), ("-", ":", "-.", "--"), strict=True):
            axis.axhline(value, color="#555555", linestyle=style, linewidth=1, label=f"{label} {value:.2f}")
        axis.set(title=found["name"], xlabel="environment steps, thousands", ylim=(-0.02, 1.05))
        axis.legend(fontsize=8, loc="lower right")
    np.atleast_1d(axes)[0].set_ylabel("return, Q/|C|")
    figure.savefig(file)


def as_markdown(studies: list[dict[str, Any]]) -> str:
    """Return the table of all studies."""
    lines = ["| task | PPO | of the oracle | oracle | best constant | random | random masked | hits | false alarms |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for found in studies:
        share = found["estimates"]["return"][0] / found["oracle"]
        without = (f"{value:.3f}" for value in (found["oracle"], *found["chance"].values()))
        cells = [found["name"], found["table"]["return"], f"{share:.1%}", *without]
        lines.append("| " + " | ".join([*cells, found["table"]["hits"], found["table"]["false alarms"]]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the three studies of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="scale the steps of all studies")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    (given.out / "episodes").mkdir(parents=True, exist_ok=True)
    plans: dict[str, dict[str, Any]] = {
        "paper12, masked, 3n + 3 turns": {"steps": 200_000},
        "paper12, unmasked, 3n + 3 turns": {"steps": 300_000, "masked": False},
        "paper12, masked, fakes 3 in 10, 6n turns": {"steps": 500_000, "fake_level": 3, "turns": 42},
    }
    studies = []
    for name, changes in plans.items():
        changes["steps"] = int(changes["steps"] * given.scale)
        studies.append(study(name, given.seeds, given.out, **changes))
        (given.out / "learning.json").write_text(json.dumps(studies))
        (given.out / "learning.md").write_text(as_markdown(studies))
    draw(studies, given.out / "learning.svg")
    print(as_markdown(studies))


if __name__ == "__main__":
    main()
