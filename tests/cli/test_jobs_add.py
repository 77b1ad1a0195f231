"""`noonday jobs add`: flags, files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

FAR = ("--cron", "0 2 1 1 *")


def test_it_adds_a_job_and_makes_the_database_for_it(cli: Terminal, folder: Path) -> None:
    answer = cli(
        "jobs", "add", "nightly", "--daily", "02:00", "--tz", "Europe/Berlin", "--", "echo", "-n", "hi there"
    )
    assert answer.code == 0
    assert "making a new database" in answer.err
    assert "added nightly" in answer.err
    assert "At 02:00 every day, Europe/Berlin" in answer.err
    assert answer.out == ""
    assert (folder / ".noonday" / "noonday.db").exists()
    shown = cli("jobs", "show", "nightly", "--json").json
    assert shown["target"] | {"argv": ["echo", "-n", "hi there"], "type": "command"} == shown["target"]
    assert shown["timezone"] == "Europe/Berlin"
    assert shown["status"] == "scheduled"


def test_it_takes_the_database_from_flag_before_environment(
    cli: Terminal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///env.db")
    assert cli("jobs", "add", "a", "--manual", "--url", "http://example.com").code == 0
    assert (
        cli("jobs", "add", "b", "--manual", "--url", "http://example.com", "--db", "sqlite:///flag.db").code
        == 0
    )
    assert [job["name"] for job in cli("jobs", "list", "--json").json["jobs"]] == ["a"]
    assert [
        job["name"] for job in cli("jobs", "list", "--json", "--db", "sqlite:///flag.db").json["jobs"]
    ] == ["b"]


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        (["--cron", "0 2 * * mon"], {"schedule_type": "cron", "cron_expression": "0 2 * * mon"}),
        (
            ["--every", "90s"],
            {"schedule_type": "interval", "interval_minutes": 90, "interval_type": "seconds"},
        ),
        (["--every", "6h", "--after-completion"], {"interval_minutes": 6, "after_completion": True}),
        (
            ["--daily", "02:30"],
            {"schedule_type": "calendar", "frequency": "daily", "time_config": {"hour": 2, "minute": 30}},
        ),
        (["--schedule", "weekly mon 02:00"], {"frequency": "weekly"}),
        (
            ["--at", "2099-01-31T02:00", "--tz", "Europe/Berlin"],
            {"schedule_type": "once", "run_at": "2099-01-31T01:00:00Z"},
        ),
        (["--immediate"], {"schedule_type": "immediate"}),
        (["--manual"], {"schedule_type": "manual"}),
        (["--manual", "--priority", "high"], {"priority": 1}),
        (
            ["--manual", "--timeout", "5m", "--retries", "7", "--backoff", "10s"],
            {"timeout_seconds": 300, "max_retries": 7},
        ),
        (
            ["--manual", "--grace", "1h", "--catch-up", "latest"],
            {"misfire_grace_seconds": 3600, "catch_up": "latest"},
        ),
        (
            ["--manual", "--overlap", "queue_one", "--max-instances", "2"],
            {"overlap": "queue_one", "max_instances": 2},
        ),
        (["--manual", "--tag", "a", "--tag", "b"], {"tags": ["a", "b"]}),
        (["--manual", "--config", '{"n": 1}'], {"config": {"n": 1}}),
        ([*FAR, "--window", "mon-fri 08:00-18:00", "--outside", "move"], {"outside": "move"}),
        ([*FAR, "--holidays", "DE", "--exclude", "2027-12-24"], {}),
        ([*FAR, "--max-runs", "3", "--jitter", "30s"], {"max_runs": 3, "jitter_seconds": 30}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_turns_flags_into_the_fields_of_a_job(
    cli: Terminal, flags: list[str], fields: dict[str, object]
) -> None:
    answer = cli("jobs", "add", "x", "--url", "http://example.com/", *flags, "--json")
    assert answer.code == 0, answer.err
    assert {name: answer.json[name] for name in fields} == fields


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        (["--url", "http://a.example/"], {"type": "fetch", "url": "http://a.example/"}),
        (
            [
                "--url",
                "http://a.example/",
                "--method",
                "put",
                "--body",
                '{"a": 1}',
                "--header",
                "Accept: text/csv",
            ],
            {"type": "http", "method": "PUT", "body": {"a": 1}, "headers": {"Accept": "text/csv"}},
        ),
        (
            ["--url", "http://a.example/", "--expect", "200", "--expect", "204"],
            {"expected_status": [200, 204]},
        ),
        (["--task", "pkg:func", "--args", "[1, 2]"], {"type": "python", "task": "pkg:func", "args": [1, 2]}),
        (["--task", "pkg:func", "--args", '{"a": 1}'], {"kwargs": {"a": 1}}),
        (
            ["--service", "email-service", "--endpoint", "/jobs/digest"],
            {"type": "service", "endpoint": "/jobs/digest"},
        ),
        (["--command", "echo 'a b' c"], {"type": "command", "argv": ["echo", "a b", "c"]}),
        (
            ["--env", "A=b=c", "--cwd", "/", "--", "env", "--name", "--"],
            {"argv": ["env", "--name", "--"], "cwd": "/"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_turns_flags_into_a_target(cli: Terminal, flags: list[str], target: dict[str, object]) -> None:
    answer = cli("jobs", "add", "x", "--manual", "--json", *flags)
    assert answer.code == 0, answer.err
    assert {name: answer.json["target"][name] for name in target} == target


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ([], ["target", "missing"]),
        (["--url", "ftp://x"], ["url", "ftp://x"]),
        (["--url", "http://x", "--task", "a:b"], ["--url --task"]),
        (["--url", "http://x", "--every", "5m", "--cron", "* * * * *"], ["--cron --every"]),
        (["--url", "http://x", "--every", "5 apples"], ["--every", "5 apples"]),
        (["--url", "http://x", "--cron", "61 * * * *"], ["cron_expression", "61"]),
        (["--url", "http://x", "--cron", "* * * * *", "--tz", "Mars"], ["timezone", "Mars"]),
        (["--url", "http://x", "--at", "soon"], ["run_at", "soon"]),
        (["--url", "http://x", "--priority", "urgent"], ["--priority", "urgent"]),
        (["--url", "http://x", "--retries", "-1"], ["max_retries", "-1"]),
        (["--url", "http://x", "--overlap", "never"], ["overlap", "never"]),
        (["--url", "http://x", "--config", "{"], ["--config", "{"]),
        (["--url", "http://x", "--config", "[1]"], ["config"]),
        (["--url", "http://x", "--config", "@gone.json"], ["--config", "gone.json"]),
        (["--url", "http://x", "--window", "monday"], ["--window", "monday"]),
        (["--url", "http://x", "--window", "mon-fri 8-18:00"], ["windows[0].start", "8"]),
        (["--url", "http://x", "--daily", "26:00"], ["--daily", "26:00"]),
        (["--url", "http://x", "--after-completion"], ["--after-completion", "--every"]),
        (["--url", "http://x", "--header", "nocolon"], ["--header", "nocolon"]),
        (["--service", "s"], ["--endpoint"]),
        (["--task", "a:b", "--args", "1"], ["--args", "1"]),
        (["--command", "echo 'unclosed"], ["--command", "unclosed"]),
        (["--url", "http://x", "--depends-on", "nobody"], ["depends_on", "nobody"]),
        (["--file", "gone.json"], ["--file", "gone.json"]),
        (["--priorty", "1"], ["--priorty", "--priority"]),
        (["stray", "--url", "http://x"], ["stray"]),
    ],
    ids=" ".join,
)
def test_it_refuses_a_wrong_job_in_one_line(cli: Terminal, flags: list[str], named: list[str]) -> None:
    answer = cli("jobs", "add", "x", *flags)
    assert answer.code == 2, answer.err
    assert answer.out == ""
    lines = [line for line in answer.err.splitlines() if not line.startswith(("hint: ", "making a new"))]
    assert len(lines) == 1
    assert all(part in lines[0] for part in named), lines[0]


def test_it_reads_a_job_from_a_file_and_lets_flags_win(cli: Terminal, folder: Path) -> None:
    body = {
        "name": "filed",
        "url": "http://a.example/",
        "cron_expression": "0 2 * * *",
        "priority": 1,
        "tags": ["a"],
    }
    (folder / "job.json").write_text(json.dumps(body))
    answer = cli("jobs", "add", "-f", "job.json", "--every", "5m", "--priority", "low", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["schedule_type"] == "interval"
    assert (answer.json["name"], answer.json["priority"], answer.json["tags"]) == ("filed", 3, ["a"])


def test_it_adds_several_jobs_from_one_file(cli: Terminal, folder: Path) -> None:
    jobs = [{"name": name, "url": "http://a.example/", "schedule_type": "manual"} for name in "ab"]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    assert cli("jobs", "add", "-f", "jobs.json").code == 0
    assert cli("jobs", "list", "--json").json["total"] == 2
    assert cli("jobs", "add", "-f", "jobs.json", "--tag", "x").code == 2


@pytest.mark.parametrize(
    "text", ["", "{", "1", "[]", '{"name": "x", "url": "http://a/", "colour": "red"}', "\udcff"]
)
def test_it_refuses_a_wrong_file(cli: Terminal, folder: Path, text: str) -> None:
    (folder / "job.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    answer = cli("jobs", "add", "-f", "job.json")
    assert answer.code == 2, answer.err
    assert "--file" in answer.err or "colour" in answer.err


def test_it_only_shows_what_a_dry_run_would_add(cli: Terminal, folder: Path) -> None:
    answer = cli("jobs", "add", "x", "--daily", "02:00", "--url", "http://a.example/", "--dry-run")
    assert answer.code == 0
    assert "At 02:00 every day, UTC" in answer.out
    assert list(folder.iterdir()) == []


def test_it_refuses_a_name_that_is_taken(cli: Terminal) -> None:
    cli("jobs", "add", "x", "--manual", "--url", "http://a.example/")
    answer = cli("jobs", "add", "x", "--manual", "--url", "http://a.example/")
    assert answer.code == 4
    assert "'x'" in answer.err
