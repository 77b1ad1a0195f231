"""`noonday services`: the table, the JSON, set and remove."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal


def test_it_stores_and_shows_services(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = cli("services", "set", "crawler-service", "https://crawler.example/", "--description", "pages")
    assert answer.code == 0
    assert answer.err.splitlines()[-1] == "crawler-service lives at https://crawler.example"
    monkeypatch.setenv("EMAIL_SERVICE_URL", "http://user:hunter2@localhost:7006")
    shown = cli("services")
    lines = shown.out.splitlines()
    assert lines[2].split() == ["crawler-service", "https://crawler.example", "stored", "pages"]
    assert lines[3].split()[0] == "email-service"
    assert "EMAIL_SERVICE_URL" in lines[3]
    assert "hunter2" not in shown.out
    assert shown.err.strip() == "2 services"
    found = cli("services", "list", "--json").json
    assert (found["total"], found["services"][1]["read_only"]) == (2, True)
    moved = cli("services", "set", "crawler-service", "https://other.example", "--json").json
    assert (moved["url"], moved["description"]) == ("https://other.example", "pages")


def test_it_forgets_one_if_it_is_told_so(cli: Terminal) -> None:
    cli("services", "set", "mail", "https://mail.example")
    assert cli("services", "remove", "mail").code == 2
    assert cli("services", "--json").json["total"] == 1
    answer = cli("services", "rm", "mail", "--yes")
    assert (answer.code, answer.err.strip()) == (0, "forgot where mail lives")
    assert cli("services").err.strip() == "no services"


def test_it_says_what_is_wrong(cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("migrate").code == 0
    for name, url in (
        ("mail", "mail.example"),
        ("a b", "https://a.example"),
        ("mail", "https://a.example?b"),
    ):
        answer = cli("services", "set", name, url)
        assert answer.code == 2, answer.err
    monkeypatch.setenv("NETWORK_MODE", "strict")
    assert "is refused" in cli("services", "set", "mail", "http://127.0.0.1:1").err
    monkeypatch.setenv("EMAIL_SERVICE_URL", "http://localhost:7006")
    taken = cli("services", "set", "email", "https://mail.example")
    assert taken.code == 4
    assert "EMAIL_SERVICE_URL" in taken.err
    assert cli("services", "remove", "nobody", "--yes").code == 3
