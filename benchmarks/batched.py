"""Compare 64 inquiries that embed their new texts in one batch with the embedder alone; time a menu step."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium as gym
import numpy as np
import torch
from measure import Row, alternate, hand_over, ratios, seconds, spread
from stepping import WORDS, cart_rate, new_texts

from inquitree_gym import load_embedder
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder
from inquitree_gym.errors import EmbedderError

WIDTH = 64
ROUNDS = {DEFAULT_EMBEDDER: 8, f"static:{DEFAULT_EMBEDDER}": 60}
"""Steps measured per embedder."""
TARGETS = {DEFAULT_EMBEDDER: 0.95}
"""Target: minimum ratio to the embedder's own rate on the same texts."""
STATIC_TARGET = 100
"""Target: minimum ratio to the rate of the default embedder."""
MENU_ROUNDS, MENU_STEPS = 41, 2_000


def batched() -> Iterator[Row]:
    """Step at the topic with texts that are in no cache."""
    torch.set_num_threads(1)
    rates: dict[str, float] = {}
    for name, rounds in ROUNDS.items():
        embedder = load_embedder(name)
        try:
            embedder.embed(["loads the weights"])
        except EmbedderError as error:
            yield Row(f"batched steps, {name}", f"not measured: {error}")
            continue
        ours, theirs = stepped(embedder, rounds)
        ratio = ratios(ours, theirs)
        rates[name] = spread(ours).median
        yield Row(
            f"batched text steps at {WIDTH}, new texts of {WORDS} words, {name}",
            spread(ours).show(",.0f", "/s"),
            f"the embedder alone, batches of {WIDTH}: {spread(theirs).show(',.0f', '/s')}",
            ratio.show(".3f"),
            f"≥ {TARGETS[name]}" if name in TARGETS else "–",
            ratio.median >= TARGETS[name] if name in TARGETS else None,
        )
    if len(rates) == len(ROUNDS):
        default, static = rates.values()
        yield Row(
            "batched text steps, static over the default", f"{static:,.0f} /s", f"{default:,.0f} /s",
            f"{static / default:.0f}", f"≥ {STATIC_TARGET}", static / default >= STATIC_TARGET,
        )  # fmt: skip


def stepped(embedder: Embedder, rounds: int, width: int = WIDTH) -> tuple[list[float], list[float]]:
    """Return texts per second for steps and for the embedder alone, on the same texts, by round."""
    env = gym.make_vec("InquiTree-paper12-v0", width, embedder=embedder, max_turns=None)
    env.reset(seed=0)
    texts = new_texts((rounds + 1) * width)
    batches = [tuple(texts[i : i + width]) for i in range(0, len(texts), width)]
    env.step(batches[0])
    ours, theirs = [], []
    for number, batch in enumerate(batches[1:]):
        tasks = [(ours, lambda b=batch: env.step(b)), (theirs, lambda b=batch: embedder.embed(b))]
        for rates, task in tasks if number % 2 else reversed(tasks):
            rates.append(width / seconds(task))
    return ours, theirs


def menu() -> Iterator[Row]:
    """Compare steps of the discrete view, with allowed actions, with CartPole."""
    env, cart = gym.make("InquiTree-paper12-menu-v0"), gym.make("CartPole-v1")
    cart.reset(seed=0)
    pushes = [int(push) for push in np.random.default_rng(0).integers(2, size=4_096)]
    episodes = recorded(env)
    tasks = [lambda: menu_rate(env, episodes), lambda: cart_rate(cart, pushes)]
    alternate(tasks, 1)
    ours, theirs = alternate(tasks, MENU_ROUNDS)
    ratio = ratios(ours, theirs)
    yield Row(
        "menu steps through `gym.make`, random valid actions", spread(ours).show(",.0f", "/s"),
        f"CartPole-v1 {spread(theirs).show(',.0f', '/s')}", ratio.show(".2f"), "≥ 1", ratio.median >= 1,
    )  # fmt: skip


def recorded(env: gym.Env) -> list[list[int]]:
    """Return the actions of whole episodes under random allowed actions; without fakes no seed matters."""
    rng, episodes, steps = np.random.default_rng(0), [], 0
    while steps < MENU_STEPS:
        actions, over = [], False
        env.reset()
        while not over:
            actions.append(int(rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")()))))
            over = env.step(actions[-1])[2]
        episodes.append(actions)
        steps += len(actions)
    return episodes


def menu_rate(env: gym.Env, episodes: list[list[int]]) -> float:
    """Return steps per second over whole episodes, including resets."""

    def play() -> None:
        for actions in episodes:
            env.reset()
            for action in actions:
                env.step(action)

    return sum(map(len, episodes)) / seconds(play)


if __name__ == "__main__":
    hand_over([*menu(), *batched()])
