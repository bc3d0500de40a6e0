"""Distil a static model from trees, proposals and prose, and compare it with the default embedder.

Every proposal is read by two fits that have not seen it: one trained without the tree of the proposal, and one trained
with that tree but without the proposals about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.embeddings.derived import Manifest
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.embeddings.vectors import TextVectors
from inquitree_gym.errors import OptionError, require
from inquitree_gym.trees import Tree
from inquitree_gym.trees.meaning import lookup
from research.proposals import MatchingCase, case_similarities
from research.static.fitting import PIECES, Indices, TableFit, Vocabulary, make_vocabulary, save_static

THRESHOLD_GRID = np.round(np.arange(0.20, 0.8001, 0.005), 3)
"""Candidate thresholds of a calibration."""

REFUSED = -1
"""Choice of a proposal that is not accepted."""
CHUNK = 64
"""Texts embedded between two steps of the progress."""
FOLDS = 6
"""Parts of the trees, each left out in turn."""
DEFAULT, PLAIN, NEW_TREE, KNOWN_TREE = "default", "plain", "new tree", "known tree"
"""Readers that are compared: the default. A plain distillation. A fit without the tree. A fit with the tree but without
the proposals about it."""

Advance = Callable[[str], None]
Similarities = list[NDArray[np.float32]]
"""Similarities of every proposal to its candidates."""
VectorTaker = Mapping[str, Mapping[str, Vectors]]
"""Vectors by tree and text."""


@dataclass(frozen=True)
class TrainingTexts:
    """Texts that a static model is trained on."""

    trees: tuple[Tree, ...]
    cases: tuple[MatchingCase, ...]
    """Proposals about the trees, with their candidates."""
    prose: tuple[str, ...]
    """Sentences from outside the trees."""

    def __post_init__(self) -> None:
        """Check that a tree can be left out."""
        asked = {case.tree for case in self.cases}
        if len(asked & {tree.id for tree in self.trees}) < 2:
            raise OptionError(
                "distilling needs proposals about at least two trees, because each tree is read by a model trained "
                f"without it; found proposals about: {', '.join(sorted(asked)) or 'none'}"
            )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Texts of the trees, prose and proposals, without repetition."""
        return tuple(dict.fromkeys([*self.background, *(case.text for case in self.cases)]))

    @cached_property
    def background(self) -> tuple[str, ...]:
        """Texts of the trees and prose, without repetition. They decide how common a word is."""
        of_trees = (text for tree in self.trees for text in tree.texts().values())
        return tuple(dict.fromkeys([*of_trees, *self.prose]))

    def indices_of(self, trees: Sequence[Tree]) -> Indices:
        """Return the indices in ``texts`` of the texts of ``trees`` and of the proposals about them."""
        return self._indices({text for tree in trees for text in (*tree.texts().values(), *self._proposed(tree))})

    def proposals_about(self, tree: Tree) -> Indices:
        """Return the indices in ``texts`` of the proposals about a tree that repeat none of its texts."""
        return self._indices(self._proposed(tree) - set(tree.texts().values()))

    def _proposed(self, tree: Tree) -> set[str]:
        return {case.text for case in self.cases if case.tree == tree.id}

    def _indices(self, wanted: set[str]) -> Indices:
        return np.array([index for index, text in enumerate(self.texts) if text in wanted], np.intp)


class EmbedderAgreement(NamedTuple):
    """Agreement over proposals of all kinds, except ``right``. Shares in [0, 1]."""

    right: float
    """Right proposals whose nearest candidate is their target (top 1)."""
    nearest: float
    """Proposals with two candidates or more whose nearest one is the same for both embedders."""
    correlation: float
    """Pearson's r of the similarities of proposals to their candidates."""
    read_alike: float
    """Proposals accepted at the same node, or refused, by both. The measured embedder's threshold is chosen on the
    other trees."""


class Distilled(NamedTuple):
    """A written static model, and its agreement with the default embedder."""

    manifest: Manifest
    agreements: dict[str, EmbedderAgreement]


def steps(data: TrainingTexts, size: int) -> int:
    """Return the number of times that `distil` calls ``advance``."""
    return -(-len(data.texts) // CHUNK) - (-size // PIECES) + len(_folds(data)) + 2


def distil(data: TrainingTexts, teacher: MiniLMEmbedder, size: int, folder: Path, advance: Advance) -> Distilled:
    """Distil ``teacher`` into a static model of ``size`` word pieces, measure it and write it into ``folder``.

    ``advance`` is called `steps` times, each time with the name of the finished step.

    Raises:
        OptionError: ``size`` is out of range.
        EmbedderError: the weights are not available, or the folder cannot be written.
        MissingExtraError: the extra ``static`` is not installed.
    """
    require("model2vec", "static")  # fail before the long work
    vocabulary = make_vocabulary(teacher, size, lambda: advance("word pieces"))
    vectors = np.concatenate(list(_embedded(data.texts, teacher, advance)))
    fit = TableFit(vocabulary.reweighted(data.background), data.texts, vectors)
    table = fit.table()
    advance("the fit")
    readers = {
        PLAIN: _all(data, vocabulary.embed(data.texts, vocabulary.plain_table())),
        KNOWN_TREE: _read_known_trees(data, fit),
        NEW_TREE: _read_new_trees(data, vocabulary, vectors, advance),
    }
    read = {name: similarities(data.cases, known) for name, known in readers.items()}
    theirs = similarities(data.cases, _all(data, vectors))
    expected = choices(theirs, teacher.threshold)
    agreements = {DEFAULT: EmbedderAgreement(right_share(data.cases, theirs), 1.0, 1.0, 1.0)}
    agreements |= {name: measure_agreement(data.cases, ours, theirs, expected) for name, ours in read.items()}
    threshold = matching_threshold(read[KNOWN_TREE], expected)
    manifest = save_static(folder, teacher.digest, fit.vocabulary, table, threshold, **_evidence(data, agreements))
    advance("the comparison")
    return Distilled(manifest, agreements)


def _embedded(texts: Sequence[str], teacher: MiniLMEmbedder, advance: Advance) -> Iterator[Vectors]:
    vectors = TextVectors("", (), teacher, lasting=False)
    for start in range(0, len(texts), CHUNK):
        yield vectors.stored(tuple(texts[start : start + CHUNK]))
        advance("texts")


def _read_known_trees(data: TrainingTexts, fit: TableFit) -> VectorTaker:
    """Return the vectors of every tree under a fit without the proposals about it."""
    known = {}
    for tree in data.trees:
        vectors = fit.leave_out(data.proposals_about(tree))
        known[tree.id] = {data.texts[index]: vectors[index] for index in data.indices_of([tree])}
    return known


def _read_new_trees(data: TrainingTexts, vocabulary: Vocabulary, vectors: Vectors, advance: Advance) -> VectorTaker:
    """Return the vectors of every tree under a fit without its fold and the proposals about that fold."""
    known: dict[str, Mapping[str, Vectors]] = {}
    for fold in _folds(data):
        left_out = data.indices_of(fold)
        kept = np.setdiff1d(np.arange(len(data.texts)), left_out)
        texts = [data.texts[index] for index in kept]
        common = [text for text in data.background if text in set(texts)]
        fit = TableFit(vocabulary.reweighted(common), texts, vectors[kept])
        held_out = [data.texts[index] for index in left_out]
        read = dict(zip(held_out, fit.vocabulary.embed(held_out, fit.table()), strict=True))
        known |= {tree.id: read for tree in fold}
        advance("trees left out")
    return known


def _folds(data: TrainingTexts) -> list[tuple[Tree, ...]]:
    """Return the trees in `FOLDS` parts, or in parts of one tree if there are fewer trees."""
    count = min(FOLDS, len(data.trees))
    return [data.trees[start::count] for start in range(count)]


def _all(data: TrainingTexts, vectors: Vectors) -> VectorTaker:
    """Return the same vectors for every tree."""
    by_text = dict(zip(data.texts, vectors, strict=True))
    return {tree.id: by_text for tree in data.trees}


def _evidence(data: TrainingTexts, agreements: Mapping[str, EmbedderAgreement]) -> dict[str, Any]:
    return {
        "agreement": {name: each._asdict() for name, each in agreements.items()},
        "trees": [tree.id for tree in data.trees],
        "texts": len(data.texts),
    }


def similarities(cases: Sequence[MatchingCase], vectors: Mapping[str, Mapping[str, Vectors]]) -> Similarities:
    """Return the similarities of every case. ``vectors`` maps tree and text to a vector."""
    return [case_similarities(case, lookup(vectors[case.tree])) for case in cases]


def choices(similarities: Similarities, threshold: float) -> NDArray[np.intp]:
    """Return the index of the accepted candidate of each proposal, or `REFUSED`."""
    return np.array([each.argmax() if each.max() >= threshold else REFUSED for each in similarities], np.intp)


def matching_threshold(ours: Similarities, expected: NDArray[np.intp]) -> float:
    """Return the threshold with the most expected choices, the middle one of several equally good ones."""
    nearest = np.array([each.argmax() for each in ours])
    highest = np.array([each.max() for each in ours])
    alike = [np.mean(np.where(highest >= threshold, nearest, REFUSED) == expected) for threshold in THRESHOLD_GRID]
    best = np.flatnonzero(np.array(alike) >= max(alike) - 1e-12)
    return float(THRESHOLD_GRID[best[len(best) // 2]])


def right_share(cases: Sequence[MatchingCase], similarities: Similarities) -> float:
    """Return the share of right proposals whose nearest candidate is their target."""
    pairs = zip(cases, similarities, strict=True)
    return float(np.mean([each.argmax() == case.right for case, each in pairs if case.kind == "right"]))


def measure_agreement(
    cases: Sequence[MatchingCase], ours: Similarities, theirs: Similarities, expected: NDArray[np.intp]
) -> EmbedderAgreement:
    """Compare ``ours`` with ``theirs``, whose choices at their own threshold are ``expected``."""
    nearest = np.array([each.argmax() for each in ours])
    same = nearest == np.array([each.argmax() for each in theirs])
    open_choice = np.array([len(case.candidates) > 1 for case in cases])
    return EmbedderAgreement(
        right_share(cases, ours),
        float(np.mean(same[open_choice])),
        float(np.corrcoef(np.concatenate(ours), np.concatenate(theirs))[0, 1]),
        float(np.mean(_left_out_choices(cases, ours, expected) == expected)),
    )


def _left_out_choices(
    cases: Sequence[MatchingCase], ours: Similarities, expected: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the choices of ``ours`` in every tree, at the best threshold of the other trees."""
    owners = np.array([case.tree for case in cases])
    found = np.empty_like(expected)
    for tree in dict.fromkeys(owners.tolist()):
        others = np.flatnonzero(owners != tree)
        threshold = matching_threshold([ours[index] for index in others], expected[others])
        within = np.flatnonzero(owners == tree)
        found[within] = choices([ours[index] for index in within], threshold)
    return found
