"""What a reader has to learn about a tree: proposals with their nodes, hints that rise, and texts that stay neutral."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from inquitree_gym.trees import Tree
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.document import Study
from inquitree_gym.trees.meaning import targets
from inquitree_gym.trees.schema import wordings
from research.proposals import MatchingCase, ProposalSet, matching_cases

Places = list[int]
"""Indices of texts in a lesson."""


@dataclass(frozen=True, slots=True)
class Family:
    """Candidates of one choice, the subtopics of a tree or the studies of one subtopic, and proposals made there."""

    candidates: list[Places]
    """Canonical text and paraphrases of each candidate."""
    proposals: Places
    targets: list[tuple[int, ...]]
    """Indices of the candidates that each proposal means. Empty for none."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """All that is learned about one tree."""

    tree: str
    texts: tuple[str, ...]
    families: list[Family]
    ladders: list[tuple[Places, Places]]
    """Hints of each node, from the first on, with the canonical text and paraphrases of the node."""
    neutral: list[tuple[Places, list[Places]]]
    """Texts that come before a result, with the texts of its poles, or of a claim and its contraries."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A lesson with the vectors of its texts, shape ``(len(texts), dim)``, rows of unit length."""

    lesson: Lesson
    vectors: Tensor


def make_lessons(trees: Sequence[Tree], proposals: Sequence[ProposalSet]) -> list[Lesson]:
    """Return a lesson for each tree from the proposals about it."""
    known = {tree.id: tree for tree in trees}
    cases = matching_cases([each for each in proposals if each.tree in known], known.__getitem__)
    return [_lesson(tree, [case for case in cases if case.tree == tree.id]) for tree in trees]


def lay_out(lessons: Sequence[Lesson], vectors: Mapping[str, Tensor]) -> list[Sheet]:
    """Return the lessons with their vectors, given those of all texts."""
    return [Sheet(lesson, torch.stack([vectors[text] for text in lesson.texts])) for lesson in lessons]


def _lesson(tree: Tree, cases: Sequence[MatchingCase]) -> Lesson:
    known: dict[str, int] = {}

    def place(texts: Sequence[str]) -> Places:
        return [known.setdefault(text, len(known)) for text in texts]

    families = []
    for nodes in (tree.subtopics, *(subtopic.studies for subtopic in tree.subtopics)):
        told = {text for node in nodes for text in wordings(node)}  # a writer's text that is a paraphrase now
        own = [case for case in cases if case.candidates[0].id == nodes[0].id and case.text not in told]
        meant = [(case.right, *case.also) if case.kind == "right" else () for case in own]
        families.append(Family([place(wordings(node)) for node in nodes], place([case.text for case in own]), meant))
    ladders = [(place(node.hints), place(wordings(node))) for node in targets(tree)]
    neutral = [
        (place(shown), [place(texts) for texts in poles])
        for shown, poles in chain(_before_results(tree), _claims(tree))
    ]
    return Lesson(tree.id, tuple(known), families, ladders, neutral)


def _before_results(tree: Tree) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield what leads to a result, with the result's texts by pole, for every axis that a study reads."""
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            shown = [tree.topic, subtopic.text, *subtopic.hints, study.text, *study.hints]
            for place in range(len(study.result.axes)):
                yield shown, _by_pole(study, place)


def _by_pole(study: Study, place: int) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for key, texts in study.result.texts.items():
        found.setdefault(key[place], []).extend(texts)
    return list(found.values())


def _claims(tree: Tree) -> Iterator[tuple[list[str], list[list[str]]]]:
    if tree.disclosure is not None:
        shown = [text for level in LEVELS for text in tree.disclosure.texts_of(level)]
        for claim in tree.disclosure.claims:
            yield shown, [[text] for text in (claim.text, *claim.contraries)]
