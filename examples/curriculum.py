"""From small synthetic trees to larger ones, then unseen trees and the 18 papers.

python examples/curriculum.py --out runs/curriculum

Writes ``curriculum.json``, ``curriculum.md`` and ``curriculum.svg`` (extra ``plots``).

What a policy can carry over is how an inquiry goes, not what a field knows: what to say in which phase, to enter what
was not visited yet, when to stop.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from learning_study import greedy
from ppo import Policy, Settings, first_rows, learn

from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.trees import Difficulty, Tree, builtin_ids, load_tree, synthetic_tree, tree_seed

SIZE = (10, 28)
"""Slots for subtopics and studies: enough for every paper."""
STAGES = (3, 5, 7)
"""Subtopics of the trees to train on, one stage after the other."""
EPISODES = 128
"""Episodes behind the mean return on one tree."""


def synthetic(split: str, n: int, count: int) -> list[Tree]:
    """Return trees with ``n`` subtopics; those of the two splits are never the same."""
    return [synthetic_tree(tree_seed(1000 * n + i, split), Difficulty(subtopics=n)) for i in range(count)]


def vector(trees: Sequence[Tree], inquiries: int, embedder: str, **keywords: object) -> gym.vector.VectorEnv:
    """Return inquiries into trees of one size, in turn, at 3n + 3 turns."""
    return gym.make_vec(
        "InquiTree-menu-v0", inquiries, vectorization_mode="vector_entry_point", size=SIZE, text_dim=32, infos=False,
        trees=[trees[i % len(trees)] for i in range(inquiries)], max_turns=3 * len(trees[0].subtopics) + 3,
        embedder=embedder, **keywords,
    )  # fmt: skip


def train(trees: dict[int, list[Tree]], seed: int, steps: int, embedder: str) -> Policy:
    """Return a policy that went through all stages."""
    torch.manual_seed(seed)
    settings = Settings(seed=seed, steps=steps, inquiries=64)
    stages = [vector(trees[n], settings.inquiries, embedder, autoreset_mode="SameStep") for n in trees]
    space, actions = stages[0].single_observation_space, stages[0].single_action_space
    policy = Policy(space.shape[0], int(actions.n), settings.width)
    policy.look(torch.cat([first_rows(env, settings) for env in stages]))
    for env in stages:
        learn(env, policy, settings)
    return policy


def earned(tree: Tree, embedder: str, policy: Policy | None, rng: np.random.Generator) -> float:
    """Return the mean return on one tree, of a policy or, without one, of any open action."""
    env = vector([tree], EPISODES, embedder)
    rows, _ = env.reset(seed=10_000_000)
    act = greedy(policy, masked=True) if policy else lambda rows, masks: (rng.random(masks.shape) * masks).argmax(1)
    returns = np.full(EPISODES, np.nan)
    while np.isnan(returns).any():
        rows, rewards, over, _, _ = env.step(act(rows, env.action_masks()))
        first = over & np.isnan(returns)
        returns[first] = rewards[first]
    env.close()
    return float(returns.mean())


class Compared(NamedTuple):
    """Mean returns on some trees, by id."""

    name: str
    chance: dict[str, float]
    learned: dict[str, list[float]]
    """One value for each trained policy."""

    def estimates(self) -> dict[str, str]:
        """Return means with 95 % intervals: over trees, and over training seeds where those differ."""
        values = [(tree, seed, value) for tree, found in self.learned.items() for seed, value in enumerate(found)]
        return {
            "random masked, over trees": str(clustered_mean(self.chance.items())),
            "trained, over trees": str(clustered_mean((tree, value) for tree, _, value in values)),
            "trained, over seeds": str(clustered_mean((str(seed), value) for _, seed, value in values)),
            "gain, over trees": str(clustered_mean((tree, value - self.chance[tree]) for tree, _, value in values)),
        }


def compare(name: str, trees: Sequence[Tree], policies: Sequence[Policy], embedder: str) -> Compared:
    """Play every tree with every policy, and with one that takes any open action."""
    rng = np.random.default_rng(0)
    chance = {tree.id: earned(tree, embedder, None, rng) for tree in trees}
    return Compared(name, chance, {tree.id: [earned(tree, embedder, p, rng) for p in policies] for tree in trees})


def as_markdown(found: Sequence[Compared]) -> str:
    """Return the table of all comparisons."""
    columns = list(found[0].estimates())
    lines = [f"| trees | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    lines += [f"| {each.name} ({len(each.chance)}) | {' | '.join(each.estimates().values())} |" for each in found]
    return "\n".join(lines) + "\n"


def draw(found: Sequence[Compared], file: Path) -> None:
    """Draw every tree: what chance earns, and what each trained policy does."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(5.2 * len(found), 3.8), sharey=True, layout="constrained")
    for axis, each in zip(axes, found, strict=True):
        order = sorted(each.chance, key=lambda tree, each=each: np.mean(each.learned[tree]))
        for x, tree in enumerate(order):
            axis.plot([x] * len(each.learned[tree]), each.learned[tree], "o", color="#0072B2", alpha=0.5, markersize=4)
        axis.plot([each.chance[tree] for tree in order], "_", color="#555555", markersize=10, label="random masked")
        axis.plot([np.mean(each.learned[tree]) for tree in order], "_", color="#0072B2", markersize=10, label="trained")
        labels = order if each.name == "papers" else range(1, len(order) + 1)
        axis.set_xticks(range(len(order)), labels, rotation=90, fontsize=7)
        axis.set(title=each.name, ylim=(-0.3, 1.05))
        axis.legend(fontsize=8, loc="lower right")
    axes[0].set_ylabel("return")
    figure.savefig(file)


def main() -> None:
    """Train with several seeds, and compare with a random policy that sees the same masks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--stages", type=int, nargs="+", default=STAGES, help="subtopics of the trees to train on")
    parser.add_argument("--trees", type=int, default=16, help="per stage, and of those never seen before")
    parser.add_argument("--steps", type=int, default=200_000, help="per stage")
    parser.add_argument("--papers", type=int, default=18)
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, default=Path("runs/curriculum"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    training = {n: synthetic("train", n, given.trees) for n in given.stages}
    tests = {
        f"unseen synthetic, n = {given.stages[-1]}": synthetic("test", given.stages[-1], given.trees),
        "papers": [load_tree(name) for name in builtin_ids()[: given.papers]],
    }
    policies = []
    for seed in range(1, given.seeds + 1):
        policies.append(train(training, seed, given.steps, given.embedder))
        print(f"seed {seed} is trained", flush=True)
    found = [compare(name, trees, policies, given.embedder) for name, trees in tests.items()]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "curriculum.json").write_text(json.dumps(found, indent=2))
    (given.out / "curriculum.md").write_text(as_markdown(found))
    draw(found, given.out / "curriculum.svg")
    print(as_markdown(found))


if __name__ == "__main__":
    main()
