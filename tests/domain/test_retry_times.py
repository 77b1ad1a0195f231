"""Retry times: doubling, the ceiling of an hour, jitter, and the target's own wish."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.job import RetryPolicy
from noonday.domain.retry import LONGEST_DELAY, LONGEST_WISH, retry_at, retry_delay
from tests.factories import NOON

chances = st.floats(min_value=0, max_value=1, exclude_max=True)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 60), (2, 120), (3, 240), (4, 480), (5, 960), (6, 1920), (7, 3600), (8, 3600), (10_000, 3600)],
)
def test_the_delay_doubles_up_to_an_hour(failures: int, seconds: int) -> None:
    assert retry_delay(RetryPolicy(), failures, chance=0.9) == timedelta(seconds=seconds)


@pytest.mark.parametrize("backoff", [timedelta(), timedelta(microseconds=1), timedelta(days=999_999_999)])
@pytest.mark.parametrize("failures", [0, 1, 2, 33, 34, 10**9])
def test_the_delay_is_between_zero_and_an_hour_for_any_numbers(backoff: timedelta, failures: int) -> None:
    assert timedelta() <= retry_delay(RetryPolicy(backoff=backoff), failures, 0.5) <= LONGEST_DELAY


@given(failures=st.integers(1, 1000), chance=chances)
def test_full_jitter_is_a_share_of_the_plain_delay(failures: int, chance: float) -> None:
    plain = retry_delay(RetryPolicy(), failures, chance)
    jittered = retry_delay(RetryPolicy(jitter=True), failures, chance)
    assert timedelta() <= jittered <= plain
    assert abs(jittered - plain * chance) < timedelta(milliseconds=1)


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_there_are_as_many_retries_as_the_policy_says(max_retries: int) -> None:
    policy = RetryPolicy(max_retries=max_retries)
    tries = [retry_at(policy, failures, NOON, None, 0.0) for failures in range(1, max_retries + 3)]
    assert all(tries[:max_retries])
    assert tries[max_retries:] == [None, None]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (None, timedelta(seconds=60)),
        (timedelta(seconds=10), timedelta(seconds=60)),
        (timedelta(seconds=90), timedelta(seconds=90)),
        (timedelta(hours=3), timedelta(hours=3)),
        (timedelta(days=999_999_999), LONGEST_WISH),
        (timedelta(seconds=-5), timedelta(seconds=60)),
    ],
)
def test_the_targets_wish_counts_where_it_is_longer(wish: timedelta | None, expected: timedelta) -> None:
    assert retry_at(RetryPolicy(), 1, NOON, wish, 0.0) == NOON + expected


@given(failures=st.integers(1, 50), chance=chances, wish=st.none() | st.timedeltas())
def test_a_retry_is_never_in_the_past(failures: int, chance: float, wish: timedelta | None) -> None:
    again = retry_at(RetryPolicy(max_retries=50, jitter=True), failures, NOON, wish, chance)
    assert again is not None
    assert again >= NOON
