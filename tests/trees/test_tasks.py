"""Task files are data: read by id or path, validated whole, and refused in one error that names every place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import TreeError
from inquitree_gym.projection.tasks import load_task, load_user_file, parse_task, swapped_tasks
from inquitree_gym.trees import ProjectionTask, Tree, dump_tree
from inquitree_gym.trees.catalogue import TREES_VARIABLE, builtin_ids
from inquitree_gym.trees.disclosure import LEVELS
from inquitree_gym.trees.reading import dump_document
from tests.strategies import make_tree
from tests.tasks import make_task
from tests.trees.test_load import VALUES

DOCUMENT = make_task().model_dump(mode="json")
TEXT = json.dumps(DOCUMENT)


def outcome(document: str) -> ProjectionTask | list[str]:
    """The task, or the faults; anything else that is raised fails the test."""
    try:
        return parse_task(document.encode("utf-8", "surrogatepass"))
    except TreeError as error:
        return list(map(str, error.faults))


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a document, as the keys that lead there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


PLACES = [place for place in places(DOCUMENT) if place]


def changed(document: dict, place: tuple, change: Any) -> dict:
    """A copy with one place removed, repeated, or replaced by a value."""
    found = copy.deepcopy(document)
    at = found
    for key in place[:-1]:
        at = at[key]
    kind, value = change
    if kind == "remove":
        del at[place[-1]]
    elif kind == "repeat" and isinstance(at, list):
        at.append(at[place[-1]])
    else:
        at[place[-1]] = value
    return found


CHANGES = st.one_of(st.just(("remove", None)), st.just(("repeat", None)), st.tuples(st.just("replace"), VALUES))


@pytest.mark.e2e
@settings(max_examples=2_000)
@given(st.sampled_from(PLACES), CHANGES)
def test_a_changed_task_is_valid_or_refused_in_one_error(place, change):
    document = changed(DOCUMENT, place, change)
    found = outcome(json.dumps(document))
    if isinstance(found, ProjectionTask):
        assert found.claims
        assert parse_task(found.model_dump_json().encode()) == found
    elif place[0] != "format":
        assert found, "an error without a fault"


@given(st.integers(0, len(TEXT)), st.text(max_size=3), st.integers(0, 5))
def test_a_torn_file_is_valid_or_refused(at: int, put: str, gone: int):
    outcome(TEXT[:at] + put + TEXT[at + gone :])
    outcome(TEXT[:at])


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("disclosure", "claims"), [], "disclosure.claims"),
        (("disclosure", "claims", 0, "evidence"), [], "disclosure.claims[0].evidence"),
        (("disclosure", "claims", 1, "evidence"), ["s99"], "disclosure.claims[1].evidence[0]"),
        (("disclosure", "claims", 2, "contraries"), [], "disclosure.claims[2].contraries"),
        (("disclosure", "procedure"), [], "disclosure.procedure"),
        (("disclosure", "question"), "", "disclosure.question"),
        (("disclosure", "outcome"), "a\u202eb", "disclosure.outcome"),
        (("version",), 0, "version"),
    ],
)
def test_a_fault_names_its_place(place, value, told: str):
    with pytest.raises(TreeError) as caught:
        parse_task(json.dumps(changed(DOCUMENT, place, ("replace", value))).encode())
    assert [fault.path for fault in caught.value.faults] == [told]


def test_a_flood_of_faults_is_counted_and_not_listed():
    document = changed(DOCUMENT, ("disclosure", "procedure"), ("replace", ["fine", *[""] * 20_000]))
    (told,) = outcome(json.dumps(document))
    assert told == "20,000 faults, more than the 10,000 that are listed; is this a research tree?"


def test_a_task_is_itself_and_its_file(tmp_path):
    task, file = make_task(), tmp_path / "bread.json"
    file.write_text(TEXT, encoding="utf-8")
    assert load_task(task) is task
    assert load_task(file) == load_task(str(file)) == task


def test_a_task_in_a_folder_of_the_user_is_known_by_its_id(tmp_path, monkeypatch):
    (tmp_path / "bread.json").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.json").write_text(TEXT, encoding="utf-8")
    (tmp_path / "bare.json").write_text(dump_tree(make_tree([[]], [1], tree_id="bare")), encoding="utf-8")
    monkeypatch.setenv(TREES_VARIABLE, str(tmp_path))
    assert load_task("bread") == make_task()
    assert isinstance(load_user_file(tmp_path / "bare.json"), Tree)
    with pytest.raises(TreeError, match="holds the id 'bread'; file name and id have to agree"):
        load_task("other")


# Controls: the disclosure of one task with the claims of another


def test_a_control_tells_one_study_and_scores_another():
    control, scored, told = (load_task(name) for name in ("paper12-told-paper5", "12", "5"))
    assert control.id == "paper12-told-paper5"
    for level in LEVELS:
        assert control.disclosure.texts_of(level) == told.disclosure.texts_of(level)
    for name in ("domain", "hypothesis", "outcome", "claims"):
        assert getattr(control.disclosure, name) == getattr(scored.disclosure, name)
    assert (control.paper, control.version) == (scored.paper, scored.version)
    assert control.digest not in (scored.digest, told.digest)
    assert (
        parse_task(dump_document(control).encode())
        == control
        == load_task("12-told-5").model_copy(update={"id": control.id})
    )


def test_the_shipped_controls_pair_each_task_once_with_one_of_another_domain():
    controls = [name.split("-told-") for name in swapped_tasks()]
    assert tuple(scored for scored, _ in controls) == builtin_ids()
    assert sorted(told for _, told in controls) == sorted(builtin_ids())
    for pair in controls:
        assert len({load_task(name).disclosure.domain for name in pair}) == 2


def test_a_file_of_ones_own_comes_before_a_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = make_task().model_copy(update={"id": "paper12-told-paper5"})
    (tmp_path / f"{own.id}.json").write_text(dump_document(own))
    monkeypatch.setenv(TREES_VARIABLE, str(tmp_path))
    assert load_task(own.id) == own
