"""Base of the settings of a kind of environment, and of the settings of its agents that ask models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from inquitree_gym.protocols import Scalar


class OptionTable(BaseModel):
    """Options of a kind, each a flag of the command line. None here. Fields are described as in `KindSettings`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentSettings(OptionTable):
    """Settings of the agents of a kind that ask models, beside those of all models. None here.

    They stand among the settings of a model in a study file.
    """


@dataclass(frozen=True)
class TableField:
    """Metadata of a field that holds a table of settings, for its flags."""

    key: str
    """Entry that holds the text of the flag."""
    prefix: str = ""
    """Prefix that is cut off the text. Other texts are taken as they are."""
    pairs: str = ""
    """Name of a further flag that takes other entries as NAME=VALUE. Empty for none."""
    server: bool = False
    """True for the settings of a model, whose server has a flag of its own."""


class KindSettings(BaseModel):
    """Settings of a study for one kind, ``SETTINGS`` of ``<kind>/settings.py``: a table of a study file, and flags.

    Fields are described by ``Field(description=...)``, which becomes the help of their flags.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    grid: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold several values, which a study crosses."""
    short: ClassVar[Mapping[str, str]] = {}
    """Short names of the fields in the grid, for the names of logs."""
    model_agents: ClassVar[tuple[str, ...]] = ("llm",)
    """Names of the agents that ask models, known without loading anything that plays."""
    agent: ClassVar[type[AgentSettings]] = AgentSettings
    """Settings of these agents."""
    formulas: ClassVar[type[OptionTable]] = OptionTable
    """Choices of formulas for the measures. See `KindResults.with_formulas`."""
    hidden_rules: ClassVar[tuple[str, ...]] = ()
    """Entries of a field ``rules`` that clients of a server are not shown. Each may be given like a field, too."""
    report: ClassVar[type[OptionTable]] = OptionTable
    """Further options of a report. See `KindPages.addition`."""

    def cells(self) -> tuple[dict[str, Scalar], ...]:
        """Return the cells of the grid: every combination of one value per field. An empty grid has one cell."""
        values = [getattr(self, name) for name in self.grid]
        return tuple(dict(zip(self.grid, combination, strict=True)) for combination in product(*values))

    @classmethod
    def file_part(cls, cell: Mapping[str, Scalar]) -> str:
        """Return the values of a cell as part of the name of a log, such as ``_f3``."""
        return "".join(f"_{cls.short.get(name, name)}{value}" for name, value in cell.items())

    def all_rules(self) -> dict[str, Any]:
        """Return all rules by name, defaults included. None here."""
        return {}

    def options(self, cell: Mapping[str, Scalar], task: Any) -> dict[str, Any]:
        """Return the `reset` options of an episode in a cell. The cell itself here."""
        return dict(cell)

    def services(self) -> tuple[Mapping[str, Any], ...]:
        """Return the settings of the models that the environment asks, apart from the judge. None here."""
        return ()

    def fixed(self) -> dict[str, Any]:
        """Return by name all settings that decide how an episode in a cell is played. A run keeps them."""
        return self.model_dump(mode="json", exclude=set(self.grid))

    @property
    def limit(self) -> str:
        """Turn limit in the words of reports, the same for tasks of any size. Empty if there is none to choose."""
        return ""

    @property
    def prompts(self) -> str:
        """Prompts of the package for a study that names none."""
        return "default"


def as_tuple(given: Any) -> Any:
    """Return the values of a field in the grid, each once. A single value needs no list."""
    return tuple(dict.fromkeys(given)) if isinstance(given, list | tuple) else (given,)
