"""How well the surface of pages tells gold of SciExplore from near misses."""

from __future__ import annotations

import numpy as np

from research.surface import FEATURES, TARGET, app, auc, choices
from tests.contract.command_line import run_tool
from tests.exploration.questions import make_question


def test_the_surface_of_pages_is_measured() -> None:
    (first, *_) = choices(make_question())
    assert first.features.shape == (len(first.gold), len(FEATURES))
    assert auc([first], [first.gold.astype(float)]) == 1.0
    assert auc([first], [np.zeros(len(first.gold))]) == 0.5
    done = run_tool(app, "--tasks", "T3")
    assert float(done.out.split("| T3 | ")[1].split(" | ")[2]) <= TARGET
