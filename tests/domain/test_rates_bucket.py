"""The token bucket: never more than it says in any span, and never less than it promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.rates import Bucket, Rate, take, whole_seconds

RATE = Rate(calls=3, seconds=60)
RATES = st.builds(Rate, calls=st.integers(1, 50), seconds=st.sampled_from([1.0, 10.0, 60.0]))
GAPS = st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=60)


def calls(rate: Rate, gaps: list[float]) -> list[float]:
    """The moments at which calls passed, one try after each gap."""
    bucket: Bucket | None = None
    at, passed = 1000.0, []
    for gap in gaps:
        at += gap
        taking = take(bucket, rate, at)
        bucket = taking.bucket
        if not taking.wait:
            passed.append(at)
    return passed


def test_it_lets_so_many_pass_at_once_and_then_one_by_one() -> None:
    assert calls(RATE, [0.0] * 5) == [1000.0] * 3
    assert calls(RATE, [0.0] * 4 + [19.9, 0.2, 0.0]) == [1000.0] * 3 + [pytest.approx(1020.1)]


def test_it_says_how_long_to_wait_and_when_it_is_full() -> None:
    bucket: Bucket | None = None
    seen = []
    for _ in range(4):
        taking = take(bucket, RATE, 0.0)
        bucket = taking.bucket
        seen.append((taking.wait, taking.full_in))
    assert seen == [(0.0, 20.0), (0.0, 40.0), (0.0, 60.0), (20.0, 60.0)]
    assert take(bucket, RATE, 500.0).bucket == Bucket(2.0, 500.0)  # never more than full


def test_it_gives_nothing_for_a_clock_that_goes_back() -> None:
    assert take(Bucket(0.0, 100.0), RATE, 40.0).wait == 20.0


@pytest.mark.parametrize(
    ("span", "seconds"), [(0.0, 0), (1e-9, 0), (0.01, 1), (20.000000001, 20), (20.1, 21)]
)
def test_it_rounds_up_what_a_caller_has_to_wait(span: float, seconds: int) -> None:
    assert whole_seconds(span) == seconds


@given(RATES, GAPS)
def test_it_never_lets_more_pass_in_any_span_than_the_rate_allows(rate: Rate, gaps: list[float]) -> None:
    passed = calls(rate, gaps)
    for first, start in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= rate.calls + (end - start) * rate.per_second + 1e-6


@given(RATES, GAPS)
def test_it_lets_whoever_waited_as_told_pass(rate: Rate, gaps: list[float]) -> None:
    bucket: Bucket | None = None
    at = 0.0
    for gap in gaps:
        at += gap / 10
        taking = take(bucket, rate, at)
        bucket = taking.bucket
        if taking.wait:
            at += taking.wait + 1e-6
            taking = take(bucket, rate, at)
            assert taking.wait == 0
            bucket = taking.bucket
