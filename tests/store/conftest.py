from __future__ import annotations

from collections.abc import Iterator

import pytest

from noonday.store.cursors import WiredConnection
from noonday.store.wires import Wire
from tests.store.wire_steps import Server


@pytest.fixture
def wired(postgres_url: str) -> Iterator[WiredConnection]:
    made = WiredConnection.connect(postgres_url).prepared()
    yield made
    made.close()


@pytest.fixture
def wire(wired: WiredConnection) -> Wire:
    assert wired.wire is not None
    return wired.wire


@pytest.fixture
def server(postgres_url: str, wired: WiredConnection) -> Server:
    return Server(postgres_url, wired)
