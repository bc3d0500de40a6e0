"""The tool that judges labelled conclusions of inquiries: ``python -m research.calibrate_played``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inquitree_gym.inquiry.judges.local import VERSION
from inquitree_gym.judging.judgement import judge_label
from inquitree_gym.trees import load_tree
from research.calibrate_played import app
from research.played_calibration import PlayedItem, fit
from tests.inquiry.judges.test_llm import Grader
from tests.research.test_calibrate_judges import MODEL, run_tool
from tests.servers import Service

LOCAL = judge_label("local", VERSION)
PAPER = f"llm-paper:{MODEL.removeprefix('llm:')}"


calibrate = partial(run_tool, app)


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Conclusions in the very words of a tree: all items, the first two of them, and the reverse of every item."""
    items = load_tree("paper2").conclusions
    first = {each.id: "full" if number < 2 else "nothing" for number, each in enumerate(items)}
    written = [
        conclusion("ann", "own", [each.text for each in items], dict.fromkeys(first, "full")),
        conclusion("bob", "findings", [each.text for each in items[:2]], first),
        conclusion("bob", "wrongways", [each.false_variants[0] for each in items], dict.fromkeys(first, "wrong")),
    ]
    folder = tmp_path / "labelled"
    folder.mkdir()
    (folder / "paper2.json").write_text(json.dumps({"tree": "paper2", "conclusions": written}), encoding="utf-8")
    return folder


def conclusion(author: str, style: str, claims: list[str], items: dict[str, str]) -> dict[str, Any]:
    text = "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, 1))
    return {"author": author, "style": style, "text": text, "lines": [], "items": items, "labeller": "l"}


@pytest.mark.weights
def test_judges_beside_each_other_as_json(labelled: Path, service: Service, tmp_path: Path):
    service.reply = Grader(lambda place, text, asked: int(asked.split("===")[2].count(text)))
    options = ("--base-url", service.address, "--cache", tmp_path, "--max-concurrency", 2, "--max-cost", 5)
    names = ("--judge", f"local,{MODEL},{PAPER}", "--conclusions", labelled, "--by", "author", "--repeats", 2)
    done = calibrate(*names, *options, "--json")
    local, asked, paper = json.loads(done.out)
    assert [each["judge"] for each in (local, asked, paper)] == [LOCAL, f"{MODEL} v1", f"{PAPER} v1"]
    fitted = asked["fits"]["all"]
    assert (fitted["error"]["mean"], fitted["grades"]["kappa"], fitted["rank_order"]) == (0, 1, 1)
    assert fitted["verdict_kappa"] is None, "it gives S alone"
    assert local["fits"]["all"]["verdict_kappa"] > 0.8
    assert list(asked["fits"]) == ["all", "ann", "bob"]
    assert asked["fits"]["ann"]["rank_order"] is None, "a single conclusion has no order"
    n_items = len(load_tree("paper2").conclusions)
    assert [asked["fits"][name]["grades"]["items"] for name in ("ann", "bob")] == [n_items, 2 * n_items]
    assert asked["fits"]["bob"]["labelled"] == pytest.approx(2 / (2 * n_items))
    assert (asked["usage"]["replies"], paper["usage"]["replies"]) == (3 * 2 * 2, 3 * 2), "conclusions, orders, repeats"


def test_labels_on_other_items_than_those_of_the_tree_are_refused(labelled: Path):
    file = labelled / "paper2.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"c2"', '"c99"'), encoding="utf-8")
    done = calibrate("--conclusions", labelled)
    assert done.status == 2
    assert "a conclusion of ann about paper2 has labels on c1, c99" in done.said


def test_a_fit_counts_scored_items_and_orders_conclusions_by_their_means():
    def item(conclusion: int, label: Any, score: float | None, verdict: Any) -> PlayedItem:
        return PlayedItem("t", "a", "own", conclusion, label, score, verdict)

    items = [
        item(0, "full", 1.0, "full"), item(0, "part", 0.6, "part"), item(1, "wrong", 0.0, "nothing"),
        item(1, "full", 0.6, "part"), item(2, "nothing", 0.0, "nothing"), item(2, "full", None, None),
    ]  # fmt: skip
    found = fit(items)
    assert found.error.mean == pytest.approx(0.4 / 5)
    assert (found.grades.items, found.grades.unscored) == (5, 1)
    assert (found.judged, found.labelled) == (pytest.approx(2.2 / 5), pytest.approx(2.6 / 5))
    assert found.rank_order == pytest.approx(1)
    assert found.verdict_kappa == pytest.approx((3 / 5 - 6 / 25) / (1 - 6 / 25))
    same = fit([item(number, "full", 1.0, "full") for number in range(3)])
    assert (same.verdict_kappa, same.grades.kappa, same.rank_order) == (None, None, None)
    nothing = fit([item(0, "full", None, None)])
    assert (nothing.judged, nothing.error.mean, nothing.verdict_kappa, nothing.rank_order) == (None, None, None, None)
