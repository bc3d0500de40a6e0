"""The exam as an agent sees it: the order of its options, and a sheet written to it."""

from __future__ import annotations

from collections.abc import Sequence

from inquitree_gym.baselines.answers import UNKNOWN_FORM, answers, shown_items
from inquitree_gym.errors import AgentError
from inquitree_gym.sheets import Layout, Sheet
from inquitree_gym.trees import Tree


def shown_layout(tree: Tree, observation: str) -> Layout:
    """Return the order of the options of each item in the text of an exam."""
    shown = zip(tree.conclusions, shown_items(observation), strict=True)
    return tuple(tuple(map(item.options.index, each.options)) for item, each in shown)


def sheet_answers(tree: Tree, observation: str, sheet: Sheet) -> str:
    """Return the answers of a sheet. Raise `AgentError` if the observation shows other items than those of the tree."""
    stated = {
        frozenset(item.options): None if choice is None else item.options[choice]
        for item, choice in zip(tree.conclusions, sheet.choices, strict=True)
    }
    if not stated.keys() >= {frozenset(item.options) for item in shown_items(observation)}:
        raise AgentError(UNKNOWN_FORM)
    return answers(observation, lambda item: stated[frozenset(item.options)])


def longest_match(texts: Sequence[str], observation: str) -> int:
    """Return the index of the longest of ``texts`` that ``observation`` contains. -1 if it contains none."""
    found = [i for i, text in enumerate(texts) if text in observation]
    return max(found, key=lambda i: len(texts[i]), default=-1)
