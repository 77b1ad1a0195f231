"""`noonday triggers`: list, add, remove, test and fire, in a terminal without a server."""

from __future__ import annotations

import io
import sys

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def job(cli: Terminal) -> str:
    assert cli("jobs", "add", "crawl", "--manual", "--", "echo", "hello").code == 0
    return "crawl"


def test_it_adds_lists_and_removes(cli: Terminal, job: str) -> None:
    assert cli("triggers").err.strip() == "no triggers"
    answer = cli("triggers", "add", job, "--webhook", "sources/*/crawl", "--channel", "content:new", "--json")
    assert answer.code == 0
    assert answer.err.splitlines() == [
        "crawl waits for the webhook /sources/*/crawl",
        "crawl waits for the channel content:new",
    ]
    assert (answer.json["pattern"], answer.json["channel"]) == ("/sources/*/crawl", "content:new")
    lines = cli("triggers", "list").out.splitlines()
    assert "/sources/*/crawl" in lines[2]
    assert "content:new" in lines[3]
    shown = cli("triggers", "ls", "--json", "--kind", "webhook").json
    assert [found["job_name"] for found in shown["webhooks"]] == ["crawl"]
    assert (shown["webhooks_count"], "channels" in shown) == (1, False)
    assert cli("triggers", "remove", job).code == 2  # nobody can be asked
    answer = cli("triggers", "rm", job, "--yes", "--json")
    assert answer.err.strip() == "crawl waits for nothing from outside"
    assert answer.json["webhook"] == "/sources/*/crawl"
    assert cli("triggers").err.strip() == "no triggers"


def test_it_tries_a_path_and_calls_it(cli: Terminal, job: str) -> None:
    cli("triggers", "add", job, "--webhook", "/sources/**")
    answer = cli("triggers", "test", "sources/42")
    assert "would run" in answer.out
    assert answer.err.strip() == "1 job would hear of /sources/42"
    assert cli("triggers", "test", "/other").err.strip() == "no jobs would hear of /other"
    assert cli("history").err.strip() == "no executions"
    first = cli("triggers", "fire", "/sources/42", "--data", '{"a": 1}', "--id", "x1", "--json").json
    assert (first["matched"], first["replayed"]) == (1, False)
    again = cli("triggers", "fire", "/sources/42", "--id", "x1")
    assert "queued" in again.out
    assert again.err.strip() == ("1 job waited for /sources/42; it came before, and nothing was started now")
    [run] = cli("history", "--json").json["executions"]
    assert run["id"] == first["executions"][0]["execution_id"]
    assert run["config"] == {"a": 1, "webhook_path": "/sources/42"}


def test_it_reads_what_the_call_brings_from_stdin(
    cli: Terminal, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("triggers", "add", job, "--webhook", "/a")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello")))
    assert cli("triggers", "fire", "/a", "--data", "-").code == 0
    [run] = cli("history", "--json").json["executions"]
    assert run["config"]["message"] == "hello"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["add", "crawl"], 2),
        (["add", "crawl", "--webhook", "/a*"], 2),
        (["add", "crawl", "--channel", ""], 2),
        (["add", "crawling", "--webhook", "/a"], 3),
        (["remove", "crawl", "--yes"], 3),
        (["remove", "nobody", "--yes"], 3),
        (["list", "--kind", "mail"], 2),
        (["list", "--limit", "0"], 2),
        (["test", "/a/../b"], 2),
        (["fire", "/a/../b"], 2),
        (["fire", "/a", "--id", "a.b"], 2),
        (["fire", "/a", "--data", "x" * ((1 << 20) + 1)], 2),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else str(value),
)
def test_it_says_what_is_wrong(cli: Terminal, job: str, words: list[str], code: int) -> None:
    answer = cli("triggers", *words)
    assert answer.code == code, answer.err
    assert answer.err.startswith("noonday: ")
