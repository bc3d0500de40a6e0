"""Settings of the models of a study, those that judge its rewards included."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import kind
from inquitree_gym.runs.specs import slug

if TYPE_CHECKING:
    from inquitree_gym.llm import Chat, ChatModel, RateLimit, ReplyCache

CHAT_SETTINGS = (
    "model", "base_url", "temperature", "reasoning_effort", "seed", "max_tokens", "timeout", "retries", "api_key_env",
)  # fmt: skip
"""Settings of a model that are those of `ChatModel`."""
CHANGEABLE_SETTINGS = frozenset(
    {"timeout", "retries", "api_key_env", "requests_per_minute", "tokens_per_minute", "max_tokens"}
)
"""Settings that do not affect replies that end by themselves, so that a run can be resumed with other values."""

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _none(value: Any) -> Any:
    return None if value == "none" else value  # TOML has no null


class ModelSettings(BaseModel):
    """Settings of one model, a ``[[models]]`` table of a study file. See `ChatModel` and `ChatAgent`.

    Further settings are those of the agents that the kind of environment has. See `KindSettings.agent`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    model: str
    name: str = Field(default="", max_length=60)
    """Name in reports and logs. If empty, ``model`` with the reasoning effort."""
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
    """Name of the environment variable that holds the key. Never the key itself."""
    context: int | None = Field(default=None, ge=1)
    """Largest request in estimated tokens. None for the model's window, see `ChatAgent`."""
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

    def chat_model(self) -> ChatModel:
        """Return the bare model, without cache, budget or rate limit."""
        from inquitree_gym.llm import ChatModel

        return ChatModel(**{name: getattr(self, name) for name in CHAT_SETTINGS})

    def rate_limit(self) -> RateLimit | None:
        """Return a new rate limit. None if the model has none."""
        from inquitree_gym.llm import RateLimit

        rates = (self.requests_per_minute, self.tokens_per_minute)
        return RateLimit(*rates) if any(rates) else None


class JudgeSettings(ModelSettings):
    """Settings of a model that judges the texts of a study for the reward.

    The class for a kind of environment has its options besides. See `judge_options`.
    """

    model_config = ConfigDict(extra="forbid")

    env: ClassVar[str]

    @classmethod
    def named(cls, name: str) -> dict[str, Any]:
        """Return the settings of a judge's name. Raise `OptionError` if it is not of a judge that asks a model."""
        presets = kind(cls.env).judging.presets
        prefix, _, model = name.partition(":")
        if prefix not in presets or not model:
            forms = " or ".join(("'local'", *(f"'{known}:MODEL'" for known in presets)))
            raise OptionError(
                f"the judge of a study must be {forms}, got '{name:.80}'. For any other judge, run inquitree judge "
                "after the study."
            )
        return {"model": model, **presets[prefix]}

    @property
    def own(self) -> dict[str, Any]:
        """Values of the options of the kind."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in ModelSettings.model_fields}

    @property
    def prefix(self) -> str:
        """Prefix of the judge's name: the last one that stands for these options."""
        presets = kind(self.env).judging.presets
        return [prefix for prefix, preset in presets.items() if preset.items() <= self.own.items()][-1]

    @property
    def judge_name(self) -> str:
        """Name of the judge."""
        return f"{self.prefix}:{self.model}"

    @property
    def judged(self) -> str:
        """Texts and requests of the judge, in words."""
        judging = kind(self.env).judging
        return f"the {judging.noun}s, {judging.options(**self.own).requests}"

    def build(self, chat: Chat, replies: ReplyCache | None) -> Any:
        """Return the judge, which asks ``chat``."""
        judging = kind(self.env).judging
        options = judging.options(cache=replies, connect=lambda model: chat, **self.own)
        return judging.judges[self.prefix](self.model, options)


@cache
def judge_options(env: str) -> type[JudgeSettings]:
    """Return the settings of the judge of the reward of a kind of environment."""
    model: type[JudgeSettings] = create_model(
        "JudgeSettings", __base__=JudgeSettings, **kind(env).judging.options.own_fields()
    )
    model.env = env
    return model
