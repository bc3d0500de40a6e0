"""Tasks of the toy kind: lists of words."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from inquitree_gym.errors import Fault, TreeError
from inquitree_gym.files import MAX_TASK, read_input
from inquitree_gym.protocols import Tasks
from inquitree_gym.trees.catalogue import expand_names, is_path
from inquitree_gym.trees.fields import FrozenModel, Identifier, Text, document_digest
from inquitree_gym.trees.reading import validated


class WordList(FrozenModel):
    """Words that are to be said."""

    format: Literal["toy/1"] = "toy/1"
    id: Identifier
    version: int = Field(default=1, ge=1)
    words: tuple[Text, ...] = Field(min_length=1)
    group: str = ""
    published: str = ""

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        return document_digest(self)


LISTS = {
    "bread": WordList(id="bread", words=("flour", "water", "salt", "yeast"), group="food", published="2021-05"),
    "sky": WordList(id="sky", words=("cloud", "rain"), group="weather", published="2024"),
}


def words_in(task: WordList, text: str) -> tuple[str, ...]:
    """Return the words of a list that a text in capitals holds."""
    return tuple(word for word in task.words if word.upper() in text)


class WordLists(Tasks[WordList]):
    """Word lists by id or path."""

    noun = "list"
    schema = WordList

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        return expand_names(names, {"all": lambda: tuple(LISTS)})

    def load(self, task: str | os.PathLike[str] | WordList) -> WordList:
        if isinstance(task, WordList):
            return task
        if is_path(task):
            return validated(WordList, read_input(task, limit=MAX_TASK, error=self._unreadable), str(task))
        if str(task) not in LISTS:
            raise self._unreadable(f"no list has the id '{task}'; known: {', '.join(LISTS)}")
        return LISTS[str(task)]

    def dump(self, task: WordList) -> bytes:
        return json.dumps(task.model_dump()).encode()

    def lint(self, task: WordList, embedder: Any = None) -> Sequence[Fault]:
        return [Fault("W1", word, "is said twice") for word in set(task.words) if task.words.count(word) > 1]

    def _unreadable(self, message: str) -> TreeError:
        return TreeError("list", [Fault("W0", "", message)])


TASKS = WordLists()
