"""`noonday jobs list, show, pause, …` and `noonday history` on a SQLite file."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

FAR = ("--cron", "0 2 1 1 *")


@pytest.mark.parametrize(
    "words", [["jobs", "list"], ["jobs", "show", "x"], ["history"], ["jobs", "pause", "x"]]
)
def test_it_says_that_there_is_no_database_and_makes_none(
    cli: Terminal, folder: Path, words: list[str]
) -> None:
    answer = cli(*words)
    assert answer.code == 6
    assert "there is no database at .noonday/noonday.db yet" in answer.err
    assert "hint: " in answer.err
    assert list(folder.iterdir()) == []


def test_it_suggests_near_names_for_an_unknown_job(cli: Terminal) -> None:
    cli("jobs", "add", "nightly-report", "--manual", "--url", "http://a.example/")
    for words in (["jobs", "show"], ["jobs", "pause"], ["jobs", "run"], ["history"]):
        answer = cli(*words, "nigthly-report")
        assert answer.code == 3
        assert "'nigthly-report'" in answer.err
        assert "did you mean nightly-report?" in answer.err
    assert "noonday jobs list" in cli("jobs", "show", "zzz").err


def test_it_lists_jobs_with_state_as_sign_and_word(cli: Terminal) -> None:
    cli("jobs", "add", "one", *FAR, "--url", "http://a.example/", "--tag", "red")
    cli("jobs", "add", "two", *FAR, "--url", "http://a.example/")
    cli("jobs", "pause", "two")
    answer = cli("jobs", "list")
    assert "○ scheduled" in answer.out
    assert "■ paused" in answer.out
    assert "01-01 02:00:00 UTC" in answer.out
    assert "2 jobs" in answer.err
    assert [job["name"] for job in cli("jobs", "list", "--status", "paused", "--json").json["jobs"]] == [
        "two"
    ]
    assert [job["name"] for job in cli("jobs", "list", "--tag", "red", "--json").json["jobs"]] == ["one"]
    assert [job["name"] for job in cli("jobs", "list", "--name", "TW", "--json").json["jobs"]] == ["two"]
    assert "--offset 1 shows more" in cli("jobs", "list", "-n", "1").err


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--status", "puased"], "did you mean paused?"),
        (["--type", "sometimes"], "'sometimes'"),
        (["--limit", "0"], "--limit"),
        (["--offset", "-1"], "--offset"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_refuses_a_wrong_filter(cli: Terminal, flags: list[str], named: str) -> None:
    answer = cli("jobs", "list", *flags)
    assert answer.code == 2
    assert named in answer.err


def test_it_pauses_and_resumes_several_jobs_and_reports_those_it_cannot(cli: Terminal) -> None:
    for name in ("a", "b"):
        cli("jobs", "add", name, *FAR, "--url", "http://a.example/")
    answer = cli("jobs", "pause", "a", "nobody", "b", "--json")
    assert answer.code == 3
    assert "paused a" in answer.err
    assert "'nobody'" in answer.err
    assert [(job["name"], job["status"]) for job in answer.json["jobs"]] == [("a", "paused"), ("b", "paused")]
    assert cli("jobs", "resume", "a", "--json").json["jobs"][0]["status"] == "scheduled"


def test_it_asks_before_it_removes_and_wants_a_yes_in_scripts(cli: Terminal) -> None:
    cli("jobs", "add", "x", "--manual", "--url", "http://a.example/")
    answer = cli("jobs", "rm", "x")
    assert answer.code == 2
    assert "--yes" in answer.err
    assert cli("jobs", "show", "x").code == 0
    assert cli("jobs", "rm", "x", "--yes").code == 0
    assert cli("jobs", "show", "x").code == 3


@pytest.mark.parametrize(("typed", "gone"), [("y\n", True), ("YES\n", True), ("n\n", False), ("", False)])
def test_it_takes_only_a_yes_for_a_yes(
    cli: Terminal, monkeypatch: pytest.MonkeyPatch, typed: str, gone: bool
) -> None:
    class Person(StringIO):
        def isatty(self) -> bool:
            return True

    cli("jobs", "add", "x", "--manual", "--url", "http://a.example/")
    monkeypatch.setattr("sys.stdin", Person(typed))
    answer = cli("jobs", "rm", "x")
    assert "Remove x and the history? [y/N]" in answer.err
    assert answer.code == (0 if gone else 130)
    assert (cli("jobs", "show", "x").code == 3) is gone


def test_it_cancels_what_waits_and_leaves_the_job(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    cli("jobs", "run", "x")
    assert cli("jobs", "cancel", "x", "--runs", "--json").json["jobs"][0]["status"] == "scheduled"
    assert [run["status"] for run in cli("history", "x", "--json").json["executions"]] == ["cancelled"]


def test_it_cancels_a_job_for_good(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    assert cli("jobs", "cancel", "x", "-y", "--json").json["jobs"][0]["status"] == "cancelled"
    answer = cli("jobs", "resume", "x")
    assert answer.code == 4
    assert "cancelled" in answer.err


def test_it_puts_a_forced_run_on_the_road(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    run = cli("jobs", "run", "x", "--config", '{"n": 2}', "--json")
    assert run.code == 0
    assert (run.json["status"], run.json["config"], run.json["cause"]) == ("queued", {"n": 2}, "manual")
    history = cli("history", "x", "--json").json
    assert [execution["id"] for execution in history["executions"]] == [run.json["id"]]


def test_it_stops_following_a_run_when_the_time_is_over(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    answer = cli("jobs", "run", "x", "--wait", "--timeout", "1s", "--json")
    assert answer.code == 124
    assert answer.json["status"] == "queued"


@pytest.mark.parametrize(
    "flags",
    [["--timeout", "5m"], ["--wait", "--timeout", "x"], ["--config", "1"], ["--config", "{"]],
    ids=" ".join,
)
def test_it_refuses_a_wrong_way_to_run(cli: Terminal, flags: list[str]) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    answer = cli("jobs", "run", "x", *flags)
    assert answer.code == 2
    assert any(flag in answer.err for flag in flags if flag.startswith("--"))
    assert cli("history", "x", "--json").json["total"] == 0


def test_it_shows_a_job_with_its_next_and_last_runs(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/", "--description", "[bold]hm[/bold]")
    cli("jobs", "run", "x")
    answer = cli("jobs", "show", "x")
    for part in (
        "At 02:00 on January 1",
        "-01-01 02:00:00 UTC",
        "fetch",
        "[bold]hm[/bold]",
        "Last runs",
        "○ queued",
    ):
        assert part in answer.out


def test_it_has_an_empty_history_at_first(cli: Terminal) -> None:
    cli("jobs", "add", "x", *FAR, "--url", "http://a.example/")
    answer = cli("history")
    assert (answer.code, answer.out, answer.err) == (0, "", "no executions\n")
    assert cli("history", "--status", "skiped").err.startswith(
        "noonday: --status: 'skiped' is unknown; did you mean skipped?"
    )


def test_it_pauses_until_a_moment_and_skips_the_next_run(cli: Terminal) -> None:
    cli("jobs", "add", "a", *FAR, "--url", "http://a.example/")
    first = cli("jobs", "show", "a", "--json").json["next_run_at"]
    answer = cli("jobs", "skip-next", "a", "--json")
    assert "skipped the next run of a" in answer.err
    assert answer.json["jobs"][0]["next_run_at"] > first
    (paused,) = cli("jobs", "pause", "a", "--until", "2999-01-01T00:00", "--json").json["jobs"]
    assert (paused["is_paused"], paused["paused_until"]) == (True, "2999-01-01T00:00:00Z")
    (paused,) = cli("jobs", "pause", "a", "--until", "2h", "--json").json["jobs"]
    assert paused["paused_until"] < "2999"
    assert cli("jobs", "pause", "a", "--until", "soon").code == 2
