"""The environment of projections under Gymnasium's interface: disclosure, rules, tasks, and F1 by a judge."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquitree_gym.envs import ProjectionEnv, ProjectionRules
from inquitree_gym.errors import OptionError, TreeError
from inquitree_gym.projection.judges.alignment import area_under_levels, level_weights
from inquitree_gym.seeds import seed_of_agent
from inquitree_gym.text_limits import MAX_ACTION_LENGTH, MAX_OBSERVATION
from inquitree_gym.trees.disclosure import LEVELS, MAX_DISCLOSED
from tests.inquiry.test_inquiry import HOSTILE
from tests.projection.tasks import WORDS, named_task
from tests.tasks import make_task

TASK = make_task()
RIGHT = "\n".join(claim.text for claim in TASK.claims)
WRONG = "\n".join(claim.contraries[0] for claim in TASK.claims)
HALF = f"{TASK.claims[0].text}\n{TASK.claims[1].contraries[0]}\nOvens cool."
SAYINGS = [RIGHT, WRONG, HALF, TASK.claims[1].text, "", "Ovens cool.", *(text[:20_000] for text in HOSTILE.values())]
ORDERS = [order for size in (1, 2, 3) for order in permutations(LEVELS, size)]
WITHHELD = (TASK.disclosure.hypothesis, TASK.disclosure.outcome, *(claim.text for claim in TASK.claims))
RULES: dict[str, Any] = {"levels": ("procedure", "question"), "form": "claims", "reward": "none"}
"""Every rule at another value than its default."""


def make(task: Any = TASK, **keywords: Any) -> ProjectionEnv:
    return ProjectionEnv(task, **{"judge": WORDS, **keywords})


def trajectory(env: gym.Env, seed: int | None, actions: Any, options: Any = None) -> list[tuple]:
    """What reset and every step returned, up to the end of the episode."""
    steps: list[tuple] = [env.reset(seed=seed, options=options)]
    for action in actions:
        steps.append(env.step(action))
        if steps[-1][2]:
            break
    return steps


# Turns and rewards


def test_an_episode_discloses_one_level_per_turn_and_a_judge_pays_at_the_end():
    env, told = make(), TASK.disclosure
    (first, info), *found = trajectory(env, 3, [RIGHT, "", RIGHT])
    assert info == {"state": "project", "level": "question", "turn": 0}
    assert told.question in first
    assert told.null_hypothesis not in first
    assert told.null_hypothesis in found[0][0]
    assert told.procedure[0] not in found[0][0]
    assert all(text in found[1][0] for text in (told.topic, told.question, told.null_hypothesis, *told.procedure))
    assert [step[1:4] for step in found] == [(0.0, False, False), (0.0, False, False), (0.5, True, False)]
    assert [step[4] for step in found] == [
        {"state": "project", "level": "null", "turn": 1},
        {"state": "project", "level": "procedure", "turn": 2},
        {"state": "end", "level": "procedure", "turn": 3},
    ]


@given(st.sampled_from(ORDERS), st.lists(st.sampled_from(SAYINGS), min_size=3, max_size=3), st.integers(0, 2**64 - 1))
def test_the_return_is_the_weighted_f1_whatever_is_said_in_whatever_order(levels, actions, seed):
    _, *steps = trajectory(make(levels=levels, privileged=True), seed, actions)
    f1 = np.array([step[4]["privileged"]["f1"] for step in steps])
    rewards = [step[1] for step in steps]
    assert len(rewards) == len(levels)
    assert not any(rewards[:-1])
    assert rewards[-1] == pytest.approx(level_weights(len(levels)) @ f1)
    assert rewards[-1] * max(1, len(levels) - 1) == pytest.approx(area_under_levels(f1))
    assert all(type(reward) is float and 0 <= reward <= 1 for reward in rewards)
    assert {step[1] for step in trajectory(make(levels=levels, judge=None, reward="none"), seed, actions)[1:]} == {0.0}


@given(
    st.sampled_from(ORDERS),
    st.lists(st.one_of(st.sampled_from(SAYINGS), st.text(max_size=60)), min_size=3, max_size=3),
    st.sampled_from(["sentence", "claims"]),
)
def test_observations_add_up_and_tell_nothing_of_the_score_or_of_what_is_withheld(levels, actions, form):
    said = [step[0] for step in trajectory(make(levels=levels, form=form), 1, actions)]
    silent = [step[0] for step in trajectory(make(levels=levels, form=form), 1, [""] * 3)]
    assert said == silent
    for turn, text in enumerate(said[:-1]):
        for level in LEVELS:
            shown = all(part in text for part in TASK.disclosure.texts_of(level))
            assert shown == (level in levels[: turn + 1])
    assert not any(part in text for part in WITHHELD for text in said)
    assert said[-1] == "Your projection has been recorded. The task is over."


def test_each_form_asks_for_itself_and_the_null_is_shown_as_unverified():
    sentence, claims = (make(form=form, levels=("null",)).reset(seed=0)[0] for form in ("sentence", "claims"))
    assert "write one sentence" in sentence
    assert "write one claim per line" in claims
    assert sentence.splitlines()[:-1] == claims.splitlines()[:-1]
    assert f"Unverified hypothesis: {TASK.disclosure.null_hypothesis}" in sentence


def test_only_so_many_characters_are_read():
    env, padding = make(privileged=True), "\n" * MAX_ACTION_LENGTH
    steps = trajectory(env, 1, [padding + RIGHT, padding[: MAX_ACTION_LENGTH - len(RIGHT)] + RIGHT, "x" * 20_000])
    assert [step[4]["privileged"]["f1"] for step in steps[1:]] == [0, 1, 0]
    assert env.last_transition.action == "x" * 20_000


# Info


def test_privileged_info_holds_claims_pairs_ratings_and_score():
    (_, start), first, *_ = trajectory(make(privileged=True), 1, [HALF] * 3)
    claims = [
        {
            "id": claim.id, "text": claim.text, "independent": claim.independent, "relation": claim.relation,
            "dependent": claim.dependent, "contraries": list(claim.contraries),
        }
        for claim in TASK.claims
    ]  # fmt: skip
    assert start["privileged"] == {"claims": claims}
    assert first[4]["privileged"] == {
        "claims": claims,
        "analogous": [TASK.claims[0].text, TASK.claims[1].contraries[0], None],
        "extraneous": ["Ovens cool."],
        "pair_ratings": [[1.0, 1.0], [-1.0, -1.0], [None, None]],
        "extra_ratings": [[[0.0, 0.0]] * 3],
        "pairs": [1.0, -1.0, None],
        "extras": [0.0],
        "true_positives": 1.0,
        "false_positives": 1.0,
        "relevant": 3.0,
        "precision": 0.5,
        "recall": pytest.approx(1 / 3),
        "f1": pytest.approx(0.4),
    }


# Seeds and tasks


TASKS = [named_task(name) for name in ("rye", "spelt", "wheat")]


def test_the_seed_draws_the_task_and_the_seed_of_the_agent():
    one, other = make(TASKS), make(TASKS)
    drawn = []
    for seed in range(60):
        assert one.reset(seed=seed) == other.reset(seed=seed)
        assert one.agent_seed == other.agent_seed == seed_of_agent(seed, one.task.id)
        drawn.append(one.task.id)
    assert {name: drawn.count(name) >= 10 for name in set(drawn)} == dict.fromkeys(("rye", "spelt", "wheat"), True)


@pytest.mark.parametrize("wrong", [[], (), 12, None, {"paper12"}])
def test_what_is_no_task_is_refused(wrong: Any):
    env = make()
    for ask in (lambda: make(wrong), lambda: env.reset(options={"task": wrong})):
        with pytest.raises(
            OptionError, match="task must be an id, a path, a Tree with a disclosure, a ProjectionTask, or"
        ):
            ask()


def test_what_is_disclosed_fits_into_an_observation(tmp_path):
    told = sum(len(text) for level in LEVELS for text in TASK.disclosure.texts_of(level) if level != "procedure")
    full = [*["x" * 4_000] * 2, "x" * (MAX_DISCLOSED - 8_000 - told)]
    assert len(trajectory(make(make_task(procedure=full)), 1, ["", ""])[-1][0]) <= MAX_OBSERVATION
    with pytest.raises(TreeError, match=r"12,001 characters are disclosed; .* may hold 12,000 together"):
        make_task(procedure=[*full, "x"])
    (tmp_path / "projection.md").write_text("{{ procedure or ' ' }}" * 2, encoding="utf-8")
    with pytest.raises(OptionError, match=r"'projection\.md' makes \d\d,\d+ characters; at most 16,384 fit"):
        trajectory(make(make_task(procedure=full), prompts=tmp_path), 1, ["", ""])


# Rules


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_means_the_same_as_keyword_and_as_option(rule: str):
    assert set(RULES) == set(ProjectionRules.names())
    changed = {rule: RULES[rule]}
    keyword, option = make(judge=None, **changed), make(judge=None)
    plain = trajectory(option, 3, [RIGHT] * 3)
    assert trajectory(option, 3, [RIGHT] * 3, changed) == trajectory(keyword, 3, [RIGHT] * 3) != plain
    assert keyword.rules == ProjectionRules(**changed) == ProjectionRules(**keyword.rules.as_dict())


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("levels", ()), ("levels", ("null", "null")), ("levels", ("outcome",)), ("levels", "question"),
        ("levels", ("question", 3)), ("levels", None), ("levels", ([],)), ("form", "claim"), ("form", None),
        ("reward", "each"), ("reward", "end"), ("reward", True), ("form", []),
    ],
)  # fmt: skip
def test_a_rule_out_of_range_is_refused(rule: str, value: Any):
    env = make(judge=None)
    for ask in (lambda: make(judge=None, **{rule: value}), lambda: env.reset(options={rule: value})):
        with pytest.raises(OptionError, match=rf"^{rule} must be .*, got "):
            ask()


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"reward": "judge", "judge": None}, "reward='judge' needs judge="),
        ({"reward": "sheet"}, "does nothing with reward='sheet'; leave one of them out"),
        ({"reward": "none"}, "does nothing with reward='none'; leave one of them out"),
        ({"judge": "local"}, "no judge is called 'local' here; leave judge out for sheets"),
        ({"judge": "llama"}, "no judge is called 'llama'"), ({"embedder": "x"}, "unknown option 'embedder'"),
    ],
)  # fmt: skip
def test_reward_and_judge_have_to_go_together(keywords: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        make(**keywords)


@pytest.mark.parametrize(("judge", "rewards"), [(WORDS, ("sheet", "none")), (None, ("judge",))])
def test_an_episode_cannot_be_paid_in_another_way_if_that_needs_another_judge(judge: Any, rewards: tuple[str, ...]):
    env = make(judge=judge)
    for reward in rewards:
        with pytest.raises(OptionError, match=f"reward='{reward}' does not go with (a|no) judge of the environment"):
            env.reset(options={"reward": reward})


# Views


def test_every_turn_is_shown_with_task_level_and_text(capsys):
    env = make(render_mode="ansi")
    observation, _ = env.reset(seed=1)
    assert env.render() == f"bread · turn 0 of 3 · question\n{'─' * 30}\n{observation}\n"
    *_, last = trajectory(env, 1, [RIGHT] * 3)
    assert env.render() == f"bread · turn 3 of 3 · procedure\n{'─' * 31}\n{last[0]}\n"
    trajectory(make(render_mode="human"), 1, [RIGHT] * 3)
    printed = capsys.readouterr().out
    assert [printed.count(f"bread · turn {turn} of 3") for turn in range(4)] == [1, 1, 1, 1]
    assert "Your projection has been recorded" in printed
