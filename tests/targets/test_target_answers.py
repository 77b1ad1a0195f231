from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from typing import Any

import pytest
from yarl import URL

from noonday.domain.outcome import Accepted, Completed, Failed, Result
from noonday.targets.answers import Answer, accepted, full_result, job_result, judge, retry_after
from tests.factories import at

NOW = at("2027-01-01T12:00:00Z")


def an_answer(status: int = 200, body: Any = b"", **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        url=URL("http://host/path?key=secret"), status=status, headers=named, body=data, received=len(data)
    )


def verdict(answer: Answer, *expected: int) -> Completed | Failed:
    return judge(answer, expected, NOW, full_result(answer))


def test_the_result_of_an_answer_is_like_any_other() -> None:
    result = full_result(an_answer(200, {"items_processed": 3}))
    assert result == Result(
        status_code=200,
        bytes_received=22,
        items_processed=3,
        value={"items_processed": 3},
        metadata={"timing_ms": {"first_byte": 0, "total": 0}},
    )
    assert replace(result, exit_code=1) == replace(result, exit_code=1)
    assert (replace(result, exit_code=1).exit_code, result.exit_code) == (1, None)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(FrozenInstanceError):
        result.exit_code = 1  # type: ignore[misc]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    assert isinstance(verdict(an_answer(status)), Completed)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (300, False),
        (301, False),
        (302, False),
        (304, False),
        (307, False),
        (308, False),
        (400, False),
        (401, False),
        (403, False),
        (404, False),
        (405, False),
        (408, True),
        (409, False),
        (410, False),
        (413, False),
        (422, False),
        (425, True),
        (429, True),
        (499, False),
        (500, True),
        (501, True),
        (502, True),
        (503, True),
        (504, True),
        (599, True),
    ],
)
def test_which_failures_are_worth_a_retry(status: int, retryable: bool) -> None:
    outcome = verdict(an_answer(status, b"sorry", retry_after="7"))
    assert isinstance(outcome, Failed)
    assert outcome.retryable is retryable
    assert outcome.retry_after == (timedelta(seconds=7) if retryable else None)
    assert str(status) in outcome.error
    assert "secret" not in outcome.error


def test_the_expected_status_decides_where_one_is_named() -> None:
    assert isinstance(verdict(an_answer(404), 404, 200), Completed)
    assert isinstance(verdict(an_answer(503), 503), Completed)
    outcome = verdict(an_answer(200), 201, 204)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.error == "host answered 200 where 201 or 204 was expected"


def test_a_failure_tells_what_the_target_said() -> None:
    for body in ({"error": "disk full"}, {"detail": "disk full"}, b"  disk\n full "):
        outcome = verdict(an_answer(500, body))
        assert isinstance(outcome, Failed)
        assert outcome.error == "host answered 500: disk full"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 5 ", 5),
        ("0", None),
        ("-5", None),
        ("", None),
        ("soon", None),
        ("1.5", None),
        ("٣", None),
        ("99999999999999999999", 7 * 86400),
        ("864000", 7 * 86400),
        ("Fri, 01 Jan 2027 12:00:30 GMT", 30),
        ("Friday, 01-Jan-27 12:00:30 GMT", 30),
        ("Fri, 01 Jan 2027 11:00:00 GMT", None),
        ("Fri, 01 Jan 2027 13:00:30 +0100", 30),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 7 * 86400),
        ("Fri, 99 Jan 2027", None),
    ],
)
def test_it_reads_retry_after(text: str, seconds: int | None) -> None:
    assert retry_after(text, NOW) == (None if seconds is None else timedelta(seconds=seconds))


def test_a_json_answer_is_kept_as_a_value_and_text_as_text() -> None:
    assert full_result(an_answer(200, {"a": [1]})).value == {"a": [1]}
    result = full_result(
        an_answer(200, "grüße".encode("latin-1"), content_type="text/plain; charset=latin-1")
    )
    assert (result.value, result.output_tail) == (None, "grüße")
    assert full_result(an_answer(200, b"\x89PNG", content_type="image/png")).output_tail is None
    assert full_result(an_answer(200, b"x", content_type="text/plain; charset=nonsense")).output_tail == "x"


def test_what_a_database_would_refuse_is_made_harmless() -> None:
    result = full_result(an_answer(200, b'{"a\\u0000": "b\\u0000", "c": "\\ud800", "d": NaN, "e": 1e999}'))
    assert result.value == {"a␀": "b␀", "c": "?", "d": None, "e": None}
    assert full_result(an_answer(200, b"a\x00b")).output_tail == "a␀b"


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"9" * 5_000, b'{"a":' * 70 + b"1" + b"}" * 70, b"\xff\xfe{"]
)
def test_hostile_json_is_only_text(body: bytes) -> None:
    assert full_result(an_answer(200, body)).value is None
    assert isinstance(job_result(an_answer(200, body), NOW), Completed)


def test_a_value_too_large_to_keep_is_named() -> None:
    result = full_result(an_answer(200, {"a": "x" * 70_000, "itemsProcessed": 3}))
    assert result.value is None
    assert "more than the 65536" in result.metadata["value_dropped"]
    assert result.items_processed == 3


FULL = {"success": True, "itemsProcessed": 5, "itemsSucceeded": 4, "itemsFailed": 1, "metadata": {"batch": 7}}


def test_a_job_result_is_kept_whole() -> None:
    outcome = job_result(an_answer(200, {**FULL, "more": "beyond", "error": "one was odd"}), NOW)
    assert isinstance(outcome, Completed)
    result = outcome.result
    assert (result.items_processed, result.items_succeeded, result.items_failed) == (5, 4, 1)
    assert result.metadata["batch"] == 7
    assert result.value == {"more": "beyond", "error": "one was odd"}


def test_success_false_is_a_failure_worth_a_retry_unless_it_says_otherwise() -> None:
    failed = {**FULL, "success": False, "error": "mail server down"}
    outcome = job_result(an_answer(200, failed, retry_after="9"), NOW)
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.retryable) == ("mail server down", True)
    assert outcome.retry_after == timedelta(seconds=9)
    assert outcome.result.items_failed == 1
    assert outcome.result.metadata["batch"] == 7
    for hopeless in ({**failed, "retryable": False}, {**failed, "metadata": {"retryable": False}}):
        outcome = job_result(an_answer(200, hopeless), NOW)
        assert isinstance(outcome, Failed)
        assert not outcome.retryable


def test_a_status_of_failure_wins_and_the_job_result_is_kept() -> None:
    for success in (True, False):
        outcome = job_result(an_answer(503, {**FULL, "success": success, "error": "busy"}), NOW)
        assert isinstance(outcome, Failed)
        assert outcome.error == "host answered 503: busy"
        assert outcome.retryable
        assert outcome.result.items_processed == 5
    outcome = job_result(an_answer(503, {"success": False, "retryable": False}), NOW)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable


@pytest.mark.parametrize("body", [b"", b"OK", b"<html>", [1], {"items": 3}, "text", b"null"])
def test_a_2xx_without_a_job_result_is_a_success_that_says_so(body: Any) -> None:
    outcome = job_result(an_answer(200, body), NOW)
    assert isinstance(outcome, Completed)
    assert "job_result_missing" in outcome.result.metadata


@pytest.mark.parametrize("success", ["true", 1, 0, None, {}])
def test_a_success_that_is_no_boolean_is_a_failure_without_retry(success: Any) -> None:
    outcome = job_result(an_answer(200, {"success": success}), NOW)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable


@pytest.mark.parametrize("number", [-1, 2**40, "5", True, 1.5, None, [], float("nan")])
def test_a_count_that_is_none_is_left_out(number: Any) -> None:
    outcome = job_result(an_answer(200, {"success": True, "itemsProcessed": number}), NOW)
    assert outcome.result.items_processed is None


def test_202_takes_heartbeat_and_cancel_url_from_the_answer() -> None:
    given = accepted(an_answer(202, {"cancel_url": "/runs/7", "heartbeat_seconds": 15}), 60)
    assert given == Accepted(
        heartbeat=timedelta(seconds=15), cancel_url="http://host/runs/7", result=given.result
    )
    plain = accepted(an_answer(202), 60)
    assert (plain.heartbeat, plain.cancel_url) == (timedelta(seconds=60), None)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(0, 60), (-3, 60), ("5", 60), (True, 60), (0.2, 1), (2.5, 2.5), (10**8, 86400), (1e300, 60)],
)
def test_a_heartbeat_is_within_bounds(given: Any, seconds: float) -> None:
    assert accepted(an_answer(202, {"heartbeat_seconds": given}), 60).heartbeat == timedelta(seconds=seconds)
