"""What to run, as data: agents × trees × fake levels × seeds."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from inquitree_gym.baselines import AGENT_NAMES
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.errors import OptionError, suggest
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

    @property
    def file_name(self) -> str:
        """Name of its log."""
        return f"{Path(self.tree).stem}_{self.agent}_f{self.fake_level}_s{self.seed}.jsonl"


class Study(BaseModel):
    """A study; read from flags or from a ``studies/*.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agents: tuple[str, ...] = Field(min_length=1)
    trees: tuple[str, ...] = Field(default=(ALL,), min_length=1, validate_default=True)
    """Ids, paper numbers or paths; ``all`` stands for every shipped tree."""
    fake_levels: tuple[FakeLevel, ...] = Field(default=(0,), min_length=1)
    seeds: int = Field(default=5, ge=1)
    """Episodes per agent, tree and fake level; their seeds are 0, 1, 2, …"""
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

    def cells(self) -> Iterator[Cell]:
        """Yield every episode, tree by tree."""
        for tree, agent, level, seed in product(self.trees, self.agents, self.fake_levels, range(self.seeds)):
            yield Cell(agent, tree, level, seed)

    def options(self, cell: Cell, tree: Tree) -> dict[str, Any]:
        """Return the reset options of one episode."""
        turns = 3 * len(tree.subtopics) if self.max_turns == "3n" else self.max_turns
        return {"fake_level": cell.fake_level, "max_turns": turns}


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
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise OptionError(f"the study cannot be run; {'; '.join(faults)}") from None
    ids = [load_tree(tree).id for tree in study.trees]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise OptionError(f"the study has several trees with the id {', '.join(twins)}; give each an id of its own")
    if study.threshold is None and load_embedder(study.embedder).threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{study.embedder}'; give the study one")
    return study


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a TOML file; see `make_study` for the errors."""
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the study '{path}': {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"the study '{path}' is not TOML: {error}") from error
    return make_study(**settings)
