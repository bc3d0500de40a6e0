"""Models of a study: their settings, the chats that episodes ask, and the errors that stop a model or the run."""

from __future__ import annotations

import errno
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from inquitree_gym.baselines.projecting_llm import Memory, ReplyForm
from inquitree_gym.baselines.registry import CHAT_SETTINGS, agent_setting_names
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
from inquitree_gym.llm import (
    BudgetedChat,
    CachedChat,
    Chat,
    ChatMiddleware,
    ChatModel,
    Completion,
    Message,
    MissingKey,
    RateLimit,
    RateLimitedChat,
    RateLimiter,
    ReplyCache,
    SpendingCap,
)
from inquitree_gym.log import TaskKind
from inquitree_gym.readers import LLMReader

GRACE = 10.0
"""Seconds that pending requests have to be answered in after a run is interrupted."""
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
    """Reason why the run was stopped; empty while it goes on."""
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
            error: the error that ended the episode; None for an episode that ended normally.
            patience: number of consecutive service failures after which the model is stopped.
        """
        self._failures_in_a_row[model] = self._failures_in_a_row[model] + 1 if isinstance(error, ServiceError) else 0
        if error is not None and _stops_model(error):
            self.models.setdefault(model, str(error))
        elif self._failures_in_a_row[model] >= patience:
            self.models.setdefault(model, f"{patience} episodes failed in a row; the last error: {error}")

    def record_environment(self, error: InquiTreeError | None, patience: int) -> None:
        """Record the end of an episode with a reader or judge, without which no episode can go on; see `record`."""
        self.record(_ENVIRONMENT, error if concerns_environment(error) else None, patience)
        if reason := self.models.pop(_ENVIRONMENT, ""):
            self.stop(reason)

    def reason_for(self, model: str) -> str:
        """Return the reason not to start an episode of ``model`` (a label, empty for none); empty if it may start."""
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
CHANGEABLE_SETTINGS = frozenset(
    {"timeout", "retries", "api_key_env", "requests_per_minute", "tokens_per_minute", "max_tokens"}
)
"""Settings that do not affect replies that end by themselves, so that a run can be resumed with other values."""

AGENT_ONLY = ("belief", "memory", "reply")
"""Settings that only the agents of some kind of environment have."""
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_UNSAFE = re.compile(r"[^\w.+-]+")


def _none(value: Any) -> Any:
    return None if value == "none" else value  # TOML has no null


class ModelSettings(BaseModel):
    """Settings of one model, a ``[[models]]`` table of a study file; see `ChatModel` and `LLMAgent`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str
    name: str = Field(default="", max_length=60)
    """Name in reports and logs; empty for ``model`` with the reasoning effort."""
    base_url: str | None = None
    temperature: Annotated[float | None, BeforeValidator(_none)] = 0.0
    """None, or ``none``, for the provider's default."""
    reasoning_effort: str | None = None
    seed: int | None = None
    max_tokens: Annotated[int | None, BeforeValidator(_none)] = 4096
    """None, or ``none``, for the provider's default."""
    timeout: float = 300.0
    retries: int = 5
    api_key_env: str | None = Field(default=None, pattern=_VARIABLE)
    """Name of the environment variable that holds the key; never the key itself."""
    context: int | None = Field(default=None, ge=1)
    """Largest request in estimated tokens; None for the model's window, see `LLMAgent`."""
    belief: bool = False
    """True to ask for a belief about each result; see `LLMAgent`."""
    memory: Memory = "none"
    """Memory of an agent that projects; see `ProjectingLLMAgent`."""
    reply: ReplyForm = "plain"
    """Form of the replies of an agent that projects; see `ProjectingLLMAgent`."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check(self) -> ModelSettings:
        if not slug(self.label):
            raise OptionError(f"the model is called '{self.label}'; give it a name with letters or digits")
        self.chat_model()
        return self

    @property
    def label(self) -> str:
        """Name of the model in the study and in reports."""
        effort = f" ({self.reasoning_effort})" if self.reasoning_effort else ""
        return self.name or f"{self.model}{effort}"

    @property
    def fixed_settings(self) -> dict[str, Any]:
        """Settings that affect replies, and so stay the same when a run is resumed."""
        return self.model_dump(exclude=set(CHANGEABLE_SETTINGS))

    def agent_settings(self, kind: TaskKind) -> dict[str, Any]:
        """Return the settings of an agent of a kind of environment with this model, apart from chat and prompts."""
        return {name: getattr(self, name) for name in agent_setting_names(kind) if name in ModelSettings.model_fields}

    def settings_of_others(self, kind: TaskKind) -> list[str]:
        """Return the given settings that the agents of a kind of environment do not have."""
        own = {*CHAT_SETTINGS, *agent_setting_names(kind)}
        given = {name for name in AGENT_ONLY if getattr(self, name) != ModelSettings.model_fields[name].default}
        return sorted(given - own)

    def chat_model(self) -> ChatModel:
        """Return the bare model, without cache, budget or rate limit."""
        return ChatModel(**{name: getattr(self, name) for name in CHAT_SETTINGS})

    def rate_limit(self) -> RateLimit | None:
        """Return a new rate limit; None if the model has none."""
        rates = (self.requests_per_minute, self.tokens_per_minute)
        return RateLimit(*rates) if any(rates) else None


def slug(label: str) -> str:
    """Return a model's label in the form used in log file names.

    >>> slug("openai/gpt-5 (low)")
    'openai-gpt-5-low'
    """
    return _UNSAFE.sub("-", label).strip("-.")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run that do not affect its episodes."""

    max_concurrency: int = MAX_CONCURRENCY
    """Episodes played at the same time, of agents that ask a model."""
    budget: SpendingCap | None = None
    """Cap on cost, tokens and time; None for no cap."""
    cache: Path | None = None
    """Folder of cached replies; None sends every request."""
    rate_limits: Mapping[str, RateLimiter] = field(default_factory=dict)
    """Shared rate limits by model label; the other models get one of their own, from their settings."""
    device: Device = "cpu"
    """Device of the embedder; see `inquitree_gym.load_embedder`."""
    as_new_version: bool = False
    """True to play a tree that was changed since the run began as a further tree, beside the earlier version."""


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

    Raises:
        OptionError: a setting is out of range, litellm knows no provider for a model, or the cost of a model is capped
            and its price unknown.
        MissingExtraError: litellm is not installed.
    """
    if options.max_concurrency < 1:
        raise OptionError(f"max_concurrency is a whole number from 1, not {options.max_concurrency}")
    cache = reply_cache(options)
    chats = {model.label: _StudyChat(_build_chat(model, options, cache), stop, model.name) for model in models}
    for chat in chats.values():
        _ = chat.config  # looks the provider up, so that an unknown one is reported before anything is written
    return dict(chats)


def build_reader(settings: ModelSettings | None, options: RunOptions, stop: StopConditions) -> LLMReader | None:
    """Return the reader of a study, shared by all episodes of this process; its replies are always cached.

    Raises:
        OptionError: see `build_chats`.
        MissingExtraError: litellm is not installed.
    """
    if settings is None:
        return None
    return LLMReader(study_chat(settings, options, stop), cache=reply_cache(options))


def study_chat(settings: ModelSettings, options: RunOptions, stop: StopConditions) -> Chat:
    """Return the chat of a model that the environments of a study ask, without a cache."""
    return _StudyChat(_build_chat(settings, options, None), stop, settings.name)


def reply_cache(options: RunOptions) -> ReplyCache | None:
    """Return the cache of replies that a run was given."""
    return None if options.cache is None else ReplyCache(options.cache)


def _build_chat(model: ModelSettings, options: RunOptions, cache: ReplyCache | None) -> Chat:
    chat: Chat = model.chat_model()
    if options.budget is not None:
        chat = BudgetedChat(chat, options.budget)  # innermost: checked again after the wait for the rate limit
    rate_limit = options.rate_limits.get(model.label) or model.rate_limit()
    if rate_limit is not None:
        chat = RateLimitedChat(chat, rate_limit)
    return chat if cache is None else CachedChat(chat, cache)


def missing_keys(models: Sequence[ModelSettings], labels: Set[str]) -> dict[str, MissingKey]:
    """Return the API keys that this process lacks, by label, for the models with one of ``labels``."""
    found = {model.label: model.chat_model().missing_key() for model in models if model.label in labels}
    return {label: lack for label, lack in found.items() if lack is not None}
