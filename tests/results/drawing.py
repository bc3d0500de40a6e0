"""Charts that are drawn, or not: drawing takes nearly all the time of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from inquitree_gym.results.figures import FORMATS, Chart

DRAW = Chart.files


@contextmanager
def drawing() -> Iterator[None]:
    """Draw every chart, during a block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chart, "files", DRAW)
        yield


@contextmanager
def one_drawing() -> Iterator[None]:
    """Give every chart the files of the smallest one, during a block."""
    smallest = cache(lambda: DRAW(Chart("c", "c", lambda axes: None, 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chart, "files", lambda chart, formats=FORMATS: {form: smallest()[form] for form in formats})
        yield
