"""On SQLite the lease of a process that is gone is taken at once: a restart after a crash does not wait."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys

import pytest
from sqlalchemy import update

from noonday.clock import SystemClock
from noonday.store.database import Database
from noonday.store.tables import leadership
from tests.leadership.candidates import InDatabase


@pytest.fixture
def elections(sqlite_db: Database) -> InDatabase:
    return InDatabase(sqlite_db)


async def belongs_to(elections: InDatabase, pid: int, host: str | None = None) -> None:
    values = {"pid": pid, "host": host or socket.gethostname()}
    await elections.db.write(lambda conn: conn.execute(update(leadership).values(values)))


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(30)
    return child.pid


async def test_it_takes_over_from_a_process_that_is_gone(elections: InDatabase) -> None:
    before, after = elections.candidate("before"), elections.candidate("after")
    await before.campaign()
    await belongs_to(elections, dead_process())
    assert await after.campaign() == 2


async def test_it_takes_over_from_a_former_process_with_its_own_number(elections: InDatabase) -> None:
    """As the first process in a container, which always has the number 1."""
    before = elections.candidate("before")
    await before.campaign()
    del before
    gc.collect()
    assert await elections.candidate("after").campaign() == 2


async def test_it_takes_nothing_from_another_in_the_same_process(elections: InDatabase) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    assert await one.campaign() == 1
    assert await two.campaign() is None


@pytest.mark.parametrize("pid", [os.getppid(), 0, -1])
async def test_it_takes_nothing_from_a_process_that_lives_or_is_unknown(
    elections: InDatabase, pid: int
) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await belongs_to(elections, pid)
    assert await two.campaign() is None


async def test_it_knows_nothing_of_processes_on_other_machines(elections: InDatabase) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await belongs_to(elections, dead_process(), host="elsewhere")
    assert await two.campaign() is None


async def test_it_judges_by_the_lease_alone_where_machines_share_a_database(postgres_db: Database) -> None:
    elections = InDatabase(postgres_db, SystemClock())
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await belongs_to(elections, dead_process())
    assert await two.campaign() is None
