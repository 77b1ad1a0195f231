"""Each test gets a database of its own, empty, and a folder for what its processes write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.processes import World, world


@pytest.fixture
def here(empty_url: str, tmp_path: Path) -> Iterator[World]:
    with world(empty_url, tmp_path) as made:
        yield made
