"""A whole distillation, by the command, from two small trees; and what keeps its figures honest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from inquitree_gym.embeddings import MiniLMEmbedder, ReaderEmbedder, StaticEmbedder
from inquitree_gym.trees import Tree, load_tree
from research.proposals import WRITTEN, Proposal, ProposalSet, matching_cases
from research.static import __main__ as cli
from research.static.distillation import Distilled, TrainingTexts, distil
from research.static.fitting import TableFit, Vocabulary
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

IDS = ("paper8", "paper17")
VOCABULARY, SENTENCES = 2_200, 15


class Made(NamedTuple):
    """What the command made, and what it said."""

    folder: Path
    manifest: dict[str, Any]
    out: str
    err: str


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Distil from an eighth of the proposals about two trees; some about another tree lie beside them."""
    data, folder = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("static")
    for name in (*IDS, "paper7"):
        document = json.loads((WRITTEN / f"{name}.json").read_text())
        document["proposals"] = document["proposals"][::8]
        (data / f"{name}.json").write_text(json.dumps(document))
    options = {"proposals": data, "vocabulary": VOCABULARY, "sentences": SENTENCES, "threads": 2, "out": folder}
    flags = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    done = CliRunner().invoke(cli.app, ["8", "paper17", *flags], catch_exceptions=False)
    return Made(folder, json.loads((folder / "inquitree.json").read_text()), done.stdout, done.stderr)


def test_the_command_writes_a_model_that_reads(made: Made, reader: ReaderEmbedder):
    embedder = StaticEmbedder(str(made.folder))
    assert embedder.threshold == made.manifest["threshold"]
    learned = [subtopic.text for name in IDS for subtopic in load_tree(name).subtopics]
    assert np.einsum("td,td->t", embedder.embed(learned), reader.embed(learned)).mean() > 0.5
    assert len(embedder._model.tokens) == VOCABULARY
    assert f"its name is static:{made.folder}" in " ".join(made.err.split())


def test_the_command_prints_the_manifest_as_json(made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    manifest = StaticEmbedder(str(made.folder)).manifest
    monkeypatch.setattr(cli, "distil", lambda *_: Distilled(manifest, {}))
    monkeypatch.setenv("INQUITREE_MODELS", str(tmp_path))
    flags = ["--proposals", str(WRITTEN), "--sentences", "0", "--embedder", "all-MiniLM-L6-v2", "--json"]
    done = CliRunner().invoke(cli.app, flags)
    assert json.loads(done.stdout) == made.manifest
    assert "its name is static:all-MiniLM-L6-v2" in " ".join(done.stderr.split())


def test_three_ways_are_compared_with_the_default(made: Made):
    agreement = made.manifest["evidence"]["agreement"]
    assert agreement.keys() == {"default", "plain", "new tree", "known tree"}
    assert all(0 <= value <= 1 for each in agreement.values() for value in each.values())
    assert [agreement["default"][name] for name in ("nearest", "correlation", "read_alike")] == [1, 1, 1]
    assert all(0 < agreement[name]["correlation"] < 1 for name in ("plain", "new tree", "known tree"))
    assert len({tuple(each.values()) for each in agreement.values()}) == 4


# Lessons


def lessons(*trees: Tree, prose: tuple[str, ...] = ("Prose belongs to no tree.",)) -> TrainingTexts:
    """Return lessons with two proposals about every tree."""
    by_id = {tree.id: tree for tree in trees}
    sets = [
        ProposalSet(
            tree=tree.id,
            proposals=(
                Proposal(target="s1", kind="right", text=f"I would ask what decides the first question of {tree.id}."),
                Proposal(target="s2", kind="right", text=f"And what decides the second question of {tree.id}?"),
            ),
        )
        for tree in trees
    ]
    return TrainingTexts(trees, tuple(matching_cases(sets, by_id.__getitem__)), prose)


ONE, TWO = make_tree([[], [0]], [2, 1], tree_id="one"), make_tree([[], [], [0]], [1, 2, 1], tree_id="two")


def test_a_tree_left_out_takes_its_texts_and_the_proposals_about_it_with_it():
    both = lessons(ONE, TWO)
    texts = np.array(both.texts)
    gone = set(texts[both.indices_of([ONE])])
    assert gone == {*ONE.texts().values(), *(q.text for q in both.cases if q.tree == "one")}
    assert set(texts[both.proposals_about(ONE)]) == {q.text for q in both.cases if q.tree == "one"}
    assert "Prose belongs to no tree." in set(texts) - gone


def test_no_figure_rests_on_a_text_that_was_learned_from(
    minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The fits that are asked have not seen what they are asked about; the model that is kept has seen everything."""
    both = lessons(ONE, TWO)
    taught: list[set[str]] = []
    counted: list[set[str]] = []
    left_out: list[set[str]] = []
    monkeypatch.setattr(TableFit, "__init__", noting(TableFit.__init__, lambda args: taught.append(set(args[1]))))
    monkeypatch.setattr(
        Vocabulary, "reweighted", noting(Vocabulary.reweighted, lambda args: counted.append(set(args[0])))
    )
    texts = np.array(both.texts)
    noted = noting(TableFit.leave_out, lambda args: left_out.append(set(texts[args[0]])))
    monkeypatch.setattr(TableFit, "leave_out", noted)
    distil(both, minilm, 1_100, tmp_path, lambda what: None)
    about = {tree.id: {q.text for q in both.cases if q.tree == tree.id} for tree in (ONE, TWO)}
    gone = {tree.id: about[tree.id] | set(tree.texts().values()) for tree in (ONE, TWO)}
    whole, background = set(both.texts), set(both.background)
    assert taught == [whole, whole - gone["one"], whole - gone["two"]]
    assert counted == [background, background - gone["one"], background - gone["two"]]
    assert left_out == [about["one"], about["two"]]


def noting(method: Callable[..., Any], note: Callable[[tuple[Any, ...]], None]) -> Callable[..., Any]:
    """Return a method that first shows its arguments."""

    def noted(self: object, *args: Any) -> Any:
        note(args)
        return method(self, *args)

    return noted


def test_without_the_extra_no_minutes_are_lost(minilm: MiniLMEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "model2vec", None)
    told: list[str] = []
    with pytest.raises(ImportError, match=r"'\.\[static\]'"):
        distil(lessons(ONE, TWO), minilm, 1_100, tmp_path, told.append)
    assert told == []
