"""The judge is judged first: made-up histories, each bad in one way, must be found bad in that way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cluster.checker import CALM, check
from tests.cluster.history import Arrival, Bounds, Fault, History, Poll, Row, Try, Watched
from tests.cluster.report import table

BOUNDS = Bounds(calm=2.0, early=0.05, orphan=9.0, polls=8.0)
KILLED = Fault(name="killed", began=1005.0, ended=1005.0, within=8.0)
DUES = tuple(float(due) for due in range(1000, 1030))


def good(job: str = "a", faults: tuple[Fault, ...] = (KILLED,)) -> History:
    """Thirty seconds of a job that fires each second, 20 ms late, and takes 100 ms."""
    arrivals = [
        Arrival(
            execution=f"{job}{due:.0f}",
            attempt=1,
            job=job,
            due=due,
            at=due + 0.02,
            ended=due + 0.12,
            status=200,
        )
        for due in DUES
    ]
    rows = [
        Row(
            execution=one.execution,
            job=job,
            due=one.due,
            state="completed",
            tries=(Try(number=1, outcome="completed", ended=one.due + 0.13),),
        )
        for one in arrivals
    ]
    polls = [Poll(at=due, answered=frozenset("xyz"), leaders=frozenset("x")) for due in DUES]
    return History(
        watched=(Watched(job=job, dues=DUES),),
        arrivals=tuple(arrivals),
        rows=tuple(rows),
        faults=faults,
        polls=tuple(polls),
    )


def with_row(history: History, due: float, **changes: object) -> History:
    rows = tuple(replace(row, **changes) if row.due == due else row for row in history.rows)  # type: ignore[arg-type]
    return replace(history, rows=rows)


def with_arrival(history: History, due: float, **changes: object) -> History:
    arrivals = tuple(replace(one, **changes) if one.due == due else one for one in history.arrivals)  # type: ignore[arg-type]
    return replace(history, arrivals=arrivals)


def without_arrival(history: History, due: float) -> History:
    return replace(history, arrivals=tuple(one for one in history.arrivals if one.due != due))


def again(history: History, due: float, at: float, attempt: int = 2, **changes: object) -> History:
    """The execution of this due time arrives once more."""
    first = next(one for one in history.arrivals if one.due == due)
    more = replace(first, at=at, ended=at + 0.1, attempt=attempt, **changes)  # type: ignore[arg-type]
    return replace(history, arrivals=(*history.arrivals, more))


def orphaned(history: History, due: float, lost_at: float, at: float) -> History:
    """Its worker died at work: the first request had no end of its own, the second came after the lease."""
    tries = (
        Try(number=1, outcome="lost", ended=lost_at),
        Try(number=2, outcome="completed", ended=at + 0.1),
    )
    made = again(history, due, at)
    return with_row(replace(made, arrivals=_open(made, due)), due, tries=tries)


def _open(history: History, due: float) -> tuple[Arrival, ...]:
    return tuple(
        replace(one, ended=None, status=None) if one.due == due and one.attempt == 1 else one
        for one in history.arrivals
    )


def without_row(history: History) -> History:
    return replace(history, rows=tuple(row for row in history.rows if row.due != 1020))


def second_row(history: History) -> History:
    return replace(
        history, rows=(*history.rows, Row(execution="other", job="a", due=1020.0, state="completed"))
    )


def second_id(history: History) -> History:
    twin = next(one for one in history.arrivals if one.due == 1020)
    return replace(history, arrivals=(*history.arrivals, replace(twin, execution="other")))


def polled(history: History, at: float, *leaders: frozenset[str]) -> History:
    polls = {poll.at: poll for poll in history.polls}
    for number, found in enumerate(leaders):
        polls[at + number] = Poll(at=at + number, answered=frozenset("xyz"), leaders=found)
    return replace(history, polls=tuple(polls[key] for key in sorted(polls)))


TWO, NONE = frozenset("xy"), frozenset[str]()

BAD: dict[str, tuple[Callable[[History], History], str]] = {
    "a due time without a row": (without_row, "lost"),
    "a row that never arrived": (lambda h: without_arrival(h, 1020), "lost"),
    "two rows for one slot": (second_row, "doubled"),
    "two ids for one slot": (second_id, "doubled"),
    "a skip of a job that must run": (
        lambda h: without_arrival(with_row(h, 1006, state="skipped", skip_reason="coalesced"), 1006),
        "skipped",
    ),
    "a completed row and a failed request": (lambda h: with_arrival(h, 1020, status=500), "false success"),
    "a completed row and no answer": (lambda h: with_arrival(h, 1020, status=None), "false success"),
    "a failed row and a good answer": (lambda h: with_row(h, 1020, state="failed"), "false failure"),
    "a request that no row knows": (lambda h: with_arrival(h, 1020, execution="ghost"), "unknown"),
    "a request that is told as skipped": (lambda h: with_row(h, 1020, state="skipped"), "unknown"),
    "a row that still runs": (lambda h: with_row(h, 1020, state="running"), "stuck"),
    "a row that still waits": (lambda h: with_row(h, 1006, state="queued"), "stuck"),
    "one attempt sent twice": (lambda h: again(h, 1006, 1006.5, attempt=1), "two leases"),
    "a second attempt beside a living one": (lambda h: again(h, 1006, 1006.05), "two leases"),
    "a second attempt before the lease was over": (
        lambda h: orphaned(h, 1005, lost_at=1009.5, at=1009.0),
        "two leases",
    ),
    "a redelivery without a fault": (lambda h: again(h, 1028, 1028.5), "redelivered"),
    "a fire before its time": (lambda h: with_arrival(h, 1020, at=1019.9), "early"),
    "a late fire without a fault": (lambda h: with_arrival(h, 1020, at=1022.5, ended=1022.6), "late"),
    "a fire later than the fault allows": (lambda h: with_arrival(h, 1005, at=1013.5, ended=1014.0), "late"),
    "two leaders in a row": (lambda h: polled(h, 1020.0, TWO, TWO), "two leaders"),
    "two leaders in a row near a fault": (lambda h: polled(h, 1005.0, TWO, TWO), "two leaders"),
    "no leader in a row": (lambda h: polled(h, 1020.0, NONE, NONE), "no leader"),
}


@pytest.mark.parametrize(("spoil", "kind"), BAD.values(), ids=BAD.keys())
def test_it_finds_what_is_bad(spoil: Callable[[History], History], kind: str) -> None:
    assert kind in check(spoil(good()), BOUNDS).kinds


def test_it_finds_nothing_in_a_good_history() -> None:
    report = check(good(), BOUNDS)
    assert report.violations == ()
    assert report.figures[CALM].due + report.figures["killed"].due == 30
    assert report.figures["killed"].due == 10  # 1004 to 1013


ALLOWED: dict[str, Callable[[History], History]] = {
    "late within the bound of a fault": lambda h: with_arrival(h, 1005, at=1012.9, ended=1013.0),
    "a handful of milliseconds early": lambda h: with_arrival(h, 1020, at=1019.96),
    "an orphan that runs again after its lease": lambda h: orphaned(h, 1005, lost_at=1009.0, at=1009.1),
    "a redelivery after a fault": lambda h: again(h, 1006, 1009.0),
    "a retry after a failure": lambda h: again(with_arrival(h, 1020, status=500), 1020, 1022.0, status=200),
    "no leader after a fault": lambda h: polled(h, 1006.0, NONE, NONE, NONE),
    "two leaders in one poll": lambda h: polled(h, 1020.0, TWO),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED.keys())
def test_it_allows_what_a_fault_explains(change: Callable[[History], History]) -> None:
    assert check(change(good()), BOUNDS).violations == ()


def test_it_allows_a_job_to_skip_for_its_own_reasons_near_a_fault_and_counts_it() -> None:
    lapse = Row(
        execution="lapse", job="a", due=1005.0, through=1008.0, state="skipped", skip_reason="coalesced"
    )
    history = good()
    rows = tuple(row for row in history.rows if not 1005 <= row.due <= 1008)
    arrivals = tuple(one for one in history.arrivals if not 1005 <= one.due <= 1008)
    history = replace(history, rows=(*rows, lapse), arrivals=arrivals)
    assert check(history, BOUNDS).kinds == {"skipped"}

    lenient = (Watched(job="a", dues=DUES, may_skip=frozenset({"coalesced"})),)
    report = check(replace(history, watched=lenient), BOUNDS)
    assert report.violations == ()
    assert report.figures["killed"].skipped == 4
    assert check(replace(history, watched=lenient, faults=()), BOUNDS).kinds == {"skipped"}


def test_it_allows_an_overlap_without_a_fault_only_if_the_run_before_was_still_going() -> None:
    history = without_arrival(with_row(good(), 1021, state="skipped", skip_reason="overlap", tries=()), 1021)
    lenient = (Watched(job="a", dues=DUES, may_skip=frozenset({"overlap"})),)
    history = replace(history, watched=lenient)
    assert check(history, BOUNDS).kinds == {"skipped"}
    slow = with_row(history, 1020, tries=(Try(number=1, outcome="completed", ended=1021.1),))
    assert check(slow, BOUNDS).violations == ()


def test_it_lets_what_waits_because_of_one_fault_be_met_by_the_next() -> None:
    late = with_arrival(good(), 1005, at=1017.9, ended=1018.0)
    for began, kinds in ((1012.0, set()), (1014.0, {"late"})):
        another = Fault(name="wiped", began=began, ended=began, within=6.0)
        assert check(replace(late, faults=(another, KILLED)), BOUNDS).kinds == kinds
    alone = with_arrival(good(faults=()), 1005, at=1006.9, ended=1007.0)  # late, but nothing had happened yet
    after = Fault(name="wiped", began=1006.5, ended=1006.5, within=6.0)
    assert check(replace(alone, faults=(after,)), BOUNDS).kinds == set()
    assert check(with_arrival(replace(alone, faults=(after,)), 1005, at=1007.5), BOUNDS).kinds == {"late"}


def test_it_gives_an_attempt_that_died_before_it_was_sent_the_time_of_its_lease() -> None:
    tries = (Try(number=1, outcome="lost", ended=1024.0), Try(number=2, outcome="completed", ended=1026.0))
    late = with_arrival(good(), 1020, at=1024.5, ended=1024.6, attempt=2)
    assert check(late, BOUNDS).kinds == {"late"}
    assert check(with_row(late, 1020, tries=tries), BOUNDS).violations == ()


def test_it_does_not_mind_a_zombie_whose_attempt_was_over_before_it_was_sent() -> None:
    """A paused worker wakes and sends what it had claimed: the receiver tells by the lower attempt."""
    tries = (Try(number=1, outcome="lost", ended=1009.0), Try(number=2, outcome="completed", ended=1009.3))
    history = with_row(with_arrival(good(), 1005, at=1009.1, ended=1009.3, attempt=2), 1005, tries=tries)
    assert check(again(history, 1005, 1009.2, attempt=1), BOUNDS).violations == ()
    assert check(again(with_row(history, 1005, tries=tries[1:]), 1005, 1009.5, attempt=1), BOUNDS).kinds == {
        "two leases"
    }


def test_it_tells_its_figures_in_a_table() -> None:
    shown = table(check(with_arrival(good(), 1005, at=1012.5, ended=1013.0), BOUNDS))
    assert shown.splitlines()[0].split() == ["fault", "due", "skipped", "redelivered", "p50", "p99", "max"]
    assert "7.500 s" in shown
    assert shown.endswith("violations: none")
    assert table(check(without_row(good()), BOUNDS)).endswith("violations: 1 lost, 1 unknown")
