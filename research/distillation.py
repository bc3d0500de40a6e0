"""Distil a static model from trees, proposals and prose, and measure how near it comes to the default.

Of every tree two fits are asked: one that has seen neither the tree nor a proposal about it, and one that has seen the
tree, but no proposal about it. So no proposal is read by a fit that learned from it, be it how common its words are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.embeddings.artifacts import Manifest
from inquitree_gym.embeddings.distill import (
    PIECES,
    Indices,
    Pupil,
    Vocabulary,
    make_vocabulary,
    save_static,
)
from inquitree_gym.embeddings.protocol import Vectors
from inquitree_gym.errors import OptionError, require
from inquitree_gym.trees import Tree
from research.embedder_agreement import (
    EmbedderAgreement,
    choices,
    matching_threshold,
    measure_agreement,
    right_share,
    similarities,
)
from research.thresholds import MatchingCase

CHUNK = 64
"""Texts embedded between two steps of the progress."""
FOLDS = 6
"""Parts of the trees, each left out in turn."""
DEFAULT, PLAIN, NEW_TREE, KNOWN_TREE = "default", "plain", "new tree", "known tree"
"""The default itself; a plain distillation; ours on a tree left out; ours on a known tree, proposals about it left out.
"""

Advance = Callable[[str], None]
Known = Mapping[str, Mapping[str, Vectors]]
"""Vectors by tree and text."""


@dataclass(frozen=True)
class Lessons:
    """What a static model learns from."""

    trees: tuple[Tree, ...]
    questions: tuple[MatchingCase, ...]
    """Proposals about these trees, with their candidates."""
    prose: tuple[str, ...]
    """Sentences that belong to no tree."""

    def __post_init__(self) -> None:
        """Refuse what nothing could be left out of."""
        asked = {question.tree for question in self.questions}
        if len(asked & {tree.id for tree in self.trees}) < 2:
            raise OptionError(
                "distilling takes proposals about two trees or more, since each is read by a model that has not seen "
                f"it; there are proposals about: {', '.join(sorted(asked)) or 'none'}"
            )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every text once: of the trees, prose, proposals."""
        return tuple(dict.fromkeys([*self.background, *(question.text for question in self.questions)]))

    @cached_property
    def background(self) -> tuple[str, ...]:
        """The texts of the trees and the prose, once each: they say which words are common."""
        of_trees = (text for tree in self.trees for text in tree.texts().values())
        return tuple(dict.fromkeys([*of_trees, *self.prose]))

    def of(self, trees: Sequence[Tree]) -> Indices:
        """Return the places in ``texts`` of the texts of some trees and of the proposals about them."""
        return self._places({text for tree in trees for text in (*tree.texts().values(), *self._proposed(tree))})

    def about(self, tree: Tree) -> Indices:
        """Return the places in ``texts`` of the proposals about a tree, but those in the very words of the tree."""
        return self._places(self._proposed(tree) - set(tree.texts().values()))

    def _proposed(self, tree: Tree) -> set[str]:
        return {question.text for question in self.questions if question.tree == tree.id}

    def _places(self, wanted: set[str]) -> Indices:
        return np.array([index for index, text in enumerate(self.texts) if text in wanted], np.intp)


class Distilled(NamedTuple):
    """A static model that was made, and how near the default it comes."""

    manifest: Manifest
    agreements: dict[str, EmbedderAgreement]


def steps(lessons: Lessons, size: int) -> int:
    """Return how often `distil` calls ``advance``."""
    return -(-len(lessons.texts) // CHUNK) - (-size // PIECES) + len(_folds(lessons)) + 2


def distil(lessons: Lessons, teacher: MiniLMEmbedder, size: int, folder: Path, advance: Advance) -> Distilled:
    """Distil ``teacher`` into a static model of ``size`` word pieces, measure it and write it into ``folder``.

    ``advance`` is told what was done, `steps` times.

    Raises:
        OptionError: ``size`` is out of range.
        EmbedderError: the weights cannot be had, or the folder cannot be written.
        MissingExtraError: the extra ``static`` is not installed.
    """
    require("model2vec", "static")  # before minutes of work
    vocabulary = make_vocabulary(teacher, size, lambda: advance("word pieces"))
    vectors = np.concatenate(list(_taught(lessons.texts, teacher, advance)))
    pupil = Pupil(vocabulary.weighed(lessons.background), lessons.texts, vectors)
    table = pupil.table()
    advance("the fit")
    readers = {
        PLAIN: _all(lessons, vocabulary.read(lessons.texts, vocabulary.plain_table())),
        KNOWN_TREE: _known_trees(lessons, pupil),
        NEW_TREE: _new_trees(lessons, vocabulary, vectors, advance),
    }
    read = {name: similarities(lessons.questions, known) for name, known in readers.items()}
    theirs = similarities(lessons.questions, _all(lessons, vectors))
    expected = choices(theirs, teacher.threshold)
    agreements = {DEFAULT: EmbedderAgreement(right_share(lessons.questions, theirs), 1.0, 1.0, 1.0)}
    agreements |= {name: measure_agreement(lessons.questions, ours, theirs, expected) for name, ours in read.items()}
    threshold = matching_threshold(read[KNOWN_TREE], expected)
    manifest = save_static(folder, pupil.vocabulary, table, threshold, **_evidence(lessons, agreements))
    advance("the comparison")
    return Distilled(manifest, agreements)


def _taught(texts: Sequence[str], teacher: MiniLMEmbedder, advance: Advance) -> Iterator[Vectors]:
    for start in range(0, len(texts), CHUNK):
        yield teacher.embed(texts[start : start + CHUNK])
        advance("texts")


def _known_trees(lessons: Lessons, pupil: Pupil) -> Known:
    """Read every tree by a fit that has not seen the proposals about it."""
    known = {}
    for tree in lessons.trees:
        vectors = pupil.without(lessons.about(tree))
        known[tree.id] = {lessons.texts[index]: vectors[index] for index in lessons.of([tree])}
    return known


def _new_trees(lessons: Lessons, vocabulary: Vocabulary, vectors: Vectors, advance: Advance) -> Known:
    """Read every tree by a fit that has seen neither the trees of its fold nor a proposal about them."""
    known: dict[str, Mapping[str, Vectors]] = {}
    for fold in _folds(lessons):
        left_out = lessons.of(fold)
        kept = np.setdiff1d(np.arange(len(lessons.texts)), left_out)
        texts = [lessons.texts[index] for index in kept]
        common = [text for text in lessons.background if text in set(texts)]
        pupil = Pupil(vocabulary.weighed(common), texts, vectors[kept])
        gone = [lessons.texts[index] for index in left_out]
        read = dict(zip(gone, pupil.vocabulary.read(gone, pupil.table()), strict=True))
        known |= {tree.id: read for tree in fold}
        advance("trees left out")
    return known


def _folds(lessons: Lessons) -> list[tuple[Tree, ...]]:
    """Return the trees in `FOLDS` parts, or one by one where they are fewer."""
    count = min(FOLDS, len(lessons.trees))
    return [lessons.trees[start::count] for start in range(count)]


def _all(lessons: Lessons, vectors: Vectors) -> Known:
    """Give every tree the vectors of all texts."""
    by_text = dict(zip(lessons.texts, vectors, strict=True))
    return {tree.id: by_text for tree in lessons.trees}


def _evidence(lessons: Lessons, agreements: Mapping[str, EmbedderAgreement]) -> dict[str, Any]:
    return {
        "agreement": {name: each._asdict() for name, each in agreements.items()},
        "trees": [tree.id for tree in lessons.trees],
        "texts": len(lessons.texts),
    }
