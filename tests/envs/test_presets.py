"""The preset `paper` in every environment: its rules, its prompts, and what overrides them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from inquitree_gym import InquiryEnv, Rules, load_tree, play, score_episode
from inquitree_gym.analysis import summarise
from inquitree_gym.baselines import OracleAgent, RandomAgent, RedoUntilTrue, ReplayAgent
from inquitree_gym.envs import SyntheticEnv
from inquitree_gym.envs.synthetic import synthetic_vector
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judges import local_judge
from inquitree_gym.judges.quality import conclusion_quality, evidence_ratios, required
from inquitree_gym.matching import Matcher
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree
from inquitree_gym.wrappers import RewardShaping, VectorRewardShaping
from inquitree_gym.wrappers.actions import menu_env, synthetic_menu_env
from tests.envs.test_batch import LETTERS

PAPER = Rules.preset("paper")
TREE = load_tree("paper12")
FIRST = next(subtopic for subtopic in TREE.subtopics if not subtopic.prerequisites)


def chosen(env: Any) -> Rules:
    return env.unwrapped.rules.override({"threshold": None})


@pytest.mark.parametrize(
    "env",
    [
        lambda **keywords: gym.make("InquiTree-paper12-v0", **keywords),
        lambda **keywords: gym.make("InquiTree-paper12-menu-v0", **keywords),
        lambda **keywords: menu_env("paper12", **keywords),
        lambda **keywords: SyntheticEnv(**keywords),
        lambda **keywords: synthetic_menu_env(**keywords),
        lambda **keywords: synthetic_vector(2, **keywords).envs[1],
        lambda **keywords: gym.make_vec("InquiTree-paper12-v0", 2, **keywords).envs[1],
        lambda **keywords: gym.make_vec("InquiTree-paper12-menu-v0", 2, **keywords).unwrapped._settings,
    ],
    ids=["text", "menu", "menu_env", "synthetic", "synthetic menu", "synthetic vector", "vector", "arrays"],
)
def test_every_environment_takes_the_preset_with_its_prompts(env, tmp_path: Path):
    (tmp_path / "end.md").write_text("Bye.")
    paper = env(rules="paper", embedder=LETTERS)
    assert chosen(paper) == PAPER
    assert paper.unwrapped.prompts.digest == Prompts("paper").digest
    own = env(rules="paper", embedder=LETTERS, decisions="phrases", study_turn=True, fake_level=4, prompts="default")
    assert chosen(own) == PAPER.override({"decisions": "phrases", "study_turn": True, "fake_level": 4})
    assert own.unwrapped.prompts.digest == Prompts().digest
    assert env(prompts="paper", embedder=LETTERS).unwrapped.prompts.digest == Prompts("paper").digest
    assert env(rules="paper", prompts=tmp_path, embedder=LETTERS).unwrapped.prompts.digest == Prompts(tmp_path).digest
    assert chosen(env(rules="default", embedder=LETTERS)) == Rules()


def test_an_unknown_preset_is_refused_as_keyword_and_as_option(minilm):
    with pytest.raises(OptionError, match=r"unknown preset 'papers' \(did you mean 'paper'"):
        gym.make("InquiTree-paper12-v0", rules="papers")
    with pytest.raises(OptionError, match="unknown preset 3; known: default, paper"):
        InquiryEnv("paper12").reset(options={"rules": 3})


def test_a_spec_with_the_preset_survives_json():
    spec = gym.make("InquiTree-paper12-v0", rules="paper", decisions="phrases").spec
    again = gym.make(EnvSpec.from_json(spec.to_json()))
    assert chosen(again) == PAPER.override({"decisions": "phrases"})


def test_the_preset_as_option_holds_for_one_episode_and_leaves_the_texts(minilm):
    env = InquiryEnv("paper12", explore="direct", threshold=0.3)
    env.reset(seed=1, options={"rules": "paper", "redo_turn": False, "fake_level": 2})
    assert env.episode_rules == PAPER.override({"threshold": 0.3, "redo_turn": False, "fake_level": 2})
    assert env.prompts.digest == Prompts().digest
    env.reset(seed=1)
    assert env.episode_rules == Rules(explore="direct", threshold=0.3)


def texts(env: InquiryEnv, *actions: str, **reset: Any) -> list[str]:
    return [env.reset(seed=0, **reset)[0], *(env.step(action)[0] for action in actions)]


def test_a_redo_is_told_in_its_own_words_and_ended_by_anything(minilm):
    study = FIRST.studies[0]
    for prompts, said in (("paper", 'Answer "OK"'), ("default", "This study is run again")):
        env = InquiryEnv("paper12", rules="paper", prompts=prompts)
        *_, result, redo, again = texts(env, FIRST.text, study.text, "redo_study", "OK")
        assert said in redo
        assert study.text in redo
        assert study.result not in redo
        assert again == result
        assert env.state.turn == 4


@pytest.mark.parametrize("text", ["Redo the study, please.", "Let us draw a conclusion.", "Run it once more."])
def test_a_decision_is_a_token_and_nothing_else(text: str, minilm):
    env = InquiryEnv("paper12", rules="paper")
    *_, asked = texts(env, FIRST.text, FIRST.studies[0].text, text)
    assert asked == 'That is no decision. Answer "redo_study", "explore_new_subtopic" or "draw_conclusion".'
    assert env.step("I would DRAW_CONCLUSION now.")[4]["state"] != "result"


def test_a_visited_subtopic_may_be_named_at_a_result_even_in_words_of_repeating(minilm):
    proposal = f"Again: {FIRST.text}"
    env, default = (InquiryEnv("paper12", rules=rules) for rules in ("paper", "default"))
    for each, state in ((env, "topic"), (default, "result")):
        texts(each, FIRST.text, FIRST.studies[0].text)
        assert each.step(proposal)[4]["state"] == state
    env.step(FIRST.text)
    assert env.state.visits[TREE.subtopics.index(FIRST)] == 2


def test_nothing_but_a_decision_is_a_proposal_like_any_other(minilm):
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


def test_the_reward_weighs_with_the_rule(minilm):
    tree = grouped()
    groups, results = (InquiryEnv(tree, evidence=each) for each in ("groups", "results"))
    for env in (groups, results):
        first = next(s for s in tree.subtopics if not s.prerequisites)
        texts(env, first.text, first.studies[0].text, "draw_conclusion")
        *_, reward, _, _, _ = env.step("1. " + "\n2. ".join(item.text for item in tree.conclusions))
        verdicts = env.runtime.judge.judge("1. " + "\n2. ".join(item.text for item in tree.conclusions))
        quality = conclusion_quality(tree, env.state.proven, verdicts, env.rules.evidence)
        assert reward == pytest.approx(quality / len(tree.conclusions))


def test_a_matcher_under_the_preset_reads_alike_in_batches(minilm):
    env = InquiryEnv("paper12", rules="paper")
    texts(env, FIRST.text, FIRST.studies[0].text)
    matcher: Matcher = env.runtime.matcher
    assert matcher.to_embed(env.state, "redo_study") is None
    assert matcher.to_embed(env.state, "Repeat that with more neurons.") == "Repeat that with more neurons."


def test_a_redo_is_paid_in_its_turn_by_arrays_and_by_single_environments_alike():
    keywords = {"rules": "paper", "fake_level": 5, "embedder": LETTERS, "max_turns": 9}
    single = RewardShaping(menu_env("paper2", **keywords), gamma=1.0, spotted_fake=1.0)
    arrays = VectorRewardShaping(gym.make_vec("InquiTree-paper2-menu-v0", 1, **keywords), gamma=1.0, spotted_fake=1.0)
    tree = load_tree("paper2")
    redo = len(tree.subtopics) + len(tree.studies)
    paid = 0
    for seed in range(6):
        single.reset(seed=seed)
        arrays.reset(seed=seed)
        start = next(i for i, s in enumerate(tree.subtopics) if not s.prerequisites)
        study = len(tree.subtopics) + sum(len(s.studies) for s in tree.subtopics[:start])
        for action in [start, study, *[redo, redo] * 3, redo]:
            mine, theirs = single.step(action), arrays.step([action])
            assert mine[1] == pytest.approx(theirs[1][0])
            paid += mine[1] != 0
    assert paid


def test_the_preset_can_be_written_as_json():
    assert json.loads(json.dumps(PAPER.as_dict()))["redo_turn"] is True


def test_a_torn_log_under_the_preset_is_resumed_and_replayed(tmp_path: Path, minilm):
    def env(**keywords: Any) -> InquiryEnv:
        return InquiryEnv("paper2", rules="paper", fake_level=5, max_turns=30, privileged=True, **keywords)

    def agent() -> RedoUntilTrue:
        return RedoUntilTrue(RandomAgent(load_tree("paper2")))

    whole = play(env(), agent(), 4, file=tmp_path / "whole.jsonl")
    assert "redo" in [turn.event.kind for turn in whole.turns]
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "torn.jsonl").write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(LogError, match=r"recorded settings differ \(rules: .*'redo_turn': True"):
        play(env(redo_turn=False), agent(), 4, file=tmp_path / "torn.jsonl")
    with pytest.raises(LogError, match=r"recorded settings differ \(prompts: "):
        play(env(prompts="default"), agent(), 4, file=tmp_path / "torn.jsonl")
    resumed = play(env(), agent(), 4, file=tmp_path / "torn.jsonl")
    assert resumed.fingerprint == whole.fingerprint
    rules = Rules.recorded(whole.header.rules).as_dict()
    replayed = play(InquiryEnv("paper2", prompts="paper", **rules), ReplayAgent(whole.actions), 4)
    assert replayed.fingerprint == whole.fingerprint


def test_scores_tell_rules_apart_and_weigh_evidence_by_them(minilm):
    tree = load_tree("paper12")
    scores = {}
    for evidence in ("groups", "results"):
        env = InquiryEnv(tree, evidence=evidence, privileged=True)
        episode = play(env, OracleAgent(tree), 0)
        scores[evidence] = score_episode(episode, tree, local_judge(tree))
        assert scores[evidence].quality_share == pytest.approx(episode.footer.episode_return)
    assert scores["results"].quality_share < scores["groups"].quality_share
    assert "rules" not in scores["groups"].reading
    assert scores["results"].reading.endswith("rules: default, evidence=results")
    assert len({each.setting for each in summarise(list(scores.values()))}) == 2
