"""Claims that are worked out while ends are written: as if they had been made behind them, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from noonday.domain.execution import Cause, ExecutionId, ExecutionState, Road
from noonday.domain.job import Job, Lane, Overlap, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import Outcome
from noonday.domain.schedule import Manual
from noonday.store.database import Database
from tests.factories import NOON, a_job, an_execution
from tests.store.feeding_steps import ALLOW, on_streams
from tests.store.store_steps import (
    BAD,
    MINUTE,
    OK,
    SECOND,
    add,
    claim,
    end,
    everything,
    look,
    plan,
    runs_of,
    sql,
    wipe,
)
from tests.store.turnover_steps import (
    AHEAD,
    BEHIND,
    NOW,
    Way,
    World,
    an_order,
    of_one_job,
    told,
    turn_these,
)

HOUR = timedelta(hours=1)


def of_two_jobs() -> World:
    one, other = a_job(overlapping=ALLOW), a_job(overlapping=ALLOW, target=a_job().target)
    return World([one, other], [*runs_of(one, 4), *runs_of(other, 4)], [OK, BAD, OK, OK])


def with_failures() -> World:
    job = a_job(overlapping=ALLOW, retry=RetryPolicy(max_retries=0))
    return World([job], runs_of(job, 5), [BAD, OK, BAD])


def with_one_that_depends() -> World:
    parent = a_job(schedule=Manual(), overlapping=ALLOW)
    child = a_job(schedule=Manual(), depends_on=(parent.id,))
    waiting = an_execution(job=child, scheduled_for=NOON + HOUR, cause=Cause.TRIGGER, lane=Lane.LOW)
    return World([parent, child], [*runs_of(parent, 4), waiting], [OK, OK])


def all_that_is_left() -> World:
    job = a_job(overlapping=ALLOW)
    return World([job], [*runs_of(job, 2), an_execution(job=job, scheduled_for=NOON + HOUR)], [OK])


AHEAD_OF_ENDS: dict[str, Callable[[], World]] = {
    "of one job": of_one_job,
    "as many as there is room for": lambda: of_one_job(limit=2),
    "some are still running": lambda: of_one_job(first=5),
    "of two jobs": of_two_jobs,
    "some fail": with_failures,
    "another job depends on it": with_one_that_depends,
    "the next is far away": all_that_is_left,
}


def goes_ahead(db: Database, world: World) -> bool:
    """Are its claims worked out beside the ends? What is kept must be the same in both ways."""
    kept, _ = world.played(db, BEHIND)
    wipe(db)
    again, ahead = world.played(db, AHEAD)
    assert again == kept
    return ahead


@pytest.mark.parametrize("name", AHEAD_OF_ENDS)
def test_it_is_as_if_they_were_made_behind_the_ends(db: Database, name: str) -> None:
    assert goes_ahead(db, AHEAD_OF_ENDS[name]())


def of_another_job() -> World:
    one, other = a_job(overlapping=ALLOW), a_job(overlapping=ALLOW)
    return World([one, other], [*runs_of(one, 2), an_execution(job=other)], [OK], first=1)


def one_at_a_time(overlap: Overlap) -> World:
    free, single = a_job(overlapping=ALLOW), a_job(overlapping=OverlapPolicy(overlap=overlap))
    first = an_execution(job=single, scheduled_for=NOON - MINUTE)
    return World([free, single], [first, *runs_of(free, 3), an_execution(job=single)], [OK, OK], first=3)


def changed(how: str) -> World:
    """While the first ones ran."""
    world = of_one_job()
    job_id = world.jobs[0].id
    world.before = lambda db: sql(db, f"UPDATE jobs SET {how}, revision = revision + 1 WHERE id = '{job_id}'")
    return world


def in_two_lanes() -> World:
    job = a_job(overlapping=ALLOW)
    return World([job], [*runs_of(job, 3), *runs_of(job, 5, lane=Lane.LOW)[3:]], [OK], first=1)


def tried_before() -> World:
    job = a_job(overlapping=ALLOW)
    again = an_execution(job=job, scheduled_for=NOON + SECOND, attempt=1)
    before = f"UPDATE executions SET attempt = 1 WHERE id = '{again.id}'"
    return World([job], [*runs_of(job, 2), again], [OK], before=lambda db: sql(db, before))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Most of their jobs are such that claims may be made beside ends."""
    policies = st.sampled_from([Overlap.ALLOW] * 5 + [Overlap.QUEUE, Overlap.SKIP])
    retries = st.sampled_from([RetryPolicy(max_retries=0), RetryPolicy(max_retries=2, backoff=SECOND)])
    made: list[Job] = []
    for _ in range(draw(st.integers(1, 3))):
        above = draw(st.sampled_from([(), (), tuple(job.id for job in made[:1])]))
        link = draw(st.sampled_from(["depends_on", "on_success_of"]))
        overlapping = OverlapPolicy(overlap=draw(policies))
        made.append(a_job(overlapping=overlapping, retry=draw(retries), **{link: above}))
    counts = [draw(st.integers(0, 5)) for _ in made]
    runs = [
        an_execution(job=job, scheduled_for=due, covers_from=due - SECOND)
        for place, (job, count) in enumerate(zip(made, counts, strict=True))
        for due in (NOON + (n - 3) * SECOND - place * timedelta(milliseconds=1) for n in range(count))
    ]
    outcomes: list[Outcome] = draw(st.lists(st.sampled_from([OK, OK, OK, BAD]), min_size=1, max_size=6))
    return World(made, runs, outcomes, limit=draw(st.sampled_from([2, 100])))


@given(worlds())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_the_world_the_same_has_run_in_the_end(db: Database, world: World) -> None:
    """What the ends made due may be left to the next claim; then there is no difference."""

    def played(way: Way) -> dict[str, Any]:
        wipe(db)
        world.played(db, way)
        while claim(db, NOW, instance="instance-2"):
            pass
        return everything(db, world.jobs)

    assert played(AHEAD) == played(BEHIND)


BEHIND_ENDS: dict[str, Callable[[], World]] = {
    "something of another job is due": of_another_job,
    "there is nothing to claim": lambda: of_one_job(first=6),
    "one at a time, the others wait": lambda: one_at_a_time(Overlap.QUEUE),
    "one at a time, the others are skipped": lambda: one_at_a_time(Overlap.SKIP),
    "the job was paused": lambda: changed("is_paused = true"),
    "the job was disabled": lambda: changed("schedule_enabled = false"),
    "the job was cancelled": lambda: changed("status = 'cancelled'"),
    "the job cannot be read any more": lambda: changed("target = '{}'"),
    "two lanes": in_two_lanes,
    "one was tried before": tried_before,
}


@pytest.mark.parametrize("name", BEHIND_ENDS)
def test_where_ends_make_a_difference_it_is_claimed_behind_them(db: Database, name: str) -> None:
    assert not goes_ahead(db, BEHIND_ENDS[name]())


def test_an_end_that_comes_too_late_changes_nothing_and_holds_up_no_claim(db: Database) -> None:
    world = of_one_job()
    first, second, third = world.claimed(db)
    end(db, first)
    late = [told(first), replace(told(second), token="stolen"), told(third)]
    turned = AHEAD.turn(db, late)
    assert turned.ahead
    assert turned.ends.settled == {third.execution.id}
    assert look(db, second.execution).state is ExecutionState.RUNNING
    assert len(turned.claims) == 3


def test_what_lies_within_the_lead_is_claimed_and_nothing_behind_it(db: Database) -> None:
    job = a_job(overlapping=ALLOW)
    later = [an_execution(job=job, scheduled_for=NOW + n * SECOND) for n in (1, 3)]
    world = World([job], [*runs_of(job, 1), *later], [OK])
    (claimed,) = world.claimed(db)
    turned = AHEAD.turn(db, [told(claimed)], an_order(lead=2 * SECOND))
    assert turned.ahead
    [one] = turned.claims
    assert (one.execution.id, one.execution.started_at) == (later[0].id, NOW + SECOND)
    assert turned.next_at == NOW + 3 * SECOND


class TestOfTheStreams:
    def test_as_behind_the_ends(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)

        def played(ahead: bool) -> tuple[Any, ...]:
            add(db, job)
            first = on_streams(db, job, NOON - MINUTE)
            [claimed] = claim(db)
            low = on_streams(db, job, NOON - SECOND, lane=Lane.LOW)
            old, later = on_streams(db, job, NOON), on_streams(db, job, NOW + 2 * SECOND)
            ids = [low.id, old.id, later.id, first.id]
            taken, beside = turn_these(db, [told(claimed)], ids, ahead=ahead)
            assert beside is ahead
            assert look(db, first).state is ExecutionState.COMPLETED
            names = {low.id: "low", old.id: "old", later.id: "later", first.id: "first"}
            claims = [names[one.execution.id] for one in taken.claims]
            done = [names[one] for one in taken.done]
            return claims, {names[i]: at for i, at in taken.later.items()}, done, everything(db, [job])

        behind = played(ahead=False)
        wipe(db)
        assert played(ahead=True) == behind
        assert behind[:3] == (["old", "low"], {"later": NOW + 2 * SECOND}, ["first"])

    def test_what_is_named_and_cannot_be_an_id_is_done_with(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        plan(db, *runs_of(job, 1))
        [claimed] = claim(db)
        strange = [ExecutionId("no id at all"), ExecutionId("")]
        taken, _ = turn_these(db, [told(claimed)], strange, ahead=True)
        assert (taken.claims, set(taken.done)) == ([], set(strange))

    def test_runs_of_the_database_are_left_to_its_road(self, db: Database) -> None:
        job = a_job(overlapping=ALLOW)
        add(db, job)
        plan(db, *runs_of(job, 1))
        [claimed] = claim(db)
        there = on_streams(db, job, NOON - MINUTE)
        here = an_execution(job=job, scheduled_for=NOON - SECOND)
        plan(db, here)
        turned = AHEAD.turn(db, [told(claimed)], an_order(roads=(Road.DATABASE,)))
        assert turned.ahead
        assert [one.execution.id for one in turned.claims] == [here.id]
        assert look(db, there).state is ExecutionState.QUEUED


@pytest.fixture
def refusing(db: Database) -> Iterator[Callable[[], None]]:
    """The database takes no end, until it is told to."""
    if db.dialect == "sqlite":
        made = (
            "CREATE TRIGGER no_end BEFORE UPDATE ON executions WHEN NEW.state = 'completed' "
            "BEGIN SELECT RAISE(ABORT, 'no end'); END",
            "DROP TRIGGER no_end",
        )
    else:
        check = "ALTER TABLE executions ADD CONSTRAINT no_end CHECK (state <> 'completed') NOT VALID"
        made = (check, "ALTER TABLE executions DROP CONSTRAINT no_end")
    sql(db, made[0])
    gone = False

    def drop() -> None:
        nonlocal gone
        gone = True
        sql(db, made[1])

    yield drop
    if not gone:
        drop()


def test_ends_that_the_database_refuses_take_back_what_was_found_beside_them(
    db: Database, refusing: Callable[[], None]
) -> None:
    world = of_one_job()
    claims = world.claimed(db)
    before = everything(db, world.jobs)
    with pytest.raises(IntegrityError, match=r"no.end"):
        AHEAD.turn(db, [told(one) for one in claims])
    assert everything(db, world.jobs) == before
    refusing()
    turned = AHEAD.turn(db, [told(one) for one in claims])
    assert (len(turned.ends.settled), len(turned.claims), turned.ahead) == (3, 3, True)
