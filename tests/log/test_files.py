"""The episode log: what is written can be read again, and what is damaged says so."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.baselines import RandomAgent
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import LogError
from inquitree_gym.log import (
    LOG_VERSION,
    EmbedderRef,
    Episode,
    EventRecord,
    Failure,
    Footer,
    Header,
    JsonlWriter,
    ProjectionRecord,
    ReadingRecord,
    Reply,
    TaskRef,
    Turn,
    read_episode,
    read_header,
    to_line,
)
from inquitree_gym.rollout import play
from inquitree_gym.trees import CANARY, load_tree

HEADER = Header(
    versions={"python": "3.12.1"},
    task=TaskRef(id="paper8", version=2, digest="ab" * 32),
    rules={"threshold": 0.4, "fake_level": 3, "max_turns": None},
    seed=2**63,
    embedder=EmbedderRef(name="an embedder", digest="cd" * 32),
    prompts="ef" * 32,
    agent={"name": "made", "temperature": 0, "parts": [1, {"two": None}]},
    started="2026-01-02T03:04:05+00:00",
)


def turn(number: int = 1, **changes) -> Turn:
    settings = {
        "turn": number,
        "observation": "What next?",
        "action": "redo the study",
        "reading": ReadingRecord(
            candidate="s1", similarity=0.1 + 0.2, decision="redo", margin=None, top=(("s1", 0.5),)
        ),
        "event": EventRecord(
            kind="result", state="result", node="s1a", fake=2, accepted=True, forced=False, hint_level=0, limit=False,
            reason="none", decision="redo",
        ),
        "reward": 0.0,
        "terminated": False,
        "truncated": False,
        "env_seconds": 0.001,
    }  # fmt: skip
    return Turn(**{**settings, **changes})


def reply(number: int = 1, **changes) -> Reply:
    plain = {"turn": number, "role": "proposer", "text": "ACTION: go", "finish_reason": "stop", "seconds": 1.5}
    return Reply(**{**plain, **changes})


FOOTER = Footer(status="concluded", observation="Filed.", turns=2, episode_return=0.6, seconds=1.5)


def write(path: Path, *records) -> Path:
    path.write_text("".join(map(to_line, records)), encoding="ascii")
    return path


# What is written is read again


def test_a_whole_log_is_read_as_it_was_written(tmp_path: Path):
    malformed = reply(2, fault="it is empty", cut=3, retries=4, cached=True)
    said = reply(2, role="correction", tokens={"prompt": 7}, cost=0.125)
    second = turn(2, tokens={"prompt": 7}, cost=0.125, agent_seconds=2.5)
    records = (HEADER, turn(1), malformed, said, second, FOOTER)
    file = tmp_path / "deep" / "down" / "episode.jsonl"
    writer = JsonlWriter(file)
    for record in records:
        writer.write(record)
    writer.close()
    assert read_episode(file) == Episode(HEADER, (turn(1), second), FOOTER, replies=(malformed, said))
    assert read_episode(str(file)).status == "concluded"


def test_every_line_is_on_disk_before_the_next_action(tmp_path: Path):
    file = tmp_path / "episode.jsonl"
    writer = JsonlWriter(file)
    for number, record in enumerate((HEADER, turn(1), turn(2))):
        writer.write(record)
        assert len(read_episode(file).turns) == number
    writer.write(reply(3))
    assert read_episode(file).replies_to(3) == (reply(3),)
    writer.close()


@settings(deadline=None)
@given(action=st.text(), text=st.text(), seed=st.integers(0, 2**64 - 1))
def test_any_text_survives(tmp_path_factory, action: str, text: str, seed: int):
    records = HEADER.model_copy(update={"seed": seed}), reply(text=text), turn(action=action)
    found = read_episode(write(tmp_path_factory.getbasetemp() / "any.jsonl", *records))
    assert (found.header, found.replies, found.turns) == (records[0], records[1:2], records[2:])


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "\udc80\ud83d", "emoji \U0001f600 then \ud83d.", "\x00\n\r\u2028\x85"]
)
def test_lone_surrogates_and_control_characters_survive(tmp_path: Path, text: str):
    said, record = reply(text=text), turn(action=text, observation=text)
    file = write(tmp_path / "odd.jsonl", HEADER, said, record)
    assert (read_episode(file).replies, read_episode(file).turns) == ((said,), (record,))
    assert file.read_bytes().count(b"\n") == 3
    assert len(read_episode(file).fingerprint) == 64


def test_every_log_carries_the_canary_and_its_version(tmp_path: Path):
    first = json.loads(write(tmp_path / "log.jsonl", HEADER).read_text().splitlines()[0])
    assert (first["kind"], first["canary"], first["log_version"]) == ("header", CANARY, LOG_VERSION)


def test_absent_is_null_and_not_zero():
    line = json.loads(to_line(turn()))
    assert line["cost"] is line["tokens"] is line["reading"]["margin"] is None
    line = json.loads(to_line(reply()))
    assert line["cost"] is line["tokens"] is None


def old(record: Turn, text: str | None) -> str:
    """A turn as version 1 had it."""
    return json.dumps({**record.model_dump(), "reply": text}) + "\n"


def old_header(version: int) -> str:
    """The header as versions up to 4 had it."""
    document = HEADER.model_dump() | {"log_version": version, "tree": HEADER.task.model_dump(exclude={"kind"})}
    return json.dumps({name: value for name, value in document.items() if name != "task"}) + "\n"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_log_up_to_version_4_names_its_tree(tmp_path: Path, version: int):
    file = tmp_path / "old.jsonl"
    file.write_text(old_header(version) + to_line(turn()) + to_line(FOOTER))
    found = read_episode(file)
    assert found.header == read_header(file) == HEADER.model_copy(update={"log_version": version})
    assert found.fingerprint == Episode(HEADER, (turn(),), FOOTER).fingerprint


def test_a_tree_in_the_header_is_a_fault_since_version_5(tmp_path: Path):
    file = tmp_path / "new.jsonl"
    file.write_text(old_header(5))
    with pytest.raises(LogError, match=r"line 1: Field required at header\.task"):
        read_episode(file)


def projected(**changes: Any) -> ProjectionRecord:
    plain: dict[str, Any] = {
        "level": "null",
        "state": "project",
        "analogous": ("Rest lowers the rate.", None),
        "extraneous": ("Age raises the rate.",),
        "pair_ratings": np.array([[1.0, 0.5], [np.nan, np.nan]]).tolist(),
        "extra_ratings": np.zeros((1, 2, 2)).tolist(),
        "f1": 0.6,
    }
    return ProjectionRecord(**{**plain, **changes})


def test_a_projection_is_read_as_it_was_written_and_absent_ratings_are_null(tmp_path: Path):
    header = HEADER.model_copy(
        update={
            "task": TaskRef(kind="projection", id="paper8", version=2, digest="ab" * 32),
            "rules": {"levels": ["question", "null"]},
            "embedder": None,
            "judge": {"name": "local", "version": 1},
        }
    )
    known, unknown = turn(reading=None, event=projected()), turn(2, reading=None, event=projected(f1=None))
    file = write(tmp_path / "projection.jsonl", header, known, unknown, FOOTER)
    found = read_episode(file)
    assert (found.header, found.turns) == (header, (known, unknown))
    line = json.loads(file.read_text().splitlines()[1])
    assert (line["reading"], line["event"]["pair_ratings"]) == (None, [[1.0, 0.5], [None, None]])
    assert found.unscored == 1
    assert found.turns[0].projection == projected()


def test_a_turn_of_one_kind_is_not_taken_for_another():
    with pytest.raises(LogError, match="turn 1 is a projection, not a turn of an inquiry; name the kind"):
        _ = turn(reading=None, event=projected()).inquiry_event
    with pytest.raises(LogError, match="turn 1 has no reading"):
        _ = turn(reading=None, event=projected()).inquiry_reading
    with pytest.raises(LogError, match="turn 1 is a turn of an inquiry, not a projection"):
        _ = turn().projection
    with pytest.raises(LogError, match="the episode on paper8 is not an inquiry read by an embedder"):
        _ = HEADER.model_copy(update={"embedder": None}).inquiry_embedder


def test_a_damaged_projection_names_its_field(tmp_path: Path):
    damaged = to_line(turn(reading=None, event=projected())).replace('"f1":0.6,', "")
    file = tmp_path / "damaged.jsonl"
    file.write_text(to_line(HEADER) + damaged)
    with pytest.raises(LogError, match=r"line 2: Field required at turn\.event\.projection\.f1"):
        read_episode(file)


def test_a_log_of_version_1_has_its_raw_replies_as_records(tmp_path: Path):
    header = HEADER.model_copy(update={"log_version": 1})
    paid = turn(2, tokens={"prompt": 7}, cost=0.125, agent_seconds=2.5)
    file = tmp_path / "old.jsonl"
    file.write_text(to_line(header) + old(turn(1), None) + old(paid, "THOUGHT") + old(turn(3), "") + to_line(FOOTER))
    found = read_episode(file)
    of_two = Reply(
        turn=2, role="proposer", text="THOUGHT", finish_reason="", tokens={"prompt": 7}, cost=0.125, seconds=2.5
    )
    assert (found.header, found.turns, found.footer) == (header, (turn(1), paid, turn(3)), FOOTER)
    assert found.replies_to(1) == ()
    assert found.replies_to(2) == (of_two,)
    assert [(reply.text, reply.seconds) for reply in found.replies_to(3)] == [("", 0.0)]
    assert found.fingerprint == Episode(HEADER, found.turns, FOOTER).fingerprint


def test_a_log_of_version_1_may_go_on_in_version_2(tmp_path: Path):
    file = tmp_path / "old.jsonl"
    file.write_text(to_line(HEADER.model_copy(update={"log_version": 1})) + old(turn(1), "one"))
    writer = JsonlWriter(file, resume=True)
    writer.write(reply(2, text="two"))
    writer.write(turn(2))
    writer.close()
    assert [reply.text for reply in read_episode(file).replies] == ["one", "two"]


def test_a_raw_reply_within_a_turn_is_a_fault_since_version_2(tmp_path: Path):
    file = tmp_path / "new.jsonl"
    file.write_text(to_line(HEADER) + old(turn(1), "THOUGHT"))
    with pytest.raises(LogError, match=r"line 2: .*reply"):
        read_episode(file)


# Torn, failed and damaged


def test_the_status_of_an_episode_without_a_footer(tmp_path: Path):
    failure = Failure(error="the service is down", when="2026-01-02")
    torn = read_episode(write(tmp_path / "torn.jsonl", HEADER, turn(1)))
    failed = read_episode(write(tmp_path / "failed.jsonl", HEADER, turn(1), failure))
    went_on = read_episode(write(tmp_path / "went_on.jsonl", HEADER, turn(1), failure, turn(2)))
    assert (torn.status, torn.failure) == ("torn", None)
    assert (failed.status, failed.failure) == ("failed", failure)
    assert (went_on.status, went_on.actions) == ("torn", ("redo the study",) * 2)


@pytest.mark.parametrize("status", ["concluded", "truncated", "abandoned"])
def test_the_status_of_an_episode_with_a_footer(tmp_path: Path, status: str):
    footer = FOOTER.model_copy(update={"status": status})
    assert read_episode(write(tmp_path / "whole.jsonl", HEADER, turn(1), footer)).status == status


def test_a_last_line_cut_anywhere_is_dropped(tmp_path: Path):
    whole = "".join(map(to_line, (HEADER, turn(1), turn(2)))).encode()
    start = whole[:-1].rindex(b"\n") + 1
    file = tmp_path / "torn.jsonl"
    for end in range(start, len(whole)):
        file.write_bytes(whole[:end])
        assert read_episode(file).turns == (turn(1),)


DAMAGES = {
    "cut": (lambda line: line[:40], "line 3: not JSON"),
    "noise": (lambda line: b"\xff\xfe" + line, "line 3: not JSON"),
    "emptied": (lambda line: b"", "line 3: not JSON"),
    "another record": (lambda line: b'{"kind": "melody"}', "line 3: Input tag 'melody'"),
    "no record": (lambda line: b"[1, 2]", "line 3: Input should be"),
    "nested too deeply": (lambda line: b"[" * 100_000, "line 3: not JSON"),
    "a value lost": (
        lambda line: line.replace(b'"fake":2,', b""),
        r"line 3: Field required at turn\.event\.inquiry\.fake",
    ),
    "a value replaced": (lambda line: line.replace(b'"turn":2', b'"turn":"x"'), r"line 3: .* integer.* at turn\.turn"),
    "a value added": (lambda line: b'{"smell":1,' + line[1:], r"line 3: Extra inputs .* at turn\.smell"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_in_the_middle_names_file_and_line(tmp_path: Path, damage: str):
    change, message = DAMAGES[damage]
    file = write(tmp_path / "damaged.jsonl", HEADER, turn(1), turn(2), turn(3), FOOTER)
    lines = file.read_bytes().split(b"\n")
    lines[2] = change(lines[2])
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(LogError, match=message) as caught:
        read_episode(file)
    assert str(file) in str(caught.value)
    assert "bring the file back, or remove it" in str(caught.value)


def test_a_carriage_return_in_the_middle_is_damage_and_no_torn_line(tmp_path: Path):
    file = write(tmp_path / "damaged.jsonl", HEADER, turn(1), turn(2), FOOTER)
    content = file.read_bytes()
    middle = content.index(b"What next?")
    file.write_bytes(content[:middle] + b"\r" + content[middle:])
    with pytest.raises(LogError, match="line 2"):
        read_episode(file)


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ((turn(1), turn(3)), "has a turn 3 after turn 1"),
        ((turn(2),), "has a turn 2 after turn 0"),
        ((turn(1), turn(1)), "has a turn 1 after turn 1"),
        ((turn(1), reply(1), turn(2)), "has a reply 1 after turn 1"),
        ((reply(2), turn(1), turn(2)), "has a reply 2 after turn 0"),
    ],
)
def test_turns_and_replies_out_of_order_are_told(tmp_path: Path, records: tuple, told: str):
    with pytest.raises(LogError, match=rf"gap\.jsonl' {told}; .*damaged"):
        read_episode(write(tmp_path / "gap.jsonl", HEADER, *records, FOOTER))


@pytest.mark.parametrize("content", [b"", b'{"kind": "header", "see', to_line(turn(1)).encode()])
def test_a_file_without_a_header_says_what_to_do(tmp_path: Path, content: bytes):
    file = tmp_path / "headless.jsonl"
    file.write_bytes(content)
    with pytest.raises(LogError, match=r"no header line.*remove it") as caught:
        read_episode(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(LogError, match=r"cannot read '.*none\.jsonl': No such file"):
        read_episode(tmp_path / "none.jsonl")


def test_a_newer_log_is_told_from_a_damaged_one(tmp_path: Path):
    header = json.loads(to_line(HEADER)) | {"log_version": LOG_VERSION + 1, "a field of tomorrow": 1}
    file = tmp_path / "newer.jsonl"
    file.write_text(json.dumps(header) + "\n")
    with pytest.raises(
        LogError, match=rf"log version {LOG_VERSION + 1}; this release reads up to {LOG_VERSION}: update"
    ):
        read_episode(file)


# Writing


def test_a_log_is_never_overwritten(tmp_path: Path):
    file = write(tmp_path / "there.jsonl", HEADER, turn(1))
    before = file.read_bytes()
    with pytest.raises(LogError, match="exists already; logs are never overwritten: choose another place"):
        JsonlWriter(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("rest", [b"", b'{"kind":"tu', to_line(turn(2)).encode()[:-1]])
def test_a_resumed_log_is_cut_back_to_its_last_whole_line(tmp_path: Path, rest: bytes):
    file = write(tmp_path / "torn.jsonl", HEADER, turn(1))
    with file.open("ab") as stream:
        stream.write(rest)
    writer = JsonlWriter(file, resume=True)
    writer.write(turn(2, action="draw conclusion"))
    writer.close()
    assert read_episode(file).actions == ("redo the study", "draw conclusion")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogError, match=r"cannot write .* choose another folder, then run the same command again"):
        JsonlWriter(tmp_path / "file" / "episode.jsonl")


def test_a_full_disk_loses_nothing_that_was_logged(tmp_path: Path):
    file = tmp_path / "episode.jsonl"
    writer = JsonlWriter(file)
    writer.write(HEADER)
    writer.write(turn(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(file) + 100, hard))
    try:
        with pytest.raises(LogError, match=r"cannot write .* the lines written before are safe. Free some space"):
            writer.write(turn(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(LogError, match="is closed; open another writer to go on"):
        writer.write(turn(2))
    writer.close()
    assert read_episode(file).turns == (turn(1),)
    again = JsonlWriter(file, resume=True)
    again.write(turn(2))
    again.close()
    assert read_episode(file).turns == (turn(1), turn(2))


# Fingerprints


def test_the_fingerprint_leaves_out_the_circumstances():
    plain = Episode(HEADER, (turn(1),), FOOTER)
    dressed = Episode(
        HEADER.model_copy(update={"log_version": 1, "versions": {}, "started": "later", "agent": {"name": "replay"}}),
        (turn(1, tokens={"prompt": 1}, cost=2.0, agent_seconds=3.0, env_seconds=4.0),),
        FOOTER.model_copy(update={"seconds": 99.0}),
        Failure(error="once", when="then"),
        (reply(1),),
    )
    assert plain.fingerprint == dressed.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        Episode(HEADER.model_copy(update={"seed": 1}), (turn(1),), FOOTER),
        Episode(HEADER.model_copy(update={"rules": {}}), (turn(1),), FOOTER),
        Episode(HEADER.model_copy(update={"prompts": ""}), (turn(1),), FOOTER),
        Episode(HEADER, (turn(1, action="Redo the study"),), FOOTER),
        Episode(HEADER, (turn(1, observation="What now?"),), FOOTER),
        Episode(HEADER, (turn(1, reward=0.1),), FOOTER),
        Episode(HEADER, (turn(1), turn(2)), FOOTER),
        Episode(HEADER, (turn(1),), FOOTER.model_copy(update={"observation": ""})),
        Episode(HEADER, (turn(1),)),
    ],
)
def test_the_fingerprint_tells_episodes_apart(other: Episode):
    assert other.fingerprint != Episode(HEADER, (turn(1),), FOOTER).fingerprint


def test_a_log_has_the_fingerprint_of_the_episode_that_it_holds(tmp_path: Path):
    tree = load_tree("paper12")
    episode = play(InquiryEnv(tree, fake_level=5), RandomAgent(tree), 3, file=tmp_path / "episode.jsonl")
    assert read_episode(tmp_path / "episode.jsonl").fingerprint == episode.fingerprint
    assert read_episode(tmp_path / "episode.jsonl") == episode


def test_two_writers_of_one_log_are_one_too_many(tmp_path: Path):
    first = JsonlWriter(tmp_path / "log.jsonl")
    with pytest.raises(LogError, match=r"another process is writing .*log\.jsonl"):
        JsonlWriter(tmp_path / "log.jsonl", resume=True)
    first.close()
    JsonlWriter(tmp_path / "log.jsonl", resume=True).close()
