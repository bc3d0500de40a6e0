"""Cross-validation of the reader: an adapter reads proposals about trees, or by authors, that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from inquitree_gym.analysis.proposals import MatchingCase
from inquitree_gym.analysis.readings import MatchedProposal, reading_shares
from research.reader.examples import Examples
from research.reader.lora import TrainableEncoder
from research.reader.training import Settings, train
from research.thresholds import best_threshold

FOLDS = 6
"""Parts of the trees, each left out in turn."""
Advance = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Reader:
    """A way to read proposals."""

    name: str
    matched: tuple[MatchedProposal, ...]

    @property
    def threshold(self) -> float:
        """Threshold with the best balance on the written proposals."""
        return best_threshold([each for each in self.matched if each.origin == "written"])

    def table(self) -> dict[str, Any]:
        """Return the shares of all written and of all played proposals, and by author and tree, as plain values."""
        threshold = self.threshold
        played = [each for each in self.matched if each.origin == "played"]
        groups = {
            "written": [each for each in self.matched if each.origin == "written"],
            "played": played,
            **_split(played, "author"),
            **_split(played, "tree"),
        }
        shares = {name: asdict(reading_shares(rows, threshold)) for name, rows in groups.items() if rows}
        return {"reader": self.name, "threshold": threshold, "shares": shares}


def steps(data: Examples, cases: Sequence[MatchingCase], settings: Settings) -> int:
    """Return the number of times that `cross_validate` calls ``advance``."""
    trees = len(_trees(data))
    folds = sum(trees - len(fold) for fold in _folds(_trees(data)))
    return settings.epochs * (folds + trees * len(_authors(cases)))


def cross_validate(
    data: Examples, cases: Sequence[MatchingCase], settings: Settings, folder: Path, device: str, advance: Advance
) -> Iterator[Reader]:
    """Yield the readers to compare; ``advance`` is called after each step of training."""
    plain = TrainableEncoder(folder, 0, 0, 0, device)
    yield Reader("MiniLM, canonical texts", tuple(_match(cases, plain, paraphrases=False)))
    yield Reader("MiniLM, with paraphrases", tuple(_match(cases, plain)))
    yield Reader("reader, trees left out", tuple(_without_trees(data, cases, settings, folder, device, advance)))
    yield Reader("reader, authors left out", tuple(_without_authors(data, cases, settings, folder, device, advance)))


def _without_trees(
    data: Examples, cases: Sequence[MatchingCase], settings: Settings, folder: Path, device: str, advance: Advance
) -> Iterator[MatchedProposal]:
    trees = _trees(data)
    for fold in _folds(trees):
        kept = [tree for tree in trees if tree not in fold]
        encoder = train(data, kept, settings, folder, device, advance)
        yield from _match([case for case in cases if case.tree in fold], encoder)


def _without_authors(
    data: Examples, cases: Sequence[MatchingCase], settings: Settings, folder: Path, device: str, advance: Advance
) -> Iterator[MatchedProposal]:
    for author in _authors(cases):
        kept = replace(data, examples=tuple(each for each in data.examples if each.author != author))
        encoder = train(kept, _trees(data), settings, folder, device, advance)
        yield from _match([case for case in cases if case.author == author], encoder)


@torch.inference_mode()
def _match(
    cases: Sequence[MatchingCase], encoder: TrainableEncoder, *, paraphrases: bool = True
) -> Iterator[MatchedProposal]:
    texts = {text for case in cases for node in case.candidates for text in (node.text, *node.paraphrases)}
    wanted = sorted(texts | {case.text for case in cases})
    known = dict(zip(wanted, encoder.embed(wanted), strict=True))
    for case in cases:
        said = [(node.text, *node.paraphrases) if paraphrases else (node.text,) for node in case.candidates]
        centroids = torch.stack([torch.stack([known[text] for text in each]).mean(dim=0) for each in said])
        similarities = (normalize(centroids, dim=-1) @ known[case.text]).cpu().numpy()
        best = int(np.argmax(similarities))
        yield MatchedProposal(
            case.tree,
            case.target,
            case.is_study,
            case.kind,
            best in (case.right, *case.also),
            float(similarities[best]),
            len(case.candidates),
            case.author,
            case.origin,
            case.locked,
            bool(case.also),
        )


def _trees(data: Examples) -> list[str]:
    return list(dict.fromkeys(family.tree for family in data.families))


def _authors(cases: Iterable[MatchingCase]) -> list[str]:
    return sorted({case.author for case in cases})


def _folds(trees: Sequence[str]) -> list[list[str]]:
    return [list(trees[start::FOLDS]) for start in range(FOLDS)]


def _split(rows: Iterable[MatchedProposal], field: str) -> dict[str, list[MatchedProposal]]:
    """Return the rows by ``author`` or ``tree``."""
    found: dict[str, list[MatchedProposal]] = {}
    for each in rows:
        found.setdefault(getattr(each, field), []).append(each)
    return found
