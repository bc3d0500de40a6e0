"""The preset `paper` in every environment: its rules, its prompts, and what overrides them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from inquitree_gym import InquiryEnv, Rules, load_tree, play, score_episode
from inquitree_gym.baselines import OracleAgent
from inquitree_gym.envs import SyntheticEnv
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.actions import menu_env, synthetic_menu_env
from inquitree_gym.inquiry.engine.rules import logged_rules
from inquitree_gym.inquiry.judges.quality import Verdict, conclusion_quality, evidence_ratios, required
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.inquiry.vector import synthetic_vector
from inquitree_gym.judging.judgement import Judged, Judgement
from inquitree_gym.results.summary import summarise
from inquitree_gym.trees import Tree
from tests.inquiry.test_batch import LETTERS

PAPER = Rules.preset("paper")
TREE = load_tree("paper12")
FIRST = next(subtopic for subtopic in TREE.subtopics if not subtopic.requires)


def chosen(env: Any) -> Rules:
    return env.unwrapped.rules.override({"threshold": None})


@pytest.mark.parametrize(
    "env",
    [
        lambda **keywords: gym.make("InquiTree-paper12-v0", **keywords),
        lambda **keywords: SyntheticEnv(**keywords),
        lambda **keywords: synthetic_vector(2, **keywords).envs[1],
        lambda **keywords: gym.make_vec("InquiTree-paper12-v0", 2, **keywords).envs[1],
    ],
    ids=["text", "synthetic", "synthetic vector", "vector"],
)
def test_every_environment_takes_the_preset_with_its_prompts(env, tmp_path: Path):
    (tmp_path / "end.md").write_text("Bye.")
    paper = env(rules="paper", embedder=LETTERS)
    assert chosen(paper) == PAPER
    assert paper.unwrapped.prompts.digest == inquiry_prompts("paper").digest
    own = env(
        rules="paper", embedder=LETTERS, decisions="phrases", bare_decisions=True, fake_level=4, prompts="default"
    )
    rules = {"decisions": "phrases", "bare_decisions": True, "fake_level": 4}
    assert chosen(own) == PAPER.override(rules)
    assert own.unwrapped.prompts.digest == inquiry_prompts().digest
    assert env(prompts="paper", embedder=LETTERS).unwrapped.prompts.digest == inquiry_prompts("paper").digest
    mine = env(rules="paper", prompts=tmp_path, embedder=LETTERS)
    assert mine.unwrapped.prompts.digest == inquiry_prompts(tmp_path).digest
    assert chosen(env(rules="default", embedder=LETTERS)) == Rules()


@pytest.mark.parametrize(
    "make",
    [
        lambda **keywords: menu_env("paper12", **keywords),
        lambda **keywords: synthetic_menu_env(**keywords),
        lambda **keywords: gym.make_vec("InquiTree-paper12-menu-v0", 2, **keywords),
    ],
    ids=["menu", "synthetic menu", "arrays"],
)
def test_discrete_views_need_an_exam(make):
    with pytest.raises(OptionError, match="a discrete view answers the exam, and these rules have none"):
        make(rules="paper", embedder=LETTERS)
    env = make(rules="paper", exam="items", embedder=LETTERS)
    env.reset(seed=0)
    with pytest.raises(OptionError, match="answers the exam"):
        env.reset(options={"rules": "paper"})
    with pytest.raises(OptionError, match="exam must be 'items', got 'sheet'"):
        env.reset(options={"exam": "sheet"})


def test_an_unknown_preset_is_refused_as_keyword_and_as_option(reader):
    with pytest.raises(OptionError, match=r"unknown preset 'papers' \(did you mean 'paper'"):
        gym.make("InquiTree-paper12-v0", rules="papers")
    with pytest.raises(OptionError, match="unknown preset 3; known: default, paper"):
        InquiryEnv("paper12").reset(options={"rules": 3})


def test_rules_of_logs_are_made_once_and_each_value_is_checked_by_its_type():
    rules = Rules(fake_level=1).as_dict()
    assert logged_rules(rules) is logged_rules(dict(rules)) == Rules(fake_level=1)
    for damage in ({"fake_level": True}, {"redo_turn": 0}, {"decisions": []}, {"no_rule": 1}):
        with pytest.raises(OptionError):
            logged_rules(rules | damage)


def test_the_preset_as_option_holds_for_one_episode_and_leaves_the_texts(reader):
    env = InquiryEnv("paper12", reruns="match", threshold=0.3)
    env.reset(seed=1, options={"rules": "paper", "redo_turn": False, "fake_level": 2})
    assert env.episode_rules == PAPER.override({"threshold": 0.3, "redo_turn": False, "fake_level": 2})
    assert env.prompts.digest == inquiry_prompts().digest
    env.reset(seed=1)
    assert env.episode_rules == Rules(reruns="match", threshold=0.3)


def texts(env: InquiryEnv, *actions: str, **reset: Any) -> list[str]:
    return [env.reset(seed=0, **reset)[0], *(env.step(action)[0] for action in actions)]


def test_a_redo_is_told_in_its_own_words_and_ended_by_anything(reader):
    study = FIRST.studies[0]
    for prompts, said in (("paper", 'Answer "OK"'), ("default", "This study is run again")):
        env = InquiryEnv("paper12", rules="paper", prompts=prompts)
        *_, result, redo, again = texts(env, FIRST.text, study.text, "redo_study", "OK")
        assert said in redo
        assert study.text in redo
        assert not any(text in redo for wordings in study.outcomes for text in wordings)
        assert again == result
        assert env.state.turn == 4


@pytest.mark.parametrize("text", ["Redo the study, please.", "Let us draw a conclusion.", "Run it once more."])
def test_a_decision_is_a_token_and_nothing_else(text: str, reader):
    env = InquiryEnv("paper12", rules="paper")
    *_, asked = texts(env, FIRST.text, FIRST.studies[0].text, text)
    assert asked == 'That is no decision. Answer "redo_study", "explore_new_subtopic" or "draw_conclusion".'
    assert env.step("I would DRAW_CONCLUSION now.")[4]["state"] != "result"


def test_a_visited_subtopic_may_be_named_at_a_result_even_in_words_of_repeating(reader):
    proposal = f"Again: {FIRST.text}"
    env, default = (InquiryEnv("paper12", rules=rules) for rules in ("paper", "default"))
    for each, state in ((env, "topic"), (default, "result")):
        texts(each, FIRST.text, FIRST.studies[0].text)
        assert each.step(proposal)[4]["state"] == state
    env.step(FIRST.text)
    assert env.state.visits[TREE.subtopics.index(FIRST)] == 2


def test_nothing_but_a_decision_is_a_proposal_like_any_other(reader):
    env = InquiryEnv("paper12", rules="paper")
    assert "A hint:" in texts(env, "draw_conclusion")[-1]
    env.step(FIRST.text)
    assert env.step("explore_new_subtopic")[4]["state"] == "subtopic"


def grouped() -> Tree:
    """A tree whose first item needs two results of one group and one of another."""
    item = TREE.conclusions[0]
    a, b, c = (study.id for study in TREE.studies[:3])
    needs = ((a, b), (c, a))
    return TREE.model_copy(update={"conclusions": (item.model_copy(update={"needs": needs}), *TREE.conclusions[1:])})


def test_eq_8_counts_groups_or_results_literally():
    tree = grouped()
    a, b, c = (study.id for study in TREE.studies[:3])
    assert required(tree.conclusions[0]) == ((a, b), (c, a))
    assert required(tree.conclusions[0], "results") == ((a,), (b,), (c,))
    assert evidence_ratios(tree, 0b001)[0] == 1
    assert evidence_ratios(tree, 0b001, "results")[0] == pytest.approx(1 / 3)
    assert evidence_ratios(tree, 0b110, "results")[0] == pytest.approx(2 / 3)


class Coin:
    """Finds every item right."""

    name, config = "coin", {"version": 1}

    async def judge(self, task, text: str) -> Judgement:
        return Judgement(tuple(Verdict(1.0, "") for _ in task.conclusions))


def test_the_reward_weighs_with_the_rule(reader):
    tree = grouped()
    groups, results = (InquiryEnv(tree, evidence=each, judge=Coin(), exam="none") for each in ("groups", "results"))
    for env in (groups, results):
        first = next(s for s in tree.subtopics if not s.requires)
        texts(env, first.text, first.studies[0].text, "draw_conclusion")
        *_, reward, _, _, _ = env.step("1. It rose.")
        verdicts = (Verdict(1.0, ""),) * len(tree.conclusions)
        quality = conclusion_quality(tree, env.state.proven, verdicts, env.rules.evidence)
        assert reward == pytest.approx(quality / len(tree.conclusions))


def test_scores_tell_rules_apart_and_weigh_evidence_by_them(reader):
    tree = load_tree("paper12")
    scores = {}
    for evidence in ("groups", "results"):
        env = InquiryEnv(tree, evidence=evidence, privileged=True)
        episode = play(env, OracleAgent(tree), 0)
        judged = Judged("given", 1, {len(episode.turns) - 1: (Verdict(1.0, ""),) * len(tree.conclusions)})
        scores[evidence] = score_episode(episode, tree, judged)
    assert scores["results"].detail.quality_share < scores["groups"].detail.quality_share
    assert "rules" not in scores["groups"].rules
    assert scores["results"].rules.endswith("rules: default, evidence=results")
    assert len({each.setting for each in summarise(list(scores.values()))}) == 2
