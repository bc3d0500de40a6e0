"""Training of the reader on the real weights, in a few steps; its examples, its evidence, and the tables from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.embeddings.local import (
    ADAPTER_DIGEST,
    BASE,
    DOWN,
    READER_THRESHOLD,
    UP,
    Adapter,
    adapter_file,
    minilm_folder,
    parse_adapter,
    read_adapter,
    torch_threads,
)
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import Tree, builtin_ids
from inquitree_gym.trees.schema import wordings
from research.described import described_tree, described_trees
from research.played import ReaderRow, reader_rows
from research.proposals import MatchedProposal, MatchingCase, Proposal, ProposalSet, matching_cases
from research.reader import training
from research.reader.evidence import (
    AUTHORS_OUT,
    CANONICAL,
    PARAPHRASES,
    TREES_OUT,
    Read,
    Readings,
    read_evidence,
    write_evidence,
)
from research.reader.examples import Example, Examples, Family, gather
from research.reader.lora import TrainableEncoder, write_adapter
from research.reader.training import Settings, train
from research.static.proposals import load_proposals
from tests.strategies import make_tree

pytestmark = pytest.mark.weights

BREAD = Family(
    "bread",
    ("s1", "s2"),
    (
        ("Does a longer fermentation give a taller loaf?", "Is the height of a loaf a matter of time?"),
        ("Does salt slow the yeast down?", "Is yeast less active in salty dough?"),
    ),
)
SAID = (
    Example(0, "Let us see how height depends on hours of rising.", (0,), "first", "right"),
    Example(0, "Count bubbles with and without sodium chloride.", (1,), "first", "right"),
    Example(0, "Is yeast less active in salty dough?", (1,), "first", "right"),
    Example(0, "Which oven is the cheapest?", (), "first", "foreign"),
)
DATA = Examples((BREAD,), SAID)
SMALL = Settings(rank=4, learning_rate=3e-3, epochs=4, kept=1.0)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Train with one thread, since steps this small take far longer with more where other processes run."""
    with torch_threads(1):
        yield


def trained(settings: Settings = SMALL, data: Examples = DATA) -> TrainableEncoder:
    return train(data, ["bread"], settings, minilm_folder(), "cpu", lambda: None)


def loss_of(encoder: TrainableEncoder, data: Examples = DATA, settings: Settings = SMALL) -> float:
    with torch.inference_mode():
        return float(training._loss(encoder, data, "bread", settings, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def plain() -> TrainableEncoder:
    return TrainableEncoder(minilm_folder(), 0, 0, 0, "cpu")


@pytest.fixture(scope="module")
def pupil() -> TrainableEncoder:
    return trained()


# Training


def test_without_an_adapter_the_vectors_are_those_of_minilm(plain: TrainableEncoder, minilm: MiniLMEmbedder):
    texts = ["A short one.", *(example.text for example in SAID), "A long one. " * 200, ""]
    with torch.inference_mode():
        found = plain.embed(texts).numpy()
    assert np.abs(found - minilm.embed(texts)).max() < 1e-5
    assert plain.parameters == []


def test_training_lowers_the_loss_and_moves_proposals_to_their_nodes(plain: TrainableEncoder, pupil: TrainableEncoder):
    assert loss_of(pupil) < 0.7 * loss_of(plain)
    asked, node = SAID[0].text, BREAD.texts[0][0]
    with torch.inference_mode():
        before, after = (float(one.embed([asked])[0] @ one.embed([node])[0]) for one in (plain, pupil))
    assert after > before + 0.05


def test_a_paraphrase_is_no_part_of_the_candidate_that_it_is_read_as(plain: TrainableEncoder):
    """Were it one, the loss of a paraphrase of a node with no other text would be that of a perfect match."""
    family = Family("bread", ("s1", "s2"), (BREAD.texts[0], BREAD.texts[1]))
    text = BREAD.texts[1][1]
    alone = loss_of(plain, Examples((family,), (Example(0, text, (1,), "a", "right"),)))
    unsaid = Family("bread", ("s1", "s2"), (BREAD.texts[0], BREAD.texts[1][:1]))
    assert alone == pytest.approx(
        loss_of(plain, Examples((unsaid,), (Example(0, text, (1,), "a", "right"),))), abs=1e-4
    )


def test_an_adapter_from_its_file_makes_the_weights_that_were_trained(pupil: TrainableEncoder, tmp_path: Path):
    file, adapter = tmp_path / "adapter.safetensors", pupil.adapter()
    digest = write_adapter(file, adapter, {"seed": 0})
    back = parse_adapter(file)
    assert read_adapter(file, digest).names == back.names == adapter.names
    assert all(back.factors[name].tobytes() == adapter.factors[name].tobytes() for name in adapter.factors)
    merged = back.merged(MiniLMEmbedder().weights())
    layers = {f"encoder.{name}.weight": each for name, each in pupil.model.encoder.named_modules()}
    for name in adapter.names:
        assert np.abs(merged[name] - layers[name].weight.numpy(force=True)).max() < 1e-3, "beyond half precision"


def test_a_written_adapter_is_read_back(tmp_path: Path):
    draws = np.random.default_rng(1)
    factors = {"a.weight" + suffix: draws.standard_normal((3, 3)).astype(np.float16) for suffix in (UP, DOWN)}
    file = tmp_path / "adapter.safetensors"
    digest = write_adapter(file, Adapter(BASE, 0.5, factors), {"seed": 3})
    back = read_adapter(file, digest)
    assert (back.base, back.scale, back.factors.keys()) == (BASE, 0.5, factors.keys())
    assert all(back.factors[name].tobytes() == factors[name].tobytes() for name in factors)
    assert write_adapter(tmp_path / "again", back, {"seed": 3}) == digest


# Examples


def test_the_examples_mean_candidates_of_their_family():
    trees = described_trees()
    data = gather(trees, load_proposals())
    assert {family.tree for family in data.families} == set(builtin_ids())
    assert {example.family for example in data.examples} == set(range(len(data.families)))
    for example in data.examples:
        assert all(0 <= target < len(data.families[example.family].nodes) for target in example.targets)
        assert bool(example.targets) == (example.kind == "right"), example
    assert len(set(data.examples)) == len(data.examples)
    authors = {example.author for example in data.examples}
    assert authors == {"first", "second", "third", "a", "b", *(f"p{i}" for i in range(1, 7))}
    nodes = {node.id: wordings(node) for node in trees[0].subtopics}
    assert dict(zip(data.families[0].nodes, data.families[0].texts, strict=True)) == nodes


# Evidence


@pytest.fixture(scope="module")
def shipped() -> list[MatchingCase]:
    return matching_cases(load_proposals())


def test_the_evidence_is_about_the_shipped_proposals(shipped: list[MatchingCase]):
    found = read_evidence(shipped)
    assert list(found) == [CANONICAL, PARAPHRASES, TREES_OUT, AUTHORS_OUT]
    for rows in found.values():
        assert [(row.tree, row.kind, row.author) for row in rows] == [(c.tree, c.kind, c.author) for c in shipped]


def test_on_trees_and_authors_left_out_more_is_understood_than_with_canonical_texts(shipped: list[MatchingCase]):
    rows = {(row.reader, row.group): row.shares for row in reader_rows(read_evidence(shipped))}
    for name in (TREES_OUT, AUTHORS_OUT):
        ours, theirs = rows[name, "played"], rows[CANONICAL, "played"]
        assert ours.nearest_subtopic.mean > theirs.nearest_subtopic.mean
        assert ours.understood.mean > theirs.understood.mean


def test_the_data_card_has_the_digest_the_size_and_the_settings_in_force():
    card = (Path(training.__file__).parent / "README.md").read_text(encoding="utf-8")
    data = gather(described_trees(), load_proposals())
    numbers = (adapter_file().stat().st_size, len(data.examples), sum(not each.targets for each in data.examples))
    for fact in (ADAPTER_DIGEST, BASE, *(f"{number:,}" for number in numbers), f"τ | {READER_THRESHOLD}"):
        assert fact in card, fact
    about = read_metadata(adapter_file())
    assert {name: about[name] for name in asdict(Settings())} == asdict(Settings()), "the card names these settings"


def read_metadata(file: Path) -> dict[str, object]:
    with safe_open(file, "np") as stored:
        return json.loads(stored.metadata()["inquitree"])


@pytest.mark.parametrize("change", ["fewer", "text", "target", "candidate"])
def test_evidence_from_other_proposals_is_refused(change: str, shipped: list[MatchingCase]):
    first, *rest = shipped
    node = first.candidates[0].model_copy(update={"text": "Another text."})
    others = {
        "fewer": rest,
        "text": [replace(first, text="Another text."), *rest],
        "target": [replace(first, right=first.right + 1), *rest],
        "candidate": [replace(first, candidates=(node, *first.candidates[1:])), *rest],
    }
    with pytest.raises(OptionError, match=r"made from other proposals or trees; run: python -m research\.reader cross"):
        read_evidence(others[change])


TREE = make_tree([[], [0]], [2, 2])


def about(*proposals: Proposal, tree: Tree = TREE) -> list[MatchingCase]:
    return matching_cases([ProposalSet(tree=tree.id, proposals=proposals)], lambda name: tree)


def test_written_evidence_is_read_back(tmp_path: Path):
    cases = about(
        Proposal(target="s1", kind="right", text="One."),
        Proposal(target="s2", also=("s1",), kind="right", text="Both.", author="p1", origin="played"),
        Proposal(at="topic", kind="vague", text="Neither."),
    )
    readings: Readings = [Read(0, 0.61234), Read(0, 0.5), Read(1, 0.3)]
    file = tmp_path / "evidence.json"
    write_evidence(file, cases, {"one": readings, "two": readings[::-1]}, {"seed": 0})
    found = read_evidence(cases, file)
    assert [(row.right_node, row.similarity) for row in found["one"]] == [(True, 0.6123), (True, 0.5), (False, 0.3)]
    assert [row.nearest for row in found["two"]] == ["s2", "s1", "s1"]
    assert json.loads(file.read_text())["settings"] == {"seed": 0}


# Tables


def matched(similarity: float, right: bool = True, **more: object) -> MatchedProposal:
    about = {"tree": "paper8", "target": "s1", "is_study": False, "kind": "right", "text": "a proposal", "right": 0}
    nodes = described_tree("paper8").subtopics
    return MatchedProposal(candidates=nodes, index=not right, similarity=similarity, **about | more)  # type: ignore[arg-type]


def row_of(rows: Sequence[ReaderRow], group: str) -> ReaderRow:
    (found,) = [row for row in rows if row.group == group]
    return found


def test_a_reader_is_measured_at_its_threshold_on_every_group():
    played = [matched(0.7, origin="played"), matched(0.7, right=False, origin="played", sure=False)]
    rows = reader_rows({TREES_OUT: [matched(READER_THRESHOLD - 0.01), *played]})
    assert {row.threshold for row in rows} == {READER_THRESHOLD}
    assert row_of(rows, "written").shares.refused.mean == 1
    assert row_of(rows, "played").shares.misread.mean == 0.5
    assert row_of(rows, "played, label sure").shares.understood.mean == 1
