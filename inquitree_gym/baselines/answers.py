"""Sheets as an agent sees them: their items read from the text, and answers written to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from inquitree_gym.errors import AgentError
from inquitree_gym.sheets import LETTERS

UNKNOWN_FORM = "the agent reads sheets as '1. A. statement' and '   B. statement' alone; mend your template"
_OPTION = re.compile(rf"^ *(?:([0-9]+)\.)? *([{LETTERS}])\. (.+)$", re.MULTILINE)


class SheetItem(NamedTuple):
    """An item of a sheet as shown."""

    number: str
    """Number of the item. Empty where items are asked for one at a time, and a bare letter answers."""
    options: tuple[str, ...]
    """Statements in the order of their letters."""

    def answer(self, option: str) -> str:
        """Return the line that answers with one of the statements."""
        return f"{self.number} {LETTERS[self.options.index(option)]}".strip()


def shown_items(observation: str) -> tuple[SheetItem, ...]:
    """Return the items in a text, each of which begins with the option A.

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
        raise AgentError(UNKNOWN_FORM)
    return tuple(SheetItem(number, tuple(texts)) for number, texts in items)


def answers(observation: str, choose: Callable[[SheetItem], str | None]) -> str:
    """Return answers to the items that are shown, all of them or one.

    Args:
        observation: text of the sheet.
        choose: function that returns the statement to answer an item with. None leaves it out.
    """
    chosen = ((item, choose(item)) for item in shown_items(observation))
    return "\n".join(item.answer(option) for item, option in chosen if option is not None)


def random_answers(observation: str, rng: np.random.Generator) -> str:
    """Return a random letter for each item."""
    return answers(observation, lambda item: item.options[rng.integers(len(item.options))])
