"""Training of the reader on the real weights, in a few steps; and its examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
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
    AdaptedMiniLM,
    Adapter,
    adapter_file,
    minilm_folder,
    parse_adapter,
    read_adapter,
    torch_threads,
)
from inquitree_gym.trees import builtin_ids, load_tree
from inquitree_gym.trees.schema import wordings
from research.blind.readings import blind_sets
from research.proposals import load_proposals
from research.reader import training
from research.reader.examples import Example, Examples, Family, gather
from research.reader.lora import TrainableEncoder, write_adapter
from research.reader.training import Settings, train

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
SMALL = Settings(rank=4, learning_rate=3e-3, epochs=5, kept=1.0, frozen=2)


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


def test_an_adapter_from_its_file_makes_the_vectors_that_were_trained(pupil: TrainableEncoder, tmp_path: Path):
    file, adapter = tmp_path / "adapter.safetensors", pupil.adapter()
    digest = write_adapter(file, adapter, {"seed": 0})
    back = parse_adapter(file)
    assert read_adapter(file, digest).names == back.names == adapter.names
    assert all(back.factors[name].tobytes() == adapter.factors[name].tobytes() for name in adapter.factors)
    texts = [example.text for example in SAID]
    with torch.inference_mode():
        assert np.abs(pupil.embed(texts).numpy() - AdaptedMiniLM(file, digest).embed(texts)).max() < 2e-3


def test_training_goes_on_from_an_adapter_and_leaves_the_frozen_blocks_alone(pupil: TrainableEncoder):
    start = pupil.adapter()
    again = train(DATA, ["bread"], SMALL, minilm_folder(), "cpu", lambda: None, start).adapter()
    changed = {name for name in start.factors if again.factors[name].tobytes() != start.factors[name].tobytes()}
    assert changed == {name for name in start.factors if int(name.split(".")[2]) >= SMALL.frozen}


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


@pytest.fixture(scope="module")
def shipped() -> Examples:
    return gather([load_tree(name) for name in builtin_ids()], load_proposals())


def test_the_examples_mean_candidates_of_their_family(shipped: Examples):
    assert {family.tree for family in shipped.families} == set(builtin_ids())
    assert {example.family for example in shipped.examples} == set(range(len(shipped.families)))
    for example in shipped.examples:
        assert all(0 <= target < len(shipped.families[example.family].nodes) for target in example.targets)
        assert bool(example.targets) == (example.kind == "right"), example
    assert len(set(shipped.examples)) == len(shipped.examples)
    authors = {example.author for example in shipped.examples}
    assert authors == {*builtin_ids(), *(f"w{i}" for i in range(1, 13))}
    nodes = {node.id: wordings(node) for node in load_tree(builtin_ids()[0]).subtopics}
    assert dict(zip(shipped.families[0].nodes, shipped.families[0].texts, strict=True)) == nodes


def test_no_example_is_a_text_that_the_reader_is_measured_on(shipped: Examples):
    measured = {said.text for each in blind_sets() for said in each.proposals}
    assert not measured & {example.text for example in shipped.examples}


def test_the_data_card_has_the_digest_the_size_and_the_settings_in_force(shipped: Examples):
    card = (Path(training.__file__).parent / "README.md").read_text(encoding="utf-8")
    numbers = (adapter_file().stat().st_size, len(shipped.examples), sum(not each.targets for each in shipped.examples))
    for fact in (ADAPTER_DIGEST, BASE, *(f"{number:,}" for number in numbers), f"τ | {READER_THRESHOLD}"):
        assert fact in card, fact
    about = read_metadata(adapter_file())
    assert {name: about[name] for name in asdict(Settings())} == asdict(Settings()), "the card names these settings"


def read_metadata(file: Path) -> dict[str, object]:
    with safe_open(file, "np") as stored:
        return json.loads(stored.metadata()["inquitree"])
