"""`noonday audit`: the trail, and back to an earlier revision."""

from __future__ import annotations

import getpass

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def changed(cli: Terminal) -> None:
    assert cli("jobs", "add", "beat", "--every", "30s", "--", "echo", "one").code == 0
    assert cli("jobs", "pause", "beat").code == 0
    assert cli("jobs", "resume", "beat").code == 0


@pytest.mark.usefixtures("changed")
def test_it_lists_who_did_what(cli: Terminal) -> None:
    answer = cli("audit", "beat", "--utc")
    assert answer.code == 0
    assert answer.err.strip() == "3 changes"
    assert all(f" {word} " in answer.out for word in ("create", "pause", "resume"))
    assert getpass.getuser() in answer.out
    assert "paused: false → true" in answer.out


@pytest.mark.usefixtures("changed")
def test_it_answers_programs_in_the_words_of_the_api(cli: Terminal) -> None:
    shown = cli("audit", "--json", "--action", "pause").json
    assert shown["total"] == 1
    assert (shown["entries"][0]["action"], shown["entries"][0]["revision"]) == ("pause", 2)
    assert cli("audit", "list", "--json", "-q", "action:create,resume", "-n", "1").json["total"] == 2


@pytest.mark.usefixtures("changed")
def test_it_goes_back(cli: Terminal) -> None:
    assert cli("jobs", "bulk", "disable", "-q", "name:beat", "--yes").code == 0
    rehearsed = cli("audit", "revert", "beat", "3", "--dry-run")
    assert rehearsed.code == 0, rehearsed.err
    assert "schedule_enabled: false → true" in rehearsed.err
    assert cli("jobs", "show", "beat", "--json").json["schedule_enabled"] is False
    answer = cli("audit", "revert", "beat", "3")
    assert answer.err.strip() == "beat is as it was in revision 3, now revision 5"
    assert cli("jobs", "show", "beat", "--json").json["schedule_enabled"] is True
    assert cli("audit", "beat", "--json", "--action", "revert").json["total"] == 1


@pytest.mark.usefixtures("changed")
def test_it_says_what_is_wrong(cli: Terminal) -> None:
    answer = cli("audit", "beet")
    assert answer.code == 3
    assert "beat" in answer.err
    assert cli("audit", "revert", "beat", "99").code == 3
    assert cli("audit", "--limit", "0").code == 2
    assert cli("audit", "-q", "nonsense:1").code == 2
