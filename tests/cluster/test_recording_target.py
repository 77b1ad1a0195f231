"""The witness is tried too: it notes who called for what and when, and misbehaves as told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.client import RemoteDisconnected
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from demo.narrator import account
from tests.cluster.history import Arrival
from tests.cluster.target import Manners, RecordingTarget


@pytest.fixture
def target() -> Iterator[RecordingTarget]:
    with RecordingTarget() as made:
        yield made


def call(target: RecordingTarget, job: str) -> int:
    headers = {
        "Idempotency-Key": "e1",
        "X-Scheduler-Attempt": "2",
        "X-Scheduled-For": "2027-01-31T02:00:00Z",
    }
    with urlopen(Request(target.of(job), b"{}", headers), timeout=5) as answer:
        status: int = answer.status
        return status


def test_it_notes_who_called_for_what_and_when(target: RecordingTarget) -> None:
    before = time.time()
    assert call(target, "nightly") == 200
    [seen] = target.arrivals()
    assert (seen.execution, seen.attempt, seen.job, seen.due) == ("e1", 2, "nightly", 1801360800.0)
    assert before <= seen.at <= (seen.ended or 0) <= time.time()
    assert seen.succeeded


def test_it_is_slow_and_fails_when_told(target: RecordingTarget) -> None:
    target.treat("bad", Manners(delay=0.2, status=503))
    with pytest.raises(HTTPError) as refused:
        call(target, "bad")
    refused.value.close()
    [seen] = target.arrivals()
    assert seen.status == 503
    assert not seen.succeeded
    assert (seen.ended or 0) - seen.at >= 0.2


def test_it_hangs_up_without_an_answer_when_told(target: RecordingTarget) -> None:
    target.treat("rude", Manners(hangs_up=True))
    with pytest.raises((RemoteDisconnected, ConnectionError)):
        call(target, "rude")
    [seen] = target.arrivals()
    assert seen.status is None


def test_the_demonstration_counts_what_is_missing_and_what_came_twice() -> None:
    arrivals = [
        Arrival(execution=f"e{due}", attempt=1, job="pulse", due=float(due), at=due + 0.1)
        for due in (100, 102, 102, 108)
    ]
    assert account("pulse", 2, arrivals) == "pulse: 5 due, 3 arrived, 2 lost, 1 delivered again"
