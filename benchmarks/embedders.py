"""Compare other embedders with the default: throughput, latency of one text, first vector of a fresh process.

Needs what `python -m research.static` and `python -m research.onnx` make of MiniLM. One thread on every side.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from measure import Row, alternate, fresh, hand_over, ratios, seconds, spread
from stepping import new_texts

from inquitree_gym.embeddings import Embedder, load_embedder

DEFAULT, ONNX, STATIC = (f"{prefix}all-MiniLM-L6-v2" for prefix in ("", "onnx:", "static:"))
WORDS = 60
LENGTHS = (15, WORDS, 200)
"""Words of a text."""
BATCH = 64
BATCH_ROUNDS = 9
SINGLE_ROUNDS = 61
FRESH_ROUNDS = 5
REPEATS = {DEFAULT: 1, ONNX: 1, STATIC: 20}
"""Batches per round, enough for a stable timing."""
STATIC_TARGET, ONNX_TARGET = 100.0, 1.5
NEAR = 0.99999
COMPARED = 300
"""Texts whose vectors are compared, of 1 to 400 words."""

FIRST = """
import json, sys, time
begun = time.perf_counter()
from inquitree_gym.embeddings import load_embedder
load_embedder({name!r}).embed(["a place cell fires at one place"])
print(json.dumps([time.perf_counter() - begun, "torch" in sys.modules]))
"""


def throughput(name: str, target: float | None = None) -> Row:
    """Compare texts per second, in batches of `BATCH`."""
    texts = new_texts(BATCH)
    tasks = [partial(rate, each, texts) for each in (name, DEFAULT)]
    alternate(tasks, 1)
    ours, theirs = alternate(tasks, BATCH_ROUNDS)
    ratio = ratios(ours, theirs)
    return Row(
        f"`{name}`, batches of {BATCH} texts of {WORDS} words",
        spread(ours).show(",.0f", "/s"),
        f"the default {spread(theirs).show('.1f', '/s')}",
        ratio.show(".3g"),
        "–" if target is None else f"≥ {target:g}",
        None if target is None else ratio.median >= target,
    )


def rate(name: str, texts: Sequence[str]) -> float:
    """Return texts per second."""
    embedder = load_embedder(name)
    took = seconds(lambda: [embedder.embed(texts) for _ in range(REPEATS[name])])
    return REPEATS[name] * len(texts) / took


def latency(name: str, words: int, target: float | None = None) -> Row:
    """Compare the time of one text alone; every round has another text."""
    texts = iter(cut(SINGLE_ROUNDS + 1, words))
    tasks = [partial(alone, each) for each in (name, DEFAULT)]
    ours, theirs = [], []
    for number, text in enumerate(texts):
        pair = ((tasks[0], ours), (tasks[1], theirs))
        for task, found in pair if number % 2 else reversed(pair):
            found.append(1e3 * task(text))
    del ours[0], theirs[0]
    ratio = ratios(theirs, ours)
    return Row(
        f"`{name}`, one text of {words} words",
        spread(ours).show(".3g", "ms"),
        f"the default {spread(theirs).show('.1f', 'ms')}",
        ratio.show(".3g"),
        "–" if target is None else f"≥ {target:g}",
        None if target is None else ratio.median >= target,
    )


def alone(name: str, text: str) -> float:
    """Return the seconds needed to embed one text."""
    return seconds(lambda: load_embedder(name).embed([text]))


def cut(count: int, words: int) -> list[str]:
    """Return texts with the given number of words."""
    parts = -(-words // WORDS)
    pool = new_texts(count * parts)
    joined = (" ".join(pool[i * parts : (i + 1) * parts]) for i in range(count))
    return [" ".join(text.split()[:words]) for text in joined]


def nearness() -> Row:
    """Compare the vectors of the default and of ONNX Runtime."""
    lengths = np.geomspace(1, 400, COMPARED).round().astype(int)
    texts = [" ".join(text.split()[:length]) for text, length in zip(cut(COMPARED, 400), lengths, strict=True)]
    one, other = (load_embedder(name).embed(texts) for name in (ONNX, DEFAULT))
    cosine = float(np.einsum("td,td->t", one, other).min())
    what = f"`{ONNX}`, lowest cosine to the default over {COMPARED} texts of 1 to 400 words"
    return Row(what, f"{cosine:.7f}", target=f"≥ {NEAR}", met=cosine >= NEAR)


def first_vectors() -> list[Row]:
    """Time the first vector of a fresh process, imports included."""
    names = (DEFAULT, ONNX, STATIC)
    tasks = [partial(fresh, FIRST.format(name=name)) for name in names]
    alternate(tasks, 1)
    rows = []
    for name, runs in zip(names, alternate(tasks, FRESH_ROUNDS), strict=True):
        took, with_torch = zip(*runs, strict=True)
        what = f"`{name}`, first vector of a fresh process, torch {'' if any(with_torch) else 'not '}imported"
        rows.append(Row(what, spread(took).show(".2f", "s")))
    return rows


def size(name: str) -> Row:
    """Report the size of the files."""
    embedder: Embedder = load_embedder(name)
    folder = embedder._folder  # type: ignore[attr-defined]
    total = sum(file.stat().st_size for file in folder.iterdir())
    return Row(f"`{name}`, files", f"{total / 1e6:.0f} MB")


if __name__ == "__main__":
    hand_over(
        [
            throughput(STATIC, STATIC_TARGET),
            throughput(ONNX),
            *(latency(ONNX, words, ONNX_TARGET if words == WORDS else None) for words in LENGTHS),
            *(latency(STATIC, words) for words in LENGTHS),
            nearness(),
            *first_vectors(),
            size(ONNX),
            size(STATIC),
        ]
    )
