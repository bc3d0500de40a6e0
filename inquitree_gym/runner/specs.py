"""Specifications of the episodes of a study, and the names of their logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inquitree_gym.baselines.own import file_part
from inquitree_gym.baselines.registry import agent_names
from inquitree_gym.log import TaskKind
from inquitree_gym.runner.models import slug
from inquitree_gym.trees.load import is_path


@dataclass(frozen=True, order=True, slots=True)
class EpisodeSpec:
    """Specification of one episode of a study."""

    agent: str
    tree: str
    """Id or path of the tree, or of the projection task."""
    fake_level: int
    """0 for a projection."""
    seed: int
    model: str = ""
    """Label of the agent's model; empty for an agent that asks none."""
    env: TaskKind = "inquiry"
    """Kind of environment."""

    @property
    def player(self) -> str:
        """Agent and model, as reports name them."""
        return f"{self.agent} {self.model}" if self.model else self.agent

    @property
    def file_name(self) -> str:
        """File name of the log."""
        agent = self.agent if self.agent in agent_names(self.env) else file_part(self.agent)
        player = f"{agent}_{slug(self.model)}" if self.model else agent
        level = f"_f{self.fake_level}" if self.env == "inquiry" else ""
        return f"{tree_name(self.tree)}_{player}{level}_s{self.seed}.jsonl"


def tree_name(tree: str) -> str:
    """Return the name of a tree in a run: an id as it is, of a path the file name without its suffix."""
    return Path(tree).stem if is_path(tree) else tree
