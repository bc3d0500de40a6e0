"""Study: the agents, models, tasks, settings and seeds of a run, as data."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails

from inquitree_gym.errors import OptionError
from inquitree_gym.files import MAX_SETTINGS, read_text_input
from inquitree_gym.kind_settings import AgentSettings
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.runs.specs import CHAT, Cell, EpisodeSpec, ModelSettings, is_own, slug

_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is an unknown setting; remove it",
    "too_short": "needs at least one entry",
    "string_too_long": "has more than {max_length} characters",
    "finite_number": "needs a finite number",
    "greater_than": "needs more than {gt:g}",
    "greater_than_equal": "needs at least {ge:g}",
    "less_than_equal": "needs at most {le:g}",
    "literal_error": "needs {expected}",
}
"""Messages by pydantic's type of an error."""
_WANTED = {
    "bool": "true or false",
    "dict": "a table",
    "float": "a number",
    "int": "a whole number",
    "model": "a table",
    "string": "text",
    "tuple": "a list",
}
"""Values needed, by the first word of the type of an error."""


def faults(error: ValidationError) -> Iterator[str]:
    """Yield the faults of each place, but not the input, which may be a misplaced API key."""
    found: dict[str, list[str]] = {}
    for fault in error.errors(include_input=False, include_url=False):
        # The other parts of a location name the members of a union.
        place = ".".join(str(part) for part in fault["loc"] if isinstance(part, int) or part.isidentifier())
        place = place.removeprefix("settings.")  # they stand in the table of the kind
        if fault["type"] != "too_short" or not any(other.startswith(f"{place}.") for other in found):
            found.setdefault(place, []).append(_message(fault))
    for place, messages in found.items():
        yield f"{place}: {', or '.join(messages)}" if place else "; ".join(messages)


def _message(fault: ErrorDetails) -> str:
    kind = fault["type"]
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(**fault.get("ctx", {}))
    family, _, problem = kind.partition("_")
    if family in _WANTED and problem in ("type", "parsing", "from_float"):
        return f"needs {_WANTED[family]}"
    return fault["msg"].removeprefix("Value error, ")


ALL = "all"
"""Name that stands for every shipped task."""
LOCAL = "local"
"""Name of the judge that asks no model, of the kinds that have one."""
MAX_EPISODES = 1_000_000
"""Largest number of episodes of a study, which are listed in memory."""
MAX_SEED = 1_000_000_000


class StudyConfig(BaseModel):
    """Settings of a study, from the command line or a ``studies/*.toml`` file.

    Agents that ask a model are played with every model. Reading a study loads nothing that plays. `check_study` checks
    what needs agents, tasks or embedders.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str = DEFAULT_KIND
    """Kind of environment."""
    agents: tuple[str, ...] = Field(min_length=1)
    """Names for `make_agent`. Agents of one's own are imported by a run, and by nothing that only reads the study."""
    models: tuple[ModelSettings, ...] = ()
    trees: tuple[str, ...] = Field(default=(ALL,), min_length=1, validate_default=True)
    """Ids, paper numbers or paths of the tasks, and names that stand for several. See `protocols.Tasks.expand`."""
    seeds: int = Field(default=5, ge=1)
    """Episodes per agent, model, task and cell of the grid, with consecutive seeds."""
    first_seed: int = Field(default=0, ge=0, le=MAX_SEED)
    judge: dict[str, Any] | str | None = None
    """Judge that sets the reward: ``llm:MODEL``, or a table of its settings. None is the kind's own reward."""
    prompts: str | None = None
    """Prompts of the episodes and of the agents that ask a model: ``default``, another set of the kind's, or a folder.
    None for those of the settings."""
    settings: Any = Field(default=None, validate_default=True)
    """Settings of the kind of environment. A study file has them in a table that is named after the kind, or beside the
    others."""

    @model_validator(mode="before")
    @classmethod
    def _gather_settings(cls, given: Any) -> Any:
        env = given.get("env", DEFAULT_KIND) if isinstance(given, dict) else None
        if not isinstance(env, str) or "settings" in given:
            return given
        own = kind(env).settings.model_fields.keys() - cls.model_fields.keys()
        settings = {name: value for name, value in given.items() if name in own}
        others = {name: value for name, value in given.items() if name not in own and name != env}
        table = given.get(env, {})
        return others | {"settings": settings | table if isinstance(table, dict) else table}

    @field_validator("settings", mode="before")
    @classmethod
    def _parse_settings(cls, given: Any, info: ValidationInfo) -> Any:
        model = kind(info.data.get("env", DEFAULT_KIND)).settings
        return given if isinstance(given, model) else model.model_validate({} if given is None else given)

    @field_validator("agents")
    @classmethod
    def _drop_repeated_agents(cls, agents: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(agents))

    @field_validator("judge")
    @classmethod
    def _drop_own_reward(cls, judge: Any, info: ValidationInfo) -> Any:
        own = LOCAL in kind(info.data.get("env", DEFAULT_KIND)).judging.judges
        return None if own and judge == LOCAL else judge

    @field_validator("trees")
    @classmethod
    def _expand_trees(cls, trees: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return kind(info.data.get("env", DEFAULT_KIND)).tasks.expand(trees)

    @field_validator("models")
    @classmethod
    def _check_model_names(cls, models: tuple[ModelSettings, ...], info: ValidationInfo) -> tuple[ModelSettings, ...]:
        own = kind(info.data.get("env", DEFAULT_KIND)).settings.agent
        for index, model in enumerate(models):
            _check_own_settings(own, model, index)
        by_slug: dict[str, list[str]] = {}
        for model in models:
            by_slug.setdefault(slug(model.label).casefold(), []).append(f"'{model.label}'")
        for labels in by_slug.values():
            if len(labels) > 1:
                raise ValueError(
                    f"several models would share their logs: {', '.join(labels)}; give each a name of its own"
                )
        return models

    @model_validator(mode="after")
    def _check_models(self) -> StudyConfig:
        asking = [name for name in self.agents if self.takes_model(name)]
        if asking and not self.models:
            names = ", ".join(asking)
            raise ValueError(f"agents that ask a model ({names}) need one: give --model, or [[models]] in the file")
        if self.models and not asking:
            names = ", ".join(model.label for model in self.models)
            others = " or ".join(self.settings.model_agents) or f"an agent of your own that takes a model ({CHAT}…)"
            raise ValueError(f"no agent asks the models ({names}); add {others} to the agents")
        return self

    @model_validator(mode="after")
    def _check_size(self) -> StudyConfig:
        count = len(self.players) * len(self.trees) * len(self.cells) * self.seeds
        if count > MAX_EPISODES:
            raise too_many(count)
        check_file_names([self])
        return self

    @property
    def prompts_name(self) -> str:
        """Prompts of the episodes: those of the study, or else those of its settings."""
        return self.prompts or str(self.settings.prompts)

    @property
    def players(self) -> tuple[tuple[str, str], ...]:
        """Agents, each with the label of its model. The label is empty for an agent that asks none."""
        labels = [model.label for model in self.models]
        return tuple((name, label) for name in self.agents for label in (labels if self.takes_model(name) else [""]))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cells of the grid of the settings."""
        return tuple(tuple(sorted(cell.items())) for cell in self.settings.cells())

    def takes_model(self, agent: str) -> bool:
        """Return whether the agent with this name is given a chat model."""
        return agent in self.settings.model_agents or (is_own(agent) and agent.startswith(CHAT))

    def own_settings(self, model: ModelSettings) -> AgentSettings:
        """Return those settings of a model that only the agents of this kind have."""
        settings: AgentSettings = self.settings.agent.model_validate(model.model_extra or {})
        return settings

    def agent_settings(self, agent: str, model: ModelSettings) -> dict[str, Any]:
        """Return the settings of an agent with a model, apart from the chat. None for an agent of one's own."""
        if agent not in self.settings.model_agents:
            return {}
        return {"prompts": self.prompts_name, "context": model.context, **self.own_settings(model).model_dump()}

    def asks_model(self, spec: EpisodeSpec) -> bool:
        """Return whether an episode asks a model, for its agent or for its environment."""
        return bool(spec.model) or self.judge is not None or bool(self.settings.services())

    def specs(self) -> Iterator[EpisodeSpec]:
        """Yield every episode once, task by task."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for task, (agent, label), cell, seed in product(self.trees, self.players, self.cells, seeds):
            yield EpisodeSpec(agent, task, cell, seed, label, self.env)

    def options(self, spec: EpisodeSpec, task: Any) -> dict[str, Any]:
        """Return the `reset` options of an episode."""
        options: dict[str, Any] = self.settings.options(dict(spec.cell), task)
        return options


def _check_own_settings(own: type[AgentSettings], model: ModelSettings, index: int) -> None:
    """Check the settings of a model that only the agents of one kind have. Raise `ValidationError` with their place."""
    try:
        own.model_validate(model.model_extra or {})
    except ValidationError as error:
        lines = [
            InitErrorDetails(type=line["type"], loc=(index, *line["loc"]), input=None, ctx=line.get("ctx", {}))
            for line in error.errors(include_input=False, include_url=False)
        ]
        raise ValidationError.from_exception_data(error.title, lines) from None


def check_file_names(studies: Iterable[StudyConfig]) -> None:
    """Check that no two agents with their models and tasks would share their logs. Raise `OptionError` if so."""
    first: dict[str, EpisodeSpec] = {}
    for study in studies:
        for task, (agent, label) in product(study.trees, study.players):
            spec = EpisodeSpec(agent, task, cell=(), seed=0, model=label, env=study.env)
            twin = first.setdefault(spec.file_name.casefold(), spec)
            if twin != spec:
                raise OptionError(
                    f"{twin.player} on '{twin.task}' and {spec.player} on '{spec.task}' would share their logs; give "
                    "the model another name"
                )


def too_many(count: int) -> OptionError:
    """Return the error for more than `MAX_EPISODES` episodes."""
    return OptionError(f"{count:,} episodes are more than the {MAX_EPISODES:,} of a study; choose fewer seeds")


def validated(settings: Mapping[str, Any]) -> StudyConfig:
    """Return a study of the fields of `StudyConfig`. Raise `OptionError`, naming every invalid setting."""
    try:
        return StudyConfig.model_validate(dict(settings))
    except ValidationError as error:
        raise OptionError(f"the study cannot be run; {'; '.join(faults(error))}") from None


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the settings in a study file. Raise `OptionError` if it cannot be read or is not TOML."""
    text = read_text_input(path, limit=MAX_SETTINGS, error=OptionError)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits, or tables nested too deeply
        raise OptionError(f"the study '{path}' is not TOML: {error}") from error
