"""Logs of every kind: what is written is read, replayed and resumed, and what is foreign is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inquitree_gym.baselines import ReplayAgent
from inquitree_gym.errors import LogError
from inquitree_gym.log import LOG_VERSION, Episode, read_episode, read_header
from inquitree_gym.rollout import play
from tests.contract.conftest import KindCase

SEED = 3


def played(case: KindCase, file: Path) -> Episode:
    return play(case.make(), case.agent(), SEED, file=file)


def test_a_log_is_read_as_it_was_played_and_its_replay_has_the_same_fingerprint(kind_case: KindCase, tmp_path: Path):
    episode = played(kind_case, tmp_path / "log.jsonl")
    found = read_episode(tmp_path / "log.jsonl")
    assert (found, found.status, found.actions) == (episode, "concluded", kind_case.actions)
    assert found.header == read_header(tmp_path / "log.jsonl")
    assert (found.header.task.kind, found.header.task.digest) == (kind_case.name, kind_case.task.digest)
    assert {type(turn.event) for turn in found.turns} == {kind_case.kind.event}
    assert type(found.header.setup) is kind_case.kind.setup
    again = play(kind_case.make(), ReplayAgent(found.actions), found.header.seed)
    assert again.fingerprint == found.fingerprint == episode.fingerprint
    assert all(one.event.matches(other.event) for one, other in zip(again.turns, found.turns, strict=True))
    assert not found.turns[0].event.matches(found.turns[-1].event)


def test_a_log_torn_after_any_line_is_resumed_to_the_same_episode(kind_case: KindCase, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    whole = played(kind_case, file)
    lines = file.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        for rest in (b"", lines[kept][:-1]):
            file.write_bytes(b"".join(lines[:kept]) + rest)
            resumed = played(kind_case, file)
            assert resumed.fingerprint == whole.fingerprint
            assert read_episode(file) == resumed
    with pytest.raises(LogError, match="holds a complete episode"):
        played(kind_case, file)


def test_a_torn_log_is_resumed_only_under_its_own_rules(kind_case: KindCase, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    played(kind_case, file)
    torn = b"".join(file.read_bytes().splitlines(keepends=True)[:2])
    file.write_bytes(torn)
    with pytest.raises(LogError, match=r"Cannot resume '.*log\.jsonl': recorded settings differ \(rules: recorded "):
        play(kind_case.make(**kind_case.other_rules), kind_case.agent(), SEED, file=file)
    assert file.read_bytes() == torn


@pytest.mark.parametrize("read", [read_episode, read_header])
def test_a_log_of_another_version_or_an_unknown_kind_is_refused(kind_case: KindCase, tmp_path: Path, read):
    file = tmp_path / "log.jsonl"
    played(kind_case, file)
    header, *turns = file.read_text().splitlines(keepends=True)
    document = json.loads(header)
    name = kind_case.name
    task = document["task"] | {"kind": f"{name}s"}
    for changes, told in (
        ({"log_version": LOG_VERSION + 1}, f"must have log_version {LOG_VERSION}, got {LOG_VERSION + 1}. Read it with"),
        ({"task": task}, rf"'{name}s' \(did you mean '{name}'\?\); known: inquiry, projection, exploration, toy"),
    ):
        file.write_text("".join([json.dumps(document | changes) + "\n", *turns]))
        with pytest.raises(LogError, match=told) as caught:
            read(file)
        assert str(caught.value).startswith(f"'{file}'")
        assert "\n" not in str(caught.value)


def test_a_log_whose_events_are_those_of_another_kind_is_damaged(kind_case: KindCase, tmp_path: Path):
    file = tmp_path / "log.jsonl"
    played(kind_case, file)
    other = "toy" if kind_case.name != "toy" else "inquiry"
    file.write_text(file.read_text().replace(f'"task":{{"kind":"{kind_case.name}"', f'"task":{{"kind":"{other}"'))
    with pytest.raises(LogError, match=r"line 1: .*header\.setup|line 2: .*turn\.event"):
        read_episode(file)
