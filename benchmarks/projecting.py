"""Measure projections: scoring, steps with seen and with new text, batches of new text, and synthetic episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import gymnasium as gym
import numpy as np
import torch
from measure import Row, Spread, hand_over, ratios, seconds, spread
from stepping import episode_rate, rates_beside_cart

from inquitree_gym import load_embedder
from inquitree_gym.judging.sense import JUDGE_EMBEDDER
from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, ORDERS, projection_score
from inquitree_gym.projection.judges.local import local_projection_judge
from inquitree_gym.projection.tasks import load_task
from inquitree_gym.trees import builtin_ids

TASK = "paper12"
ENV = f"ProjectionBench-{TASK}-v0"
ROUNDS = 41
MATRICES, CLAIMS = 50_000, 6
NEW_TEXTS, WARM_UP = 101, 10
WIDTH, BATCHES = 64, 8
EPISODES, SLICE = 10_000, 1_000
SCORE_TARGET = 1e5
"""Target: least matrices per second."""
NEW_TARGET = 1.1
"""Target: maximum ratio to the embedder's own time on the claims."""
SEEN_TARGET = 1.0
"""Target: minimum ratio to the step rate of CartPole."""
BATCH_TARGET = 0.95
"""Target: minimum ratio to the embedder's own rate on the same claims."""
EPISODES_TARGET = 60.0
"""Target in seconds."""


def scored() -> Iterator[Row]:
    """Average the ratings of many projections over both orders, and score them."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(-1, 2, (MATRICES, CLAIMS, ORDERS)).astype(np.float64)
    pairs[rng.random((MATRICES, CLAIMS)) < 0.2] = np.nan
    extras = rng.integers(-1, 2, (MATRICES, MAX_EXTRAS, CLAIMS, ORDERS)).astype(np.float64)
    extras[rng.random((MATRICES, MAX_EXTRAS)) < 0.5] = np.nan

    def score() -> None:
        projection_score(pairs.mean(axis=-1), extras.mean(axis=(-2, -1)))

    rates = spread(MATRICES / seconds(score) for _ in range(ROUNDS))
    yield Row(
        f"projections scored, {CLAIMS} true and {MAX_EXTRAS} extraneous claims in both orders",
        rates.show(",.0f", "/s"),
        target=f"≥ {SCORE_TARGET:,.0f}/s", met=rates.median >= SCORE_TARGET,
    )  # fmt: skip


def seen() -> Iterator[Row]:
    """Step with projections that have been judged before."""
    told = load_task(TASK).disclosure
    actions = (told.question, told.null_hypothesis, told.outcome)
    ours, theirs = rates_beside_cart([partial(episode_rate, gym.make(ENV), actions)], ROUNDS)
    yield row(
        "projections with seen text", ours, f"CartPole-v1 {spread(theirs).show(',.0f', '/s')}",
        ratios(ours, theirs), least=SEEN_TARGET,
    )  # fmt: skip


def new_projections(count: int) -> list[str]:
    """Return sentences of three claims, about variables of random tasks and with random relations."""
    rng = np.random.default_rng(0)
    claims = [claim for name in builtin_ids() for claim in load_task(name).claims]

    def claim() -> str:
        first, second, third = (claims[i] for i in rng.integers(len(claims), size=3))
        return f"{first.independent} {second.relation} {third.dependent}"

    return [f"This study finds that {claim()}, that {claim()}, and that {claim()}." for _ in range(count)]


def unseen() -> Iterator[Row]:
    """Step with sentences that are in no cache, and embed their claims alone."""
    torch.set_num_threads(1)
    env, embedder = gym.make(ENV), load_embedder(JUDGE_EMBEDDER)
    split = local_projection_judge(load_task(TASK)).claims
    ours, singly, together, sizes = [], [], [], []
    for number, text in enumerate(new_projections(NEW_TEXTS + WARM_UP)):
        env.reset()
        claims = split(text)
        sizes.append(len(claims))
        tasks: list[tuple[list[float], Callable[[], object]]] = [
            (ours, partial(env.step, text)),
            (singly, lambda claims=claims: [embedder.embed([claim]) for claim in claims]),
            (together, partial(embedder.embed, claims)),
        ]
        for times, task in tasks[:: -1 if number % 2 else 1]:
            times.append(seconds(task))
    ours, singly, together = (times[WARM_UP:] for times in (ours, singly, together))
    what = f"projection with new text ({np.mean(sizes):.1f} claims)"
    shown = spread(1e3 * took for took in ours).show(".1f", "ms")
    for base, how, target in ((singly, "one at a time", NEW_TARGET), (together, "in one call", None)):
        against = f"its claims in `{embedder.name}`, {how}: {spread(1e3 * took for took in base).show('.1f', 'ms')}"
        ratio = ratios(ours, base)
        met = None if target is None else ratio.median <= target
        yield Row(what, shown, against, ratio.show(".3f"), "–" if target is None else f"≤ {target}", met)


def batched() -> Iterator[Row]:
    """Step many environments at once with sentences that are in no cache."""
    torch.set_num_threads(1)
    env = gym.make_vec(ENV, WIDTH, vectorization_mode="vector_entry_point")
    embedder, split = load_embedder(JUDGE_EMBEDDER), local_projection_judge(load_task(TASK)).claims
    texts = new_projections((BATCHES + 1) * WIDTH)
    steps = [tuple(texts[i : i + WIDTH]) for i in range(0, len(texts), WIDTH)]
    ours, theirs = [], []
    for number, step in enumerate(steps):
        env.reset(seed=0)
        claims = list(dict.fromkeys(claim for text in step for claim in split(text)))
        tasks = [(ours, partial(env.step, step)), (theirs, partial(embedder.embed, claims))]
        for rates, task in tasks if number % 2 else reversed(tasks):
            rates.append(len(claims) / seconds(task))
    ours, theirs = ours[1:], theirs[1:]
    yield row(
        f"claims of new projections, batches of {WIDTH}", ours,
        f"the embedder alone, the same claims: {spread(theirs).show(',.0f', '/s')}",
        ratios(ours, theirs), least=BATCH_TARGET,
    )  # fmt: skip


def synthetic() -> Iterator[Row]:
    """Play and score synthetic episodes in which a coin decides each direction, as arrays and one by one."""
    arrays = gym.make_vec("ProjectionBench-synthetic-menu-v0", SLICE, vectorization_mode="vector_entry_point")
    single = gym.make("ProjectionBench-synthetic-menu-v0").unwrapped
    for what, play in (("as arrays", partial(toss_in_arrays, arrays)), ("one by one", partial(toss_singly, single))):
        took = seconds(play)
        yield Row(
            f"{EPISODES:,} synthetic episodes of `coin`, played and scored {what}", f"{took:.1f} s",
            target=f"< {EPISODES_TARGET:.0f} s", met=took < EPISODES_TARGET,
        )  # fmt: skip


def toss(env: gym.Env | gym.vector.VectorEnv, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return actions: for every claim, itself or its contrary; for an empty slot, its first option."""
    nothing = env.menu.features.split(rows)["nothing"]
    return (rng.random(nothing.shape) - 2 * nothing).argmax(axis=-1)


def toss_in_arrays(env: gym.vector.VectorEnv) -> None:
    """Play `EPISODES` episodes, `SLICE` at a time."""
    rng, over = np.random.default_rng(0), 0
    rows, _ = env.reset(seed=0)
    while over < EPISODES:
        rows, _, ended, *_ = env.step(toss(env, rows, rng))
        over += int(ended.sum())


def toss_singly(env: gym.Env) -> None:
    """Play `EPISODES` episodes, one after the other."""
    rng = np.random.default_rng(0)
    for seed in range(EPISODES):
        rows, _ = env.reset(seed=seed)
        over = False
        while not over:
            rows, _, over, *_ = env.step(toss(env, rows, rng))


def row(what: str, rates: list[float], against: str, ratio: Spread, *, least: float) -> Row:
    """Return the row of a rate that has to reach a share of a reference rate."""
    return Row(what, spread(rates).show(",.0f", "/s"), against, ratio.show(".2f"), f"≥ {least}", ratio.median >= least)


if __name__ == "__main__":
    hand_over([*scored(), *seen(), *unseen(), *batched(), *synthetic()])
