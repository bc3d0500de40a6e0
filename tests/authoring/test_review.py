"""A person decides on findings at the terminal, and what was accepted is written into the tree."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from inquitree_gym.authoring.applying import apply_decisions
from inquitree_gym.authoring.findings import SOURCES, Finding, Findings, side_file, write_findings
from inquitree_gym.errors import TreeError
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.trees import Tree, builtin_ids, dump_tree, load_tree
from inquitree_gym.trees.catalogue import builtin_file, user_files
from tests.authoring.reviewed import Case, case_in, rows_about
from tests.contract.command_line import inquitree


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_in(tmp_path)


def choices(case: Case) -> list[str | None]:
    return [decision and decision.choice for decision in case.findings.states]


# At the terminal


def test_each_decision_is_saved_and_a_later_review_goes_on(case: Case):
    done = inquitree("review", case.file, "--by", "Ann", stdin="a\ns\nq\n")
    assert (done.status, choices(case)) == (0, ["accepted", None, None])
    assert "3 rows, 2 open" in done.err
    for told in ("row 1 of 3 · leak · error · s1a", "why: It tells.", "proposal: Measure it twice.", "[a]ccept"):
        assert told in done.out
    again = inquitree("review", case.file, "--by", "Bob", stdin="r\ne\nWhat moves?\n")
    assert "row 1 of 3" not in again.out
    assert choices(case) == ["accepted", "rejected", "edited"]
    assert [decision.by for decision in case.findings.decisions] == ["Ann", "Bob", "Bob"]
    assert case.findings.states[2].text == "What moves?"
    assert case.file.read_text(encoding="utf-8") == dump_tree(case.tree), "the tree is not changed yet"


def test_undo_takes_back_one_decision_after_the_other(case: Case):
    done = inquitree("review", case.file, stdin="u\na\nr\nu\nu\nr\nq\n")
    assert "there is no decision to undo" in done.err
    assert choices(case) == ["rejected", None, None]


def test_an_unknown_answer_and_an_edit_without_a_text_decide_nothing(case: Case):
    done = inquitree("review", case.file, stdin="what\ne\n\ne\n")
    assert "type a, e, r, s, u or q" in done.err
    assert "an edited row must have a text" in done.err
    assert choices(case) == [None] * 3


@pytest.mark.e2e
def test_a_review_at_a_real_terminal(case: Case):
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", "from inquitree_gym.cli import main; main()", "review", str(case.file)]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    try:
        shown = b""
        for answer in (b"a\n", b"r\n", b"e\n", b"What moves?\n"):
            asked = b"text: " if answer.startswith(b"What") else b"[q]uit: "
            while not shown.endswith(asked):
                assert select.select([leader], [], [], 60)[0], shown
                shown += os.read(leader, 4096)
            os.write(leader, answer)
            shown += b"\n"
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert choices(case) == ["accepted", "rejected", "edited"]


def test_quotations_stand_beside_the_rows(case: Case):
    quotation = {"quotation": "We measured it twice.", "place": "Methods"}
    side_file(case.file, SOURCES).write_text(json.dumps({"s1a": [quotation]}))
    assert "source: We measured it twice. (Methods)" in inquitree("review", case.file, "--show").out
    side_file(case.file, SOURCES).write_text('{"s1a": "We"}')
    assert "must map ids of nodes to lists" in inquitree("review", case.file, "--show").said


def test_rows_can_be_printed_and_named_by_their_file(case: Case, tmp_path: Path):
    other = side_file(case.file).rename(tmp_path / "other.json")
    assert "there is no such file; run inquitree audit" in inquitree("review", case.file, "--show").said
    rows = inquitree("review", case.file, "--findings", other, "--json").json["rows"]
    assert [row["rule"] for row in rows] == ["leak", "superfluous-edge", "recall"]
    refused = inquitree("review", case.file, "--show", "--json")
    assert "exclude each other" in refused.said


# Into the tree


def test_apply_writes_what_was_accepted_and_edited_and_raises_the_version(case: Case):
    inquitree("review", case.file, stdin="e\nMeasure it three times.\na\na\n")
    done = inquitree("review", case.file, "--apply")
    later = next(subtopic for subtopic in case.tree.subtopics if subtopic.prerequisites)
    now = case.now
    assert now.subtopics[0].studies[0].text == "Measure it three times."
    assert now.subtopics[0].studies[0].hints[-1].endswith("easure it three times.")
    assert next(each for each in now.subtopics if each.id == later.id).requires == later.requires[1:]
    assert (now.version, now.topic) == (case.tree.version + 1, case.tree.topic)
    assert case.file.read_text(encoding="utf-8") == dump_tree(now)
    assert "row 3 is not written: it proposes no text" in done.out
    assert "2 rows written, version" in done.err
    again = inquitree("review", case.file, "--apply")
    assert "row 1 is not written: its text is no longer in the tree" in again.out
    assert case.now == now


def test_apply_lists_the_faults_of_the_result(case: Case):
    inquitree("review", case.file, stdin="a\nr\nr\n")
    told, faults = inquitree("review", case.file, "--apply").out, apply_decisions(case.tree, case.findings).faults
    assert faults
    assert [fault.code for fault in faults if f"{fault.severity} {fault.code} " not in told] == []


def test_a_tree_that_would_not_load_is_not_written(case: Case):
    twin = case.tree.subtopics[0].studies[1]
    inquitree("review", case.file, stdin=f"e\n{twin.text}\nr\nr\n")
    before = case.file.read_bytes()
    done = inquitree("review", case.file, "--apply")
    assert done.status == 2
    assert "T112" in done.said or "has the same text as" in done.said
    assert case.file.read_bytes() == before


def decided(tree: Tree, finding: Finding) -> Findings:
    return Findings(tree=tree.id, digest=tree.digest, rows=(finding,)).decide(0, "accepted", "Ann")


def test_each_kind_of_text_is_replaced_where_it_stands():
    tree = load_tree("paper2")
    paths = {path: text for path, text in tree.texts().items() if path != "topic"}
    for path in [next(iter(paths)), *[path for path in paths if "hint3" in path or path.endswith("/2")][:3]]:
        ids = [name for name in path.split("/") if name in tree.paths]
        finding = Finding(node=ids[-1], text=paths[path], rule="form", severity="note", proposal="Another text.")
        assert apply_decisions(tree, decided(tree, finding)).tree.texts()[path] == "Another text."
    topic = Finding(node="topic", text=tree.topic, rule="leak", severity="note", proposal="What is it?")
    assert apply_decisions(tree, decided(tree, topic)).tree.topic == "What is it?"


def test_a_missing_prerequisite_is_added_with_its_reason_and_a_circle_is_refused():
    tree = load_tree("paper2")
    first, *_, last = tree.subtopics
    edge = Finding(node=last.id, text=first.id, rule="missing-edge", severity="warning", proposal="It uses it.")
    wanted = tree if first.id not in last.requires else apply_decisions(
        tree, decided(tree, edge.model_copy(update={"rule": "superfluous-edge", "proposal": ""}))
    ).tree  # fmt: skip
    added = apply_decisions(wanted, decided(wanted, edge)).tree.subtopics[-1].prerequisites[-1]
    assert (added.id, added.because) == (first.id, "It uses it.")
    needed = next(subtopic for subtopic in tree.subtopics if subtopic.requires)
    circle = Finding(node=needed.requires[0], text=needed.id, rule="missing-edge", severity="note", proposal="So.")
    with pytest.raises(TreeError, match="cycle"):
        apply_decisions(tree, decided(tree, circle))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"node": "s99"}, "no node s99"),
        ({"node": "s2", "text": "s99", "rule": "circular-edge"}, "does not need s99 any more"),
        ({"rule": "circular-edge"}, "s1a is no subtopic"),
        ({"text": "Another."}, "no longer in the tree"),
        ({"proposal": None}, "proposes no text"),
        ({"node": "s2", "rule": "missing-edge", "text": "s9", "proposal": None}, "gives no reason"),
    ],
)
def test_what_cannot_be_written_is_left_with_the_reason(change: dict[str, object], reason: str):
    tree = load_tree("paper2")
    applied = apply_decisions(tree, decided(tree, rows_about(tree)[0].model_copy(update=change)))
    assert applied.tree == tree
    assert reason in applied.left[0]


# reviewed


def test_a_tree_is_reviewed_once_every_row_is_decided(tmp_path: Path):
    case = case_in(tmp_path, reviewed=False)
    assert "not reviewed" in inquitree("show", case.file).out
    inquitree("review", case.file, stdin="a\na\nq\n")
    assert case.now.reviewed is False
    inquitree("review", case.file, stdin="r\n")
    assert case.now.reviewed is True
    assert case.now.digest == case.tree.digest, "a review moves no digest"
    assert "not reviewed" not in inquitree("show", case.file).out
    inquitree("review", case.file, "--apply")
    assert case.now.reviewed is True


def test_a_tree_without_findings_in_its_file_is_reviewed_by_looking(tmp_path: Path):
    case = case_in(tmp_path, reviewed=False)
    write_findings(side_file(case.file), Findings(tree="mine", digest=case.tree.digest))
    inquitree("review", case.file, stdin="")
    assert case.now.reviewed is True


def test_apply_with_open_rows_leaves_a_tree_unreviewed(tmp_path: Path):
    case = case_in(tmp_path, reviewed=False)
    inquitree("review", case.file, stdin="a\nq\n")
    inquitree("review", case.file, "--apply")
    assert (case.now.reviewed, case.now.version) == (False, case.tree.version + 1)


def test_shipped_trees_say_nothing_of_a_review_and_keep_their_bytes():
    for name in builtin_ids():
        tree = load_tree(name)
        assert tree.reviewed is None
        assert dump_tree(tree).encode() == builtin_file(name).read_bytes()


def test_lists_and_reports_name_trees_that_nobody_reviewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    case = case_in(tmp_path, reviewed=False)
    side_file(case.file, SOURCES).write_text("{}")
    monkeypatch.setenv("INQUITREE_TREES", str(tmp_path))
    assert list(user_files()) == ["mine"], "side files are no trees"
    listed = {each["id"]: each["reviewed"] for each in inquitree("list", "--json").json}
    assert (listed["mine"], listed["paper2"]) == (False, True)
    assert inquitree("list").out.count("reviewed)") == 1, "a cell may break in between"
    study = make_study(agents=("oracle",), trees=(str(case.file), "paper2"))
    run_study(study, tmp_path / "run")
    told = inquitree("report", tmp_path / "run")
    assert "not reviewed: mine" in told.err
    written = tmp_path / "page" / "report.md"
    inquitree("report", tmp_path / "run", "--out", written.with_suffix(".html"))
    assert "- not reviewed: mine" in written.read_text(encoding="utf-8")
