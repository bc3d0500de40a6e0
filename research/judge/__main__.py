"""Train the judge's adapter, measure it, and search for what fools it: ``python -m research.judge --help``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from inquitree_gym.cli.output import err, out, progress, run_app
from inquitree_gym.embeddings import TreeVectors, load_embedder
from inquitree_gym.embeddings.local import MINILM, adapter_file, find_device, minilm_folder
from inquitree_gym.embeddings.protocol import Device, Vectors
from inquitree_gym.embeddings.registry import JUDGE, JudgeEmbedder
from inquitree_gym.inquiry.generator.generate import synthetic_tree
from inquitree_gym.inquiry.judges.local import LocalJudge, local_judge
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from research.datasets import load_conclusions
from research.judge.conclusions import load_played
from research.judge.crossval import EVIDENCE, evaluate, inputs_digest, tree_folds, write_evidence
from research.judge.direction import auc_by_tree, line_cases, load_lines, measures
from research.judge.search import search
from research.judge.statements import Lesson, lesson, synthetic_lesson
from research.judge.training import Settings, train
from research.reader.__main__ import DeviceOption
from research.reader.lora import TrainableEncoder, write_adapter

SYNTHETIC_TREES = range(1_000, 1_060)
"""Seeds of the synthetic trees that the adapter is trained on."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class _TrainedJudge(JudgeEmbedder):
    """The judge's embedder with an adapter that was just trained."""

    def __init__(self, encoder: TrainableEncoder) -> None:
        super().__init__()
        self._encoder = encoder

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Vectors:
        adapted = self._encoder.embed(texts).cpu().numpy() if texts else np.zeros((0, self.dim // 2), np.float32)
        return np.concatenate([load_embedder(MINILM).embed(texts), adapted], axis=1) * np.float32(np.sqrt(0.5))


@app.command("train")
def train_command(
    out_file: Annotated[Path | None, typer.Option("--out", help="File of the adapter.")] = None,
    device: DeviceOption = "auto",
) -> None:
    """Train the adapter on all trees and authors, and write it."""
    lessons, names = _lessons(), builtin_ids()
    with progress("training", _steps(len(lessons))) as advance:
        encoder = _fit(lessons, device, lambda: advance(""))
    about = asdict(Settings()) | {"trees": {name: load_tree(name).digest for name in names}}
    place = out_file or adapter_file(JUDGE)
    err.print(f"written: {place}; SHA-256 {write_adapter(place, encoder.adapter(), about)}")


@app.command()
def crossvalidate(
    out_file: Annotated[Path, typer.Option("--out", help="File of the results.")] = EVIDENCE,
    device: DeviceOption = "auto",
) -> None:
    """Judge every conclusion with an adapter that has not seen its tree, and write the verdicts."""
    lessons, judges = _lessons(), dict[str, _TrainedJudge]()
    folds = tree_folds([each.tree for each in lessons])
    with progress("training", sum(_steps(len(lessons) - len(fold)) for fold in folds)) as advance:
        for fold in folds:
            encoder = _fit([each for each in lessons if each.tree not in fold], device, lambda: advance(""))
            judges |= dict.fromkeys(fold, _TrainedJudge(encoder))

    def judge_of(tree: Tree) -> LocalJudge:
        return LocalJudge(TreeVectors(tree, judges[tree.id], lasting=False))

    played, written = load_played(), load_conclusions()
    with err.status("judging") as status:
        evidence = evaluate(played, written, judge_of, status.update)
    write_evidence(out_file, evidence, inputs_digest(played, written), Settings())
    err.print(f"written: {out_file}")


@app.command()
def direction() -> None:
    """Print how well each measure tells lines that report a result from lines that misremember it."""
    sets = load_lines()
    with err.status("judging"):
        cases = [case for name in builtin_ids() for case in line_cases(sets, local_judge(load_tree(name)))]
    for name, measure in measures().items():
        found = (
            f"{each.author} {auc_by_tree([case for case in cases if case.author == each.author], measure)}"
            for each in sets
        )
        out.print(f"{name}: {', '.join(found)}", highlight=False)


@app.command("search")
def search_command(
    steps: Annotated[int, typer.Option(min=256, help="Conclusions that are written in training.")] = 4096,
    step: Annotated[int, typer.Option(min=1, help="Take every STEP-th tree.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
) -> None:
    """Train PPO to compose conclusions that choose no side, and print the best that it found."""
    trees = [load_tree(name) for name in builtin_ids()[::step]]
    for name, value in search(trees, steps, seed)._asdict().items():
        out.print(f"{name}: {value:.3f}" if isinstance(value, float) else f"{name}: {value}", highlight=False)


def _lessons() -> list[Lesson]:
    written = {each.tree: each for each in load_conclusions()}
    played = {each.tree: each.conclusions for each in load_played()}
    return [lesson(load_tree(name), [written[name]], played[name]) for name in builtin_ids()]


def _fit(lessons: Sequence[Lesson], device: Device, advance: Callable[[], None]) -> TrainableEncoder:
    synthetic = [synthetic_lesson(synthetic_tree(seed)) for seed in SYNTHETIC_TREES]
    return train(lessons, synthetic, Settings(), minilm_folder(), find_device(device), advance)


def _steps(lessons: int) -> int:
    settings = Settings()
    return settings.epochs * lessons * (1 + settings.synthetic)


if __name__ == "__main__":
    run_app(app)
