"""`noonday jobs list -q`, `noonday history -q` and `noonday jobs bulk`."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def three(cli: Terminal) -> Terminal:
    for name, tag in (("one", "night"), ("two", "night"), ("three", "day")):
        assert cli("jobs", "add", name, "--every", "1h", "--tag", tag, "--", "true").code == 0
    return cli


def test_it_searches_jobs_and_executions(three: Terminal) -> None:
    found = three("jobs", "list", "-q", "tag:night -name:two", "--json").json
    assert [job["name"] for job in found["jobs"]] == ["one"]
    assert three("jobs", "run", "two").code == 0
    runs = three("history", "--query", "job:t* cause:manual", "--json").json
    assert runs["total"] == 1
    assert three("history", "-q", "job:one", "--json").json["total"] == 0
    for words in (("jobs", "list"), ("history",), ("breakers",)):
        wrong = three(*words, "-q", "x stauts:failed")
        assert wrong.code == 2
        assert "--query: 'stauts:failed' at character 3" in wrong.err


def test_it_lists_and_then_does(three: Terminal) -> None:
    seen = three("jobs", "bulk", "pause", "-q", "tag:night", "--dry-run")
    assert (seen.code, "would pause 2 jobs" in seen.err) == (0, True)
    assert "one" in seen.out
    assert "three" not in seen.out
    shown = three("jobs", "bulk", "pause", "-q", "tag:night", "--dry-run", "--json").json
    assert (shown["dry_run"], shown["matched"]) == (True, 2)

    asked = three("jobs", "bulk", "pause", "-q", "tag:night")
    assert asked.code == 2
    assert "Pause 2 jobs (one, two)?" in asked.err

    done = three("jobs", "bulk", "pause", "-q", "tag:night", "--yes", "--json")
    assert (done.code, done.json["done"]) == (0, 2)
    assert "paused 2 of 2 jobs" in done.err
    again = three("jobs", "bulk", "pause", "--all", "-y")
    assert "paused 1 of 3 jobs, 2 so already" in again.err


def test_it_tells_which_failed(three: Terminal) -> None:
    answer = three("jobs", "bulk", "delete", "one", "nobody", "--yes")
    assert answer.code == 4
    assert "deleted 1 of 1 job" in answer.err
    assert "nobody: there is no job 'nobody'" in answer.err


def test_it_wants_to_know_which_jobs_and_what(three: Terminal) -> None:
    assert "--query: is empty" in three("jobs", "bulk", "pause", "--yes").err
    assert "did you mean pause?" in three("jobs", "bulk", "puse", "--all").err
    nothing = three("jobs", "bulk", "pause", "-q", "tag:other")
    assert (nothing.code, "nothing was done" in nothing.err) == (0, True)
