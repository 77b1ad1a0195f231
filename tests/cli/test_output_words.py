"""How the CLI writes times, spans and untrusted text."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from noonday.cli import output, tables
from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobState

NOON = datetime(2027, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(), "0 ms"),
        (timedelta(milliseconds=12), "12 ms"),
        (timedelta(seconds=3.44), "3.4 s"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(minutes=5, seconds=12), "5 min 12 s"),
        (timedelta(hours=2, minutes=5, seconds=59), "2 h 5 min"),
        (timedelta(days=3, hours=4), "3 d 4 h"),
        (timedelta(days=400), "400 d"),
    ],
)
def test_it_writes_a_span_at_the_precision_a_person_wants(length: timedelta, words: str) -> None:
    assert output.span(length) == words


def test_it_shows_the_zone_with_every_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert output.time(NOON) == "2027-07-01 14:00:00 CEST"
    assert output.time(NOON, utc=True) == "2027-07-01 12:00:00 UTC"
    assert output.time(None) == "-"


def test_it_takes_the_teeth_out_of_control_characters() -> None:
    assert output.clean("\x1b[2Jgone\r\x07\u202e") == "\ufffd[2Jgone\ufffd\ufffd\ufffd"
    assert output.clean("two\nlines") == "two\nlines"


def test_it_has_a_sign_for_every_state() -> None:
    assert {str(state) for state in (*JobState, *ExecutionState)} <= set(tables.SIGNS)


def test_it_prints_markup_of_users_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    tables.table(["name"], [["[red]not red[/red] :smile:"]])
    assert "[red]not red[/red] :smile:" in capsys.readouterr().out


def test_it_uses_no_colour_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    tables.table(["state"], [[tables.state("failed")]])
    assert "\x1b" not in capsys.readouterr().out
