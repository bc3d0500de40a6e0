"""The models of a study, as data: what each is asked with, at which pace, and what it is called."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from inquitree_gym.baselines.llm import CONTEXT
from inquitree_gym.baselines.registry import CHAT_SETTINGS
from inquitree_gym.errors import OptionError
from inquitree_gym.llm import ChatModel

UNDECISIVE = frozenset({"timeout", "retries", "api_key_env", "requests_per_minute", "tokens_per_minute"})
"""Settings that decide nothing in an episode, so that a run may go on with others."""

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_UNSAFE = re.compile(r"[^\w.+-]+")


def _none(given: Any) -> Any:
    """TOML has no null."""
    return None if given == "none" else given


class ModelSettings(BaseModel):
    """A model of a study: one ``[[models]]`` table of its file; see `ChatModel` and `LLMAgent` for the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str
    name: str = Field(default="", max_length=60)
    """What reports and logs call it; empty for ``model``, with the reasoning effort."""
    base_url: str | None = None
    temperature: Annotated[float | None, BeforeValidator(_none)] = 0.0
    """None, or ``none``, sends none."""
    reasoning_effort: str | None = None
    seed: int | None = None
    max_tokens: Annotated[int | None, BeforeValidator(_none)] = 4096
    """None, or ``none``, leaves it to the provider."""
    timeout: float = 300.0
    retries: int = 5
    api_key_env: str | None = Field(default=None, pattern=_VARIABLE)
    """Name of the environment variable that holds the key; never the key."""
    context: int = Field(default=CONTEXT, ge=1)
    """Estimated tokens that a request may have."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _can_be_asked(self) -> ModelSettings:
        if not file_part(self.label):
            raise OptionError(f"the model is called '{self.label}'; give it a name with letters or digits")
        self.chat_model()
        return self

    @property
    def label(self) -> str:
        """What the model is called in the study, and in reports."""
        effort = f" ({self.reasoning_effort})" if self.reasoning_effort else ""
        return self.name or f"{self.model}{effort}"

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that an episode depends on."""
        return self.model_dump(exclude=set(UNDECISIVE))

    def chat_model(self) -> ChatModel:
        """Return the model itself, without a cache, a budget or a pace."""
        return ChatModel(**{name: getattr(self, name) for name in CHAT_SETTINGS})


def file_part(label: str) -> str:
    """Return the label of a model as it stands in the names of logs.

    >>> file_part("openai/gpt-5 (low)")
    'openai-gpt-5-low'
    """
    return _UNSAFE.sub("-", label).strip("-.")
