"""Measure explorations: steps by tool, SEARCH against bm25s, libraries, questions, proofs, and oracle's episodes.

All in CPU time, since one thread does everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measure import Row, alternate, hand_over, ratios, spread

import inquitree_gym as it
from inquitree_gym.exploration.actions import words_of
from inquitree_gym.exploration.building.generate import build_library
from inquitree_gym.exploration.building.synthetic import Libraries, question_spec, synthetic_question
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.exploration.library import LibrarySpec
from inquitree_gym.exploration.proofs import proof_faults
from inquitree_gym.exploration.providers import HITS, local_library
from inquitree_gym.exploration.tasks import frozen_tasks

ROUNDS = 7
STEPS = 2_000
SEARCHES = 100
STEP_TARGET = 10_000
"""Target: minimum steps per second."""
SEARCH_TARGET = 1.2
"""Target: maximum ratio of the time of a SEARCH to that of bm25s alone."""
LIBRARY_TARGETS = {200: 0.3, 2_000: 5.0}
"""Target: maximum seconds by number of documents."""
QUESTION_TARGET, PROOF_TARGET, EPISODES_TARGET = 0.5, 0.2, 10.0
"""Targets: maximum seconds of a synthetic question, of a proof, and of all episodes."""


def seconds(task: Callable[[], Any]) -> float:
    """Return the seconds of CPU time that ``task`` takes."""
    begun = time.process_time()
    task()
    return time.process_time() - begun


def tools() -> list[Row]:
    """Step an environment with each tool, the actions of the gold paths in turn."""
    tasks = frozen_tasks()
    lookups = [step for task in tasks.values() for step in task.path if step.startswith("LOOKUP")]
    own = [task for task in tasks.values() if task.library == tasks["t1-s1-01"].library]
    opened = [step for task in own for step in task.path if step.startswith("OPEN")]
    paper = next(iter(local_library(own[0].library).library.papers))
    steps = {"OPEN": opened, "FIND": ["FIND samples", "FIND the mean", "FIND no such words"], "LOOKUP": lookups}
    rates = alternate([partial(rate, f"OPEN {paper}", actions) for actions in steps.values()], ROUNDS)
    found = zip(steps, map(spread, rates), strict=True)
    return [
        Row(f"steps with {name}", own.show(",.0f", "/s"), target=f"≥ {STEP_TARGET:,}/s", met=own.median >= STEP_TARGET)
        for name, own in found
    ]


def rate(first: str, actions: Sequence[str]) -> float:
    """Return steps per second of an episode of `STEPS` turns, after ``first``."""
    env = ExplorationEnv("t1-s1-01", max_turns=1_000)
    taken = 0.0
    for _ in range(STEPS // 500):
        env.reset(seed=0)
        env.step(first)
        begun = time.process_time()
        for turn in range(500):
            env.step(actions[turn % len(actions)])
        taken += time.process_time() - begun
    return STEPS / taken


def searching() -> Row:
    """Search with the questions of all tasks, as steps and with bm25s alone."""
    env = ExplorationEnv("t1-s1-01", max_turns=1_000)
    queries = [task.question for task in frozen_tasks().values()][:SEARCHES]
    index = local_library(frozen_tasks()["t1-s1-01"].library)._index

    def ours() -> None:
        env.reset(seed=0)
        for query in queries:
            env.step(f"SEARCH {query}")

    def theirs() -> None:
        for query in queries:
            index.retrieve([words_of(query)], k=HITS, show_progress=False)

    own, alone = alternate([partial(seconds, ours), partial(seconds, theirs)], ROUNDS)
    ratio = ratios(own, alone)
    shown = [spread(1e6 * each / len(queries) for each in both).show(",.0f", "µs") for both in (own, alone)]
    return Row("step with SEARCH, a question as query", shown[0], f"bm25s `retrieve`: {shown[1]}", ratio.show(".2f"),
               f"≤ {SEARCH_TARGET}", ratio.median <= SEARCH_TARGET)  # fmt: skip


def building() -> list[Row]:
    """Build libraries of two sizes, draw synthetic questions, and prove the frozen tasks."""
    seeds, tasks = count(1_000), list(frozen_tasks().values())
    rows = []
    for size, most in LIBRARY_TARGETS.items():
        own = [seconds(lambda: build_library(LibrarySpec(seed=next(seeds), size=size))) for _ in range(ROUNDS)]  # noqa: B023
        rows.append(limited(f"a library of {size:,} documents", own, most))
    libraries = Libraries()
    drawn = [seconds(lambda: synthetic_question(question_spec(next(seeds)), libraries)) for _ in range(60)]
    rows.append(limited("a synthetic question of 200 documents, slowest of 60", drawn, QUESTION_TARGET, max))
    proofs = []
    for task in tasks:
        provider = local_library(task.library)
        provider.search("ready")
        proofs.append(seconds(partial(proof_faults, task, provider.library, provider)))
    return [*rows, limited("proof of a frozen task, slowest of 103", proofs, PROOF_TARGET, max)]


def limited(what: str, values: Sequence[float], most: float, of: Callable[[Any], float] | None = None) -> Row:
    """Return a row of seconds whose median, or ``of`` them, is at most ``most``."""
    own = spread(values)
    measured = own.median if of is None else of(values)
    result = own.show(".3f", "s") if of is None else f"{measured:.3f} s"
    return Row(what, result, target=f"≤ {most} s", met=measured <= most)


def episodes() -> Row:
    """Play oracle on every frozen task; log, read and score each episode. The libraries are built before."""
    with TemporaryDirectory() as folder:

        def play_all() -> None:
            for task in frozen_tasks().values():
                env, file = ExplorationEnv(task, privileged=True), Path(folder) / f"{next(numbers)}.jsonl"
                it.play(env, it.make_agent("oracle", env), 0, file=file)
                it.score_episode(it.read_episode(file), task)

        numbers = count()
        return limited("103 episodes of `oracle`, logged and scored", [seconds(play_all) for _ in range(3)],
                       EPISODES_TARGET)  # fmt: skip


if __name__ == "__main__":
    hand_over([*tools(), searching(), *building(), episodes()])
