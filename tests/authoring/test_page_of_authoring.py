"""The page about authoring, followed line by line in an empty folder; what it says of papers that cannot be used."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.trees import load_tree
from tests.authoring.papers import as_pdf, blank_pdf
from tests.authoring.replies import OUTLINE, PAPER, STUDIES, good
from tests.authoring.test_audit import Checker
from tests.authoring.test_author import wrongly
from tests.contract.command_line import Done, inquitree
from tests.servers import Body, Service

pytestmark = [pytest.mark.e2e, pytest.mark.weights]

PAGE = Path(__file__).parents[2].joinpath("docs", "authoring.md").read_text(encoding="utf-8")
STEPS, BY_HAND = (
    [shlex.split(line)[2:] for line in block.splitlines() if line.startswith("$ inquitree ")]
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]
)
ERRORS = dict(re.findall(r"^\| ([^|`]+) \| `(.+)` \|$", PAGE, re.MULTILINE))
TYPED = {"review": "a\n" * 200, "play": "How do the conditions of a night relate to the calls?\n\n"}


class Both:
    """A model that writes the tree, and a second one that remarks on the first study and accepts all else."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, body: dict[str, Any]) -> str:
        if body["model"] != "gpt-4o":
            return good(body)
        (code,) = re.findall(r"(T\d+-\w+) protocol s1a:", body["messages"][1]["content"]) or [""]
        remark = {"text": code, "rule": "form", "severity": "note", "why": "It is long.", "proposal": SHORTER}
        remarked = json.dumps({"clean": False, "remarks": [remark]})
        return remarked if code else Checker(load_tree(self._file))(body)


SHORTER = "Relate all calls on sixty nights to water temperature and humidity."


def followed(words: list[str], service: Service) -> Done:
    """Run a line of the page. Models of any maker answer on loopback."""
    words = [word.replace("anthropic/claude-sonnet-4-5", "openai/gpt-4o") for word in words]
    if words[0] in ("author", "audit"):
        words += ["--base-url", service.address, "--cache", "cache"]
    if words[0] == "author":
        words += ["--subtopics", "4"]
    if "--checker" in words:
        words += ["--checker-base-url", service.address]
    return inquitree(*words, stdin=TYPED.get(words[0], ""))


def test_the_steps_from_a_pdf_to_a_report(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    as_pdf(PAPER.read_text("utf-8"), tmp_path / "paper.pdf")
    service.begin(Both(tmp_path / "pipers.json"))
    done = [(words, followed(words, service)) for words in STEPS]
    left = {"play": 2}  # the typed lines end before the episode does
    assert [(words, each) for words, each in done if each.status != left.get(words[0], 0)] == []
    assert [words[0] for words in STEPS] == ["author", "author", "review", "review", "check", "play", "run", "report"]
    assert {request.body["model"] for request in service.requests} == {"gpt-4o-mini", "gpt-4o"}
    rows = json.loads((tmp_path / "pipers.findings.json").read_text("utf-8"))["rows"]
    assert {"node": "s1a", "rule": "form", "proposal": SHORTER}.items() <= rows[0].items()
    assert f"{len(rows)} rows, 0 open" in done[2][1].said
    assert "Results, paragraph 1" in inquitree("review", "pipers.json", "--show").out
    tree = load_tree("pipers.json")
    assert (tree.version, tree.reviewed, tree.subtopics[0].studies[0].text) == (2, True, SHORTER)
    assert "oracle" in done[-1][1].out
    assert {each["task"] for each in inquitree("score", "runs/pipers", "--json").json} == {"pipers"}


def test_the_steps_from_a_tree_by_hand(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    service.begin(lambda body: Checker(load_tree("bread.json"))(body))
    done = [(words, followed(words, service)) for words in BY_HAND]
    assert [(words, each) for words, each in done if each.status] == []
    assert [words[0] for words in BY_HAND] == ["new", "audit", "review", "review"]


def one_finding(body: Body) -> str:
    """A model that finds a single study."""
    asked = body["messages"][1]["content"].rsplit("===", 1)[-1]
    return json.dumps({"studies": STUDIES["studies"][:1]}) if "Write the studies" in asked else good(body)


PAPERS: dict[str, tuple[str, Callable[[Path], object] | None, Callable[[Body], str]]] = {
    "a scan without text": ("scan.pdf", lambda file: blank_pdf(3, file), good),
    "an encrypted PDF": ("locked.pdf", lambda file: blank_pdf(1, file, password="open sesame"), good),
    "a PDF of 500 pages": ("book.pdf", lambda file: blank_pdf(500, file), good),
    "an abstract": ("abstract.txt", lambda file: file.write_text("Frogs call faster in warmth."), good),
    "a review without studies of its own": (
        "review.md", None, wrongly("outline", OUTLINE | {"experiment": False}, 1),
    ),
    "one finding, four subtopics asked for": ("finding.md", None, one_finding),
    "orders in the text, which the model obeys": ("orders.md", None, wrongly("outline", "bread", 9)),
    "a reply of 200 kB": ("long.md", None, wrongly("outline", OUTLINE | {"topic": "x" * 200_000}, 9)),
}  # fmt: skip


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_said_of_a_paper_that_cannot_be_used(
    paper: str, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert ERRORS.keys() == PAPERS.keys()
    name, write, reply = PAPERS[paper]
    (write or (lambda file: file.write_text(PAPER.read_text("utf-8"), "utf-8")))(tmp_path / name)
    service.begin(reply)
    words = ["author", name, "--model", "openai/m", "--out", "a.json", "--embedder", "none", "--subtopics", "4"]
    done = inquitree(*words, "--base-url", service.address, "--cache", "cache")
    assert (done.status, f"error: {ERRORS[paper]}" in done.said, (tmp_path / "a.json").exists()) == (2, True, False)
    assert bool(service.requests) == (write is None)
