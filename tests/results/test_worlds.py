"""Exams in logs: their score from log and tree alone, in measures, tables and on the page of an episode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.baselines import make_agent
from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.results import OF_ORACLE, EpisodeScore, InquiryDetail
from inquitree_gym.inquiry.sections import vigilance_trend
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.inquiry.vigilance import ALL
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.log.records import SheetRecord
from inquitree_gym.results.score import score_episode
from inquitree_gym.results.summary import summarise
from inquitree_gym.results.viewer import write_view
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.worlds import in_world, world_id, worlds
from tests.inquiry.test_trajectory import CONCLUDE, END, EXPLORE, enter, episode_of, redo, result
from tests.results.html import read_page
from tests.worlds import clean_document, read, world_document

MADE = read(clean_document())
"""Five axes, one of them of three poles, and three controls: actual world 01010."""
FICTION = "are fiction and must not be quoted"


def played(tree: Tree, world: str, agent: str, embedder: Any, level: int = 4, seed: int = 3) -> Episode:
    env = InquiryEnv(tree, embedder=embedder, world=world, fake_level=level, privileged=True)
    return play(env, make_agent(agent, env), seed)


def with_sheet(episode: Episode, sheet: SheetRecord) -> Episode:
    *turns, last = episode.turns
    event = last.event.model_copy(update={"sheet": sheet})
    return replace(episode, turns=(*turns, last.model_copy(update={"event": event})))


@pytest.mark.parametrize("agent", ["oracle", "random", "copyist"])
@pytest.mark.parametrize(("tree", "world"), [(MADE, "any"), (MADE, "actual"), ("paper12", "actual"), ("paper2", "any")])
def test_the_return_from_log_and_tree_is_what_was_paid(tree, world, agent, reader, tmp_path: Path):
    tree = load_tree(tree)
    env = InquiryEnv(tree, embedder=reader, world=world, fake_level=4, privileged=True)
    paid = play(env, make_agent(agent, env), 3, file=tmp_path / "log.jsonl").footer.episode_return
    episode = read_episode(tmp_path / "log.jsonl")
    unpaid = replace(episode, turns=tuple(turn.model_copy(update={"reward": 0.0}) for turn in episode.turns))
    assert score_episode(unpaid, tree).values["return"] == paid


def test_probabilities_score_by_axis(reader):
    world = "00000"
    episode = played(MADE, world, "oracle", reader, level=0)
    sheet = SheetRecord(choices=(0, 1, None, 0, 1), probabilities=(0.9, 0.8, None, None, 0.4))
    exam = read_trajectory(with_sheet(episode, sheet), MADE).exam
    # Items read axes 0; 0 and 1; 2; 3; 4. The second one has the wrong pole of axis 1 alone.
    assert exam.by_axis == (1, -1, 0, 1, -1)
    assert exam.brier == pytest.approx(((0.01 + 0.64) / 2, 0.64, None, None, 0.16))
    assert exam.mean_brier == pytest.approx((0.325 + 0.64 + 0.16) / 3)
    assert (exam.share_right, exam.share_answered) == (2 / 5, 4 / 5)
    values = score_episode(with_sheet(episode, sheet), MADE).values
    assert values["sheet_brier"] == exam.mean_brier
    assert (values["right"], values["answered"]) == (2 / 5, 4 / 5)
    assert score_episode(episode, MADE).values["sheet_brier"] is None


@pytest.mark.parametrize("choices", [(0, 0), (0, 0, 9, 0, 0), (0, 0, 0, 0, -1)])
def test_a_sheet_that_does_not_fit_the_tree_is_a_damaged_log(choices: tuple[int, ...], reader):
    episode = with_sheet(played(MADE, "00000", "oracle", reader), SheetRecord(choices=choices))
    with pytest.raises(LogError, match="cannot have happened in made; it is damaged"):
        score_episode(episode, MADE)


def test_a_log_of_a_world_that_the_tree_lacks_is_refused():
    episode = episode_of(MADE, enter("s1"))
    with pytest.raises(LogError, match="the world of the log is none of made"):
        read_trajectory(of_world(episode, "0101"), MADE)


def of_world(episode: Episode, world: str) -> Episode:
    setup = episode.header.setup.model_copy(update={"world": world})
    return replace(episode, header=episode.header.model_copy(update={"setup": setup}))


def test_controls_count_in_no_rate():
    tree = read(world_document([2, 2], [[[0], []], [[1], []]], [[0], [1]]))
    steps = [
        enter("s1"), result("s1a", 1), redo("s1a"), EXPLORE, enter("s1"), result("s1b"), redo("s1b"), EXPLORE,
        enter("s2"), result("s2b"), CONCLUDE, END,
    ]  # fmt: skip
    found = score_episode(of_world(episode_of(tree, *steps, fake_level=5), "00"), tree)
    counts = found.detail.trajectory.showings[ALL]
    assert (counts.fakes, counts.hits, counts.trues, counts.false_alarms) == (1, 1, 1, 0)
    assert found.values["redo_rate"] == 1 / 2
    assert [each.control for each in found.detail.exposures] == [False, False, True, True, True]
    (everything, *_) = vigilance_trend([found]).by_showing
    assert everything.counts == counts


def of(agent: str, paid: float, detail: InquiryDetail, score: EpisodeScore) -> EpisodeScore:
    exam = replace(detail.trajectory.exam, score=paid)
    return replace(score, agent=agent, detail=replace(detail, trajectory=replace(detail.trajectory, exam=exam)))


def test_the_return_stands_between_zero_and_the_oracles(reader):
    score = score_episode(played(MADE, "any", "oracle", reader), MADE)
    rows = summarise([of("oracle", 0.8, score.detail, score), of("mine", 0.2, score.detail, score)])
    assert {row.agent: row.estimates[OF_ORACLE].mean for row in rows} == pytest.approx({"oracle": 1, "mine": 0.25})
    (alone,) = summarise([of("mine", 0.2, score.detail, score)])
    assert alone.estimates[OF_ORACLE].mean is None


# Pages


@pytest.mark.parametrize(("tree", "world", "fiction"), [
    (MADE, "10200", True), (MADE, "actual", False), ("paper12", "actual", False), ("paper2", "complement", True),
])  # fmt: skip
def test_the_page_shows_the_exam_and_the_world(tree, world: str, fiction: bool, reader, tmp_path: Path):
    tree = load_tree(tree)
    episode = played(tree, world, "random", reader)
    write_view(episode, tree, tmp_path / "p.html")
    page = read_page(tmp_path / "p.html")
    text = " ".join(page.text.split())
    named = episode.header.setup.world
    assert f"world{named}" in text.replace(" ", "")
    assert (f"The findings of world {named} {FICTION}" in text) == fiction
    sheet = read_trajectory(episode, tree).exam
    assert text.count("●") >= sum(choice is not None for choice in sheet.choices)
    assert text.count("✓") == len(tree.conclusions)
    for item in tree.conclusions:
        for statement in item.options:
            assert " ".join(statement.split()) in text


def test_a_fake_stands_beside_the_text_that_is_true_in_its_world(tmp_path: Path):
    for world in list(worlds(MADE))[:6]:
        told = in_world(MADE, world)
        episode = of_world(episode_of(MADE, enter("s1"), result("s1a", 1), CONCLUDE, END), world_id(world))
        write_view(episode, MADE, tmp_path / "p.html")
        assert told.studies[0].results[0] in read_page(tmp_path / "p.html").text
        assert told.studies[0].results[1] not in read_page(tmp_path / "p.html").text
