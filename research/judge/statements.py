"""Statements that a claim can make about a tree, and claims that are known to make them, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inquitree_gym.inquiry.judges.local import tree_statements
from inquitree_gym.judging.sense import Statement
from inquitree_gym.trees import Tree
from research.datasets import ConclusionSet
from research.earlier import earlier
from research.judge import templates
from research.judge.conclusions import LabelledConclusion

WRITTEN = "first"
"""Author of the trees and of the conclusions that were written beside them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A text with the statements that it makes."""

    text: str
    says: tuple[tuple[int, bool], ...]
    """Index of each statement, with True for its truth and False for one of its false texts. Empty for a text that
    asserts nothing."""
    author: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """Statements about one tree, and claims about them."""

    tree: str
    statements: tuple[Statement, ...]
    claims: tuple[Claim, ...]
    empty: tuple[str, ...]
    """Texts of the tree that assert nothing."""


def lesson(tree: Tree, written: Iterable[ConclusionSet], played: Iterable[LabelledConclusion]) -> Lesson:
    """Return the statements of a shipped tree and the claims about them in these conclusions and in the tree itself."""
    statements = tree_statements(tree)
    place = _places(tree)
    claims = [
        *_of_tree(tree, statements, place),
        *(claim for each in written for claim in _of_written(each, place)),
        *(claim for each in played for claim in _of_played(each, tree, place)),
    ]
    return Lesson(tree.id, statements, tuple(claims), empty_texts(tree))


def synthetic_lesson(tree: Tree) -> Lesson:
    """Return the statements of a synthetic tree. Its items and results are claims about each other.

    A generated item sums up the results that it needs, and its false variant their fakes.
    """
    statements = tree_statements(tree)
    place = _places(tree)
    claims = []
    for item in earlier(tree).conclusions:
        needed = [place[group[0]] for group in item.needs]
        claims.append(Claim(item.text, tuple((index, True) for index in needed), WRITTEN))
        if len(needed) == 1:
            index = needed[0]
            claims += [Claim(text, ((index, False),), WRITTEN) for text in item.false_variants]
            claims.append(Claim(statements[index].true[0], ((place[item.id], True),), WRITTEN))
            claims += [Claim(text, ((place[item.id], False),), WRITTEN) for text in statements[index].false]
    return Lesson(tree.id, statements, tuple(claims), empty_texts(tree))


def reworked(lesson: Lesson, draws: np.random.Generator) -> list[Claim]:
    """Return claims made from the texts of a lesson: assertions, rejections, open questions, and words without a sense.

    Args:
        lesson: statements of a tree.
        draws: source of the choices.
    """
    made = []
    for index, each in enumerate(lesson.statements):
        for true, texts, others in ((True, each.true, each.false), (False, each.false, each.true)):
            text, contrary = str(draws.choice(texts)), str(draws.choice(others))
            forms = (str(draws.choice(each)) for each in (templates.ASSERTIONS, templates.REJECTIONS, templates.OPEN))
            asserted, rejected, left_open = (templates.fill(form, text, contrary) for form in forms)
            made += [Claim(asserted, ((index, true),), WRITTEN), Claim(left_open, (), WRITTEN)]
            made.append(Claim(templates.shuffled(text, draws), (), WRITTEN))
            if true or len(each.false) == 1:  # to reject one of several fakes asserts nothing
                made.append(Claim(rejected, ((index, not true),), WRITTEN))
    made += [Claim(text, (), WRITTEN) for text in lesson.empty]
    truths = [text for each in lesson.statements for text in each.true]
    made.append(Claim(templates.keywords(truths, draws), (), WRITTEN))
    return made


def empty_texts(tree: Tree) -> tuple[str, ...]:
    """Return the texts of a tree that assert nothing: its topic, questions, protocols and hints."""
    nodes = (*tree.subtopics, *tree.studies)
    hints = (*(subtopic.hints for subtopic in tree.subtopics), *(study.hints for study in tree.studies))
    said = (text for node in nodes for text in (node.text, *node.paraphrases[:2]))
    return tree.topic, *said, *(hint for ladder in hints for hint in ladder)


def _places(tree: Tree) -> dict[str, int]:
    """Return the index of each statement of `tree_statements` by the id of its item or study."""
    return {node.id: index for index, node in enumerate((*earlier(tree).conclusions, *tree.studies))}


def _of_tree(tree: Tree, statements: Sequence[Statement], place: Mapping[str, int]) -> Iterator[Claim]:
    """Yield the wordings of results that have several, and items as claims about the results that they need."""
    for index, each in enumerate(statements):
        wordings = each.true if len(each.true) > 1 else ()
        yield from (Claim(text, ((index, True),), WRITTEN) for text in wordings)
    for item in earlier(tree).conclusions:
        needed = dict.fromkeys(place[group[0]] for group in item.needs)
        yield Claim(item.text, tuple((index, True) for index in needed), WRITTEN)


def _of_written(labelled: ConclusionSet, place: Mapping[str, int]) -> Iterator[Claim]:
    """Yield the lines of perfect and contradicting conclusions: line k was written for item k."""
    items = list(next(iter(labelled.conclusions)).expected)
    for conclusion in labelled.conclusions:
        if conclusion.kind in ("perfect", "contradicting"):
            lines = [line.partition(" ")[2] for line in conclusion.text.splitlines()]
            for item, line in zip(items, lines, strict=True):
                yield Claim(line, ((place[item], conclusion.kind == "perfect"),), WRITTEN)


def _of_played(labelled: LabelledConclusion, tree: Tree, place: Mapping[str, int]) -> Iterator[Claim]:
    """Yield the lines that speak of an item."""
    for line in labelled.lines:
        says: Sequence[tuple[int, bool]] = [(place[item], verdict != "wrong") for item, verdict in line.says.items()]
        if says:
            yield Claim(line.text, tuple(says), labelled.author)
