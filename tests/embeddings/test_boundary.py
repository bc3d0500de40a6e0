"""What an embedder answers is checked once, before anything is cached, logged or played."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inquitree_gym import InquiryEnv
from inquitree_gym.embeddings import TreeVectors
from inquitree_gym.embeddings.protocol import embedded
from inquitree_gym.envs import InquiryVectorEnv
from inquitree_gym.errors import EmbedderError
from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
from inquitree_gym.inquiry.matching import match
from inquitree_gym.log import read_episode
from inquitree_gym.wrappers import LogEpisodes
from tests.strategies import make_tree

TREE = make_tree([[], [0]], [1, 2])
DIM = 4
E0, E1 = np.eye(DIM, dtype=np.float32)[:2]
NAN, INF = float("nan"), float("inf")


class Own:
    """An embedder of one's own: e0 for all texts, e1 for "plain", and a row of one number for "odd"."""

    name, digest, dim, threshold = "own", "7" * 64, DIM, 0.5

    def __init__(self, odd: float = NAN, texts: Sequence[str] = ("odd",)) -> None:
        self.rows: dict[str, Any] = {"plain": E1} | dict.fromkeys(texts, np.full(DIM, odd, np.float32))

    def embed(self, texts: Sequence[str]) -> Any:
        return np.array([self.rows.get(text, E0) for text in texts], np.float32).reshape(len(texts), DIM)


class Shaped(Own):
    """An embedder whose whole answer is changed."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change = change

    def embed(self, texts: Sequence[str]) -> Any:
        return self.change(super().embed(texts))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


NUMBERS = pytest.mark.parametrize(
    ("odd", "value"), [(NAN, "nan"), (INF, "inf"), (-INF, "-inf"), (3.0, "the length 6"), (1e38, r"the length 2e\+38")]
)


def refusal(value: str, text: str = "'odd'") -> Any:
    return pytest.raises(EmbedderError, match=f"^'own' must embed every text .* got {value} for {text}. Mend")


@NUMBERS
def test_an_episode_goes_on_after_a_vector_that_is_no_unit_vector(odd: float, value: str, tmp_path: Path):
    env = LogEpisodes(InquiryEnv(TREE, embedder=Own(odd), threshold=0.5, privileged=True), file=tmp_path / "a.jsonl")
    env.reset(seed=1)
    state = env.unwrapped.state
    for _ in range(2):
        with refusal(value):
            env.step("odd")
        assert env.unwrapped.state == state
    _, _, _, _, info = env.step("plain")
    assert (info["accepted"], info["turn"], info["privileged"]["similarity"]) == (False, 1, 0.0)
    env.unwrapped.embedder.rows["odd"] = E1
    assert env.step("odd")[-1]["turn"] == 2
    env.close()
    assert [turn.action for turn in read_episode(tmp_path / "a.jsonl").turns] == ["plain", "odd"]
    assert all(strict(line) for line in (tmp_path / "a.jsonl").read_text().splitlines())


def strict(line: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(line, parse_constant=refuse)


@NUMBERS
def test_a_vector_environment_goes_on_as_it_was(odd: float, value: str):
    envs = InquiryVectorEnv(3, tree=TREE, embedder=Own(odd), threshold=0.5)
    envs.reset(seed=1)
    with refusal(value):
        envs.step(("plain", "odd", "plain"))
    _, _, _, _, infos = envs.step(("plain", "What then?", "plain"))
    assert infos["turn"].tolist() == [1, 1, 1]
    assert infos["accepted"].tolist() == [False, True, False]


@NUMBERS
def test_texts_of_a_tree_are_refused_before_they_are_kept(odd: float, value: str, cache: Path):
    text = TREE.subtopics[0].text
    vectors = TreeVectors(TREE, Own(odd, [text]))
    for _ in range(2):
        with refusal(value, f"'{text[:20]}.*'"):
            vectors.of(TREE.topic)
    with refusal(value, f"'{text[:20]}.*'"):
        InquiryBatchEnv(2, tree=TREE, embedder=Own(odd, [text]), threshold=0.5).reset(seed=1)
    assert not cache.exists()


def test_match_names_the_text_shortened():
    long = "odd " * 100
    with refusal("nan", "'(odd ){19}od."):
        match(TREE, long, embedder=Own(NAN, [long]), threshold=0.5)


FORMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a list": (lambda rows: rows.tolist(), "a list"),
    "nothing": (lambda rows: None, "a NoneType"),
    "too few rows": (lambda rows: rows[:-1], r"float32 of shape \(0, 4\)"),
    "too many rows": (lambda rows: np.repeat(rows, 2, axis=0), r"float32 of shape \(2, 4\)"),
    "too short": (lambda rows: rows[:, :-1], r"float32 of shape \(1, 3\)"),
    "one dimension": (lambda rows: rows[0], r"float32 of shape \(4,\)"),
    "whole numbers": (lambda rows: rows.astype(int), r"int64 of shape \(1, 4\)"),
    "words": (lambda rows: rows.astype(str), r"<U32 of shape \(1, 4\)"),
    "objects": (lambda rows: rows.astype(object), r"object of shape \(1, 4\)"),
}


@pytest.mark.parametrize(("change", "came"), FORMS.values(), ids=FORMS.keys())
def test_an_answer_of_another_form_is_refused(change: Callable[[Any], Any], came: str):
    with pytest.raises(EmbedderError, match=rf"embed 1 texts, first 'plain', as .* shape \(1, 4\), got {came}. Mend"):
        embedded(Shaped(change), ["plain"])
    env = InquiryEnv(TREE, embedder=Shaped(change), threshold=0.5)
    env.reset(seed=1)
    with pytest.raises(EmbedderError, match="as an array of floats"):
        env.step("plain")


def test_floats_of_another_precision_and_zeros_are_taken():
    rows = embedded(Shaped(lambda rows: rows.astype(np.float64) * 0.9995), ["plain", "any"])
    assert (rows.dtype, rows.shape) == (np.float32, (2, DIM))
    assert not embedded(Shaped(np.zeros_like), ["plain"]).any()
    assert embedded(Own(), []).shape == (0, DIM)
    with refusal("inf", "'plain'"):
        embedded(Shaped(lambda rows: rows.astype(np.float64) * 1e300), ["plain"])
