"""The episode log: what is written can be read again, and what is damaged says so."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.events import EmbedderRef, InquiryEvent, InquirySetup, ReadingRecord
from inquitree_gym.log import (
    LOG_VERSION,
    Episode,
    Failure,
    Footer,
    Header,
    JsonlWriter,
    Reply,
    TaskRef,
    Turn,
    read_episode,
    read_header,
    to_line,
)

HEADER = Header(
    versions={"python": "3.12.1"},
    task=TaskRef(kind="inquiry", id="paper8", version=2, digest="ab" * 32),
    rules={"threshold": 0.4, "fake_level": 3, "max_turns": None},
    seed=2**63,
    setup=InquirySetup(embedder=EmbedderRef(name="an embedder", digest="cd" * 32)),
    prompts="ef" * 32,
    agent={"name": "made", "temperature": 0, "parts": [1, {"two": None}]},
    started="2026-01-02T03:04:05+00:00",
)


EVENT = InquiryEvent(
    kind="result", state="result", node="s1a", fake=2, accepted=True, forced=False, hint_level=0, limit=False,
    reason="none", decision="redo",
    reading=ReadingRecord(candidate="s1", similarity=0.1 + 0.2, decision="redo", margin=None, top=(("s1", 0.5),)),
)  # fmt: skip


def turn(number: int = 1, **changes) -> Turn:
    settings = {
        "turn": number,
        "observation": "What next?",
        "action": "redo the study",
        "event": EVENT,
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


def test_absent_is_null_and_not_zero():
    line = json.loads(to_line(turn()))
    assert line["cost"] is line["tokens"] is line["event"]["reading"]["margin"] is None
    line = json.loads(to_line(reply()))
    assert line["cost"] is line["tokens"] is None


# Torn, failed and damaged


def test_the_status_of_an_episode_without_a_footer(tmp_path: Path):
    failure = Failure(error="the service is down", when="2026-01-02")
    torn = read_episode(write(tmp_path / "torn.jsonl", HEADER, turn(1)))
    failed = read_episode(write(tmp_path / "failed.jsonl", HEADER, turn(1), failure))
    went_on = read_episode(write(tmp_path / "went_on.jsonl", HEADER, turn(1), failure, turn(2)))
    assert (torn.status, torn.failure) == ("torn", None)
    assert (failed.status, failed.failure) == ("failed", failure)
    assert (went_on.status, went_on.actions) == ("torn", ("redo the study",) * 2)


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
    "a value lost": (lambda line: line.replace(b'"fake":2,', b""), r"line 3: Field required at turn\.event\.fake"),
    "a value replaced": (lambda line: line.replace(b'"turn":2', b'"turn":"x"'), r"line 3: .* integer.* at turn\.turn"),
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


@pytest.mark.parametrize(
    ("line", "place"),
    [(0, "header"), (0, "header.setup"), (0, "header.task"), (2, "turn"), (2, "turn.event"), (4, "footer")],
)
def test_an_unknown_field_is_told_from_damage(tmp_path: Path, line: int, place: str):
    file = write(tmp_path / "newer.jsonl", HEADER, turn(1), turn(2), turn(3), FOOTER)
    documents = [json.loads(text) for text in file.read_text().splitlines()]
    part = documents[line]
    for name in place.split(".")[1:]:
        part = part[name]
    part["smell"] = 1
    file.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    for read in (read_episode, read_header)[: 1 if line else 2]:
        with pytest.raises(LogError) as caught:
            read(file)
        assert str(caught.value) == (
            f"'{file}', line {line + 1}: {place}.smell is an unknown field, which a later version may have written; "
            "read it with that version"
        )


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


@pytest.mark.parametrize("read", [read_episode, read_header])
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"log_version": LOG_VERSION + 1, "a field of tomorrow": 1}, "must have log_version 1, got 2. Read it with"),
        ({"log_version": "1"}, "must have log_version 1, got '1'. Read it with the release that wrote it"),
        ({"log_version": True}, "must have log_version 1, got True"),
        ({"log_version": None}, "must have log_version 1, got None"),
    ],
)
def test_a_log_of_another_version_is_told_from_a_damaged_one(
    tmp_path: Path, changes: dict[str, Any], told: str, read: Callable[[Path], object]
):
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps(json.loads(to_line(HEADER)) | changes) + "\n")
    with pytest.raises(LogError, match=told) as caught:
        read(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_regular_file_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    os.mkfifo(tmp_path / "pipe")
    large = write(tmp_path / "large.jsonl", HEADER, turn(1))
    monkeypatch.setattr("inquitree_gym.log.records.MAX_LOG", 10)
    for place, told in {
        tmp_path: "a folder", tmp_path / "pipe": "a pipe", Path("/dev/null"): "a device", large: f"{10:,} bytes"
    }.items():  # fmt: skip
        for read in (read_episode, read_header):
            with pytest.raises(LogError, match=rf"'{place}' must .*{told}"):
                read(place)


# Writing


def test_a_log_is_never_overwritten(tmp_path: Path):
    file = write(tmp_path / "there.jsonl", HEADER, turn(1))
    before = file.read_bytes()
    with pytest.raises(LogError, match="exists already; logs are never overwritten: choose another place"):
        JsonlWriter(file)
    assert file.read_bytes() == before


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
        HEADER.model_copy(update={"versions": {}, "started": "later", "agent": {"name": "replay"}}),
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


def test_two_writers_of_one_log_are_one_too_many(tmp_path: Path):
    first = JsonlWriter(tmp_path / "log.jsonl")
    with pytest.raises(LogError, match=r"another process is writing .*log\.jsonl"):
        JsonlWriter(tmp_path / "log.jsonl", resume=True)
    first.close()
    JsonlWriter(tmp_path / "log.jsonl", resume=True).close()
