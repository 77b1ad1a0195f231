"""`noonday next`: the words and times that people see, golden."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

BERLIN = ("--timezone", "Europe/Berlin")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 2 * * mon", "At 02:00 every Monday, UTC"),
        ("every 5m", "Every 5 minutes, counted from 2027-01-01 00:00, UTC"),
        ("daily 02:00", "At 02:00 every day, UTC"),
        ("at 2027-06-01T12:00", "Once, at 2027-06-01 12:00, UTC"),
    ],
)
def test_it_explains_a_schedule_in_words(cli: Terminal, expression: str, words: str) -> None:
    answer = cli("next", *expression.split(), "--from", "2027-01-01")
    assert answer.code == 0
    assert answer.out.splitlines()[0] == words


def test_it_lists_times_in_the_zone_and_in_utc(cli: Terminal) -> None:
    answer = cli("next", "0 2 * * mon", *BERLIN, "--from", "2027-03-20", "-n", "2")
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[1] == ["Europe/Berlin", "UTC", "from", "now"]
    assert lines[3][:7] == ["1", "Mon", "2027-03-22", "02:00:00", "CET", "2027-03-22", "01:00:00Z"]
    assert lines[4][:7] == ["2", "Mon", "2027-03-29", "02:00:00", "CEST", "2027-03-29", "00:00:00Z"]


@pytest.mark.parametrize(
    ("expression", "start", "note"),
    [
        (
            "30 2 * * *",
            "2027-03-27",
            "clocks go forward on Sun 2027-03-28 from 02:00 to 03:00 (CET → CEST): "
            "a time of day in the gap runs once, right after it.",
        ),
        (
            "30 2 * * *",
            "2027-10-30",
            "clocks go back on Sun 2027-10-31 from 03:00 to 02:00 (CEST → CET): "
            "a time of day that happens twice runs once.",
        ),
        (
            "every 6h",
            "2027-10-30T20:00",
            "clocks go back on Sun 2027-10-31 from 03:00 to 02:00 (CEST → CET): "
            "an interval counts elapsed time, so the time of day shifts.",
        ),
    ],
)
def test_it_notes_a_change_of_the_clocks_among_the_times(
    cli: Terminal, expression: str, start: str, note: str
) -> None:
    answer = cli("next", expression, *BERLIN, "--from", start)
    assert answer.err == f"note: {note}\n"
    assert cli("next", expression, *BERLIN, "--from", start, "--json").json["notes"] == [note]


def test_it_says_nothing_about_clocks_that_do_not_change(cli: Terminal) -> None:
    assert cli("next", "0 2 * * *", *BERLIN, "--from", "2027-05-01").err == ""
    yearly = cli("next", "0 12 1 7 *", *BERLIN, "--from", "2027-07-01T00:00")
    assert yearly.err == ""  # the offset is the same each July


def test_it_runs_a_time_that_does_not_exist_once_after_the_gap(cli: Terminal) -> None:
    times = cli("next", "30 2 * * *", *BERLIN, "--from", "2027-03-28", "-n", "2", "--json").json["times"]
    assert times == [
        {"at": "2027-03-28T01:00:00Z", "local": "2027-03-28T03:00:00+02:00"},
        {"at": "2027-03-29T00:30:00Z", "local": "2027-03-29T02:30:00+02:00"},
    ]


def test_it_counts_a_time_that_lies_on_the_start(cli: Terminal) -> None:
    times = cli("next", "0 * * * *", "--from", "2027-01-01T00:00Z", "-n", "1", "--json").json["times"]
    assert times[0]["at"] == "2027-01-01T00:00:00Z"


def test_it_spreads_h_by_the_key_and_says_so_without_one(cli: Terminal) -> None:
    def times(*key: str) -> list[str]:
        answer = cli("next", "H H * * *", "--from", "2027-01-01", "-n", "1", "--json", *key)
        return [time["at"] for time in answer.json["times"]]

    assert times("--key", "a") == times("--key", "a")
    assert len({times("--key", key)[0] for key in "abcdefgh"}) > 4
    assert "a sample" in cli("next", "H * * * *").err
    assert cli("next", "H * * * *", "--key", "a").err == ""
    assert cli("next", "0 0 * * THU").err == ""  # an H inside a name is no H


def test_it_joins_the_words_of_an_unquoted_expression(cli: Terminal) -> None:
    assert cli("next", "0", "2", "1", "*", "mon").code == 0
    assert cli("next", "weekly", "mon", "02:00").out.startswith("At 02:00 every Monday")


def test_it_needs_no_database_and_leaves_none(cli: Terminal, folder: Path) -> None:
    assert cli("next", "@daily").code == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["61 * * * *"], ["cron_expression", "61"]),
        (["* * * *"], ["* * * *"]),
        (["0 0 30 2 *"], ["0 0 30 2 *", "never"]),
        (["@reboot"], ["@reboot"]),
        (["every", "0s"], ["0s"]),
        (["every", "soon"], ["soon", "30s, 5m"]),
        (["daily", "25:00"], ["25:00"]),
        (["@daily", "--timezone", "Europe"], ["--timezone", "Europe"]),
        (["@daily", "--from", "never"], ["--from", "never"]),
        (["@daily", "-n", "0"], ["--count", "0"]),
        (["@daily", "-n", "x"], ["x"]),
        ([], ["expression"]),
    ],
    ids=" ".join,
)
def test_it_names_field_and_value_of_bad_input_in_one_line(
    cli: Terminal, words: list[str], named: list[str]
) -> None:
    answer = cli("next", *words)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("noonday: ")
    assert all(part in answer.err.splitlines()[0] for part in named)
    assert len([line for line in answer.err.splitlines() if not line.startswith("hint: ")]) == 1


def test_it_says_that_a_past_time_never_comes(cli: Terminal) -> None:
    answer = cli("next", "at", "2020-01-01T00:00")
    assert answer.code == 0
    assert "never fires" in answer.err
