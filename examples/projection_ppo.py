"""PPO of Stable-Baselines3 on projections of synthetic worlds (extra ``rl``): at which level is the outcome learned?

python examples/projection_ppo.py --out runs/projection-ppo

Trains one policy for each share of deducible claims, and measures the score of its sheets by level on worlds that
training never meets.
Writes ``learned.json``, ``learned.md`` and ``learned.svg`` (extra ``plots``).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gymnasium as gym
import torch
from stable_baselines3 import PPO

import inquitree_gym  # noqa: F401  (registers the environments)
from inquitree_gym.integrations.sb3 import BatchVecEnv
from inquitree_gym.trees.disclosure import LEVELS

PROJECTIONS = 256
WORLDS = 1_000
"""Number of worlds for every measured score."""


def worlds(number: int, split: str, deducible: float, claims: int, mode: str = "SameStep") -> gym.vector.VectorEnv:
    """Return an array environment of projections of ``number`` synthetic worlds."""
    return gym.make_vec(
        "ProjectionBench-synthetic-menu-v0", number, vectorization_mode="vector_entry_point", autoreset_mode=mode,
        infos=False, split=split, deducible=deducible, claims=claims,
    )  # fmt: skip


def train(deducible: float, *, claims: int, steps: int, seed: int) -> PPO:
    """Return a trained model. γ is 1, since the return is paid at the end."""
    env = BatchVecEnv(worlds(PROJECTIONS, "train", deducible, claims))
    env.seed(seed * 100_000)
    model = PPO(
        "MlpPolicy", env, n_steps=12, batch_size=512, n_epochs=4, learning_rate=3e-3, gamma=1.0, seed=seed,
        policy_kwargs={"net_arch": [128, 128]}, device="cpu",
    )  # fmt: skip
    return model.learn(steps)


def scores_by_level(model: PPO, deducible: float, claims: int) -> list[float]:
    """Return the mean score of the sheets at each level in unseen worlds."""
    env = worlds(WORLDS, "test", deducible, claims, "Disabled")
    rows, _ = env.reset(seed=0)
    for _ in LEVELS:
        actions, _ = model.predict(rows, deterministic=True)
        rows, *_ = env.step(actions)
    found: list[float] = env.unwrapped.scores.mean(axis=0).tolist()
    env.close()
    return found


def as_markdown(learned: dict[str, list[float]]) -> str:
    """Return a table of the measured scores of all policies and the computed bounds."""
    lines = ["| policy | " + " | ".join(LEVELS) + " |", "| --- |" + " --- |" * len(LEVELS)]
    rows = {f"PPO, deducible {share}": values for share, values in learned.items()}
    rows |= {f"best possible, deducible {share}": [0.0, 0.0, float(share)] for share in learned}
    rows["coin"] = [0.0] * len(LEVELS)
    lines += [f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |" for name, values in rows.items()]
    return "\n".join(lines) + "\n"


def draw(learned: dict[str, list[float]], file: Path) -> None:
    """Draw the scores over the levels, a line for each share of deducible claims."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    for (share, values), colour in zip(learned.items(), ("#555555", "#56B4E9", "#0072B2"), strict=False):
        axis.plot(LEVELS, values, marker="o", color=colour, label=f"deducible {share}")
    axis.axhline(0, color="#555555", linestyle=":", linewidth=1, label="coin, by formula")
    axis.set(ylim=(-0.2, 1.05), ylabel="score of the sheet in unseen worlds")
    axis.legend(fontsize=8, loc="upper left")
    figure.savefig(file)


def main() -> None:
    """Train and measure with the settings on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deducible", type=float, nargs="+", default=[0.0, 0.5, 1.0], help="at most three shares")
    parser.add_argument("--claims", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/projection-ppo"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    learned: dict[str, list[float]] = {}
    for share in given.deducible:
        model = train(share, claims=given.claims, steps=given.steps, seed=given.seed)
        learned[f"{share:g}"] = scores_by_level(model, share, given.claims)
    (given.out / "learned.json").write_text(json.dumps(learned))
    (given.out / "learned.md").write_text(as_markdown(learned))
    draw(learned, given.out / "learned.svg")
    print(as_markdown(learned))


if __name__ == "__main__":
    main()
