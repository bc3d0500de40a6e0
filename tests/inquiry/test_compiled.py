"""Arrays that Numba compiles and arrays in plain Python play the same episodes, byte by byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.arrays import batch, compiled
from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
from tests.inquiry.test_batch import LETTERS, RULES, TREES, drawn, same


@pytest.fixture(scope="module")
def functions() -> compiled.Functions:
    found = compiled.functions()
    assert found.compiled, "the extra arrays is part of the tests"
    return found


def made(functions: compiled.Functions, monkeypatch: pytest.MonkeyPatch, seed: int, **keywords: Any) -> InquiryBatchEnv:
    """An environment that is stepped by these functions."""
    with monkeypatch.context() as patch:
        patch.setattr(batch, "functions", lambda: functions)
        env = InquiryBatchEnv(**keywords)
        env.reset(seed=seed)
    return env


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_compiled_and_plain_functions_give_equal_bytes(data: st.DataObject, functions: compiled.Functions, monkeypatch):
    names = data.draw(st.lists(st.sampled_from(sorted(TREES)), min_size=1, max_size=3, unique=True), label="trees")
    keywords = data.draw(RULES, label="rules") | {
        "num_envs": data.draw(st.sampled_from([1, 3, 40])),
        "tree": [TREES[name] for name in names],
        "observation": data.draw(st.sampled_from(["index", "features"])),
        "autoreset_mode": data.draw(st.sampled_from([AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])),
        "embedder": LETTERS,
        "size": (4, 17),
    }
    rng, seed = np.random.default_rng(data.draw(st.integers(0, 99))), data.draw(st.integers(0, 2**64 - 1))
    ours, theirs = (made(each, monkeypatch, seed, **keywords) for each in (functions, compiled.PLAIN))
    for number in range(25):
        actions = drawn(rng, ours, 0.8)
        for name, a, b in zip(
            ("observations", "rewards", "over", "cut", "infos"), ours.step(actions), theirs.step(actions), strict=True
        ):
            same(a, b, f"step {number}: {name}")
        np.testing.assert_array_equal(ours.batch.rows, theirs.batch.rows)


def test_any_number_of_threads_gives_the_same_bytes(functions: compiled.Functions, monkeypatch):
    keywords = {"tree": [TREES["branched"], TREES["chain"]], "embedder": LETTERS, "fake_level": 4, "num_envs": 50}
    envs = [made(functions, monkeypatch, 3, threads=threads, **keywords) for threads in (1, 2, 5)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = drawn(rng, envs[0], 0.8)
        first, *others = (env.step(actions) for env in envs)
        for other in others:
            same(other[0], first[0], "observations")
            same(other[4], first[4], "infos")
    assert all((env.batch.rows == envs[0].batch.rows).all() for env in envs)


PLAY = """
import warnings
import numpy as np
from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
env = InquiryBatchEnv(3, tree="paper2", embedder="hashed-words", observation="index", fake_level=5)
env.reset(seed=1)
rows = [env.step(np.arange(3) + k % 5)[0].tolist() for k in range(20)]
print(rows)
"""


def play(folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"INQUITREE_CACHE": str(folder), "HF_HUB_OFFLINE": "1", "NUMBA_OPT": "0"}
    return subprocess.run(
        [sys.executable, "-c", before + PLAY], env=environment, capture_output=True, text=True, timeout=300, check=True
    )


@pytest.mark.e2e
def test_compiled_code_is_kept_where_it_can_be_and_without_numba_the_same_is_played(tmp_path: Path):
    first = play(tmp_path)
    assert first.stderr.count("Compiling") == 1
    kept = play(tmp_path)
    assert "Compiling" not in kept.stderr
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    compiled_again = play(blocked / "below")
    hidden = play(tmp_path, "import sys; sys.modules['numba'] = None\n")
    assert hidden.stderr.count("pip install -c constraints.txt '.[arrays]'") == 1
    assert first.stdout == kept.stdout == compiled_again.stdout == hidden.stdout


def test_a_number_of_threads_is_checked():
    with pytest.raises(OptionError, match="threads must be an integer from 1, got 0"):
        InquiryBatchEnv(2, tree=TREES["chain"], embedder=LETTERS, threads=0)
