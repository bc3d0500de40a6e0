"""The menu view starts without a model: shipped trees have their vectors in the package, fiction has hashed words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from inquitree_gym.embeddings import ReaderEmbedder, TreeVectors, WordsEmbedder, load_embedder
from inquitree_gym.embeddings import vectors as shipped
from inquitree_gym.errors import EmbedderError
from inquitree_gym.inquiry.observations import observation_keys
from inquitree_gym.trees import load_tree, synthetic_tree, tree_seed
from research.shipped_vectors import COMMAND, missing_texts
from tests.strategies import make_tree

READER = ReaderEmbedder()
HEAVY = {"torch", "transformers", "sentence_transformers"}
STARTED = """
import json, sys
import gymnasium as gym
import inquitree_gym
from inquitree_gym.embeddings.local import SentenceTransformerEmbedder
calls = []
SentenceTransformerEmbedder.embed = lambda self, texts: calls.append(list(texts))
name, keywords = json.loads(sys.argv[1])
env = gym.make(name, **keywords)
for seed in range(3):
    _, info = env.reset(seed=seed)
    for _ in range(3):
        env.step(int(info["action_mask"].argmax()))
print(json.dumps([sorted(sys.modules), calls]))
"""
"""Plays without a conclusion, because the local judge has a model of its own."""


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("InquiTree-paper12-menu-v0", {}),
        ("InquiTree-paper12-menu-v0", {"max_turns": None, "fake_level": 3}),
        ("InquiTree-menu-v0", {"max_turns": None}),
        ("InquiTree-synthetic-menu-v0", {}),
    ],
)
def test_a_fresh_process_plays_the_menu_without_loading_or_calling_a_model(name: str, keywords: dict, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", STARTED, json.dumps([name, keywords])],
        env=os.environ | {"INQUITREE_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    modules, calls = json.loads(done.stdout)
    assert HEAVY.isdisjoint(modules)
    assert calls == []
    assert not (tmp_path / "cache").exists(), "what is shipped is not cached as well"


def test_the_package_holds_every_text_of_the_menus_of_the_shipped_trees():
    missing = missing_texts(READER.digest)
    assert not any(missing.values()), f"remake the shipped vectors, run: {COMMAND}; missing: {missing}"


def test_another_model_and_another_text_find_nothing():
    text = load_tree("paper12").subtopics[0].text
    assert shipped.shipped_vector(text, READER.digest) is not None
    assert shipped.shipped_vector(text, "0" * 64) is None
    assert shipped.shipped_vector(f"{text} ", READER.digest) is None


class Counting(ReaderEmbedder):
    """The default embedder, with hashed words in place of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed(self, texts):
        self.asked.extend(texts)
        return WordsEmbedder().embed(texts)


def test_only_texts_that_are_not_shipped_are_embedded_and_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    known, embedder = load_tree("paper12").subtopics[0].text, Counting()
    rows = TreeVectors(make_tree([[]], [1]), embedder).stored((known, "A text of one's own.", "And another one."))
    assert embedder.asked == ["A text of one's own.", "And another one."]
    assert np.array_equal(rows[0], shipped.shipped_vector(known, READER.digest))
    assert np.array_equal(rows[1:], WordsEmbedder().embed(embedder.asked))
    again = TreeVectors(make_tree([[]], [1]), embedder).stored((known, "A text of one's own.", "And another one."))
    assert np.array_equal(rows, again)
    assert len(embedder.asked) == 2


def test_a_damaged_file_is_not_taken_for_a_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "vectors.npz"
    whole = bytearray(shipped.shipped_file("trees", READER.digest).read_bytes())
    whole[len(whole) // 2] ^= 1
    file.write_bytes(whole)
    monkeypatch.setattr(shipped, "shipped_file", lambda part, digest: file)
    shipped.shipped_rows.cache_clear()
    with pytest.raises(EmbedderError, match=r"must hold vectors, got .*\. Install inquitree-gym again\."):
        shipped.shipped_vector("a text", READER.digest)
    shipped.shipped_rows.cache_clear()


@pytest.mark.weights
def test_shipped_vectors_are_those_of_the_model(reader):
    tree = load_tree("paper12")
    env = gym.make("InquiTree-paper12-v0").unwrapped
    runtime = env.runtimes.get(tree, env.rules)
    texts = [node.text for node in (*tree.subtopics, *tree.studies)]
    said = reader.embed([*texts, "Which cells tell the animal where it is?", "Does noise matter?"])
    kept = np.stack([shipped.shipped_vector(text, reader.digest) for text in texts])
    assert np.abs(kept @ said.T - said[: len(texts)] @ said.T).max() < 1e-5
    shown = [runtime.observations.render_key(key) for key in observation_keys(tree, env.rules)][::8]
    rough = np.stack([shipped.shipped_vector(text, reader.digest) for text in shown])
    assert np.abs(rough @ said.T - reader.embed(shown) @ said.T).max() < 1e-3
    assert np.abs(np.linalg.norm(rough, axis=1) - 1).max() < 1e-3


@pytest.mark.weights
def test_readings_are_the_same_with_and_without_shipped_vectors(reader, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    tree = load_tree("paper2")
    said = (*tree.subtopics[0].hints, "How do the animals find their way?", *(node.text for node in tree.subtopics))
    found = []
    for parts in (shipped.PARTS, {}):
        monkeypatch.setattr(shipped, "PARTS", parts)
        vectors = TreeVectors(tree, reader)
        found.append(np.stack([vectors.subtopics @ vectors.of(text) for text in said]))
    assert np.abs(found[0] - found[1]).max() < 1e-5
    assert np.array_equal(found[0] >= reader.threshold, found[1] >= reader.threshold)


def test_an_explicit_embedder_reads_and_shows_fiction():
    embedder = Counting()
    env = gym.make("InquiTree-synthetic-menu-v0", embedder=embedder)
    features, _ = env.reset(seed=1)
    assert env.unwrapped.embedder is embedder
    assert len(embedder.asked) == 1, "the opening alone: the others are embedded when they are shown"
    assert np.array_equal(features[-embedder.dim :], embedder.embed(embedder.asked)[0])


def test_fiction_has_the_same_features_in_every_view():
    name, keywords = "InquiTree-synthetic-menu-v0", {"difficulty": {"subtopics": 3}, "size": (3, 12)}
    trees = [synthetic_tree(tree_seed(seed, "train"), keywords["difficulty"]) for seed in range(2)]
    singles = [gym.make(name, **keywords) for _ in range(2)]
    views = [
        gym.make_vec(name, 2, "sync", **keywords),
        gym.make_vec(name, 2, "async", **keywords),
        gym.make_vec("InquiTree-menu-v0", 2, trees=trees, size=(3, 12), embedder="hashed-words"),
    ]
    expected = np.stack([env.reset(seed=seed)[0] for seed, env in enumerate(singles)])
    assert all(np.array_equal(view.reset(seed=0)[0], expected) for view in views)
    for action in (0, 3, 3, 1):
        expected = np.stack([env.step(action)[0] for env in singles])
        assert all(np.array_equal(view.step(np.full(2, action))[0], expected) for view in views)
    for view in views:
        view.close()


def test_hashed_words_tell_the_subtopics_of_fiction_apart():
    embedder = load_embedder("hashed-words")
    for seed in range(5):
        tree = synthetic_tree(tree_seed(seed, "test"))
        rows = embedder.embed([subtopic.text for subtopic in tree.subtopics])
        similar = rows @ rows.T - 2 * np.eye(len(rows))
        assert (similar.max(axis=1) < embedder.threshold).mean() > 0.8
    assert embedder.embed([]).shape == (0, 384)


def test_hashed_words_run_on_no_device():
    with pytest.raises(EmbedderError, match="'hashed-words' does not run on a CUDA device"):
        load_embedder("hashed-words", device="cuda")
