"""Baseline agents on real trees, read by the real embedder."""

from __future__ import annotations

import random  # noqa: TID251  (its global state is what is checked)
import re
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from inquitree_gym.baselines import (
    BASELINE_NAMES,
    BaselineAgent,
    HumanAgent,
    RandomAgent,
    RandomMenuAgent,
    RandomWordsAgent,
    ReplayAgent,
    RetrievalAgent,
    WorstCaseAgent,
    make_agent,
)
from inquitree_gym.baselines.answers import random_answers, shown_items
from inquitree_gym.embeddings import Embedder, ReaderEmbedder, tree_vectors
from inquitree_gym.envs.spaces import WORDS
from inquitree_gym.errors import AgentError, LogError
from inquitree_gym.inquiry.agents.answers import sheet_answers
from inquitree_gym.inquiry.agents.scripted import MAX_RUNS, exam_groups, menu_texts, owners_of, planned_studies
from inquitree_gym.inquiry.decisions import TOKENS
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.events import InquiryEvent
from inquitree_gym.inquiry.exam import exam_of
from inquitree_gym.inquiry.menu import numbered
from inquitree_gym.inquiry.trajectory import world_of
from inquitree_gym.log import Episode
from inquitree_gym.rollout import play
from inquitree_gym.sheets import LETTERS, Sheet
from inquitree_gym.trees import HINT_LEVELS, Tree, builtin_ids, load_tree
from inquitree_gym.trees.worlds import in_world
from tests.hashing import HashingEmbedder
from tests.strategies import make_tree, readable
from tests.worlds import world_trees

PHRASES = tuple(TOKENS)
SOME = builtin_ids()[::5]
PLAIN = readable(make_tree([[], [0], [1], [], [3]], [1] * 5))
"""A tree in which every study is needed."""


def length(episode: Episode) -> int:
    """L: turns up to and including the decision to conclude."""
    assert episode.turns[-1].event.kind == "end"
    return next(turn.turn for turn in episode.turns if turn.event.state == "conclusion")


def kinds(episode: Episode) -> list[str]:
    return [turn.event.kind for turn in episode.turns]


def oracle_plays(tree: str | Tree, seed: int = 0, **rules) -> Episode:
    env = InquiryEnv(tree, privileged=True, **rules)
    return play(env, make_agent("oracle", env), seed)


@pytest.fixture(scope="module")
def paper12() -> Tree:
    return load_tree("paper12")


@pytest.mark.parametrize("tree_id", builtin_ids())
def test_the_oracle_enters_all_reads_every_axis_and_answers_right(tree_id: str):
    tree = load_tree(tree_id)
    n, plan = len(tree.subtopics), planned_studies(tree, exam_groups(tree))
    assert {owners_of(tree)[study] for study in plan[:n]} == set(range(n))
    episode = oracle_plays(tree, seed=4, max_turns=None)
    assert length(episode) == 3 * len(plan)
    assert (episode.footer.episode_return, {turn.event.accepted for turn in episode.turns}) == (1, {True})
    shown = {turn.event.node for turn in episode.turns if turn.event.kind == "result"}
    assert shown == {tree.studies[study].id for study in plan}
    short = oracle_plays(tree, seed=4, max_turns="3n")
    assert len({turn.event.node for turn in short.turns if turn.event.kind == "subtopic"}) == n
    assert length(short) == 3 * n
    read = sum(not set(plan[:n]).isdisjoint(studies) for studies in exam_groups(tree))
    assert short.footer.episode_return == pytest.approx(read / len(exam_of(tree).poles))


@pytest.mark.parametrize("tree_id", SOME)
def test_no_course_of_one_study_in_every_subtopic_reads_more_axes_than_the_oracles(tree_id: str):
    tree = load_tree(tree_id)
    groups, owners = exam_groups(tree), owners_of(tree)
    inside = [[study for study, owner in enumerate(owners) if owner == i] for i in range(len(tree.subtopics))]
    most = max(sum(not group.isdisjoint(course) for group in groups) for course in product(*inside))
    plan = planned_studies(tree, groups)[: len(inside)]
    assert sum(not group.isdisjoint(plan) for group in groups) == most


@pytest.mark.parametrize("world", ["any", "complement", "test"])
@pytest.mark.parametrize("tree_id", ["paper2", "paper28"])
def test_the_oracle_states_what_holds_in_the_world_of_the_episode(tree_id: str, world: str):
    env = InquiryEnv(tree_id, privileged=True, world=world)
    env.reset(seed=0)
    agent = make_agent("oracle", env)
    for seed in range(5):
        episode = play(env, agent, seed)
        holds = in_world(env.tree, tuple(map(int, episode.header.setup.world)))
        assert episode.actions[-2] == numbered([item.text for item in holds.conclusions])
        assert episode.footer.episode_return == 1


@settings(max_examples=10, deadline=None)
@given(tree=world_trees(max_axes=4), seed=st.integers(0, 2**32 - 1))
def test_the_oracle_reads_every_axis_of_a_drawn_tree_with_the_fewest_studies(tree: Tree, seed: int):
    needed = [group for group in exam_groups(tree) if group]
    owners = owners_of(tree)
    needed += [{study for study, owner in enumerate(owners) if owner == i} for i in set(owners)]
    plan = planned_studies(tree, exam_groups(tree))
    shorter = combinations(range(len(owners)), len(plan) - 1)
    assert not any(all(group.intersection(studies) for group in needed) for studies in shorter)
    episode = oracle_plays(tree, seed=seed, max_turns=None, embedder=HashingEmbedder())
    assert (length(episode), episode.footer.episode_return) == (3 * len(plan), 1)


@pytest.mark.parametrize("tree_id", SOME)
def test_without_an_exam_the_oracle_meets_all_evidence(tree_id: str):
    tree = load_tree(tree_id)
    episode = oracle_plays(tree, rules="paper")
    required = {name for item in tree.conclusions for group in item.needs for name in group}
    assert {turn.event.node for turn in episode.turns if turn.event.kind == "result"} >= required, "by Eq. 8 literally"
    assert kinds(episode)[-1] == "end"


@pytest.mark.parametrize("seed", range(4))
def test_a_redo_with_a_turn_of_its_own_never_costs_the_oracle_a_subtopic(paper12: Tree, seed: int):
    n = len(paper12.subtopics)
    for spare in (0, 1, 2, 5):
        env = InquiryEnv(paper12, privileged=True, rules="paper", fake_level=6, max_turns=3 * n + spare)
        episode = play(env, make_agent("oracle", env), seed)
        assert len({turn.event.node for turn in episode.turns if turn.event.kind == "subtopic"}) == n
        assert sum(turn.event.kind == "redo" for turn in episode.turns) <= spare // 2


@pytest.mark.parametrize("tree_id", SOME)
def test_the_worst_case_takes_n_times_2h_plus_3_turns(tree_id: str):
    env = InquiryEnv(tree_id, privileged=True, rules="paper")
    episode = play(env, WorstCaseAgent(), 0)
    n = len(load_tree(tree_id).subtopics)
    assert length(episode) == n * (2 * HINT_LEVELS + 3) == env.turn_limit
    assert not any(turn.event.limit for turn in episode.turns)
    assert sum(turn.event.forced for turn in episode.turns) == 2 * n
    with_exam = play(InquiryEnv(tree_id, privileged=True), WorstCaseAgent(), 0)
    assert kinds(with_exam)[-3:] == ["exam", "exam_again", "end"]
    assert (episode.footer.episode_return, with_exam.footer.episode_return) == (0, 0)


@pytest.mark.parametrize("tree_id", SOME)
@pytest.mark.parametrize("level", [4, 10])
def test_the_oracle_redoes_fakes_and_still_traverses_fully(tree_id: str, level: int):
    episode = oracle_plays(tree_id, seed=3, fake_level=level, max_turns="11n")
    tree = load_tree(tree_id)
    entered = {turn.event.node for turn in episode.turns if turn.event.kind == "subtopic"}
    assert entered == {subtopic.id for subtopic in tree.subtopics}
    assert episode.turns[-3].event.decision == "conclude"
    assert not any(turn.event.limit for turn in episode.turns)
    answers = [(bool(before.event.fake), after.event.decision) for before, after in pairs(episode)]
    assert (False, "redo") not in answers, "a true result was redone"
    if level == 4:
        assert not {(True, "explore"), (True, "conclude")} & set(answers), "a fake was taken though turns were left"
    else:
        assert (True, "redo") in answers
    assert episode.footer.episode_return == 1, "a fake result reads an axis, too"


@pytest.mark.parametrize("redo_turn", [False, True])
def test_the_oracle_redoes_only_while_the_turns_left_allow_a_full_traversal(redo_turn: bool):
    fewest = 3 * len(PLAIN.subtopics)
    cost = 1 + redo_turn
    for spare in range(8):
        episode = oracle_plays(PLAIN, fake_level=10, redo_turn=redo_turn, max_turns=fewest + spare)
        redone = sum(turn.event.decision == "redo" for turn in episode.turns)
        assert redone == spare // cost
        assert episode.turns[-3].event.decision == "conclude"
        assert length(episode) == fewest + redone * cost


def test_without_a_turn_limit_the_oracle_redoes_every_fake_and_gives_up_at_level_10():
    episode = oracle_plays("paper12", seed=1, fake_level=6, max_turns=None)
    assert length(episode) > 21
    assert all(after.event.decision == "redo" for before, after in pairs(episode) if before.event.fake)
    hopeless = oracle_plays(PLAIN, fake_level=10, max_turns=None)
    assert length(hopeless) == 15 + 5 * (MAX_RUNS - 1)


def pairs(episode: Episode):
    return zip(episode.turns, episode.turns[1:], strict=False)


@pytest.mark.parametrize("tree_id", SOME)
def test_the_random_agent_follows_appendix_b2(tree_id: str):
    tree = load_tree(tree_id)
    n = len(tree.subtopics)
    by_text = {subtopic.text: subtopic.id for subtopic in tree.subtopics}
    studies = {subtopic.id: {study.text for study in subtopic.studies} for subtopic in tree.subtopics}
    menu = set(menu_texts(tree))
    for seed in range(3):
        episode = play(InquiryEnv(tree, max_turns=None), RandomAgent(tree), seed)
        entered: list[str] = []
        state = "topic"
        for turn in episode.turns:
            if state == "topic":
                assert by_text[turn.action] not in entered, "a subtopic was proposed that had been entered"
            elif state == "subtopic":
                assert turn.action in studies[entered[-1]]
            elif state == "result":
                assert turn.event.decision == ("conclude" if len(entered) == n else "explore")
            if turn.event.kind == "subtopic":
                entered.append(turn.event.node)
            state = turn.event.state
        assert sorted(entered) == sorted(by_text.values())
        assert 3 * n <= length(episode) <= n * (2 * HINT_LEVELS + 3)
        claims = re.findall(r"^\d+\. (.+)$", episode.actions[-2], re.MULTILINE)
        assert len(claims) == len(tree.conclusions)
        assert set(claims) <= menu


def test_the_random_agent_is_uniform_over_what_is_left():
    tree = make_tree([[], [], [], []], [3, 1, 1, 1])
    agent = RandomAgent(tree)
    agent.reset(5)
    agent.act(f"The project turns to this:\n\n{tree.subtopics[1].text}", {"state": "subtopic"})
    chosen = Counter(agent.act("", {"state": "topic"}) for _ in range(3_000))
    assert set(chosen) == {tree.subtopics[i].text for i in (0, 2, 3)}
    assert chisquare(list(chosen.values())).pvalue > 1e-4
    designs = Counter(agent.act(tree.subtopics[0].text, {"state": "subtopic"}) for _ in range(3_000))
    assert set(designs) == {study.text for study in tree.subtopics[0].studies}
    assert chisquare(list(designs.values())).pvalue > 1e-4


@pytest.mark.parametrize("state", ["topic", "subtopic", "study", "result"])
def test_random_menu_is_uniform_over_everything_at_every_decision(state: str, paper12: Tree):
    agent = RandomMenuAgent(paper12)
    agent.reset(11)
    everything = [*menu_texts(paper12), *(PHRASES if state in ("study", "result") else ())]
    drawn = Counter(agent.act("", {"state": state}) for _ in range(200 * len(everything)))
    assert set(drawn) == set(everything)
    assert chisquare([drawn[text] for text in everything]).pvalue > 1e-4


EXAM = "Exam.\n\n1. A. It rose.\n   B. It fell.\n\n2. A. It held.\n   B. It rose.\n   C. It fell.\n\nAnswer."


def test_a_random_sheet_answers_every_item_with_any_of_its_letters():
    rng = np.random.default_rng(3)
    sheets = Counter(random_answers(EXAM, rng) for _ in range(3_000))
    assert set(sheets) == {f"1 {first}\n2 {second}" for first, second in product("AB", "ABC")}
    assert chisquare(list(sheets.values())).pvalue > 1e-4


@pytest.mark.parametrize("exam", ["Exam.", "1) It rose; or it fell.", EXAM.replace("1. A", "A").replace("2. A", "A")])
def test_an_exam_in_another_form_is_an_error(exam: str):
    with pytest.raises(AgentError, match="mend your template"):
        random_answers(exam, np.random.default_rng(0))


def test_an_exam_without_the_items_of_the_tree_is_an_error(paper12: Tree):
    sheet = Sheet((0,) * len(paper12.conclusions))
    with pytest.raises(AgentError, match="mend your template"):
        sheet_answers(paper12, EXAM, sheet)


@pytest.mark.parametrize("name", ["random", "oracle", "cover"])
def test_agents_take_an_exam_that_asks_for_one_item_at_a_time(name: str, reader: ReaderEmbedder):
    env = InquiryEnv("paper2", embedder=reader, exam="items", privileged=True)
    env.reset(seed=0)
    episode = play(env, make_agent(name, env), 0)
    answers = [turn.action for turn in episode.turns[-len(env.tree.conclusions) :]]
    assert name == "cover" or all(len(answer) == 1 for answer in answers)
    if name == "oracle":
        assert episode.footer.episode_return == 1


def test_random_words_knows_no_menu(reader: ReaderEmbedder, paper12: Tree):
    episode = play(InquiryEnv(paper12, embedder=reader, max_turns=12), RandomWordsAgent(), 2)
    *actions, sheet = episode.actions
    assert set(" ".join(actions).split()) <= set(WORDS)
    assert not set(actions) & {*menu_texts(paper12), *PHRASES}
    assert len(set(actions)) == len(actions) == 13
    assert len(sheet.splitlines()) == len(paper12.conclusions)


def test_retrieval_is_deterministic_traverses_fully_and_concludes_with_the_results_it_was_shown(reader: ReaderEmbedder):
    env = InquiryEnv("paper2", embedder=reader, fake_level=10)
    env.reset(seed=0)
    episode, other = (play(env, RetrievalAgent(env.vectors), seed) for seed in (6, 6))
    assert episode.actions == other.actions
    entered = {turn.event.node for turn in episode.turns if turn.event.kind == "subtopic"}
    assert entered == {subtopic.id for subtopic in env.tree.subtopics}
    shown = [text_of(env.tree, episode, turn.event) for turn in episode.turns if turn.event.kind == "result"]
    claims = episode.actions[-2].splitlines()
    assert len(claims) == len(shown)
    assert all(text in claim for text, claim in zip(shown, claims, strict=True))
    items = shown_items(episode.turns[-1].observation)
    vectors = np.stack([env.vectors.of(text) for text in shown])
    for item, line in zip(items, episode.actions[-1].splitlines(), strict=True):
        near = [float((vectors @ env.vectors.of(option)).max()) for option in item.options]
        assert line == f"{item.number} {LETTERS[int(np.argmax(near))]}"


def text_of(tree: Tree, episode: Episode, event: InquiryEvent) -> str:
    """The text of a logged result."""
    studies = in_world(tree, world_of(tree, episode)).studies
    study = next(study for study in studies if study.id == event.node)
    return study.outcomes[event.fake][event.wording]


def test_retrieval_proposes_something_else_after_being_told_to_wait(reader: ReaderEmbedder):
    tree = make_tree([[], [0], [1]], [1, 1, 1])
    agent = RetrievalAgent(tree_vectors(tree, reader))
    agent.reset(0)
    told = {"state": "topic", "accepted": True, "forced": False, "hint_level": 0}
    infos = [told, told | {"accepted": False}, told | {"accepted": False}, told]
    first, *others, again = [agent.act("What decides it?", info) for info in infos]
    assert {first, *others} == {subtopic.text for subtopic in tree.subtopics}
    assert again == first


def test_retrieval_answers_with_the_menu_text_nearest_to_what_it_reads(reader: Embedder, paper12: Tree):
    agent = RetrievalAgent(tree_vectors(paper12, reader))
    for subtopic in paper12.subtopics:
        agent.reset(0)
        told = {"state": "topic", "accepted": True, "forced": False, "hint_level": 0}
        assert agent.act(subtopic.hints[-1], told) == subtopic.text


def test_replay_says_when_its_actions_are_used_up(paper12: Tree):
    actions = play(InquiryEnv(paper12), RandomAgent(paper12), 0).actions
    with pytest.raises(LogError, match="continues after its 5 logged actions; it was torn, or played with other rules"):
        play(InquiryEnv(paper12), ReplayAgent(actions[:5]), 0)
    assert play(InquiryEnv(paper12), ReplayAgent(actions), 0).actions == actions


def test_a_person_is_shown_everything_and_asked_once_a_turn():
    asked = []

    def ask(observation: str, info) -> str:
        asked.append((observation, info["state"], info["turn"]))
        return {"result": "Draw the conclusion!", "conclusion": "1. Nothing.", "exam": "1 A"}.get(info["state"], "")

    episode = play(InquiryEnv("paper8"), HumanAgent(ask), 0)
    assert asked == [
        (turn.observation, state, turn.turn - 1)
        for turn, state in zip(episode.turns, ["topic", *(turn.event.state for turn in episode.turns)], strict=False)
    ]
    assert kinds(episode)[-4:] == ["result", "conclusion", "exam", "end"]
    assert episode.header.agent == {"name": "human"}


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_agents_are_reproducible_by_seed_and_leave_global_randomness_alone(name: str, reader: ReaderEmbedder):
    env = InquiryEnv("paper8", embedder=reader, privileged=True, fake_level=3, max_turns=25)
    env.reset(seed=0)
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    agent = make_agent(name, env)
    first = play(env, agent, 7)
    again = play(env, agent, 7)
    fresh = play(env, make_agent(name, env), 7)
    assert first.fingerprint == again.fingerprint == fresh.fingerprint
    assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002
    assert first.header.agent == agent.config == {"name": name}


def test_agents_that_need_not_know_what_is_fake_or_right_need_no_privileges(reader: ReaderEmbedder, paper12: Tree):
    env = InquiryEnv(paper12, embedder=reader, privileged=True)
    assert [name for name in BASELINE_NAMES if make_agent(name, env).needs_privileged] == [
        "oracle", "worst-case", "random-redo", "retrieval-redo",
    ]  # fmt: skip


def test_an_agent_that_does_not_say_how_to_act_is_told_so():
    class Idle(BaselineAgent):
        name = "idle"

    with pytest.raises(TypeError, match=r"Idle has no act\(\); override it"):
        Idle().act("", {"state": "topic"})
