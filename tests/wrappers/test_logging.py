"""Episodes on disk as they happen: new, torn, resumed, abandoned, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym import load_tree, read_episode
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Reply
from inquitree_gym.trees import CANARY
from inquitree_gym.wrappers import EmbeddingObservation, LogEpisodes, MenuActions
from tests.inquiry.test_inquiry import CONCLUDE, EXPLORE, JUNK, REDO, openings, right_sheet, script, trajectory

TREE = load_tree("paper12")
ACTIONS = script(TREE)
RULES = {"fake_level": 5, "max_turns": 30}


def inquiry(**rules: Any) -> gym.Env:
    return gym.make("InquiTree-paper12-v0", **{**RULES, **rules})


def recorded(place: Path | None = None, **settings: Any) -> LogEpisodes:
    return LogEpisodes(inquiry(), place, **settings)


def reply(turn: int, **changes: Any) -> Reply:
    plain = {"turn": turn, "role": "proposer", "text": "ACTION: x", "finish_reason": "stop", "seconds": 1.5}
    return Reply(**{**plain, **changes})


@pytest.fixture
def torn(tmp_path, reader) -> Path:
    """A log of seven turns without an end."""
    file = tmp_path / "torn.jsonl"
    env = LogEpisodes(inquiry(), file=file)
    trajectory(env, 3, ACTIONS[:7])
    env.close()
    return file


# What is written


def test_a_log_holds_everything_that_fixes_the_episode(tmp_path, reader):
    env = recorded(file=tmp_path / "deep" / "er" / "episode.jsonl", agent={"name": "tester", "temperature": 0})
    (plain := inquiry()).reset(seed=3)
    actions = [*ACTIONS[:-1], right_sheet(plain)]
    steps = trajectory(env, 3, actions)
    logged = read_episode(tmp_path / "deep" / "er" / "episode.jsonl")
    assert logged == env.episode
    header = logged.header
    assert (header.canary, header.seed, header.agent) == (CANARY, 3, {"name": "tester", "temperature": 0})
    assert (header.task.id, header.task.version, header.task.digest) == (TREE.id, TREE.version, TREE.digest)
    assert header.rules == env.unwrapped.episode_rules.as_dict()
    assert header.rules["threshold"] == reader.threshold
    assert (header.setup.embedder.name, header.setup.embedder.digest) == (reader.name, reader.digest)
    assert header.prompts == env.unwrapped.prompts.digest
    assert {"python", "inquitree-gym", "gymnasium", "torch", "litellm"} <= set(header.versions)
    assert logged.actions == tuple(actions)
    assert [turn.observation for turn in logged.turns] == [step[0] for step in steps[:-1]]
    assert [(t.reward, t.terminated, t.truncated) for t in logged.turns] == [step[1:4] for step in steps[1:]]
    assert [turn.event.state for turn in logged.turns] == [step[4]["state"] for step in steps[1:]]
    assert [(t.event.accepted, t.event.forced) for t in logged.turns] == [
        (step[4]["accepted"], step[4]["forced"]) for step in steps[1:]
    ]
    assert all(turn.env_seconds > 0 for turn in logged.turns)
    footer = logged.footer
    assert footer is not None
    assert (footer.status, footer.turns, footer.observation) == ("concluded", len(ACTIONS), steps[-1][0])
    assert footer.episode_return == sum(step[1] for step in steps[1:]) > 0


def test_readings_and_events_name_nodes_by_id(reader):
    first, _ = (TREE.subtopics[i] for i in openings(TREE))
    locked = next(subtopic for subtopic in TREE.subtopics if subtopic.prerequisites)
    env = LogEpisodes(inquiry(fake_level=10))
    trajectory(env, 1, [locked.text, first.text, first.studies[0].text, REDO, CONCLUDE])
    turns = env.episode.turns
    assert [turn.event.reading.candidate for turn in turns] == [locked.id, first.id, first.studies[0].id, None, None]
    assert [turn.event.node for turn in turns] == [None, first.id, *[first.studies[0].id] * 2, None]
    assert turns[0].event.reading.top[0] == (locked.id, turns[0].event.reading.similarity)
    assert (turns[0].event.kind, turns[0].event.reason, turns[0].event.hint_level) == ("wait", "prerequisite_unmet", 0)
    assert [turn.event.fake > 0 for turn in turns] == [False, False, True, True, False]
    assert [turn.event.decision for turn in turns] == ["none", "none", "none", "redo", "conclude"]
    assert [turn.event.reading.decision for turn in turns[3:]] == ["redo", "conclude"]


def test_what_stands_behind_an_action_is_logged_with_that_action_alone(reader):
    env = LogEpisodes(inquiry(max_turns=3))
    env.reset(seed=1)
    twice = [reply(1, tokens={"in": 5, "out": 3}, cost=0.25), reply(1, tokens={"in": 7, "thought": 1}, cost=0.5)]
    unknown = [reply(3, cost=0.25), reply(3, tokens={"in": 1})]
    for said in twice:
        env.add_reply(said)
    env.annotate(seconds=100.0)
    env.step(JUNK)
    env.annotate(seconds=50.0)
    env.step(JUNK)
    for said in unknown:
        env.add_reply(said)
    env.step(JUNK)
    behind = [(turn.tokens, turn.cost, turn.agent_seconds) for turn in env.episode.turns]
    assert behind == [({"in": 12, "out": 3, "thought": 1}, 0.75, 100.0), (None, None, 50.0), ({"in": 1}, None, None)]
    assert env.episode.replies == (*twice, *unknown)
    env.step(JUNK)
    env.step("1 A")
    assert env.episode.footer is not None
    assert 150 < env.episode.footer.seconds < 1_000


def test_a_reply_is_on_disk_before_its_action_is_taken(tmp_path, reader):
    file = tmp_path / "episode.jsonl"
    env = LogEpisodes(inquiry(), file=file)
    env.reset(seed=1)
    env.step(JUNK)
    for said in (reply(2, text="first"), reply(2, text="second")):
        env.add_reply(said)
        assert read_episode(file).replies[-1] == said
    assert env.given == read_episode(file).replies_to(2)
    env.step(JUNK)
    assert env.given == ()
    kinds = [json.loads(line)["kind"] for line in file.read_text().splitlines()]
    assert kinds == ["header", "turn", "reply", "reply", "turn"]
    env.close()


def test_a_reply_for_another_turn_is_refused(tmp_path, reader):
    file = tmp_path / "episode.jsonl"
    env = LogEpisodes(inquiry(), file=file)
    env.reset(seed=1)
    env.step(JUNK)
    for number in (0, 1, 3):
        with pytest.raises(LogError, match=f"a reply for turn {number} was given; the next turn is 2"):
            env.add_reply(reply(number))
    env.close()
    assert read_episode(file).replies == ()


def test_replies_without_their_turn_are_there_once_more_when_the_episode_is_resumed(tmp_path, reader):
    file = tmp_path / "episode.jsonl"
    env = LogEpisodes(inquiry(), file=file)
    env.reset(seed=1)
    env.add_reply(reply(1, cost=0.25))
    env.step(JUNK)
    env.add_reply(reply(2, cost=0.5))
    env.close()
    again = LogEpisodes(inquiry(), file=file)
    again.reset(seed=1)
    assert again.given == (reply(1, cost=0.25),)
    again.step(JUNK)
    assert again.given == (reply(2, cost=0.5),)
    again.step(JUNK)
    again.close()
    assert read_episode(file).replies == (reply(1, cost=0.25), reply(2, cost=0.5))
    assert [turn.cost for turn in read_episode(file).turns] == [0.25, 0.5]


def test_a_reset_forgets_an_annotation_that_was_not_used(reader):
    env = recorded()
    env.reset(seed=1)
    env.annotate(seconds=9.0)
    env.add_reply(reply(1, cost=9.0))
    env.reset(seed=1)
    env.step(JUNK)
    assert env.episode.turns[0].cost is env.episode.turns[0].agent_seconds is None
    assert env.episode.replies == ()


def test_without_a_place_the_episode_is_kept_in_memory_alone(tmp_path, monkeypatch, reader):
    monkeypatch.chdir(tmp_path)
    env = recorded()
    with pytest.raises(LogError, match=r"call reset\(\) first"):
        _ = env.episode
    trajectory(env, 1, ACTIONS)
    assert env.episode.status == "concluded"
    env.fail("x")
    env.reset(seed=2)
    assert (env.episode.status, env.episode.turns) == ("torn", ())
    assert not any(tmp_path.iterdir())


# Folder and file


def test_a_folder_gets_a_new_file_for_every_episode(tmp_path, reader):
    env = recorded(tmp_path / "logs")
    for seed in (5, 6, 5, 5):
        trajectory(env, seed, ACTIONS)
    env.reset()
    env.close()
    names = ["paper12-s5.jsonl", "paper12-s6.jsonl", "paper12-s5-2.jsonl", "paper12-s5-3.jsonl"]
    found = sorted((tmp_path / "logs").iterdir())
    assert set(names) < {file.name for file in found}
    assert len(found) == 5
    episodes = [read_episode(tmp_path / "logs" / name) for name in names]
    assert [episode.header.seed for episode in episodes] == [5, 6, 5, 5]
    assert episodes[0].fingerprint == episodes[2].fingerprint == episodes[3].fingerprint != episodes[1].fingerprint


def test_nothing_is_ever_overwritten(tmp_path, reader):
    trajectory(recorded(tmp_path), 5, ACTIONS)
    file = tmp_path / "paper12-s5.jsonl"
    before = file.read_bytes()
    trajectory(recorded(tmp_path), 5, ACTIONS)
    assert file.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_only_recorded_environments_are_logged(tmp_path):
    refused = "LogEpisodes must wrap an environment of this package or a RecordedEnv, got CartPoleEnv"
    with pytest.raises(OptionError, match=refused):
        LogEpisodes(gym.make("CartPole-v1"), tmp_path)


def test_a_place_that_cannot_be_written_is_told(tmp_path, reader):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(LogError, match=r"cannot write '.*taken.*Choose another folder"):
        recorded(tmp_path / "taken").reset(seed=1)


def test_a_file_that_is_no_log_is_left_alone(tmp_path, reader):
    file = tmp_path / "notes.jsonl"
    file.write_text('{"kind": "diary"}\n')
    with pytest.raises(LogError, match=r"notes\.jsonl'"):
        LogEpisodes(inquiry(), file=file).reset(seed=1)
    assert file.read_text() == '{"kind": "diary"}\n'


# Ends


def test_an_episode_left_before_its_end_is_abandoned(tmp_path, reader):
    env = recorded(tmp_path)
    last = trajectory(env, 5, ACTIONS[:3])[-1]
    env.reset(seed=6)
    env.close()
    left = read_episode(tmp_path / "paper12-s5.jsonl")
    assert left.status == "abandoned"
    assert left.footer is not None
    assert (left.footer.turns, left.footer.observation) == (3, last[0])
    assert read_episode(tmp_path / "paper12-s6.jsonl").status == "torn", "closing leaves it to be resumed"


def test_an_inner_time_limit_is_logged_as_truncated(tmp_path, reader):
    env = LogEpisodes(gym.wrappers.TimeLimit(inquiry(), 2), file=tmp_path / "x.jsonl")
    trajectory(env, 1, ACTIONS)
    logged = read_episode(tmp_path / "x.jsonl")
    assert logged.status == "truncated"
    assert [turn.truncated for turn in logged.turns] == [False, True]


# Resuming


def test_a_resumed_episode_keeps_the_time_at_which_it_was_started(torn: Path, reader):
    started = "2001-02-03T04:05:06+00:00"
    header, *turns = torn.read_text().splitlines()
    torn.write_text("\n".join([json.dumps(json.loads(header) | {"started": started}), *turns, ""]))
    env = LogEpisodes(inquiry(), file=torn)
    trajectory(env, 3, ACTIONS)
    assert env.episode.header.started == started
    assert read_episode(torn).header.started == started


@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_replay_that_comes_out_otherwise_is_refused_and_leaves_the_file_whole(torn: Path, at: int, reader):
    before = torn.read_bytes()
    env = LogEpisodes(inquiry(), file=torn)
    for taken in (2, at):  # a replay that is left early can be begun again
        trajectory(env, 3, ACTIONS[:taken])
    for action in ("Something else altogether.", *ACTIONS[at:]):
        with pytest.raises(LogError, match=f"Replay diverged from the log at turn {at + 1};"):
            env.step(action)
        if env.unwrapped.state.phase.name == "END":
            break
    env.close()
    assert torn.read_bytes() == before


def test_numpy_strings_and_every_character_come_back_as_they_were(tmp_path, reader):
    texts = [np.str_("weekend"), "\ud800 weekend", "\u2028\u2029\x85\r\n weekend", "🧀\0"]
    env = LogEpisodes(inquiry(), file=tmp_path / "x.jsonl")
    trajectory(env, 1, [*texts, EXPLORE])
    env.close()
    assert read_episode(tmp_path / "x.jsonl").actions == (*texts, EXPLORE)


# Menus, features and absent packages


ORDERS = {
    "menu outside": lambda env, file: MenuActions(LogEpisodes(env, file=file)),
    "features and menu": lambda env, file: LogEpisodes(EmbeddingObservation(MenuActions(env)), file=file),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_discrete_view_is_logged_as_its_texts_and_resumed(order: str, tmp_path, reader):
    def played(file: Path, stop: int | None = None) -> gym.Env:
        env = ORDERS[order](inquiry(max_turns=9, fake_level=4), file)
        env.reset(seed=2)
        rng = np.random.default_rng(5)
        over, turns = False, 0
        while not over and turns != stop:
            action = rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")()))
            *_, over, _, _ = env.step(action)
            turns += 1
        env.close()
        return env

    played(tmp_path / "menu.jsonl")
    logged = read_episode(tmp_path / "menu.jsonl")
    assert logged.status == "concluded"
    assert [turn.event.kind for turn in logged.turns][-9:] == ["exam"] * 8 + ["end"]
    text = LogEpisodes(inquiry(max_turns=9, fake_level=4, exam="items"))
    trajectory(text, 2, logged.actions)
    assert text.episode.fingerprint == logged.fingerprint
    played(tmp_path / "torn.jsonl", 4)
    assert read_episode(tmp_path / "torn.jsonl").status == "torn"
    played(tmp_path / "torn.jsonl")
    assert read_episode(tmp_path / "torn.jsonl").fingerprint == logged.fingerprint
