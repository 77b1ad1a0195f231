"""Control over a real store."""

from __future__ import annotations

import pytest
from desk import Desk

from noonday.store.database import Database


@pytest.fixture
def desk(db: Database) -> Desk:
    return Desk(db)
