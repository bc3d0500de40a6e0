"""Study: the agents, models, trees, fake levels and seeds of a run, as data."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from inquitree_gym.baselines.own import is_own
from inquitree_gym.baselines.registry import agent_names, known_agents, model_agent_names, takes_model
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.judges.registry import LOCAL as JUDGE_LOCAL
from inquitree_gym.log import TaskKind
from inquitree_gym.prompts.render import DEFAULT
from inquitree_gym.readers import LLM_PREFIX, model_name
from inquitree_gym.readers import LOCAL as READER_LOCAL
from inquitree_gym.runner.environment_kinds import KINDS, EnvironmentKind
from inquitree_gym.runner.faults import faults
from inquitree_gym.runner.grids import Grid
from inquitree_gym.runner.judging import RewardJudgeSettings, named_judge_settings
from inquitree_gym.runner.models import ModelSettings, slug
from inquitree_gym.runner.rules import PRESET, StudyRules, expanded
from inquitree_gym.runner.specs import EpisodeSpec, tree_name
from inquitree_gym.trees import Tree, builtin_ids
from inquitree_gym.trees.provenance import Tier
from inquitree_gym.trees.tasks import swapped_tasks

ALL, SWAPPED = "all", "swapped"
_GROUPS: Mapping[str, Callable[[], tuple[str, ...]]] = {ALL: builtin_ids, SWAPPED: swapped_tasks}
"""Names that stand for several trees or tasks."""
MAX_EPISODES = 1_000_000
"""Largest number of episodes of a study, which are listed in memory."""
MAX_SEED = 1_000_000_000
"""Largest first seed."""
INQUIRY_SETTINGS = ("fake_levels", "max_turns", "embedder", "reader", "threshold")
"""Settings that only inquiries have."""

FakeLevel = Annotated[int, Field(ge=0, le=10)]
Turns = Annotated[int, Field(ge=1)]


def _reader_settings(given: Any) -> Any:
    """Return the settings of a reader's name; TOML has no null."""
    if not isinstance(given, str):
        return given
    return None if given == READER_LOCAL else {"model": model_name(given)}


class StudyConfig(BaseModel):
    """Settings of a study, from the command line or a ``studies/*.toml`` file.

    Agents that ask a model are played with every model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: TaskKind = "inquiry"
    """Kind of environment: ``inquiry``, or ``projection``, whose tasks are those of trees with a disclosure and of task
    files, and whose rules are `ProjectionRules`."""
    agents: tuple[str, ...] = Field(min_length=1)
    """Names for `make_agent`. Agents of one's own are imported by a run, and by nothing that only reads the study."""
    models: tuple[ModelSettings, ...] = ()
    trees: tuple[str, ...] = Field(default=(ALL,), min_length=1, validate_default=True)
    """Ids, paper numbers or paths of trees, or of projection tasks; ``all`` for every shipped tree, and ``swapped`` for
    one control per shipped projection task, which shows the disclosure of another task; see `swapped_tasks`."""
    fake_levels: tuple[FakeLevel, ...] = Field(default=(0,), min_length=1)
    seeds: int = Field(default=5, ge=1)
    """Episodes per agent, model, tree and fake level, with consecutive seeds."""
    first_seed: int = Field(default=0, ge=0, le=MAX_SEED)
    max_turns: Annotated[
        Turns | Literal["default", "3n"] | None, BeforeValidator(lambda given: None if given == "none" else given)
    ] = "default"
    """Turn limit; ``3n`` allows a full traversal without a failure, None or ``none`` sets no limit."""
    embedder: str = DEFAULT_EMBEDDER
    reader: Annotated[ModelSettings | None, BeforeValidator(_reader_settings)] = None
    """Model that reads the actions: ``llm:MODEL``, or a table of its settings; None, or ``local``, for the embedder."""
    judge: RewardJudgeSettings | None = None
    """Judge that sets the reward: ``llm:MODEL``, for conclusions also ``llm-paper:MODEL``, or a table of its settings;
    None, or ``local``, for the local judge."""
    threshold: float | None = Field(default=None, ge=-1, le=1)
    """Similarity threshold τ; None for the embedder's calibrated default."""
    rules: StudyRules = Field(default_factory=dict)
    """Name of a preset, or further rules of the episodes by name, as in `Rules`; ``preset`` among them names the preset
    that the others override, the default one if absent. For projections, the rules of `ProjectionRules`."""
    prompts: str | None = None
    """Prompts of the episodes and of the agents that ask a model: ``default``, ``paper``, or a folder; None for those
    of the preset."""
    grids: tuple[Grid, ...] = ()
    """Parts of a run that several commands asked for; empty for every combination of the settings above."""

    @field_validator("agents")
    @classmethod
    def _check_agents(cls, agents: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        names = agent_names(kind := _env_of(info))
        for name in agents:
            if name not in names and not is_own(name):
                raise ValueError(f"no agent is called '{name}'{suggest(name, names)}; known: {known_agents(kind)}")
        return tuple(dict.fromkeys(agents))

    @field_validator("judge", mode="before")
    @classmethod
    def _name_judge(cls, judge: Any, info: ValidationInfo) -> Any:
        return named_judge_settings(judge, _env_of(info))

    @field_validator("rules")
    @classmethod
    def _check_rules(cls, rules: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        return KINDS[_env_of(info)].checked_rules(rules)

    @field_validator("fake_levels")
    @classmethod
    def _drop_repeated_levels(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(levels))

    @field_validator("trees")
    @classmethod
    def _expand_trees(cls, trees: tuple[str, ...]) -> tuple[str, ...]:
        ids = (f"paper{int(name)}" if name.isascii() and name.isdigit() else name for name in expand_all(trees))
        unique = tuple(dict.fromkeys(ids))
        first: dict[str, str] = {}
        for name in unique:
            if (twin := first.setdefault(tree_name(name), name)) != name:
                raise ValueError(f"'{twin}' and '{name}' would share their logs; rename one of the files")
        return unique

    @field_validator("models")
    @classmethod
    def _check_model_names(cls, models: tuple[ModelSettings, ...]) -> tuple[ModelSettings, ...]:
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
    def _check_settings_of_inquiries(self) -> StudyConfig:
        defaults = {name: field.get_default() for name, field in type(self).model_fields.items()}
        given = [name for name in INQUIRY_SETTINGS if getattr(self, name) != defaults[name]]
        if given and self.env != "inquiry":
            raise ValueError(f"{', '.join(given)}: only for inquiries, and env is '{self.env}'; remove it")
        if foreign := [name for model in self.models for name in model.settings_of_others(self.env)]:
            raise ValueError(f"{', '.join(foreign)}: not a setting of agents with env = '{self.env}'; remove it")
        return self

    @model_validator(mode="after")
    def _check_agents_against_models(self) -> StudyConfig:
        asking = [name for name in self.agents if takes_model(name)]
        if asking and not self.models:
            names = ", ".join(asking)
            raise ValueError(f"agents that ask a model ({names}) need one: give --model, or [[models]] in the file")
        if self.models and not asking:
            names = ", ".join(model.label for model in self.models)
            raise ValueError(f"no agent asks the models ({names}); add {_llm_agents(self.env)} to the agents")
        return self

    @model_validator(mode="after")
    def _check_size(self) -> StudyConfig:
        if not all(self._whole.covers(grid) for grid in self.grids):
            raise ValueError("grids: one names an agent, model, tree, fake level or seed that the study does not")
        if (count := sum(part.size for part in self.parts)) > MAX_EPISODES:
            raise ValueError(f"{count:,} episodes are more than the {MAX_EPISODES:,} of a study; choose fewer seeds")
        return self

    @model_validator(mode="after")
    def _check_file_names(self) -> StudyConfig:
        first: dict[str, EpisodeSpec] = {}
        for tree, (agent, label) in product(self.trees, self._whole.players):
            spec = EpisodeSpec(agent, tree, self.fake_levels[0], self.first_seed, label, self.env)
            if (twin := first.setdefault(spec.file_name.casefold(), spec)) is not spec:
                both = " and ".join(f"{each.player} on '{each.tree}'" for each in (twin, spec))
                raise ValueError(f"{both} would share their logs; give the model another name")
        return self

    @property
    def prompts_name(self) -> str:
        """Prompts of the episodes: those of the study, or else those of its preset."""
        return self.prompts or str(self.rules.get(PRESET, DEFAULT))

    @property
    def _whole(self) -> Grid:
        """Every combination of agents, models, trees, fake levels and seeds."""
        labels = [model.label for model in self.models]
        return Grid(
            players=tuple((name, label) for name in self.agents for label in self._asked_by(name, labels)),
            trees=self.trees,
            fake_levels=self.fake_levels,
            first_seed=self.first_seed,
            seeds=self.seeds,
        )

    @staticmethod
    def _asked_by(agent: str, labels: Sequence[str]) -> Sequence[str]:
        return labels if takes_model(agent) else ("",)

    @property
    def parts(self) -> tuple[Grid, ...]:
        """Grids that make up the study; one, unless several commands asked for different parts of a run."""
        return self.grids or (self._whole,)

    @property
    def reader_name(self) -> str:
        """Name of the reader, as `load_reader` takes it."""
        return READER_LOCAL if self.reader is None else f"{LLM_PREFIX}{self.reader.model}"

    @property
    def judge_name(self) -> str:
        """Name of the judge of the reward, as `load_judge` takes it."""
        return JUDGE_LOCAL if self.judge is None else self.judge.judge_name

    @property
    def services(self) -> tuple[ModelSettings, ...]:
        """Every model that is asked: those of the agents, the reader and the judge."""
        return (*self.models, *(each for each in (self.reader, self.judge) if each is not None))

    def agent_settings(self, agent: str, model: ModelSettings) -> dict[str, Any]:
        """Return the settings of an agent with a model, apart from the chat; none for an agent of one's own."""
        return (
            {"prompts": self.prompts_name, **model.agent_settings(self.env)}
            if agent in model_agent_names(self.env)
            else {}
        )

    def asks_model(self, spec: EpisodeSpec) -> bool:
        """Return whether an episode asks a model, for its agent, as the reader or as the judge."""
        return bool(spec.model) or self.reader is not None or self.judge is not None

    def specs(self) -> Iterator[EpisodeSpec]:
        """Yield every episode once, tree by tree."""
        return iter(dict.fromkeys(spec for part in self.parts for spec in _specs(part, self.env)))

    def options(self, spec: EpisodeSpec, tree: Tree) -> dict[str, Any]:
        """Return the reset options of an inquiry."""
        return {**expanded(self.rules), "fake_level": spec.fake_level, "max_turns": self.turn_limit(tree)}

    @property
    def limit(self) -> str:
        """Name of the turn limit in reports, the same for trees of any size."""
        return "none" if self.max_turns is None else str(self.max_turns)

    def turn_limit(self, tree: Tree) -> int | Literal["default"] | None:
        """Return the turn limit for a tree, as `Rules.max_turns`."""
        return 3 * len(tree.subtopics) if self.max_turns == "3n" else self.max_turns


def _env_of(info: ValidationInfo) -> TaskKind:
    """Return the kind of environment of a study, which is validated before the other settings."""
    kind: TaskKind = info.data.get("env", "inquiry")
    return kind


def _llm_agents(env: TaskKind) -> str:
    return " or ".join(model_agent_names(env)) or "an agent of your own that takes a model (chat:…)"


def _specs(grid: Grid, env: TaskKind) -> Iterator[EpisodeSpec]:
    seeds = range(grid.first_seed, grid.end)
    for tree, (agent, label), level, seed in product(grid.trees, grid.players, grid.fake_levels, seeds):
        yield EpisodeSpec(agent, tree, level, seed, label, env)


def expand_all(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of trees, with ``all`` and ``swapped`` replaced by the ids for which they stand."""
    for name in names:
        yield from _GROUPS[name]() if name in _GROUPS else (name,)


def make_study(*, tiers: Sequence[str] | None = None, **settings: Any) -> StudyConfig:
    """Return a validated study whose trees and embedder exist.

    Args:
        tiers: evidence tiers of the trees that are kept; None for all trees.
        settings: the fields of `StudyConfig`.

    Raises:
        OptionError: naming every invalid setting.
        TreeError: a tree is unknown or invalid.
        EmbedderError: the embedder is unknown.
    """
    study = validated(settings)
    kind = KINDS[study.env]
    if tiers is not None:
        study = study.model_copy(update={"trees": _of_tiers(kind, study.trees, tiers)})
    ids = [kind.load(tree).id for tree in study.trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(f"the study has several trees with the id {', '.join(twins)}; give each an id of its own")
    if study.env == "inquiry" and study.threshold is None and load_embedder(study.embedder).threshold is None:
        raise OptionError(
            f"no threshold has been calibrated for the embedder '{study.embedder}'; give the study a threshold"
        )
    return study


def validated(settings: Mapping[str, Any]) -> StudyConfig:
    """Return a study of the fields of `StudyConfig`.

    Raises:
        OptionError: naming every invalid setting.
    """
    try:
        return StudyConfig(**settings)
    except ValidationError as error:
        raise OptionError(f"the study cannot be run; {'; '.join(faults(error))}") from None


def _of_tiers(kind: EnvironmentKind[Any], trees: Sequence[str], tiers: Sequence[str]) -> tuple[str, ...]:
    """Return the trees of the named evidence tiers.

    Raises:
        OptionError: a tier is unknown, or no tree has one of them.
    """
    known = get_args(Tier)
    if not isinstance(tiers, list | tuple) or not tiers or any(tier not in known for tier in tiers):
        raise OptionError(f"the study cannot be run; tiers: needs a list of {', '.join(known)}, not {tiers!r}")
    if found := tuple(tree for tree in trees if kind.load(tree).provenance.tier in tiers):
        return found
    raise OptionError(f"the study cannot be run; none of its trees has the evidence tier {' or '.join(tiers)}")


def read_study(path: str | os.PathLike[str]) -> StudyConfig:
    """Read a study from a TOML file; see `make_study` for further errors.

    Raises:
        OptionError: the file cannot be read, or is not TOML.
    """
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the study '{path}': {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also a number of too many digits, or tables nested too deeply
        raise OptionError(f"the study '{path}' is not TOML: {error}") from error
    return make_study(**settings)
