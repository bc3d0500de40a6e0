"""Archives: what is written is read back, and what is damaged or unsafe leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from inquitree_gym.errors import LogError, PackError
from inquitree_gym.runner import archive
from inquitree_gym.runner.archive import PACK_MANIFEST, PackManifest, unpack, write_archive

CONTENTS = {"README.md": b"# Card\n", "episodes/a.jsonl": b'{"kind":"header"}\n' * 500, "empty": b""}


def forged(file: Path, entries: Iterable[tuple[str | zipfile.ZipInfo, bytes]], listed: dict[str, bytes] | None = None):
    """Write an archive with any entries, and a manifest of ``listed`` or else of all of them."""
    entries = list(entries)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for entry, content in entries:
            zipped.writestr(entry, content)
        if listed is None:
            listed = {getattr(entry, "filename", entry): content for entry, content in entries}
        files = {n: {"sha256": hashlib.sha256(c).hexdigest(), "size": len(c)} for n, c in listed.items()}
        zipped.writestr(PACK_MANIFEST, json.dumps({"format": "inquitree-pack/1", "files": files}))


def test_what_is_packed_is_unpacked(tmp_path: Path):
    file = tmp_path / "run.zip"
    manifest = write_archive(file, CONTENTS.items())
    assert unpack(file, tmp_path / "out") == manifest
    found = {
        each.relative_to(tmp_path / "out").as_posix(): each.read_bytes()
        for each in (tmp_path / "out").rglob("*")
        if each.is_file()
    }
    assert PackManifest.model_validate_json(found.pop(PACK_MANIFEST)) == manifest
    assert found == CONTENTS
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "run.zip"]


def test_equal_contents_give_equal_bytes(tmp_path: Path):
    for name in ("one.zip", "other.zip"):
        write_archive(tmp_path / name, CONTENTS.items())
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


def test_nothing_is_overwritten(tmp_path: Path):
    file = tmp_path / "run.zip"
    write_archive(file, CONTENTS.items())
    before = file.read_bytes()
    with pytest.raises(PackError, match="exists already; nothing is overwritten"):
        write_archive(file, CONTENTS.items())
    assert file.read_bytes() == before
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(LogError, match="exists already; nothing is overwritten"):
        unpack(file, tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogError, match="exists already; nothing is overwritten"):
        unpack(file, tmp_path / "link")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_every_changed_byte_is_found_or_harmless(tmp_path: Path):
    """A byte of the content never passes; one of the ZIP's own dates may change without any effect."""
    file = tmp_path / "run.zip"
    write_archive(file, CONTENTS.items())
    whole, changed = file.read_bytes(), tmp_path / "changed.zip"
    for at in range(0, len(whole), 3):
        changed.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        out = tmp_path / f"out{at}"
        with suppress(PackError):
            unpack(changed, out)
        assert not out.exists() or {name: (out / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert not list(tmp_path.glob(".*"))


def test_a_torn_archive_is_refused(tmp_path: Path):
    file = tmp_path / "run.zip"
    write_archive(file, CONTENTS.items())
    for size in (0, 10, len(file.read_bytes()) // 2):
        torn = tmp_path / "torn.zip"
        torn.write_bytes(file.read_bytes()[:size])
        with pytest.raises(PackError, match="is no whole archive of inquitree pack"):
            unpack(torn, tmp_path / "out")
    with pytest.raises(PackError, match=r"cannot read .*: No such file"):
        unpack(tmp_path / "none.zip", tmp_path / "out")
    with pytest.raises(PackError, match=r"cannot read .*: Is a directory"):
        unpack(tmp_path, tmp_path / "out")


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


UNSAFE = {
    "parent": [("../evil", b"x")],
    "deep parent": [("episodes/../../evil", b"x")],
    "absolute": [("/evil", b"x")],
    "drive": [("C:evil", b"x")],
    "backslash": [("..\\evil", b"x")],
    "control": [("a\x1b[2J", b"x")],
    "dot": [("./a", b"x")],
    "long": [("a" * 300, b"x")],
    "link": [(link("episodes"), b"/etc"), ("episodes/a", b"x")],
    "folder": [("episodes/", b"")],
    "twice on some systems": [("a", b"x"), ("A", b"y")],
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_a_path_that_leaves_the_folder_or_is_no_file_is_refused(tmp_path: Path, kind: str):
    inside = tmp_path / "inside"
    inside.mkdir()
    forged(inside / "run.zip", UNSAFE[kind])
    with pytest.raises(PackError, match=r"is not unpacked: ") as caught:
        unpack(inside / "run.zip", inside / "out")
    assert len(str(caught.value).splitlines()) == 1
    assert "\x1b" not in str(caught.value)
    assert [each.name for each in inside.iterdir()] == ["run.zip"]
    assert [each.name for each in tmp_path.iterdir()] == ["inside"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_and_manifest_have_to_agree(tmp_path: Path):
    cases = {
        "is in only one of": ([("a", b"x"), ("b", b"y")], {"a": b"x"}),
        "is in only one": ([("a", b"x")], {"a": b"x", "b": b"y"}),
        "two entries have the same path": ([("a", b"x"), ("a", b"y")], {"a": b"y"}),
        "'a' is not what its manifest.json lists": ([("a", b"x")], {"a": b"y"}),
    }
    for number, (told, (entries, listed)) in enumerate(cases.items()):
        file = tmp_path / f"{number}.zip"
        forged(file, entries, listed)
        with pytest.raises(PackError, match=told):
            unpack(file, tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as zipped:
        zipped.writestr("a", b"x")
    with pytest.raises(PackError, match=r"it has no manifest\.json"):
        unpack(tmp_path / "other.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_of_a_million_entries_is_refused_at_once(tmp_path: Path):
    file = tmp_path / "bomb.zip"
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = entry * 1_000_000
    zip64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**6, 10**6, len(directory), 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    file.write_bytes(directory + zip64 + locator + end)
    with pytest.raises(PackError, match=r"its directory has 47,000,000 bytes, more than 100,000 files need"):
        unpack(file, tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["bomb.zip"]


def test_too_many_or_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    forged(tmp_path / "large.zip", [("a", b"\0" * 300 * 2**20)])
    with pytest.raises(PackError, match=r"it would unpack to 314,572,\d+ bytes, too many for its"):
        unpack(tmp_path / "large.zip", tmp_path / "out")
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    forged(tmp_path / "many.zip", [(f"{number}", b"") for number in range(3)])
    with pytest.raises(PackError, match="it has 4 entries; at most 3 are unpacked"):
        unpack(tmp_path / "many.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_size_that_lies_is_found(tmp_path: Path):
    """The content of an entry is longer than the ZIP and the manifest say."""
    file, content = tmp_path / "run.zip", b"x" * 100_000
    forged(file, [("a", content)], {"a": content[:10]})
    document = file.read_bytes().replace(struct.pack("<L", len(content)), struct.pack("<L", 10))
    file.write_bytes(document)
    with pytest.raises(PackError, match="is no whole archive"):
        unpack(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()
