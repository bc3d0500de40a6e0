"""Baselines of projections: the texts they say, what they need to know, and what they earn on the shipped papers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym.baselines import PROJECTION_AGENT_NAMES, make_agent
from inquitree_gym.baselines.agent import asks_models
from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.envs import ProjectionEnv
from inquitree_gym.errors import AgentError, OptionError
from inquitree_gym.projection.agents import PROJECTING_NAMES, other_tasks, true_outcome
from inquitree_gym.projection.synthetic import SyntheticProjectionEnv
from inquitree_gym.projection.tasks import load_task, swapped_tasks
from inquitree_gym.rollout import play
from inquitree_gym.trees.catalogue import builtin_ids
from tests.tasks import make_task

WORLDS = 300
TASK = make_task()
TOLD = TASK.disclosure
PRIVILEGED = ["coin", "reversed", "oracle"]


def make(task: Any = TASK, **keywords: Any) -> ProjectionEnv:
    return ProjectionEnv(task, **{"reward": "none", "privileged": True, "form": "claims", **keywords})


def said(name: str, seed: int = 0, env: ProjectionEnv | None = None) -> list[str]:
    """The projections of one episode."""
    env = env or make()
    return list(play(env, make_agent(name, env), seed).actions)


def returned(name: str, task: Any, seed: int = 0) -> float:
    """The return of an episode with sheets."""
    env = ProjectionEnv(task, privileged=True)
    env.reset(seed=seed)
    return play(env, make_agent(name, env), seed).footer.episode_return


# Names


@pytest.mark.parametrize("name", PROJECTING_NAMES)
def test_a_baseline_is_named_in_its_log_and_takes_no_settings(name: str):
    assert (*PROJECTING_NAMES, "llm") == PROJECTION_AGENT_NAMES
    env = make(privileged=name in PRIVILEGED)
    agent = make_agent(name, env)
    assert (agent.config, asks_models(agent), agent.needs_privileged) == ({"name": name}, False, name in PRIVILEGED)
    with pytest.raises(OptionError, match=f"the agent '{name}' takes no settings; leave out model"):
        make_agent(name, env, model="gpt-4o-mini")
    if name in PRIVILEGED:
        hidden, told = make(privileged=False), f"the {name} agent needs an environment made with privileged=True"
        for fails in (lambda: make_agent(name, hidden), lambda: play(hidden, agent, 0)):
            with pytest.raises(OptionError, match=told):
                fails()
    elif name != "retrieval":
        assert len(play(env, agent, 0).turns) == 3
        sheets = [turn.action for turn in play(make(reward="sheet"), agent, 0).turns if turn.event.kind == "sheet"]
        assert name in PRIVILEGED or sheets == [""] * 6, "sheets that are left out are asked for twice"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("worst-case", "unknown agent 'worst-case', which plays inquiry environments; known in projection "
         "environments: null, other-paper"),
        ("orcale", r"unknown agent 'orcale' \(did you mean 'oracle'\?\)"),
        ("policy:model.zip", "unknown agent 'policy:model.zip'"),
    ],
)  # fmt: skip
def test_a_name_of_another_kind_or_of_none_is_told(name: str, told: str):
    with pytest.raises(OptionError, match=told):
        make_agent(name, make())


@pytest.mark.parametrize("env", [make([TASK, "paper12"]), SyntheticProjectionEnv(reward="none", privileged=True)])
def test_an_environment_that_draws_its_task_is_reset_first(env: ProjectionEnv):
    with pytest.raises(OptionError, match="draws its task at each reset; call"):
        make_agent("oracle", env)
    env.reset(seed=3)
    assert said("oracle", 3, env)[0] == true_outcome(env.task, env.rules.form)


# Texts


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("null", ["", TOLD.null_hypothesis, TOLD.null_hypothesis]),
        ("reversed", ["\n".join(claim.contraries[0] for claim in TASK.claims)] * 3),
        ("oracle", ["\n".join(claim.text for claim in TASK.claims)] * 3),
    ],
)  # fmt: skip
def test_a_baseline_says_its_text_once_it_is_disclosed(name: str, wanted: list[str]):
    assert said(name) == wanted


def test_what_is_disclosed_depends_on_the_levels_and_form_of_the_episode():
    env = make(levels=("procedure", "null"))
    assert said("null", env=env) == ["", TOLD.null_hypothesis]
    options = {"form": "sentence", "levels": ["null"]}
    env.reset(seed=0, options=options)
    agent = make_agent("oracle", env)
    assert agent.act("", env.reset(seed=0, options=options)[1]) == TOLD.outcome


@pytest.mark.parametrize("name", ["coin", "reversed"])
def test_a_sentence_joins_the_claims(name: str):
    lines = said(name)
    assert said(name, env=make(form="sentence")) == [line.replace("\n", " ") for line in lines]


def test_the_coin_is_fair_and_differs_between_levels_and_seeds():
    tossed = np.array([[text == claim.text for text, claim in zip(line.split("\n"), TASK.claims, strict=True)]
                       for seed in range(200) for line in said("coin", seed)])  # fmt: skip
    assert tossed.shape == (600, 3)
    assert abs(tossed.mean(axis=0) - 0.5).max() < 0.07
    by_level = tossed.reshape(200, 3, 3)
    assert (by_level[:, 0] != by_level[:, 1]).any(axis=1).mean() == pytest.approx(7 / 8, abs=0.1)


@pytest.mark.parametrize("form", ["sentence", "claims"])
def test_another_paper_is_drawn_by_the_seed_and_stays_for_the_episode(form: Any):
    outcomes = {true_outcome(task, form): task.id for task in map(load_task, builtin_ids())}
    drawn = []
    for seed in range(40):
        first, *others = said("other-paper", seed, make("paper12", form=form))
        assert others == [first, first]
        drawn.append(outcomes[first])
    assert said("other-paper", 7, make("paper12", form=form))[0] == next(
        text for text, name in outcomes.items() if name == drawn[7]
    )
    assert len(set(drawn)) > 8
    assert "paper12" not in drawn


def test_the_other_papers_of_a_control_are_neither_of_its_two():
    names = [task.id for task in other_tasks(load_task("paper12-told-paper5"))]
    assert sorted(names) == sorted(set(builtin_ids()) - {"paper12", "paper5"})
    assert len(other_tasks(TASK)) == 18


@pytest.mark.weights
def test_retrieval_tells_the_nearest_outcome_and_changes_it_as_more_is_disclosed(reader: ReaderEmbedder):
    hippocampus = make_task(
        topic="Spatial memory",
        question="How do place cells follow a moved reward?",
        procedure=["Image hippocampal CA1 cells of mice while a hidden reward moves along a familiar track."],
    )
    first, _, last = said("retrieval", env=make(hippocampus, form="sentence"))
    assert last == load_task("paper4").disclosure.outcome
    assert first in {load_task(name).disclosure.outcome for name in builtin_ids()}
    apart = make_task(procedure=["Measure NREM sleep of mice while a Gi pathway of their microglia is activated."])
    texts = said("retrieval", env=make(apart, form="claims", levels=("question", "procedure")))
    assert texts[0] != texts[1] == true_outcome(load_task("paper27"), "claims")


@pytest.mark.weights
def test_retrieval_answers_sheets_by_similarity_and_tells_the_same_again(reader: ReaderEmbedder):
    env = ProjectionEnv("paper12", privileged=True)
    first, second = (play(env, make_agent("retrieval", env), 1) for _ in range(2))
    assert first.actions == second.actions
    sheets = [turn.event.sheet.choices for turn in first.turns if turn.event.kind == "sheet"]
    assert len(sheets) == 3
    assert None not in {choice for choices in sheets for choice in choices}


# Earnings on the shipped papers


@pytest.mark.parametrize("task", [*builtin_ids()[::3], *swapped_tasks()[::6]])
def test_the_bounds_hold_on_papers(task: str):
    claims = load_task(task).claims
    assert returned("oracle", task) == pytest.approx(1)
    worst = -np.mean([1 / len(claim.contraries) for claim in claims])
    assert returned("reversed", task) == pytest.approx(worst)
    for name in ("null", "other-paper"):
        assert returned(name, task) == 0


@pytest.mark.e2e
@pytest.mark.parametrize("deducible", [0.0, 1.0])
def test_baselines_earn_the_computed_chance_over_hundreds_of_worlds(deducible: float):
    env = gym.make("ProjectionBench-synthetic-v0", split="test", claims=4, deducible=deducible, privileged=True)
    returns: dict[str, list[float]] = {"coin": [], "null": [], "oracle": []}
    for name, found in returns.items():
        for seed in range(WORLDS):
            env.reset(seed=seed)
            found.append(play(env, make_agent(name, env), seed).footer.episode_return)
    coin = np.array(returns["coin"])
    assert abs(coin.mean()) < 2.6 * coin.std() / np.sqrt(WORLDS)
    assert coin.std() == pytest.approx(np.sqrt((1 / 16 + 1 / 4 + 1 / 16) / 4), rel=0.15)
    assert (set(returns["null"]), set(returns["oracle"])) == ({0.0}, {1.0})


def test_an_agent_for_worlds_is_made_after_a_reset():
    env = gym.make("ProjectionBench-synthetic-v0", privileged=True)
    with pytest.raises(OptionError, match=r"call env\.reset"):
        make_agent("oracle", env)
    observation, info = env.reset(seed=5)
    assert make_agent("oracle", env).act(observation, info) == env.unwrapped.task.disclosure.outcome


def test_a_sheet_in_a_form_of_ones_own_is_told(tmp_path: Any):
    (tmp_path / "projection.md").write_text("Choose among {{ items }}.", encoding="utf-8")
    env = ProjectionEnv(TASK, privileged=True, prompts=tmp_path)
    with pytest.raises(AgentError, match="the agent reads sheets as"):
        play(env, make_agent("oracle", env), 0)
