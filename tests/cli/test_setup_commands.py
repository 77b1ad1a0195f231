"""`noonday migrate`, `config`, `version` and the frame around all commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonday.cli import app as cli_app
from tests.cli.terminal import Terminal


def test_it_makes_a_database_and_finds_it_up_to_date(cli: Terminal, folder: Path) -> None:
    assert cli("migrate", "--status").code == 6
    assert not (folder / ".noonday").exists()
    first = cli("migrate", "--json")
    assert first.code == 0
    assert first.json["applied"]
    assert cli("migrate", "--status", "--json").json == {"revision": first.json["revision"], "missing": []}
    assert "up to date" in cli("migrate", "up").err


def test_it_takes_the_schema_back_only_with_a_yes(cli: Terminal) -> None:
    cli("migrate")
    assert cli("migrate", "down", "--to", "base").code == 2
    assert cli("migrate", "down", "--to", "base", "--yes").code == 0
    status = cli("migrate", "--status", "--json").json
    assert status["revision"] is None
    assert status["missing"]
    listing = cli("jobs", "list")
    assert listing.code == 6
    assert "hint: noonday migrate" in listing.err


def test_it_refuses_an_unknown_revision_by_name(cli: Terminal) -> None:
    answer = cli("migrate", "--to", "nowhere")
    assert answer.code == 2
    assert "'nowhere'" in answer.err


@pytest.mark.parametrize(
    "words", [["migrate"], ["migrate", "--status"], ["jobs", "list"], ["history"]], ids=" ".join
)
def test_it_says_in_one_line_that_a_database_cannot_be_reached(cli: Terminal, words: list[str]) -> None:
    answer = cli(*words, "--db", "postgresql://me:hunter2@127.0.0.1:1/jobs")
    assert answer.code == 6
    assert answer.err.startswith("noonday: PostgreSQL jobs on 127.0.0.1 cannot be used: ")
    assert len(answer.err.splitlines()) == 1
    assert "hunter2" not in answer.err


@pytest.mark.parametrize(
    "words", [["migrate"], ["jobs", "add", "x", "--manual", "--url", "http://a.example/"]], ids=" ".join
)
def test_it_says_in_one_line_that_a_file_is_no_database(
    cli: Terminal, folder: Path, words: list[str]
) -> None:
    (folder / "text.db").write_text("not a database, but long enough to look like the header of one" * 3)
    answer = cli(*words, "--db", "sqlite:///text.db")
    assert answer.code == 6
    assert answer.err == "noonday: SQLite text.db cannot be used: file is not a database\n"
    (folder / "plain").write_text("a file where a folder should be")
    assert cli(*words, "--db", "sqlite:///plain/noonday.db").code == 6


def test_it_works_on_postgresql(cli: Terminal, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    assert cli("jobs", "add", "x", "--daily", "02:00", "--", "true").code == 0
    assert cli("jobs", "pause", "x").code == 0
    run = cli("jobs", "run", "x", "--json").json
    assert cli("jobs", "list", "--json").json["jobs"][0]["name"] == "x"
    assert cli("history", "x", "--json").json["executions"][0]["id"] == run["id"]
    assert cli("jobs", "rm", "x", "-y").code == 0


def test_it_prints_every_setting_with_its_source(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9001")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@db.example/jobs")
    settings = cli("config", "--json", "--workers", "3").json
    assert settings["PORT"] == {"value": "9001", "source": "environment PORT"}
    assert settings["SCHEDULER_WORKER_POOL_SIZE"] == {"value": "3", "source": "flag"}
    assert settings["LOG_LEVEL"]["source"] == "default"
    everything = cli("config")
    assert "hunter2" not in everything.out + everything.err
    assert "me:********@db.example" in everything.out
    assert "LOG_LEVEL" not in cli("config", "--changed").out


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "99999"), ("SCHEDULER_LEASE_TTL", "soon"), ("DATABASE_URL", "mysql://x"), ("HOST", "0.0.0.0")],
)
def test_it_names_a_wrong_setting(
    cli: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    answer = cli("config")
    assert answer.code == 2
    assert answer.err.startswith(f"noonday: {name}")
    assert value in answer.err or name == "DATABASE_URL"


def test_it_prints_the_version(cli: Terminal) -> None:
    assert (
        cli("version").out.strip() == cli("--version").out.strip() == cli("version", "--json").json["noonday"]
    )


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["-h"], ["jobs"], ["jobs", "add", "--help"], ["migrate", "--help"]]
)
def test_it_explains_itself(cli: Terminal, words: list[str]) -> None:
    answer = cli(*words)
    assert answer.code == 0
    assert answer.out.startswith("Usage: noonday")


def test_it_lists_every_command_without_loading_any(cli: Terminal) -> None:
    shown = cli("--help").out
    for command in ("serve", "migrate", "config", "jobs", "history", "next", "version"):
        assert f" {command} " in shown


def test_it_suggests_a_near_command(cli: Terminal) -> None:
    answer = cli("histroy")
    assert answer.code == 2
    assert "history" in answer.err


def test_it_calls_a_defect_a_defect(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli_app, "build", broken)
    answer = cli("version")
    assert answer.code == 70
    assert "ZeroDivisionError" in answer.err


def test_it_exits_with_130_when_interrupted(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_app, "build", interrupted)
    assert cli("version").code == 130
