"""Draw the frozen tasks of SciExplore anew, and write their files: ``python -m research.frozen``."""

from __future__ import annotations

from pathlib import Path

import typer

import inquitree_gym.exploration
from inquitree_gym.cli import output
from inquitree_gym.exploration.building.citations import draw_texts
from inquitree_gym.exploration.building.navigation import draw_frozen
from inquitree_gym.exploration.building.retrieval import draw_retrievals
from inquitree_gym.exploration.building.tables import draw_tables

FOLDER = Path(inquitree_gym.exploration.__file__).parent / "data"
DRAW = {"t1": draw_frozen, "t2": draw_retrievals, "t3": draw_texts, "t4": draw_tables}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def write_frozen(folder: Path = FOLDER) -> None:
    """Write one file for each type, a task a line. Prove them with ``inquitree check``."""
    for name, draw in DRAW.items():
        lines = [f"{task.model_dump_json()}\n" for task in draw()]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        typer.echo(f"{name}: {len(lines)} tasks")


if __name__ == "__main__":
    output.run_app(app)
