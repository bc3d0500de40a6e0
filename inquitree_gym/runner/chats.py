"""The models of a study, ready to be asked: within a budget, at a pace, out of a cache, and not after a stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.errors import OptionError, StoppedError
from inquitree_gym.llm import BudgetedChat, CachedChat, Chat, Completion, Message, Pace, PacedChat, ReplyCache
from inquitree_gym.llm.budget import Purse
from inquitree_gym.llm.middleware import Around, Way
from inquitree_gym.llm.model import Lack
from inquitree_gym.llm.rate_limit import Pacer
from inquitree_gym.runner.models import ModelSettings
from inquitree_gym.runner.stop_conditions import Stops
from inquitree_gym.runner.study import Cell, Study

MAX_CONCURRENCY = 8


class Terms(NamedTuple):
    """How a study is played, which decides nothing in its episodes."""

    max_concurrency: int = MAX_CONCURRENCY
    """Episodes at the same time, of those whose agent asks a model."""
    budget: Purse | None = None
    """What the models are paid from; None sets no cap."""
    cache: Path | None = None
    """Folder of replies that are not paid for again; None asks for every one."""
    paces: Mapping[str, Pacer] = {}
    """By label of a model, a pace that it shares with others; one is made for a model that is not named here."""


class StudyChat(Around):
    """A model as a study asks it: under the name that the study gives it, and not after a stop."""

    def __init__(self, chat: Chat, stops: Stops, name: str) -> None:
        """Put ``chat`` under ``stops``; ``name`` may be empty."""
        super().__init__(chat)
        self._stops = stops
        self._name = name

    @property
    def config(self) -> dict[str, Any]:
        """That of the chat inside; ``label`` is the name that the study gives, where it gives one."""
        return self.chat.config | ({"label": self._name} if self._name else {})

    async def _through(self, way: Way, messages: Sequence[Message], seed: int | None) -> Completion:
        if self._stops.whole:
            raise StoppedError(f"the run ends: {self._stops.whole}")
        return await way.ask(messages, seed)


def study_chats(study: Study, terms: Terms, stops: Stops) -> dict[str, Chat]:
    """Return the models of a study by label, each for all episodes that ask it in this process.

    Raises:
        OptionError: a setting is out of range, litellm knows no provider for a model, or its cost is capped and its
            price unknown.
        MissingExtraError: litellm is not installed.
    """
    if terms.max_concurrency < 1:
        raise OptionError(f"max_concurrency is a whole number from 1, not {terms.max_concurrency}")
    cache = None if terms.cache is None else ReplyCache(terms.cache)
    found = {model.label: StudyChat(_chat(model, terms, cache), stops, model.name) for model in study.models}
    for chat in found.values():
        _ = chat.config  # looks the provider up, so that a model that cannot be asked is told before anything is played
    return dict(found)


def lacking(study: Study, cells: Iterable[Cell]) -> dict[str, Lack]:
    """Return by label which models of some episodes lack a key in this process, where that can be told."""
    asked = {cell.model for cell in cells}
    found = {model.label: model.chat_model().lacks() for model in study.models if model.label in asked}
    return {label: lack for label, lack in found.items() if lack is not None}


def _chat(model: ModelSettings, terms: Terms, cache: ReplyCache | None) -> Chat:
    chat: Chat = model.chat_model()
    if terms.budget is not None:
        chat = BudgetedChat(chat, terms.budget)  # innermost: who has waited for its turn looks once more
    pace = terms.paces.get(model.label) or own_pace(model)
    if pace is not None:
        chat = PacedChat(chat, pace)
    return chat if cache is None else CachedChat(chat, cache)


def own_pace(model: ModelSettings) -> Pace | None:
    """Return a pace at the rates of a model; None where it has none."""
    rates = (model.requests_per_minute, model.tokens_per_minute)
    return Pace(*rates) if any(rates) else None
