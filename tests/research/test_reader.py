"""The fit of the reader's matrix, its lessons, and the file that it ends in."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from inquitree_gym.embeddings import ReaderEmbedder
from inquitree_gym.embeddings.local import (
    ADAPTER_DIGEST,
    BASE,
    DOWN,
    READER_THRESHOLD,
    UP,
    AdaptedMiniLM,
    Adapter,
    adapter_file,
    parse_adapter,
    read_adapter,
)
from inquitree_gym.trees import builtin_ids, load_tree
from inquitree_gym.trees.meaning import targets
from inquitree_gym.trees.schema import wordings
from research.blind.readings import blind_sets
from research.proposals import load_proposals
from research.reader import fitting
from research.reader.__main__ import by_authors, vectors_before, write_adapter
from research.reader.fitting import Settings, fit, loss, turned
from research.reader.lessons import Family, Lesson, Sheet, lay_out, make_lessons

pytestmark = pytest.mark.weights

DIM = 32
WORDS = ("height", "tall", "salt", "brine", "hint 1", "hint 2", "before", "result 1", "result 2")
SAID = tuple(f"{word} {number}" for word in ("height", "salt", "oven") for number in range(8))
MEANT = [(0,)] * 8 + [(1,)] * 8 + [()] * 8
LESSON = Lesson(
    "bread",
    (*WORDS, *SAID),
    [Family([[0, 1], [2, 3]], list(range(len(WORDS), len(WORDS) + len(SAID))), MEANT)],
    ladders=[([4, 5], [0, 1])],
    neutral=[([6], [[7], [8]])],
)
QUICK = Settings(epochs=200, learning_rate=1e-2, weight_decay=0.0, hint_weight=2.0, lean_weight=20.0)


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    """Vectors whose meaning is a few numbers among many that mean nothing. The first hint is nearer than the second."""
    draws = torch.Generator().manual_seed(1)
    places = {"height": 0, "tall": 0, "salt": 1, "brine": 1, "oven": 2, "hint": 3, "before": 4, "result": 5}
    found = {}
    for text in LESSON.texts:
        found[text] = torch.randn(DIM, generator=draws)
        found[text][places[text.split()[0]]] += 2.0
        found[text] /= found[text].norm()
    found["hint 1"] = torch.nn.functional.normalize(found["hint 2"] + found["height"], dim=0)
    found["before"] = torch.nn.functional.normalize(found["before"] + 0.6 * found["result 1"], dim=0)
    (made,) = lay_out([LESSON], found)
    return made


def loss_of(change: np.ndarray, sheet: Sheet, settings: Settings = QUICK) -> float:
    settings = replace(settings, dropout=0.0, kept=1.0)
    return float(loss(sheet, torch.tensor(change).float(), settings, torch.Generator()))


def test_a_fit_moves_proposals_to_their_nodes_lets_hints_rise_and_texts_stay_neutral(sheet: Sheet):
    told: list[int] = []
    change = fit([sheet], QUICK, lambda: told.append(1))
    assert (change.shape, change.dtype, len(told)) == ((DIM, DIM), np.float16, QUICK.epochs)
    assert loss_of(change, sheet) < 0.5 * loss_of(np.zeros_like(change), sheet)
    before, after = sheet.vectors, turned(sheet.vectors, torch.tensor(change).float())
    assert after.norm(dim=1).tolist() == pytest.approx([1] * len(after))
    (family,), ((hints, said),), (((text,), ((one,), (other,))),) = LESSON.families, LESSON.ladders, LESSON.neutral
    centroids = torch.nn.functional.normalize(torch.stack([after[texts].sum(dim=0) for texts in family.candidates]))
    near = (after[family.proposals] @ centroids.T).max(dim=1)
    assert near.indices.tolist()[:16] == [0] * 8 + [1] * 8
    assert near.values[16:].mean() < QUICK.threshold < near.values[:16].mean()
    steps = [(vectors[hints] @ vectors[said].sum(dim=0)).diff().item() for vectors in (before, after)]
    assert steps[0] < 0
    assert steps[1] > steps[0] / 10
    leans = [abs(float(vectors[text] @ (vectors[one] - vectors[other]))) for vectors in (before, after)]
    assert leans[0] > 2 * QUICK.lean > leans[1]


def test_the_same_seed_gives_the_same_matrix(sheet: Sheet):
    short = replace(QUICK, epochs=3)
    assert fit([sheet], short).tobytes() == fit([sheet], short).tobytes()
    assert fit([sheet], short).tobytes() != fit([sheet], replace(short, seed=1)).tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"dropout": 0.5}, {"temperature": 0.2}, {"threshold": 0.8}, {"negative_weight": 2.0}, {"kept": 0.0},
        {"hint_weight": 0.0}, {"lean_weight": 0.0}, {"lean": 0.0},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_every_setting_of_the_loss_counts(change: dict[str, float], sheet: Sheet):
    matrix, plain = torch.full((DIM, DIM), 0.01), replace(QUICK, dropout=0.0, kept=1.0)
    losses = [
        float(loss(sheet, matrix, settings, torch.Generator().manual_seed(0)))
        for settings in (plain, replace(plain, **change))
    ]
    assert losses[0] != losses[1]


# The file


def test_a_written_adapter_is_read_back(tmp_path: Path):
    draws = np.random.default_rng(1)
    factors = {"a.weight" + suffix: draws.standard_normal((3, 3)).astype(np.float16) for suffix in (UP, DOWN)}
    file, change = tmp_path / "adapter.safetensors", draws.standard_normal((3, 3)).astype(np.float16)
    digest = write_adapter(file, Adapter(BASE, 0.5, factors, np.eye(3, dtype=np.float32)), change, {"seed": 3})
    back = read_adapter(file, digest)
    assert (back.base, back.scale, back.factors.keys()) == (BASE, 0.5, factors.keys())
    assert all(back.factors[name].tobytes() == factors[name].tobytes() for name in factors)
    assert (back.turn == np.eye(3, dtype=np.float32) + change).all()
    assert write_adapter(tmp_path / "again", back, change, {"seed": 3}) == digest


def test_the_reader_turns_the_vectors_of_its_layers(reader: ReaderEmbedder, tmp_path: Path):
    texts = ["Does the bump drift in the dark?", "", "A long one. " * 100]
    shipped = parse_adapter(adapter_file())
    rows = vectors_before(shipped, texts) @ shipped.turn
    found = AdaptedMiniLM(adapter_file(), ADAPTER_DIGEST).embed(texts)
    assert np.abs(found - rows / np.linalg.norm(rows, axis=1, keepdims=True)).max() < 1e-5
    assert np.abs(found - reader.embed(texts)).max() < 1e-5


# Lessons


@pytest.fixture(scope="module")
def lessons() -> list[Lesson]:
    return make_lessons([load_tree(name) for name in builtin_ids()], load_proposals())


def test_a_lesson_has_the_proposals_hints_and_results_of_its_tree(lessons: list[Lesson]):
    assert [lesson.tree for lesson in lessons] == list(builtin_ids())
    proposals = {each.tree: each.proposals for each in load_proposals()}
    for lesson in lessons:
        tree, texts = load_tree(lesson.tree), lesson.texts
        first, *others = lesson.families
        assert [[texts[i] for i in said] for said in first.candidates] == [[*wordings(s)] for s in tree.subtopics]
        assert len(others) == len(tree.subtopics)
        meant = {
            (texts[place], family.candidates[target][0])
            for family in lesson.families
            for place, named in zip(family.proposals, family.targets, strict=True)
            for target in named
        }
        nodes = {node.id: node.text for node in (*tree.subtopics, *tree.studies)}
        told = {text for node in (*tree.subtopics, *tree.studies) for text in wordings(node)}
        written = [p for p in proposals[lesson.tree] if p.text not in told]
        right = [p for p in written if p.kind == "right"]
        assert meant == {(p.text, texts.index(nodes[node])) for p in right for node in (p.target, *p.also)}
        assert sum(len(family.proposals) for family in lesson.families) == len(written)
        assert [[texts[i] for i in hints] for hints, _ in lesson.ladders] == [[*node.hints] for node in targets(tree)]
        stated = {texts[i] for _, poles in lesson.neutral for pole in poles for i in pole}
        read = [study for study in tree.studies if study.result.axes]
        assert {text for study in read for said in study.result.texts.values() for text in said} <= stated
        assert all(tree.topic in {texts[i] for i in shown} for shown, _ in lesson.neutral[:1])


def test_no_lesson_holds_a_text_that_the_reader_is_measured_on(lessons: list[Lesson]):
    measured = {said.text for each in blind_sets() for said in each.proposals}
    assert not measured & {text for lesson in lessons for text in lesson.texts}


def test_proposals_by_some_writers_can_be_chosen():
    chosen = by_authors(load_proposals(), ["w1", "w9"])
    assert {said.author for each in chosen for said in each.proposals} == {"w1", "w9"}


def test_the_data_card_has_the_digest_the_size_and_the_settings_in_force(lessons: list[Lesson]):
    card = (Path(fitting.__file__).parent / "README.md").read_text(encoding="utf-8")
    meant = [bool(targets) for lesson in lessons for family in lesson.families for targets in family.targets]
    numbers = (adapter_file().stat().st_size, len(meant), sum(meant), len(meant) - sum(meant))
    for fact in (ADAPTER_DIGEST, BASE, *(f"{number:,}" for number in numbers), f"τ | {READER_THRESHOLD}"):
        assert fact in card, fact
    with safe_open(adapter_file(), "np") as stored:
        about = json.loads(stored.metadata()["inquitree"])
    assert {name: about[name] for name in asdict(Settings())} == asdict(Settings()), "the card names these settings"
