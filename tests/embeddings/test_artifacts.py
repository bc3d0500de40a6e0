"""Folders of models made here: where they are, what vouches for them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import SafetensorError

from inquitree_gym.embeddings.derived import files_digest, made_folder, models_folder, read_manifest, verify_files
from inquitree_gym.errors import EmbedderError
from research.sealing import seal, writing


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    seal(tmp_path, "static", "c0ffee", 0.5, ("a", "b"), trees=["paper8"])
    return tmp_path


def test_models_stand_in_the_users_data_folder_unless_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("INQUITREE_MODELS", raising=False)
    assert models_folder().parts[-2:] == ("inquitree-gym", "models")
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    assert made_folder("onnx", "some-model") == tmp_path / "onnx" / "some-model"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("INQUITREE_MODELS", "~/mine")
    assert models_folder() == tmp_path / "mine"


def test_what_was_sealed_is_read_again(sealed: Path):
    manifest = read_manifest(sealed, "static")
    assert (manifest.source, manifest.threshold, manifest.evidence) == ("c0ffee", 0.5, {"trees": ["paper8"]})
    verify_files(sealed, "static", manifest.files)


def test_the_digest_tells_names_and_contents_and_no_order(sealed: Path):
    files = read_manifest(sealed, "static").files
    assert files_digest(dict(reversed(files.items()))) == read_manifest(sealed, "static").digest
    others = [files | {"a": files["b"]}, {"a": files["a"]}, {"a": files["b"], "b": files["a"]}]
    assert len({files_digest(each) for each in (files, *others)}) == 4


def test_a_model_of_another_kind_is_told_with_its_name(sealed: Path):
    with pytest.raises(EmbedderError, match=f"holds a model of the kind static; name it static:{sealed}"):
        read_manifest(sealed, "onnx")


FAULTS = {
    "torn": lambda text: text[:40],
    "empty": lambda text: "",
    "threshold": lambda text: text.replace("0.5", "1.5"),
    "no files": lambda text: json.dumps(json.loads(text) | {"files": {}}),
    "more": lambda text: json.dumps(json.loads(text) | {"colour": "blue"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_manifest_at_fault_is_refused(fault: str, sealed: Path):
    file = sealed / "inquitree.json"
    file.write_text(FAULTS[fault](file.read_text()))
    with pytest.raises(
        EmbedderError, match=r"is damaged: inquitree\.json: .*make it again with: python -m research.static"
    ):
        read_manifest(sealed, "static")


def test_a_folder_that_is_being_written_has_no_manifest(sealed: Path):
    with writing(sealed):
        assert sorted(file.name for file in sealed.iterdir()) == ["a", "b"], "other files are not ours to remove"
        with pytest.raises(EmbedderError, match="there is no static model"):
            read_manifest(sealed, "static")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("No space left on device")])
def test_a_folder_that_cannot_be_written_is_told(error: Exception, tmp_path: Path):
    with pytest.raises(EmbedderError, match=r"cannot write into .*No space left on device.*--out"), writing(tmp_path):
        raise error


@pytest.mark.parametrize("change", [lambda file: file.unlink(), lambda file: file.write_text("c")])
def test_a_file_that_is_gone_or_changed_is_refused(change, sealed: Path):
    manifest = read_manifest(sealed, "static")
    change(sealed / "b")
    with pytest.raises(
        EmbedderError, match=r"damaged: 'b' (is missing|was changed).*make it again with: python -m research.static"
    ):
        verify_files(sealed, "static", manifest.files)
