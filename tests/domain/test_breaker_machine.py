"""The breaker: its rules by example, and any sequence of calls and answers as a state machine."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from noonday.domain.breaker import (
    CLOSED,
    Breaker,
    BreakerPolicy,
    BreakerState,
    Heard,
    Probe,
    allow,
    hear,
    probed,
    record,
    worst,
)
from tests.factories import NOON

POLICY = BreakerPolicy(threshold=3, open_for=timedelta(seconds=60), probe_lease=timedelta(seconds=20))
SECOND = timedelta(seconds=1)


def opened() -> Breaker:
    breaker = CLOSED
    for _ in range(POLICY.threshold):
        breaker = record(breaker, POLICY, False, NOON)
    return breaker


def test_the_default_policy_is_five_failures_and_sixty_seconds() -> None:
    assert (BreakerPolicy().threshold, BreakerPolicy().open_for) == (5, timedelta(seconds=60))


def test_it_opens_at_the_threshold_and_not_before() -> None:
    breaker = CLOSED
    for _ in range(POLICY.threshold - 1):
        breaker = record(breaker, POLICY, False, NOON)
        assert allow(breaker, POLICY, NOON) == (breaker, True, None)
    breaker = record(breaker, POLICY, False, NOON)
    assert allow(breaker, POLICY, NOON) == (breaker, False, NOON + POLICY.open_for)


def test_a_success_between_failures_starts_the_count_anew() -> None:
    breaker = record(record(CLOSED, POLICY, False, NOON), POLICY, False, NOON)
    breaker = record(breaker, POLICY, True, NOON)
    assert breaker == CLOSED
    assert record(breaker, POLICY, False, NOON).state is BreakerState.CLOSED


def test_one_probe_goes_out_when_the_time_is_over() -> None:
    due = NOON + POLICY.open_for
    assert allow(opened(), POLICY, due - SECOND)[1] is False
    probing, allowed, _ = allow(opened(), POLICY, due)
    assert allowed
    assert allow(probing, POLICY, due) == (probing, False, due + POLICY.probe_lease)


def test_a_probe_that_fell_silent_is_followed_by_another() -> None:
    due = NOON + POLICY.open_for
    probing, _, _ = allow(opened(), POLICY, due)
    _, allowed, _ = allow(probing, POLICY, due + POLICY.probe_lease)
    assert allowed


@pytest.mark.parametrize(("ok", "state"), [(True, BreakerState.CLOSED), (False, BreakerState.OPEN)])
def test_the_probe_decides(ok: bool, state: BreakerState) -> None:
    due = NOON + POLICY.open_for
    probing, _, _ = allow(opened(), POLICY, due)
    after = probed(probing, the_probe_of(probing, ok), due + SECOND)
    assert after.state is state
    assert after.opened_at == (None if ok else due + SECOND)
    assert after.probe_until is None


@pytest.mark.parametrize("ok", [True, False])
def test_calls_sent_before_it_opened_do_not_decide_for_the_probe(ok: bool) -> None:
    """Their time-outs come back long after, when the target may have recovered."""
    probing, _, _ = allow(opened(), POLICY, NOON + POLICY.open_for)
    assert record(probing, POLICY, ok, NOON + POLICY.open_for + SECOND) == probing


@pytest.mark.parametrize("ok", [True, False, None])
def test_a_probe_whose_place_another_has_taken_decides_nothing(ok: bool | None) -> None:
    first, _, _ = allow(opened(), POLICY, NOON + POLICY.open_for)
    second, _, _ = allow(first, POLICY, NOON + POLICY.open_for + POLICY.probe_lease)
    assert probed(second, the_probe_of(first, ok), NOON + 2 * POLICY.open_for) == second
    assert probed(opened(), the_probe_of(first, ok), NOON + 2 * POLICY.open_for) == opened()


def test_a_probe_that_was_stopped_makes_room_for_the_next_at_once() -> None:
    due = NOON + POLICY.open_for
    probing, _, _ = allow(opened(), POLICY, due)
    after = probed(probing, the_probe_of(probing, None), due + SECOND)
    assert after == opened()
    assert allow(after, POLICY, due + SECOND)[1]


def the_probe_of(breaker: Breaker, ok: bool | None) -> Probe:
    assert breaker.probe_until is not None
    return Probe(until=breaker.probe_until, ok=ok)


@pytest.mark.parametrize(
    ("told", "failures"),
    [
        ([Heard(failures=1), Heard(failures=1)], 2),
        ([Heard(failures=2), Heard(ok=True), Heard(failures=1)], 1),
        ([Heard(ok=True), Heard(failures=2)], 2),
        ([Heard(failures=2), Heard(ok=True)], 0),
    ],
)
def test_what_is_told_together_counts_as_told_one_by_one(told: list[Heard], failures: int) -> None:
    one_by_one, together = CLOSED, Heard()
    for heard in told:
        one_by_one = hear(one_by_one, POLICY, heard, NOON)
        together = together.then(heard)
    assert hear(CLOSED, POLICY, together, NOON) == one_by_one == Breaker(failures=failures)


def test_a_thousand_failures_open_it_as_three_do() -> None:
    assert hear(CLOSED, POLICY, Heard(failures=1000, error="refused"), NOON) == opened()


def test_the_worst_of_all_is_shown() -> None:
    closed, half, is_open = BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN
    assert worst(set()) is worst({closed}) is closed
    assert worst({closed, half}) is half
    assert worst({closed, half, is_open}) is is_open


@pytest.mark.parametrize("ok", [True, False])
def test_late_answers_change_nothing_while_it_is_open(ok: bool) -> None:
    assert record(opened(), POLICY, ok, NOON + SECOND) == opened()


class AnyCallsAndAnswers(RuleBasedStateMachine):
    """A model that counts what the outside can see, beside the breaker."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CLOSED
        self.now = NOON
        self.in_a_row = 0  # failures answered since the last success, seen while closed
        self.opened_at = NOON

    @rule(seconds=st.integers(1, 100))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def a_call(self) -> None:
        before = self.breaker
        self.breaker, allowed, ask_again = allow(before, POLICY, self.now)
        if before.state is BreakerState.CLOSED:
            assert allowed
            assert self.breaker == before
        elif allowed:
            assert self.breaker.state is BreakerState.HALF_OPEN
            assert self.now >= self.opened_at + POLICY.open_for
        else:
            assert self.breaker == before
        assert (ask_again is None) is allowed
        if ask_again is not None:
            assert self.now < ask_again <= self.now + POLICY.open_for
            assert allow(self.breaker, POLICY, ask_again)[1], "asking again at that time must help"

    @rule(ok=st.booleans())
    def an_answer(self, ok: bool) -> None:
        before = self.breaker
        self.breaker = record(before, POLICY, ok, self.now)
        if before.state is not BreakerState.CLOSED:
            assert self.breaker == before
            return
        self.in_a_row = 0 if ok else self.in_a_row + 1
        if self.breaker.state is BreakerState.OPEN:
            self.opened_at = self.now

    @rule(ok=st.sampled_from([True, False, None]))
    @precondition(lambda self: self.breaker.state is BreakerState.HALF_OPEN)
    def the_end_of_the_probe(self, ok: bool | None) -> None:
        self.breaker = probed(self.breaker, the_probe_of(self.breaker, ok), self.now)
        if ok:
            self.in_a_row = 0
        elif ok is False:
            self.opened_at = self.now

    @rule()
    @precondition(lambda self: self.breaker.state is not BreakerState.CLOSED)
    def it_recovers_when_the_target_does(self) -> None:
        later = self.now + POLICY.open_for + POLICY.probe_lease
        probing, allowed, _ = allow(self.breaker, POLICY, later)
        assert allowed
        assert probed(probing, the_probe_of(probing, True), later) == CLOSED

    @invariant()
    def its_fields_fit_its_state(self) -> None:
        breaker = self.breaker
        assert (breaker.opened_at is None) is (breaker.state is BreakerState.CLOSED)
        assert (breaker.probe_until is not None) is (breaker.state is BreakerState.HALF_OPEN)
        if breaker.state is BreakerState.CLOSED:
            assert breaker.failures == self.in_a_row < POLICY.threshold
        else:
            assert breaker.failures >= POLICY.threshold


TestAnyCallsAndAnswers = AnyCallsAndAnswers.TestCase
