"""Models and environments of a run: the chats that its episodes ask, and what its environments share."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.errors import (
    CacheError,
    EmbedderError,
    InquiTreeError,
    LogError,
    MissingExtraError,
    OptionError,
    ReaderError,
    RewardError,
    ServiceError,
    StoppedError,
)
from inquitree_gym.judging.judgement import LOCAL
from inquitree_gym.kinds import kind
from inquitree_gym.llm import (
    BudgetedChat,
    CachedChat,
    Chat,
    ChatMiddleware,
    Completion,
    Message,
    MissingKey,
    RateLimitedChat,
    RateLimiter,
    ReplyCache,
    SpendingCap,
)
from inquitree_gym.prompts.render import DEFAULT
from inquitree_gym.runs.specs import ModelSettings, judge_options
from inquitree_gym.runs.study import StudyConfig, faults

GRACE = 10.0
"""Seconds in which pending requests may still be answered after a run is interrupted."""
PATIENCE = 10
"""Consecutive service failures after which a model is stopped, or twice the concurrency if that is more."""
INTERRUPTED = "interrupted"
ERROR_ELSEWHERE = "unexpected error in another episode"

_ENVIRONMENT = "the environment"
"""Label of the models that environments ask, in the counts of failures."""
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}


@dataclass
class StopConditions:
    """Reasons to stop a run or one of its models early. Any thread may stop the run."""

    on_stop: Callable[[str], None] = lambda reason: None
    """Called once with the reason when the run is stopped."""
    reason: str = ""
    """Reason why the run was stopped. Empty while it goes on."""
    models: dict[str, str] = field(default_factory=dict)
    """Reason by label of each model that was stopped."""
    _failures_in_a_row: Counter[str] = field(default_factory=Counter)

    def stop(self, reason: str) -> None:
        """Stop the run: no further episode starts and no further request is sent. The first reason is kept."""
        if not self.reason:
            self.reason = reason
            self.on_stop(reason)

    def record(self, model: str, error: InquiTreeError | None, patience: int) -> None:
        """Record the end of an episode, and stop its model if further episodes would fail the same way.

        Args:
            model: label of the model.
            error: the error that ended the episode. None for an episode that ended normally.
            patience: number of consecutive service failures after which the model is stopped.
        """
        self._failures_in_a_row[model] = self._failures_in_a_row[model] + 1 if isinstance(error, ServiceError) else 0
        if error is not None and _stops_model(error):
            self.models.setdefault(model, str(error))
        elif self._failures_in_a_row[model] >= patience:
            self.models.setdefault(model, f"{patience} episodes failed in a row; the last error: {error}")

    def record_environment(self, error: InquiTreeError | None, patience: int) -> None:
        """Record the end of an episode with a reader or judge, on which every episode depends. See `record`."""
        self.record(_ENVIRONMENT, error if concerns_environment(error) else None, patience)
        if reason := self.models.pop(_ENVIRONMENT, ""):
            self.stop(reason)

    def reason_for(self, model: str) -> str:
        """Return the reason not to start an episode of ``model`` (a label, empty for none). Empty if it may start."""
        return self.reason or self.models.get(model, "")


def concerns_environment(error: InquiTreeError | None) -> bool:
    """Return whether an error comes from a model that the environment asks, not from the agent's."""
    return isinstance(error, ReaderError | RewardError)


def stops_run(error: InquiTreeError) -> bool:
    """Return whether every further episode would fail with the same error."""
    if isinstance(error, LogError):
        return isinstance(error.__cause__, OSError) and error.__cause__.errno in _DISK_ERRORS
    return isinstance(error, EmbedderError | CacheError | MissingExtraError)


def _stops_model(error: InquiTreeError) -> bool:
    if isinstance(error, ServiceError):
        return error.concerns_all
    return isinstance(error, OptionError)


MAX_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run that do not affect its episodes."""

    max_concurrency: int = MAX_CONCURRENCY
    """Episodes played at the same time, of agents that ask a model."""
    budget: SpendingCap | None = None
    """Cap on cost, tokens and time. None for no cap."""
    cache: Path | None = None
    """Folder of cached replies. None sends every request."""
    rate_limits: Mapping[str, RateLimiter] = field(default_factory=dict)
    """Shared rate limits by model label. The other models get one of their own, from their settings."""
    device: Device = "cpu"
    """Device of the embedder. See `inquitree_gym.load_embedder`."""
    as_new_version: bool = False
    """True to play a task that was changed since the run began under a new name, beside the old one."""


class _StudyChat(ChatMiddleware):
    """Chat middleware that adds the model's name in the study, and refuses requests after a stop."""

    def __init__(self, chat: Chat, stop: StopConditions, name: str) -> None:
        super().__init__(chat)
        self._stop = stop
        self._name = name

    @property
    def config(self) -> dict[str, Any]:
        return self.chat.config | ({"label": self._name} if self._name else {})

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        if self._stop.reason:
            raise StoppedError(f"the run was stopped: {self._stop.reason}")
        return await self.chat.complete(messages, seed=seed)


def build_chats(models: Sequence[ModelSettings], options: RunOptions, stop: StopConditions) -> dict[str, Chat]:
    """Return a chat for each model by label, shared by all episodes of this process.

    Raise `OptionError` for a setting out of range, an unknown provider, or a capped cost without a known price.
    """
    if options.max_concurrency < 1:
        raise OptionError(f"max_concurrency must be an integer from 1, got {options.max_concurrency}")
    cache = _reply_cache(options)
    chats = {model.label: _StudyChat(_build_chat(model, options, cache), stop, model.name) for model in models}
    for chat in chats.values():
        _ = chat.config  # looks the provider up, so that an unknown one is reported before anything is written
    return dict(chats)


@dataclass(frozen=True)
class Services:
    """Parts that the environments of a run share. See `protocols.Shared`."""

    prompts: str = DEFAULT
    judge: Any = LOCAL
    options: RunOptions = field(default_factory=RunOptions)
    stop: StopConditions = field(default_factory=StopConditions)

    @property
    def device(self) -> Device:
        """Device of a local embedder."""
        return self.options.device

    @property
    def cache(self) -> ReplyCache | None:
        """Cache of replies that the run was given."""
        return _reply_cache(self.options)

    def chat(self, settings: Mapping[str, Any] | ModelSettings) -> Chat:
        """Return the chat of a model that the environments ask, without a cache."""
        model = settings if isinstance(settings, ModelSettings) else ModelSettings(**settings)
        return _StudyChat(_build_chat(model, self.options, None), self.stop, model.name)


def environment_maker(study: StudyConfig, options: RunOptions, stop: StopConditions) -> Callable[[Any], Any]:
    """Return the maker of the environments of a study, which share judge, embedder, templates and vectors.

    Raise `OptionError` for a setting out of range, an invalid template, or a capped cost without a known price, and
    `EmbedderError` for an unknown embedder.
    """
    services = Services(study.prompts_name, LOCAL, options, stop)
    judge = judge_settings(study)
    if judge is not None:
        services = replace(services, judge=judge.build(services.chat(judge), services.cache))
    return kind(study.env).play.maker(study.settings, services)


def judge_settings(study: StudyConfig) -> Any:
    """Return the settings of the model that judges the rewards, None for none. Raise `OptionError` if invalid."""
    if study.judge is None:
        return None
    options = judge_options(study.env)
    try:
        return options(**(options.named(study.judge) if isinstance(study.judge, str) else study.judge))
    except ValidationError as error:
        raise OptionError(f"the judge of the study cannot be asked; {'; '.join(faults(error))}") from None


def asked_models(study: StudyConfig) -> tuple[ModelSettings, ...]:
    """Return every model that is asked: those of the agents, then those of the environments."""
    return (*study.models, *environment_models(study))


def environment_models(study: StudyConfig) -> tuple[ModelSettings, ...]:
    """Return the models that the environments of a study ask."""
    judge = judge_settings(study)
    return (*(ModelSettings(**each) for each in study.settings.services()), *(() if judge is None else (judge,)))


def _reply_cache(options: RunOptions) -> ReplyCache | None:
    return None if options.cache is None else ReplyCache(options.cache)


def _build_chat(model: ModelSettings, options: RunOptions, cache: ReplyCache | None) -> Chat:
    chat: Chat = model.chat_model()
    if options.budget is not None:
        chat = BudgetedChat(chat, options.budget)  # innermost: checked again after the wait for the rate limit
    rate_limit = options.rate_limits.get(model.label) or model.rate_limit()
    if rate_limit is not None:
        chat = RateLimitedChat(chat, rate_limit)
    return chat if cache is None else CachedChat(chat, cache, keeps_cut=False)


def missing_keys(models: Sequence[ModelSettings], labels: Set[str]) -> dict[str, MissingKey]:
    """Return the API keys that this process lacks, by label, for the models with one of ``labels``."""
    found = {model.label: model.chat_model().missing_key() for model in models if model.label in labels}
    return {label: lack for label, lack in found.items() if lack is not None}
