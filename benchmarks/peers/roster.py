"""Who is measured, in which settings, and what one step of each is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Setting(NamedTuple):
    """One way of stepping an environment."""

    name: str
    step: str
    """What one step is; resets between episodes are always counted in."""
    world: bool = False
    """Whether the step moves somebody or something through a simulated place."""


class Peer(NamedTuple):
    """A package, and the settings that its driver offers."""

    name: str
    driver: Path
    settings: tuple[Setting, ...]
    pins: Path | None
    """What to install; None where it is measured in this very environment."""


def peer(name: str, *settings: Setting) -> Peer:
    """Return a peer whose files are named after it."""
    stem = name.lower().replace("-", "_")
    return Peer(name, HERE / f"drive_{stem}.py", settings, HERE / "pins" / f"{stem}.txt")


OURS = Peer(
    "inquitree-gym",
    HERE / "drive_inquitree.py",
    (
        Setting("text", "`InquiTree-paper12-v0`, the oracle's actions, all texts seen before"),
        Setting("menu", "`InquiTree-paper12-menu-v0`, recorded random actions that the mask allows"),
        Setting(
            "batch",
            "1,024 of the same inquiries in the batch environment, random actions; each inquiry counts as a step",
        ),
        Setting("batch-index", 'the same with `observation="index"` and `infos=False`'),
        Setting("unseen", "`InquiTree-paper12-v0`, a new text of 60 words at every step, embedded with MiniLM"),
    ),
    None,
)
SINGLE = ("text", "menu")
"""Ours that the aim for worlds is about."""
BATCH = "batch"
COMPARED = (*SINGLE, BATCH, "unseen")
"""Ours that every peer is set against."""

PEERS = (
    peer(
        "TextWorld",
        Setting(
            "recorded",
            "a house of 5 rooms and 10 objects; recorded admissible commands, text observations only",
            world=True,
        ),
        Setting(
            "admissible", "the same, with the list of admissible commands, one of which is chosen at random", world=True
        ),
    ),
    peer(
        "ScienceWorld", Setting("boil", "`boil`, easy, in the JVM; random actions that were valid at reset", world=True)
    ),
    peer(
        "DiscoveryWorld",
        Setting("json", "Combinatorial Chemistry, easy; a random move or turn, a tick, its JSON", world=True),
        Setting(
            "pictures", "the same, with the images that the API renders and saves for each observation", world=True
        ),
    ),
    peer(
        "MiniGrid",
        Setting("red-ball", "`BabyAI-GoToRedBallGrey-v0`, random actions", world=True),
        Setting("boss", "`BabyAI-BossLevel-v0`, random actions", world=True),
    ),
    peer(
        "TextArena",
        Setting("frozen-lake", "`FrozenLake-v0`, default wrappers, random moves on a grid", world=True),
        Setting("guess", "`GuessTheNumber-v0`, default wrappers, random guesses; compares two numbers"),
        Setting("guess-raw", "`GuessTheNumber-v0-raw`: the same without wrappers"),
    ),
    peer("aviary", Setting("dummy", "`DummyEnv`: one tool call, which sets a number")),
    peer(
        "GEM",
        Setting("sokoban", "`game:Sokoban-v0-easy`, random moves on a grid", world=True),
        Setting("minesweeper", "`game:Minesweeper-v0-easy`, random cells of a board"),
        Setting("mastermind", "`game:Mastermind-v0-hard`, random codes; compares two codes"),
        Setting("guess", "`game:GuessTheNumber-v0-hard`, random guesses; compares two numbers"),
        Setting("guess-64", "the same in its vector environment of 64; each game counts as a step"),
    ),
    peer(
        "reasoning-gym",
        Setting("sum", "`chain_sum`: generate one question and grade its correct answer"),
        Setting("maze", "`maze`: generate one question and grade its correct answer"),
    ),
)
