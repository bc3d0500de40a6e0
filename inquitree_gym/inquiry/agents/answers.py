"""The exam as an agent sees it: its options read from the text, and answers written to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from inquitree_gym.errors import AgentError
from inquitree_gym.sheets import LETTERS, Layout, Sheet
from inquitree_gym.trees import Tree

_UNKNOWN_FORM = "the agent reads exams as '1. A. statement' and '   B. statement' alone; mend your template exam.md"
_OPTION = re.compile(rf"^ *(?:([0-9]+)\.)? *([{LETTERS}])\. (.+)$", re.MULTILINE)


class ExamItem(NamedTuple):
    """An item of an exam as shown."""

    number: str
    """Number of the item. Empty where items are asked for one at a time, and a bare letter answers."""
    options: tuple[str, ...]
    """Statements in the order of their letters."""

    def answer(self, option: str) -> str:
        """Return the line that answers with one of the statements."""
        return f"{self.number} {LETTERS[self.options.index(option)]}".strip()


def shown_exam(observation: str) -> tuple[ExamItem, ...]:
    """Return the items in the text of an exam, each of which begins with the option A.

    Raises:
        AgentError: a template of one's own shows them in another form.
    """
    items: list[tuple[str, list[str]]] = []
    for number, letter, text in _OPTION.findall(observation):
        if letter == LETTERS[0]:
            items.append((number, []))
        if items:
            items[-1][1].append(text)
    if not items or (len(items) > 1 and not all(number for number, _ in items)):
        raise AgentError(_UNKNOWN_FORM)
    return tuple(ExamItem(number, tuple(texts)) for number, texts in items)


def shown_layout(tree: Tree, observation: str) -> Layout:
    """Return the order of the options of each item in the text of an exam."""
    shown = zip(tree.conclusions, shown_exam(observation), strict=True)
    return tuple(tuple(map(item.options.index, each.options)) for item, each in shown)


def answers(observation: str, choose: Callable[[ExamItem], str | None]) -> str:
    """Return answers to the items that are shown, all of them or one.

    Args:
        observation: text of the exam.
        choose: function that returns the statement to answer an item with. None leaves it out.
    """
    chosen = ((item, choose(item)) for item in shown_exam(observation))
    return "\n".join(item.answer(option) for item, option in chosen if option is not None)


def random_answers(observation: str, rng: np.random.Generator) -> str:
    """Return a random letter for each item."""
    return answers(observation, lambda item: item.options[rng.integers(len(item.options))])


def sheet_answers(tree: Tree, observation: str, sheet: Sheet) -> str:
    """Return the answers of a sheet. Raise `AgentError` if the observation shows other items than those of the tree."""
    stated = {
        frozenset(item.options): None if choice is None else item.options[choice]
        for item, choice in zip(tree.conclusions, sheet.choices, strict=True)
    }
    if not stated.keys() >= {frozenset(item.options) for item in shown_exam(observation)}:
        raise AgentError(_UNKNOWN_FORM)
    return answers(observation, lambda item: stated[frozenset(item.options)])


def longest_match(texts: Sequence[str], observation: str) -> int:
    """Return the index of the longest of ``texts`` that ``observation`` contains. -1 if it contains none."""
    found = [i for i, text in enumerate(texts) if text in observation]
    return max(found, key=lambda i: len(texts[i]), default=-1)
