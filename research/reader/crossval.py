"""Cross-validation of the reader: an adapter reads proposals about trees, or by authors, that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import torch

from inquitree_gym.trees.meaning import lookup
from inquitree_gym.trees.schema import wordings
from research.proposals import MatchingCase, Origin, case_similarities
from research.reader.evidence import AUTHORS_OUT, CANONICAL, PARAPHRASES, TREES_OUT, Read, Readings
from research.reader.examples import Examples
from research.reader.lora import TrainableEncoder
from research.reader.training import Settings, train

FOLDS = 6
"""Parts of the trees, each left out in turn."""
Advance = Callable[[], None]


def steps(data: Examples, cases: Sequence[MatchingCase], settings: Settings) -> int:
    """Return the number of times that `cross_validate` calls ``advance``."""
    trees = len(_trees(data))
    folds = sum(trees - len(fold) for fold in _folds(_trees(data)))
    return settings.epochs * (folds + trees * len(_author_groups(cases)))


def cross_validate(
    data: Examples, cases: Sequence[MatchingCase], settings: Settings, folder: Path, device: str, advance: Advance
) -> dict[str, Readings]:
    """Return the readings of each way to read proposals. ``advance`` is called after each step of training."""
    plain, trees = TrainableEncoder(folder, 0, 0, 0, device), _trees(data)
    fit = partial(train, settings=settings, folder=folder, device=device, advance=advance)
    without_trees = [(fold, partial(fit, data, [tree for tree in trees if tree not in fold])) for fold in _folds(trees)]
    without_authors = [(group, partial(fit, _without(data, group), trees)) for group in _author_groups(cases)]
    return {
        CANONICAL: _read(cases, plain, paraphrases=False),
        PARAPHRASES: _read(cases, plain),
        TREES_OUT: _read_left_out(cases, "tree", without_trees),
        AUTHORS_OUT: _read_left_out(cases, "author", without_authors),
    }


def _read_left_out(
    cases: Sequence[MatchingCase], field: str, parts: Sequence[tuple[list[str], Callable[[], TrainableEncoder]]]
) -> Readings:
    """Read the cases of each part, whose ``field`` is one of its values, with the encoder made for it."""
    found: dict[int, Read] = {}
    for values, make in parts:
        places = [i for i, case in enumerate(cases) if getattr(case, field) in values]
        found |= zip(places, _read([cases[i] for i in places], make()), strict=True)
    return [found[i] for i in range(len(cases))]


@torch.inference_mode()
def _read(cases: Sequence[MatchingCase], encoder: TrainableEncoder, *, paraphrases: bool = True) -> Readings:
    texts = {text for case in cases for node in case.candidates for text in wordings(node)}
    wanted = sorted(texts | {case.text for case in cases})
    embed = lookup(dict(zip(wanted, encoder.embed(wanted).cpu().numpy(), strict=True)))
    found = (case_similarities(case, embed, paraphrases=paraphrases) for case in cases)
    return [Read(int(each.argmax()), float(each.max())) for each in found]


def _without(data: Examples, authors: Sequence[str]) -> Examples:
    return replace(data, examples=tuple(example for example in data.examples if example.author not in authors))


def _trees(data: Examples) -> list[str]:
    return list(dict.fromkeys(family.tree for family in data.families))


def _author_groups(cases: Iterable[MatchingCase]) -> list[list[str]]:
    """Return the authors of written proposals as one group, and the players in pairs."""
    by_origin = {
        origin: sorted({case.author for case in cases if case.origin == origin}) for origin in get_args(Origin)
    }
    players = by_origin["played"]
    pairs = [players[start : start + 2] for start in range(0, len(players), 2)]
    return [by_origin["written"], *pairs]


def _folds(trees: Sequence[str]) -> list[list[str]]:
    return [list(trees[start::FOLDS]) for start in range(FOLDS)]
