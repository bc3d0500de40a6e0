"""Logged and resumed projections and sheets, with judges in this process and with one that is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inquitree_gym.baselines import BaselineAgent, ReplayAgent
from inquitree_gym.envs import ProjectionEnv, ProjectionVectorEnv
from inquitree_gym.errors import JudgeError, ServiceError
from inquitree_gym.judging.judgement import Judgement, JudgeReply
from inquitree_gym.llm import Completion, Usage
from inquitree_gym.log import Episode, read_episode
from inquitree_gym.projection.judges.alignment import Alignment
from inquitree_gym.projection.judging import JUDGING, recorded_alignment
from inquitree_gym.rollout import play
from inquitree_gym.trees import ProjectionTask
from inquitree_gym.trees.disclosure import LEVELS
from tests.projection.tasks import WORDS, WordJudge, reply
from tests.projection.test_projection import HALF, RIGHT, RULES, WRONG
from tests.tasks import make_task

TASK = make_task()
ACTIONS = (RIGHT, HALF, WRONG)
REPLY = Completion(text="1", finish_reason="stop", tokens={"prompt": 3}, cost=0.25, seconds=0.1, retries=0)


class Service:
    """Judge that answers as `WordJudge` does, unless another answer or an error is planned."""

    name, config = "own:words", {"version": 7}

    def __init__(self, *planned: Judgement | ServiceError) -> None:
        self.planned = list(planned)
        self.asked: list[str] = []

    async def judge(self, task: ProjectionTask, projection: str) -> Judgement:
        self.asked.append(projection)
        answer = self.planned.pop(0) if self.planned else None
        if isinstance(answer, ServiceError):
            raise answer
        aligned = WordJudge(task).judge(projection)
        return answer or Judgement(aligned, Usage(replies=1), replies=(JudgeReply(REPLY),))


def unread(extras: bool = False) -> Alignment:
    """An alignment in which one rating is missing."""
    whole = WordJudge(TASK).judge(HALF)
    pairs, extra = whole.pair_ratings.copy(), whole.extra_ratings.copy()
    (extra[0] if extras else pairs)[0, 1] = np.nan
    return Alignment(whole.analogous, whole.extraneous, pairs, extra)


def played(judge: Any = None, file: Path | None = None, actions: Any = ACTIONS, **rules: Any) -> Episode:
    return play(ProjectionEnv(TASK, judge=judge, **rules), ReplayAgent(actions), 5, file=file)


def test_an_episode_is_logged_with_task_rules_judge_claims_and_ratings(tmp_path):
    rules = {**RULES, "reward": "judge"}
    episode = played(WORDS, tmp_path / "a.jsonl", **rules)
    assert read_episode(tmp_path / "a.jsonl") == episode
    header = episode.header
    assert header.task.model_dump() == {
        "kind": "projection", "id": "bread", "version": 1, "digest": TASK.digest,
    }  # fmt: skip
    assert header.rules == {**rules, "levels": list(RULES["levels"])}
    assert header.seed == 5
    assert header.setup.judge == episode.footer.judge == {"name": "words", "version": 1, "reads": "lines"}
    first, second = (turn.event for turn in episode.turns)
    assert (first.kind, first.level, first.state, first.judged.f1) == ("projection", "procedure", "project", 1)
    assert (second.level, second.state, second.after_sheet, second.sheet) == ("question", "end", False, None)
    assert second.judged.analogous == (TASK.claims[0].text, TASK.claims[1].contraries[0], None)
    assert second.judged.pair_ratings == ((1, 1), (-1, -1), (None, None))
    assert second.judged.extraneous == ("Ovens cool.",)
    assert recorded_alignment(second.judged).score().f1 == pytest.approx(second.judged.f1) == pytest.approx(0.4)
    assert [turn.reward for turn in episode.turns] == [0, pytest.approx(0.7)]


class Filler(BaselineAgent):
    """Leaves every sheet out at first, and then fills it in: with right answers, and a wrong one at the end."""

    name = "filler"

    def __init__(self, env: ProjectionEnv) -> None:
        super().__init__()
        self.env = env

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        if info["state"] == "project":
            return HALF
        if "No answer could be read." not in observation:
            return "I cannot tell."
        return reply(self.env, (0, 0, info["level"] == "procedure"), (0.5, None, 1.0)) + "\n9 A"


def filled(file: Path) -> Episode:
    env = ProjectionEnv(TASK)
    return play(env, Filler(env), 5, file=file)


def test_sheets_are_logged_with_their_answers_and_projections_after_them_are_marked(tmp_path):
    file = tmp_path / "a.jsonl"
    episode = filled(file)
    assert read_episode(file) == episode
    assert (episode.header.setup.judge, episode.footer.judge) == (None, {"name": "sheet", "version": 1})
    assert episode.footer.episode_return == pytest.approx(1 / 4 + 1 / 2 + 1 / 12)
    events = [turn.event for turn in episode.turns]
    assert [event.kind for event in events] == ["projection", "sheet", "sheet"] * 3
    assert [event.state for event in events] == [*["sheet", "sheet", "project"] * 2, "sheet", "sheet", "end"]
    assert [event.level for event in events[::3]] == [event.level for event in events[2::3]] == list(LEVELS)
    assert [event.after_sheet for event in events] == [False] * 3 + [True, False, False] * 2
    assert events[1].sheet.choices == (None,) * 3
    assert "got 'I cannot tell.'" in events[1].sheet.notes[0]
    last = events[-1].sheet
    assert (last.choices, last.probabilities, last.sheet.choices) == ((0, 0, 1), (0.5, None, 1.0), (0, 0, 1))
    assert [note.split(":")[0] for note in last.notes] == ["reply"]
    turns = [line for line in map(json.loads, file.read_text().splitlines()) if line["kind"] == "turn"]
    told = [{*turn["event"]} - {"kind", "state", "level"} for turn in turns]
    assert told == [set(), {"sheet"}, {"sheet"}, *[{"after_sheet"}, {"sheet"}, {"sheet"}] * 2]
    assert "probabilities" not in turns[1]["event"]["sheet"]


def test_an_episode_goes_on_from_any_line_of_its_log(tmp_path):
    file = tmp_path / "torn.jsonl"
    whole = filled(file)
    lines = file.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        file.write_bytes(b"".join(lines[:kept]))
        assert filled(file).fingerprint == whole.fingerprint
    again = play(ProjectionEnv(TASK), ReplayAgent(whole.actions), 5)
    assert again.fingerprint == whole.fingerprint


def test_only_the_first_projection_is_judged_offline_where_sheets_were_shown(tmp_path):
    episode = filled(tmp_path / "a.jsonl")
    assert [text.turn for text in JUDGING.texts(episode)] == [1]
    assert JUDGING.own_judged(episode, TASK).payloads == {}
    unpaid = played(reward="none")
    assert [text.turn for text in JUDGING.texts(unpaid)] == [1, 2, 3]
    assert (unpaid.footer.episode_return, unpaid.footer.judge["name"]) == (0, "none")


def test_replies_of_the_judge_are_logged_at_their_turn_and_nothing_is_asked_again(tmp_path):
    file = tmp_path / "torn.jsonl"
    whole = played(Service(), file)
    assert [(reply.turn, reply.role, reply.cost) for reply in whole.replies] == [
        (1, "judge", 0.25), (2, "judge", 0.25), (3, "judge", 0.25),
    ]  # fmt: skip
    assert [turn.tokens for turn in whole.turns] == [{"prompt": 3}] * 3
    lines = file.read_bytes().splitlines(keepends=True)
    turns = [i for i, line in enumerate(lines) if json.loads(line)["kind"] == "turn"]
    for kept in (1, 2, 3):
        file.write_bytes(b"".join(lines[: turns[kept - 1] + 1]))
        judge = Service()
        resumed = played(judge, file)
        assert resumed.fingerprint == whole.fingerprint
        assert judge.asked == list(ACTIONS[kept:])
        assert [reply.turn for reply in resumed.replies] == [1, 2, 3]


@pytest.mark.parametrize(
    "judgement",
    [
        Judgement(None, why="no claims were found"),
        Judgement(unread(), unread=1),
        Judgement(unread(extras=True), unread=1),
    ],
    ids=["no claims", "no rating of a pair", "no rating of an extra"],
)
def test_an_unread_answer_earns_nothing_and_is_logged_as_unscored(judgement, tmp_path):
    file = tmp_path / "a.jsonl"
    episode = played(Service(judgement), file)
    assert [turn.event.judged.f1 for turn in episode.turns] == [None, pytest.approx(0.4), 0]
    assert episode.turns[0].reward == 0
    again = recorded_alignment(read_episode(file).turns[0].event.judged)
    assert (again is None) == (judgement.payload is None)
    env = ProjectionEnv(TASK, judge=Service(judgement), privileged=True)
    env.reset(seed=1)
    privileged = env.step(HALF)[4]["privileged"]
    assert privileged["f1"] is privileged["true_positives"] is None
    assert ("pairs" in privileged) == (judgement.payload is not None)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    assert played(Service(), file).fingerprint == episode.fingerprint


def test_a_judge_that_aligns_too_few_claims_is_an_error():
    few = Alignment((None,), (), np.full((1, 2), np.nan), np.zeros((0, 1, 2)))
    env = ProjectionEnv(TASK, judge=Service(Judgement(few)))
    env.reset(seed=1)
    with pytest.raises(JudgeError, match="a judgement of bread must have 3 pairs, one per claim in their order, got 1"):
        env.step(RIGHT)


@pytest.mark.e2e
def test_a_named_judge_is_loaded_once_for_a_whole_vector():
    env = ProjectionVectorEnv(2, task=TASK, judge="llm:gpt-4o-mini")
    first, second = (one.judging.judge for one in env.envs)
    assert first is second
    assert first.name == "llm:gpt-4o-mini"


def test_a_vector_asks_its_judge_about_every_projection_of_a_step():
    judge = Service()
    env = ProjectionVectorEnv(3, task=TASK, judge=judge, autoreset_mode="Disabled")
    env.reset(seed=1)
    rewards = [env.step([RIGHT, HALF, WRONG])[1].tolist() for _ in LEVELS]
    assert rewards == [[0, 0, 0], [0, 0, 0], [1, pytest.approx(0.4), 0]]
    assert judge.asked == [RIGHT, HALF, WRONG] * 3
    env.close()
