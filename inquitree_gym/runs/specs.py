"""Specifications of the episodes of a study, and the names of agents, models and logs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.log import file_stem
from inquitree_gym.parts import Scalar
from inquitree_gym.trees.catalogue import task_name

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
        return f"{task_name(self.task)}_{player}{cell}_s{self.seed}.jsonl"
