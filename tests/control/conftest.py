"""Control over a real store."""

from __future__ import annotations

import pytest

from noonday.store.database import Database
from tests.control.desk import Desk


@pytest.fixture
def desk(db: Database) -> Desk:
    return Desk(db)
