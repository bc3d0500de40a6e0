"""A model on loopback checks shipped trees. Good replies become rows and figures, bad ones keep a status."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inquitree_gym.authoring.audit import ask_all, edge_questions, text_questions
from inquitree_gym.authoring.audit_exam import exam_questions
from inquitree_gym.authoring.findings import AuditFigure, Finding, Findings, read_findings, write_findings
from inquitree_gym.cli import app
from inquitree_gym.errors import AuthoringError, OptionError, TreeError
from inquitree_gym.llm import Budget, BudgetedChat, ChatModel
from inquitree_gym.llm.litellm import run_sync
from inquitree_gym.trees import Tree, dump_tree, load_tree
from tests.contract.command_line import inquitree
from tests.servers import REFUSED, SERVER_FAULT, Body, Service, failed

CODE = re.compile(r"\b[TER]\d+-[0-9A-F]{6}\b")
CLEAN = json.dumps({"clean": True, "remarks": []})


@pytest.fixture(scope="module")
def tree() -> Tree:
    return load_tree("paper2")


def sees(body: Body) -> str:
    """The first request of a talk, corrections left out."""
    return body["messages"][1]["content"]


def codes(body: Body) -> list[str]:
    """The codes of the material, each once."""
    return list(dict.fromkeys(CODE.findall(sees(body))))


class Checker:
    """Finds nothing, calls each prerequisite needed, and knows what is true from the texts of the tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __call__(self, body: Body) -> str:
        told = sees(body)
        if '"clean"' in told:
            return CLEAN
        if '"edges"' in told:
            edges = [{"edge": code, "verdict": "needed", "why": "It is."} for code in codes(body)]
            return json.dumps({"edges": edges, "missing": []})
        if '"fakes"' in told:
            return json.dumps({"fakes": [], "true": codes(body)})
        shown = {key for study in self._tree.studies for key in self._keys(study, told)}
        poles = dict(pair for key in shown for pair in key)
        return "\n".join(self._choices(told, poles or {axis.id: str(axis.actual) for axis in self._tree.axes}))

    def _keys(self, study: Any, told: str) -> list[tuple[tuple[str, str], ...]]:
        texts = study.result.texts.items()
        return [tuple(zip(study.result.axes, key, strict=True)) for key, each in texts if f": {each[0]}" in told]

    def _choices(self, told: str, poles: dict[str, str]) -> list[str]:
        lines = []
        for number, item in enumerate(self._tree.conclusions, 1):
            text = item.texts["".join(poles[axis] for axis in item.axes)]
            (letter,) = re.findall(rf"^[ \d.]*([A-I])\. {re.escape(text)}$", told, re.MULTILINE)
            lines.append(f"{number} {letter}")
        return lines


def audit(tree: Tree, service: Service, questions: Any, reply: Callable[[Body], str], **options: Any) -> Any:
    service.reply = reply
    chat = ChatModel("openai/m", base_url=service.address, retries=0)
    return run_sync(ask_all(list(questions), chat, Findings(tree=tree.id, digest=tree.digest), **options))


def test_a_perfect_reader_leaves_the_exam_sound_and_its_memory_is_a_row(tree: Tree, service: Service):
    result = audit(tree, service, exam_questions(tree, 3, 5), Checker(tree))
    items, figures = len(tree.conclusions), {each.name: (each.count, each.n) for each in result.findings.figures}
    assert figures["recall"] == (items, items)
    assert figures["sound"] == (3 * items, 3 * items)
    assert figures["hits"][0] == figures["false alarms"][0] == 0
    assert figures["hits"][1] + figures["false alarms"][1] == 3 * len(tree.studies)
    assert {(row.node, row.rule) for row in result.findings.rows if row.rule == "recall"} == {("topic", "recall")}
    missed = [row for row in result.findings.rows if row.rule == "untellable"]
    assert 0 < len(missed) <= figures["hits"][1]
    assert result.read == 7
    assert not result.findings.unread


def test_closed_book_shows_no_result_and_worlds_depend_on_the_seed(tree: Tree):
    asked = {seed: [question.prompt for question in exam_questions(tree, 2, seed)] for seed in (1, 2)}
    texts = [text for study in tree.studies for each in study.result.texts.values() for text in each]
    assert not any(text in asked[1][0] for text in texts)
    assert asked[1] == [question.prompt for question in exam_questions(tree, 2, 1)]
    assert asked[1][1] != asked[2][1]


def test_every_text_has_a_code_and_a_remark_becomes_a_row(tree: Tree, service: Service):
    study = tree.subtopics[0].studies[0]

    def reply(body: Body) -> str:
        (code,) = re.findall(rf"(T\d+-\w+) protocol {study.id}:", sees(body)) or [""]
        remark = {"text": code, "rule": "leak", "severity": "error", "why": "It tells.", "proposal": "Measure it."}
        return json.dumps({"clean": False, "remarks": [remark]}) if code else CLEAN

    result = audit(tree, service, text_questions(tree), reply)
    assert result.findings.rows == (
        Finding(node=study.id, text=study.text, rule="leak", severity="error", proposal="Measure it.", why="It tells."),
    )
    said = "\n".join(messages[1]["content"] for messages in service.chats)
    assert all(f": {text}\n" in said for text in tree.texts().values())


def test_prerequisites_get_verdicts(tree: Tree, service: Service):
    first, *_, last = tree.subtopics

    def reply(body: Body) -> str:
        superfluous, *needed = codes(body)
        edges = [{"edge": superfluous, "verdict": "superfluous", "why": "It stands alone."}]
        edges += [{"edge": code, "verdict": "needed", "why": "It does."} for code in needed]
        return json.dumps({"edges": edges, "missing": []})

    result = audit(tree, service, edge_questions(tree), reply)
    later = next(subtopic for subtopic in tree.subtopics if subtopic.prerequisites)
    (row,) = result.findings.rows
    assert (row.node, row.text, row.rule) == (later.id, later.requires[0], "superfluous-edge")
    assert first.id != last.id


BAD_EDGES: dict[str, Callable[[list[str]], Body]] = {
    "has no verdict": lambda known: {"edges": [], "missing": []},
    "has two verdicts": lambda known: {
        "edges": [{"edge": known[0], "verdict": verdict, "why": "x"} for verdict in ("needed", "circular")],
        "missing": [],
    },
    "is no code of the request": lambda known: {
        "edges": [{"edge": "E9-000000", "verdict": "needed", "why": "x"}], "missing": [],
    },
    "is no subtopic of the tree": lambda known: {
        "edges": [{"edge": code, "verdict": "needed", "why": "x"} for code in known],
        "missing": [{"later": "s99", "earlier": "s1", "because": "x"}],
    },
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD_EDGES)
def test_a_bad_verdict_is_corrected_once_and_then_kept_with_its_status(fault: str, tree: Tree, service: Service):
    result = audit(tree, service, edge_questions(tree), lambda body: json.dumps(BAD_EDGES[fault](codes(body))))
    (lost,) = result.findings.unread
    assert (result.read, result.findings.rows, result.findings.figures) == (0, (), ())
    assert lost.status == ("contradictory" if "two" in fault else "unreadable")
    assert fault in lost.why
    assert json.loads(lost.reply)
    assert [len(messages) for messages in service.chats] == [2, 4]
    assert fault in service.chats[1][-1]["content"]


def test_a_correction_that_helps_is_read(tree: Tree, service: Service):
    good = Checker(tree)
    result = audit(tree, service, edge_questions(tree), lambda body: good(body) if len(body["messages"]) > 2 else "Hm.")
    assert (result.read, result.findings.unread) == (1, ())


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (json.dumps({"clean": True, "remarks": [1]}), "unreadable"),
        (json.dumps({"clean": False, "remarks": []}), "contradictory"),
        ("I will not.", "unreadable"),
    ],
)
def test_texts_without_an_answer_have_a_status(reply: str, status: str, tree: Tree, service: Service):
    result = audit(tree, service, text_questions(tree), lambda body: reply)
    assert {lost.status for lost in result.findings.unread} == {status}
    assert len(result.findings.unread) == len(tree.subtopics) + 1


def test_an_exam_with_two_answers_to_an_item_adds_to_no_figure(tree: Tree, service: Service):
    result = audit(tree, service, exam_questions(tree, 0), lambda body: f"{Checker(tree)(body)}\n1 A\n1 B")
    assert result.findings.figures == ()
    assert result.findings.unread[0].status == "contradictory"


def test_marks_that_name_a_result_twice_or_not_at_all_are_no_answer(tree: Tree, service: Service):
    def twice(body: Body) -> str:
        return json.dumps({"fakes": codes(body)[:1], "true": codes(body)})

    questions = [each for each in exam_questions(tree, 1) if each.name.startswith("fakes")]
    assert audit(tree, service, questions, twice).findings.unread[0].status == "contradictory"
    none = audit(tree, service, questions, lambda body: json.dumps({"fakes": [], "true": []}))
    assert (none.findings.unread[0].status, none.findings.figures) == ("unreadable", ())


@pytest.mark.parametrize(
    ("answer", "status"), [(REFUSED, "refused"), (SERVER_FAULT, "failed"), (failed(401), "failed")]
)
def test_a_refusal_or_a_failure_loses_nothing_else(answer: Any, status: str, tree: Tree, service: Service):
    service.planned.append(answer)
    questions = [*edge_questions(tree), *exam_questions(tree, 1)]
    result = audit(tree, service, questions, Checker(tree))
    assert [lost.status for lost in result.findings.unread] == [status]
    assert result.read == len(questions) - 1


def test_what_the_budget_leaves_out_is_named(tree: Tree, service: Service):
    service.reply = Checker(tree)
    chat = BudgetedChat(ChatModel("openai/m", base_url=service.address), Budget(max_total_tokens=1))
    record = Findings(tree=tree.id, digest=tree.digest)
    for question in exam_questions(tree, 1):
        record = run_sync(ask_all([question], chat, record)).findings
    assert [lost.status for lost in record.unread] == ["not asked"]


def test_another_audit_keeps_rows_and_replaces_the_figures_of_its_model(tree: Tree, service: Service):
    other = AuditFigure(name="recall", count=1, n=4, model="other")
    before = audit(tree, service, exam_questions(tree, 1), Checker(tree)).findings
    before = before.model_copy(update={"figures": (*before.figures, other)}).decide(0, "accepted", "me")
    after = run_sync(ask_all(list(exam_questions(tree, 1)), ChatModel("openai/m", base_url=service.address), before))
    assert after.findings.rows == before.rows
    assert after.findings.decisions == before.decisions
    assert sorted(map(str, after.findings.figures)) == sorted(map(str, before.figures))


# The record


def row(text: str = "A text.", **more: Any) -> Finding:
    return Finding(node="s1", text=text, rule="leak", severity="warning", proposal="Another text.", **more)


def test_decisions_are_kept_in_order_and_undone_one_by_one():
    record = Findings(tree="t", digest="d", rows=(row(), row("B")))
    record = record.decide(0, "rejected", "Ann").decide(0, "edited", "Ann", " Mine. ").decide(1, "accepted", "Bob")
    assert [decision and (decision.choice, decision.text) for decision in record.states] == [
        ("edited", "Mine."), ("accepted", None),
    ]  # fmt: skip
    assert record.open_rows == []
    record = record.undo()
    assert record.open_rows == [1]
    assert record.undo().states[0].choice == "rejected"
    with pytest.raises(OptionError, match="no decision to undo"):
        record.undo().undo().undo()


@pytest.mark.parametrize(("choice", "text"), [("edited", None), ("edited", "  "), ("accepted", "Mine.")])
def test_only_an_edited_row_has_a_text(choice: Any, text: str | None):
    with pytest.raises(OptionError, match="an edited row must have a text"):
        Findings(tree="t", digest="d", rows=(row(),)).decide(0, choice, "Ann", text)


def test_a_file_of_findings_is_read_as_it_was_written(tree: Tree, tmp_path: Path):
    file = tmp_path / "paper2.findings.json"
    assert read_findings(file, tree).rows == ()
    record = Findings(tree=tree.id, digest="another", rows=(row(why="So."),)).decide(0, "accepted", "Ann")
    write_findings(file, record)
    assert read_findings(file, tree) == record
    with pytest.raises(AuthoringError, match="must be about the tree 'paper12', got 'paper2'"):
        read_findings(file, load_tree("paper12"))
    file.write_text(record.model_dump_json().replace('"row":0', '"row":7'))
    with pytest.raises(AuthoringError, match="a row that it does not hold"):
        read_findings(file, tree)
    file.write_text('{"format": "findings/1"}')
    with pytest.raises(TreeError, match="is missing"):
        read_findings(file, tree)


# The verb


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["audit", *arguments])


def test_the_verb_writes_rows_and_figures_and_pays_once(tree: Tree, service: Service, tmp_path: Path):
    service.reply = Checker(tree)
    file = tmp_path / "mine.json"
    file.write_text(dump_tree(tree), encoding="utf-8")
    asked = [str(file), "--model", "openai/m", "--base-url", service.address, "--cache", str(tmp_path / "cache")]
    done = run(*asked, "--worlds", "1", "--seed", "3", "--stages", "edges,exam")
    assert done.exit_code == 0, done.output
    assert "recall" in done.output
    assert "new row" in done.stderr
    record = read_findings(tmp_path / "mine.findings.json", tree)
    assert {figure.name for figure in record.figures} == {"recall", "sound", "hits", "false alarms"}
    paid = len(service.requests)
    again = run(
        *asked, "--worlds", "1", "--seed", "3", "--stages", "edges,exam", "--json", "--out", str(tmp_path / "x")
    )
    assert json.loads(again.stdout)["rows"] == json.loads(record.model_dump_json())["rows"]
    assert (paid, len(service.requests)) == (4, 4)


def test_the_verb_says_which_requests_have_no_answer(tree: Tree, service: Service, tmp_path: Path):
    service.reply = lambda body: "No."
    asked = ["paper2", "--model", "openai/m", "--base-url", service.address, "--cache", str(tmp_path / "cache")]
    done = run(*asked, "--stages", "edges", "--out", str(tmp_path / "f.json"))
    assert done.exit_code == 1
    assert "unreadable" in done.output
    assert read_findings(tmp_path / "f.json", tree).unread[0].reply == "No."


def test_a_dry_run_asks_nothing(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = run("paper2", "--model", "openai/gpt-4o", "--dry-run", "--json", "--reply-tokens", "100", "--worlds", "1")
    plan = json.loads(done.stdout)
    assert plan["requests"] == 4 + 1 + 1 + 3
    assert plan["most_reply_tokens"] == 100 * plan["requests"]
    assert plan["dollars"] > 0
    unlimited = run("paper2", "--model", "openai/m", "--dry-run", "--reply-tokens", "none", "--stages", "edges")
    assert "no limit" in unlimited.output
    assert "unknown" in unlimited.output
    assert service.requests == []
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_stage_is_named():
    done = run("paper2", "--model", "m", "--stages", "edge")
    assert "got 'edge'" in str(done.exception)


def test_the_commands_of_the_page_work_as_they_stand(
    tree: Tree, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = (Path(__file__).parents[2] / "docs" / "review.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ inquitree (.+)$", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    service.reply = lambda body: "No."
    ended = {}
    for command in commands:
        here = command.replace(" --max-cost 2", f" --base-url {service.address}").replace("--page", "--page --port -1")
        ended[command] = inquitree(*here.split(), stdin="")
        if command.startswith("check"):
            Path("bread.json").write_text(dump_tree(load_tree("bread.json").model_copy(update={"reviewed": False})))
    assert {command: done.status for command, done in ended.items() if done.status not in (0, 1)} == {
        "review bread.json --page": 2  # without a free port, so that it does not wait
    }
    assert load_tree("bread.json").reviewed is True, "no row was left to decide"
