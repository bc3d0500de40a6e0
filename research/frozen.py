"""Draw the frozen tasks of SciExplore anew, and write their files: ``python -m research.frozen``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

import inquitree_gym.exploration
from inquitree_gym.cli import run_app
from inquitree_gym.exploration.building.citations import citation_task
from inquitree_gym.exploration.building.navigation import HOPS, WORLDS, Index, navigation_task
from inquitree_gym.exploration.building.retrieval import retrieval_task
from inquitree_gym.exploration.building.tables import table_task
from inquitree_gym.exploration.library import LibrarySpec
from inquitree_gym.exploration.providers import LocalLibrary, local_library
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.seeds import splitmix64

FOLDER = Path(inquitree_gym.exploration.__file__).parent / "data"
SEEDS = (1, 3, 5, 7, 9)
"""Seeds of the libraries: odd, as all tests."""
SIZE = 2_000
DRAW: dict[str, tuple[int, Callable[[LocalLibrary, int], ExplorationTask]]] = {
    "t1": (len(HOPS), lambda provider, number: navigation_task(Index(provider.library), number, HOPS[number])),
    "t2": (32, retrieval_task),
    "t3": (14, citation_task),
    "t4": (18, lambda provider, number: table_task(Index(provider.library), number)),
}
"""Number of tasks of each type, and their drawing from a library."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def write_frozen(folder: Path = FOLDER) -> None:
    """Write one file for each type, a task a line. Prove them with ``inquitree check``."""
    specs = [LibrarySpec(seed=seed, world=splitmix64(seed, WORLDS) % WORLDS, size=SIZE) for seed in SEEDS]
    for name, (count, draw) in DRAW.items():
        tasks = (draw(local_library(specs[number % len(specs)]), number) for number in range(count))
        lines = [f"{task.model_dump_json()}\n" for task in tasks]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        typer.echo(f"{name}: {len(lines)} tasks")


if __name__ == "__main__":
    run_app(app)
