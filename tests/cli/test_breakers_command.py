"""`noonday breakers`: the table, the JSON, and reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.store import breakers
from noonday.store.database import Database
from tests.cli.terminal import Terminal
from tests.factories import NOON


@pytest.fixture
def one_open(cli: Terminal, folder: Path) -> None:
    assert cli("migrate").code == 0
    db = Database(f"sqlite:///{folder / '.noonday' / 'noonday.db'}")
    heard = {"api.test:8080": Heard(failures=5, error="connection refused"), "b.test": Heard(failures=1)}
    db.write_now(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), NOON))
    db.close_now()


@pytest.mark.usefixtures("one_open")
def test_it_shows_who_is_held_back(cli: Terminal) -> None:
    answer = cli("breakers", "--utc")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert "api.test:8080" in lines[2]
    assert "✕ open" in lines[2]
    assert "2027-01-01 12:00:00 UTC" in lines[2]
    assert "connection refused" in lines[2]
    assert "● closed" in lines[3]
    assert answer.err.strip() == "2 breakers"
    assert cli("breakers", "list", "--state", "half_open").err.strip() == "no breakers"


@pytest.mark.usefixtures("one_open")
def test_it_answers_programs_in_the_words_of_the_api(cli: Terminal) -> None:
    shown = cli("breakers", "--json").json
    assert (shown["total"], shown["parked"]) == (2, 0)
    assert shown["breakers"][0]["state"] == "open"
    assert shown["breakers"][0]["retry_at"] is not None


@pytest.mark.usefixtures("one_open")
def test_it_resets_one(cli: Terminal) -> None:
    answer = cli("breakers", "reset", "API.test:8080", "--json")
    assert answer.code == 0
    assert answer.err.strip() == "reset the breaker of api.test:8080"
    assert answer.json["state"] == "closed"
    assert [one["state"] for one in cli("breakers", "--json").json["breakers"]] == ["closed", "closed"]


@pytest.mark.usefixtures("one_open")
def test_it_says_what_is_wrong(cli: Terminal) -> None:
    answer = cli("breakers", "reset", "c.test")
    assert answer.code == 3
    assert "c.test" in answer.err
    assert cli("breakers", "--state", "ajar").code == 2
    assert cli("breakers", "--limit", "0").code == 2
    assert cli("breakers", "--offset", "-1").code == 2
