"""A model that plays by heart, and one nursery for all tests that need runs in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runner.played import TREE
from tests.runner.processes import Nursery
from tests.servers import KEY, Rote, Service


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        made = Nursery("paper2")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def rote(service: Service) -> Service:
    service.reply = Rote(TREE)
    return service
