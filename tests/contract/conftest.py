"""The kinds of environments that the promises are tested over: those of the package, and a toy of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym import kinds
from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.envs import InquiryVectorEnv, ProjectionVectorEnv
from inquitree_gym.envs.episode_records import RecordedEnv
from inquitree_gym.exploration.env import ExplorationEnv
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.exam import draw_layout, exam_of
from inquitree_gym.projection.env import ProjectionEnv
from inquitree_gym.sheets import Sheet, write_sheet
from tests.exploration.questions import make_question
from tests.hashing import HashingEmbedder
from tests.projection.tasks import WORDS
from tests.strategies import make_tree
from tests.tasks import make_task
from tests.toy.env import ToyEnv
from tests.toy.tasks import LISTS

SITE = Path(__file__).parents[1] / "toy" / "site"
"""Folder in which the toy kind is installed."""
TREE = make_tree([[], [0], []], [2, 1, 1])
TASK = make_task()
QUESTION = make_question()
SEED = 44
SHEET = write_sheet(Sheet((0,) * 3), draw_layout(exam_of(TREE), SEED, TREE.id, "actual"))
"""All items right, under this seed."""


@dataclass(frozen=True)
class KindCase:
    """One kind with a task and an agent that plays it to its end."""

    name: str
    task: Any
    make_env: Callable[..., Any]
    """Returns an environment with the rules that are given by name."""
    actions: tuple[str, ...]
    """Actions of one whole episode."""
    other_rules: Mapping[str, Any]
    """Rules under which the episode has another header."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a study, with two values in the grid where the kind has one."""
    agents: tuple[str, ...] = ("oracle", "random")
    """Agents without a model."""
    measure: str = ""
    """Measure that the oracle earns."""
    make_vector: Callable[..., Any] | None = None
    """Returns so many environments as one, for a kind that has a vector environment of its own."""

    @property
    def kind(self) -> kinds.Kind:
        return kinds.kind(self.name)

    def make(self, **rules: Any) -> RecordedEnv:
        return self.make_env(self.task, **rules)

    def agent(self) -> ReplayAgent:
        return ReplayAgent(self.actions)


def inquiry(task: Any, **rules: Any) -> InquiryEnv:
    return InquiryEnv(task, embedder=HashingEmbedder("hashed"), **{"fake_level": 5, "world": "actual", **rules})


def projection(task: Any, **rules: Any) -> ProjectionEnv:
    return ProjectionEnv(task, **{"judge": WORDS, **rules})


CASES = {
    "inquiry": KindCase(
        name="inquiry",
        task=TREE,
        make_env=inquiry,
        actions=(
            "Something else.", TREE.subtopics[0].text, TREE.studies[0].text, "redo the study", "explore new subtopic",
            TREE.subtopics[1].text, TREE.studies[2].text, "draw conclusion", "1. It is decided by rising.", SHEET,
        ),
        other_rules={"fake_level": 1},
        settings={"fake_level": [0, 3], "rules": {"feedback": "hint"}},
        measure="return",
        make_vector=lambda count, **settings: InquiryVectorEnv(
            count, tree=TREE, embedder=HashingEmbedder("hashed"), fake_level=5, world="actual", **settings
        ),
    ),
    "projection": KindCase(
        name="projection",
        task=TASK,
        make_env=projection,
        actions=(TASK.claims[0].text, TASK.claims[1].contraries[0], "Nothing happens."),
        other_rules={"form": "claims"},
        settings={"form": "claims", "levels": ["null", "question"]},
        agents=("oracle", "coin"),
        measure="return",
        make_vector=lambda count, **settings: ProjectionVectorEnv(count, task=TASK, judge=WORDS, **settings),
    ),
    "exploration": KindCase(
        name="exploration",
        task=QUESTION,
        make_env=ExplorationEnv,
        actions=("Hello?", "LOOKUP nothing: a = 1", *QUESTION.path),
        other_rules={"max_turns": 20},
        settings={"max_turns": 20, "tools": ["all", "search"]},
        agents=("oracle", "random"),
        measure="score",
    ),
    "toy": KindCase(
        name="toy",
        task=LISTS["bread"],
        make_env=ToyEnv,
        actions=("flour", "no word", "SALT and water", "yeast"),
        other_rules={"loud": True},
        settings={"shown": [0, 2], "loud": True},
        measure="share",
    ),
}  # fmt: skip


@pytest.fixture(scope="package", autouse=True)
def toy_installed() -> Iterator[None]:
    """Install the toy kind for the tests of this folder."""
    sys.path.append(str(SITE))
    kinds.installed.cache_clear()
    kinds.kind("toy")
    yield
    sys.path.remove(str(SITE))
    kinds.installed.cache_clear()
    del gym.registry["Toy-v0"]


@pytest.fixture(params=CASES)
def kind_case(request: pytest.FixtureRequest) -> KindCase:
    """A kind with a task and an agent."""
    return CASES[request.param]
