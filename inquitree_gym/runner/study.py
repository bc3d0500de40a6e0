"""What to run, as data: agents, those that ask one with every model, × trees × fake levels × seeds."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from inquitree_gym.baselines import AGENT_NAMES, MODEL_AGENT_NAMES
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.runner.models import ModelSettings, file_part
from inquitree_gym.trees import Tree, builtin_ids, load_tree

ALL = "all"

FakeLevel = Annotated[int, Field(ge=0, le=10)]
Turns = Annotated[int, Field(ge=1)]


class Cell(NamedTuple):
    """One episode of a study."""

    agent: str
    tree: str
    """Id or path."""
    fake_level: int
    seed: int
    model: str = ""
    """Label of the model that the agent asks; empty for one that asks none."""

    @property
    def player(self) -> str:
        """The agent, and its model where it has one, as reports name them."""
        return f"{self.agent} {self.model}" if self.model else self.agent

    @property
    def file_name(self) -> str:
        """Name of its log."""
        who = f"{self.agent}_{file_part(self.model)}" if self.model else self.agent
        return f"{Path(self.tree).stem}_{who}_f{self.fake_level}_s{self.seed}.jsonl"


class Study(BaseModel):
    """A study; read from flags or from a ``studies/*.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: tuple[str, ...] = Field(min_length=1)
    models: tuple[ModelSettings, ...] = ()
    """Each plays every agent that asks a model."""
    trees: tuple[str, ...] = Field(default=(ALL,), min_length=1, validate_default=True)
    """Ids, paper numbers or paths; ``all`` stands for every shipped tree."""
    fake_levels: tuple[FakeLevel, ...] = Field(default=(0,), min_length=1)
    seeds: int = Field(default=5, ge=1)
    """Episodes per agent, model, tree and fake level; their seeds are 0, 1, 2, …"""
    max_turns: Annotated[
        Turns | Literal["default", "3n"] | None, BeforeValidator(lambda given: None if given == "none" else given)
    ] = "default"
    """Turn limit; ``3n`` leaves just enough for a full traversal without a failure; None, or ``none``, is no limit."""
    embedder: str = DEFAULT_EMBEDDER
    threshold: float | None = Field(default=None, ge=-1, le=1)
    """τ; None takes the embedder's calibrated default."""

    @field_validator("agents")
    @classmethod
    def _agents_exist(cls, agents: tuple[str, ...]) -> tuple[str, ...]:
        for name in agents:
            if name not in AGENT_NAMES:
                raise ValueError(
                    f"no agent is called '{name}'{suggest(name, AGENT_NAMES)}; known: {', '.join(AGENT_NAMES)}"
                )
        return tuple(dict.fromkeys(agents))

    @field_validator("fake_levels")
    @classmethod
    def _each_level_once(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(levels))

    @field_validator("trees")
    @classmethod
    def _all_trees(cls, trees: tuple[str, ...]) -> tuple[str, ...]:
        names = [name for given in trees for name in (builtin_ids() if given == ALL else (given,))]
        ids = (f"paper{int(name)}" if name.isascii() and name.isdigit() else name for name in names)
        found = tuple(dict.fromkeys(ids))
        first: dict[str, str] = {}
        for name in found:
            if (twin := first.setdefault(Path(name).stem, name)) != name:
                raise ValueError(f"'{twin}' and '{name}' would share their logs; rename one of the files")
        return found

    @field_validator("models")
    @classmethod
    def _each_model_has_a_name(cls, models: tuple[ModelSettings, ...]) -> tuple[ModelSettings, ...]:
        parts = [file_part(model.label).casefold() for model in models]
        for part, number in Counter(parts).items():
            if number > 1:
                labels = ", ".join(f"'{model.label}'" for model, its in zip(models, parts, strict=True) if its == part)
                raise ValueError(f"several models would share their logs: {labels}; give each a name of its own")
        return models

    @model_validator(mode="after")
    def _agents_and_models_meet(self) -> Study:
        asking = [name for name in self.agents if name in MODEL_AGENT_NAMES]
        if asking and not self.models:
            names = ", ".join(asking)
            raise ValueError(f"agents that ask a model ({names}) need one: give --model, or [[models]] in the file")
        if self.models and not asking:
            names = ", ".join(model.label for model in self.models)
            raise ValueError(f"no agent asks the models ({names}); add {' or '.join(MODEL_AGENT_NAMES)} to the agents")
        return self

    @model_validator(mode="after")
    def _each_log_has_a_name(self) -> Study:
        one = [cell for cell in self.cells() if cell.seed == 0 and cell.fake_level == self.fake_levels[0]]
        first: dict[str, Cell] = {}
        for cell in one:
            if (twin := first.setdefault(cell.file_name.casefold(), cell)) is not cell:
                told = " and ".join(f"{each.player} on '{each.tree}'" for each in (twin, cell))
                raise ValueError(f"{told} would share their logs; give the model another name")
        return self

    def cells(self) -> Iterator[Cell]:
        """Yield every episode, tree by tree."""
        labels = [model.label for model in self.models]
        asked = {agent: labels if agent in MODEL_AGENT_NAMES else [""] for agent in self.agents}
        players = [(agent, label) for agent in self.agents for label in asked[agent]]
        for tree, (agent, label), level, seed in product(self.trees, players, self.fake_levels, range(self.seeds)):
            yield Cell(agent, tree, level, seed, label)

    def is_of(self, other: Study) -> bool:
        """Tell whether the episodes of both are the same: the studies differ in nothing that decides one."""
        mine, theirs = (study.model_dump(exclude={"models"}) for study in (self, other))
        return mine == theirs and [model.decisive for model in self.models] == [m.decisive for m in other.models]

    def options(self, cell: Cell, tree: Tree) -> dict[str, Any]:
        """Return the reset options of one episode."""
        return {"fake_level": cell.fake_level, "max_turns": self.turns(tree)}

    def turns(self, tree: Tree) -> int | Literal["default"] | None:
        """Return the turn limit of an episode, as `Rules.max_turns`."""
        return 3 * len(tree.subtopics) if self.max_turns == "3n" else self.max_turns


def make_study(**settings: Any) -> Study:
    """Return a validated study, its trees loaded once to see that they can be.

    Raises:
        OptionError: naming every setting that is at fault.
        TreeError: a tree is unknown or at fault.
        EmbedderError: no embedder answers to the name.
    """
    try:
        study = Study(**settings)
    except ValidationError as error:
        raise OptionError(f"the study cannot be run; {'; '.join(_faults(error))}") from None
    ids = [load_tree(tree).id for tree in study.trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(f"the study has several trees with the id {', '.join(twins)}; give each an id of its own")
    if study.threshold is None and load_embedder(study.embedder).threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{study.embedder}'; give the study one")
    return study


def _faults(error: ValidationError) -> Iterator[str]:
    """Yield every fault with its place, and without what came, which may be a key in the wrong place."""
    for fault in error.errors(include_input=False, include_url=False):
        said = fault["msg"].removeprefix("Value error, ")
        yield f"{'.'.join(map(str, fault['loc']))}: {said}" if fault["loc"] else said


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a TOML file; see `make_study` for the errors."""
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the study '{path}': {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"the study '{path}' is not TOML: {error}") from error
    return make_study(**settings)
