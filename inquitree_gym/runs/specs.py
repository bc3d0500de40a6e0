"""Parts of a study: the settings of its models, its episodes, and the names of agents, models and logs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from inquitree_gym.errors import OptionError
from inquitree_gym.files import name_file
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.log import file_stem
from inquitree_gym.protocols import Scalar
from inquitree_gym.trees.catalogue import task_name

if TYPE_CHECKING:
    from inquitree_gym.llm import Chat, ChatModel, RateLimit, ReplyCache

CHAT, POLICY = "chat:", "policy:"
"""Prefixes of a factory that is given a chat model, and of the file of a saved policy."""
OWN_FORMS = "module:factory, FILE.py:factory or policy:FILE, and chat:… for a factory that takes a model"
_FORM = re.compile(
    r"(chat:)?([^\x00-\x1f\x7f]{1,200}\.py|[^\W\d]\w*(\.\w+)*):[^\W\d][\w.]*|policy:[^\x00-\x1f\x7f]{1,200}"
)
_UNSAFE = re.compile(r"[^\w.+-]+")


def is_own(name: str) -> bool:
    """Return whether a name has the form of an agent of one's own. See `OWN_FORMS`."""
    return _FORM.fullmatch(name) is not None


def agent_part(name: str) -> str:
    """Return an agent's name as part of a file name. For one's own agent, a hash of eight digits makes it unique.

    >>> agent_part("random"), agent_part("my/agents.py:Curious")
    ('random', 'agents.py-Curious-bcb7d9fe')
    """
    if not is_own(name):
        return name
    place, _, rest = name.rpartition(":")
    shown = f"{place} {Path(rest).stem}" if name.startswith(POLICY) else f"{Path(place).name} {rest}"
    return f"{file_stem(shown)}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def slug(label: str) -> str:
    """Return a model's label in the form used in log file names.

    >>> slug("openai/gpt-5 (low)")
    'openai-gpt-5-low'
    """
    return _UNSAFE.sub("-", label).strip("-.")


Cell = tuple[tuple[str, Scalar], ...]
"""Values on the grid of a study by name, sorted by name."""


def cell_of(env: str, rules: Mapping[str, Any]) -> Cell:
    """Return the cell of an episode with these rules, as the header of its log has them."""
    return tuple((name, rules.get(name)) for name in sorted(kind(env).settings.grid))


@dataclass(frozen=True, order=True, slots=True)
class EpisodeSpec:
    """Specification of one episode of a study."""

    agent: str
    task: str
    """Id or path of the task."""
    cell: Cell
    """Values on the grid of the kind of environment. See `KindSettings.grid`."""
    seed: int
    model: str = ""
    """Label of the agent's model. Empty for an agent that asks none."""
    env: str = DEFAULT_KIND

    @property
    def player(self) -> str:
        """Agent and model, as reports name them."""
        return f"{self.agent} {self.model}" if self.model else self.agent

    @property
    def file_name(self) -> str:
        """File name of the log."""
        agent = agent_part(self.agent)
        player = f"{agent}_{slug(self.model)}" if self.model else agent
        cell = kind(self.env).settings.file_part(dict(self.cell))
        return name_file(f"{task_name(self.task)}_{player}{cell}_s{self.seed}", ".jsonl")


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
            forms = " or ".join(f"'{known}:MODEL'" for known in presets)
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
