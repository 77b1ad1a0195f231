"""Circuit breakers in motion: a target that fails and recovers, and instances that share what they know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from aiohttp import web

from noonday.domain.breaker import BreakerPolicy, BreakerState
from noonday.domain.errors import Unavailable
from noonday.domain.execution import Execution, ExecutionState, WaitReason
from noonday.domain.job import Job, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import Failed
from noonday.domain.schedule import Immediate, Interval, Manual
from noonday.domain.target import FetchTarget
from noonday.ports import Claim, Silence
from noonday.store import breakers as store
from noonday.store.breakers import BreakerRow
from noonday.testing import ManualInstance
from tests.factories import a_running_execution
from tests.targets.hands import WebServer

THRESHOLD = BreakerPolicy().threshold
MINUTE = timedelta(minutes=1)
NO_RETRY = RetryPolicy(max_retries=0)


@dataclass
class Ledger(Silence):
    """Telemetry of the breakers."""

    told: list[tuple[str, BreakerState, bool]] = field(default_factory=list)

    def breaker(self, domain: str, state: BreakerState, tripped: bool) -> None:
        self.told.append((domain, state, tripped))


@pytest.fixture
async def target() -> AsyncIterator[WebServer]:
    async with WebServer() as made:
        made.answers(status=503)
        yield made


def domain(server: WebServer) -> str:
    return f"127.0.0.1:{server.port}"


async def fetching(scheduler: ManualInstance, name: str, server: WebServer, **fields: object) -> Job:
    return await scheduler.add(name, Immediate(), FetchTarget(url=server.url), **fields)


async def row(scheduler: ManualInstance, server: WebServer) -> BreakerRow:
    found = await scheduler.db.read(lambda conn: store.get(conn, domain(server)))
    assert found is not None
    return found


async def state(scheduler: ManualInstance, server: WebServer) -> BreakerState:
    return (await row(scheduler, server)).breaker.state


async def the_run(scheduler: ManualInstance, name: str) -> Execution:
    [run] = await scheduler.history(name)
    return run


async def opened(scheduler: ManualInstance, server: WebServer) -> None:
    """So many failures that calls to the server wait from now on."""
    for n in range(THRESHOLD):
        await fetching(scheduler, f"failing-{n}", server, retry=NO_RETRY)
    await scheduler.run_once()
    assert await state(scheduler, server) is BreakerState.OPEN
    server.seen.clear()


async def test_it_opens_at_the_threshold_and_parks_without_burning_an_attempt(
    scheduler: ManualInstance, target: WebServer
) -> None:
    await opened(scheduler, target)
    assert scheduler.engine.breakers.state == "open"
    await fetching(scheduler, "parked", target)
    await scheduler.run_once()
    run = await the_run(scheduler, "parked")
    assert (run.state, run.wait_reason) == (ExecutionState.PENDING, WaitReason.BREAKER)
    assert (run.attempt, run.failures, run.losses) == (0, 0, 0)
    assert run.available_at == scheduler.clock.now() + MINUTE
    assert run.detail is not None
    assert domain(target) in run.detail
    assert "12:01:00 UTC" in run.detail
    assert await scheduler.attempts(run) == []
    assert target.seen == []
    assert (await scheduler.jobs.get("parked")).retry_count == 0


async def test_it_lets_one_probe_through_and_then_everybody_at_once(
    scheduler: ManualInstance, target: WebServer
) -> None:
    await opened(scheduler, target)
    for n in range(30):
        await fetching(scheduler, f"parked-{n}", target)
    await scheduler.tick(seconds=59)
    assert target.seen == []

    async def answer(_: web.Request) -> web.Response:
        if len(target.seen) == 1:  # the probe; nobody else is called while it is out
            assert await state(scheduler, target) is BreakerState.HALF_OPEN
            assert scheduler.engine.breakers.state == "half_open"
        return web.Response(text="fine")

    target.handler = answer
    await scheduler.tick(seconds=1)
    runs = [await the_run(scheduler, f"parked-{n}") for n in range(30)]
    assert {run.state for run in runs} == {ExecutionState.COMPLETED}
    assert {run.attempt for run in runs} == {1}
    assert len(target.seen) == 30
    assert {seen.headers["x-scheduler-attempt"] for seen in target.seen} == {"1"}
    assert await state(scheduler, target) is BreakerState.CLOSED
    assert scheduler.engine.breakers.state == "closed"


async def test_many_rounds_behind_an_open_breaker_use_up_nothing(
    scheduler: ManualInstance, target: WebServer
) -> None:
    """Neither retries, nor losses, nor attempts: after an hour it is tried as if nothing had been."""
    await opened(scheduler, target)
    await fetching(
        scheduler, "patient", target, retry=RetryPolicy(max_retries=1, backoff=timedelta(seconds=1))
    )
    await fetching(
        scheduler, "probe", target, retry=RetryPolicy(max_retries=1000, backoff=timedelta(seconds=1))
    )
    await scheduler.tick(hours=1)
    calls = len(target.seen)
    assert 10 <= calls <= 60, "at most one probe in a minute"
    run = await the_run(scheduler, "patient")
    probe = await the_run(scheduler, "probe")
    assert run.failures + probe.failures == calls
    assert run.attempt == run.failures == len(await scheduler.attempts(run))
    assert probe.attempt == probe.failures == len(await scheduler.attempts(probe))
    target.answers(text="fine")
    await scheduler.tick(hours=2)
    for name in ("patient", "probe"):
        after = await the_run(scheduler, name)
        attempts = await scheduler.attempts(after)
        assert [attempt.number for attempt in attempts] == list(range(1, after.attempt + 1))
    assert (await the_run(scheduler, "probe")).state is ExecutionState.COMPLETED


async def test_a_retry_that_was_parked_keeps_its_failure_and_its_number(
    scheduler: ManualInstance, target: WebServer
) -> None:
    policy = RetryPolicy(max_retries=2, backoff=timedelta(seconds=10))
    await fetching(scheduler, "retried", target, retry=policy)
    await scheduler.run_once()
    for n in range(THRESHOLD - 1):
        await fetching(scheduler, f"failing-{n}", target, retry=NO_RETRY)
    await scheduler.run_once()
    await scheduler.tick(seconds=11)
    run = await the_run(scheduler, "retried")
    assert (run.wait_reason, run.attempt, run.failures) == (WaitReason.BREAKER, 1, 1)
    assert run.error is not None
    assert "503" in run.error
    assert (await scheduler.jobs.get("retried")).retry_count == 1
    target.answers(text="fine")
    await scheduler.tick(minutes=1)
    run = await the_run(scheduler, "retried")
    assert (run.state, run.attempt, run.failures) == (ExecutionState.COMPLETED, 2, 1)


async def test_two_instances_share_it_and_one_of_them_probes(
    scheduler: ManualInstance, target: WebServer
) -> None:
    async with scheduler.another() as other:
        await opened(scheduler, target)
        await other.run_once()
        assert other.engine.breakers.state == "open"
        for n in range(20):
            await fetching(scheduler, f"parked-{n}", target, retry=NO_RETRY)
        await scheduler.tick(seconds=59)
        assert target.seen == []
        await scheduler.tick(seconds=2)
        assert len(target.seen) == 1, "one probe among all instances"
        assert await state(scheduler, target) is BreakerState.OPEN
        target.answers(text="fine")
        await scheduler.tick(minutes=2)
        runs = [await the_run(scheduler, f"parked-{n}") for n in range(20)]
        assert sorted(run.state for run in runs) == ["completed"] * 19 + ["failed"]
        assert len(target.seen) == 20
        assert {run.attempt for run in runs} == {1}
        assert scheduler.engine.breakers.state == other.engine.breakers.state == "closed"


async def test_what_is_parked_is_neither_missed_nor_skipped_for_overlap(
    scheduler: ManualInstance, target: WebServer
) -> None:
    """An open breaker delays work and never loses it, whatever the job's grace and overlap."""
    await opened(scheduler, target)
    await scheduler.add(
        "every-minute",
        Interval(count=1),
        FetchTarget(url=target.url),
        retry=RetryPolicy(max_retries=100, backoff=timedelta(seconds=1)),
        overlapping=OverlapPolicy(max_instances=1),
        max_runs=20,
    )
    await scheduler.tick(minutes=20)
    target.answers(text="fine")
    await scheduler.tick(hours=2)
    runs = await scheduler.history("every-minute")
    assert [run.state for run in runs] == [ExecutionState.COMPLETED] * 20


async def test_a_child_that_was_parked_does_not_ask_for_another_success_of_its_parent(
    scheduler: ManualInstance, target: WebServer
) -> None:
    @scheduler.task
    async def parent() -> None: ...

    made = await scheduler.add("parent", Immediate(), "parent")
    await scheduler.run_once()
    await opened(scheduler, target)
    await scheduler.add("child", Manual(), FetchTarget(url=target.url), depends_on=(made.id,))
    child = await fetching(scheduler, "due-child", target, depends_on=(made.id,))
    await scheduler.tick(seconds=59)
    assert (await the_run(scheduler, child.name)).wait_reason is WaitReason.BREAKER
    target.answers(text="fine")
    await scheduler.tick(seconds=1)
    assert (await the_run(scheduler, child.name)).state is ExecutionState.COMPLETED


async def test_other_domains_and_other_targets_go_on(scheduler: ManualInstance, target: WebServer) -> None:
    @scheduler.task
    async def at_home() -> None: ...

    async with WebServer() as healthy:
        await opened(scheduler, target)
        await fetching(scheduler, "elsewhere", healthy)
        await scheduler.add("here", Immediate(), "at_home")
        await scheduler.run_once()
        assert (await the_run(scheduler, "elsewhere")).state is ExecutionState.COMPLETED
        assert (await the_run(scheduler, "here")).state is ExecutionState.COMPLETED
        assert await scheduler.db.read(lambda conn: store.get(conn, domain(healthy))) is None


@pytest.mark.parametrize("status", [400, 401, 404, 429])
async def test_a_refusal_is_an_answer_of_a_target_that_lives(
    scheduler: ManualInstance, target: WebServer, status: int
) -> None:
    target.answers(status=status)
    for n in range(THRESHOLD + 1):
        await fetching(scheduler, f"refused-{n}", target, retry=NO_RETRY)
    await scheduler.run_once()
    assert len(target.seen) == THRESHOLD + 1
    assert await scheduler.db.read(lambda conn: store.get(conn, domain(target))) is None


async def test_nobody_at_home_opens_it_too(scheduler: ManualInstance) -> None:
    async with WebServer() as gone:
        pass
    await opened(scheduler, gone)
    assert "could not connect" in ((await row(scheduler, gone)).last_error or "")


async def test_a_success_in_between_starts_the_count_anew(
    scheduler: ManualInstance, target: WebServer
) -> None:
    for n in range(3 * THRESHOLD):
        status = 200 if n % THRESHOLD == THRESHOLD - 1 else 503
        target.answers(status=status)
        await fetching(scheduler, f"mixed-{n}", target, retry=NO_RETRY)
        await scheduler.run_once()
    assert len(target.seen) == 3 * THRESHOLD
    assert (await row(scheduler, target)).breaker.failures == 0


async def test_a_probe_that_dies_with_its_instance_is_followed_by_another(
    scheduler: ManualInstance, target: WebServer
) -> None:
    await opened(scheduler, target)
    await fetching(scheduler, "parked", target)
    async with scheduler.another() as other:
        scheduler.clock.advance(seconds=60)
        policy = scheduler.engine.config.breaker
        now = scheduler.clock.now()
        won = await other.db.write(lambda conn: store.probe(conn, domain(target), policy, now))
        assert won[1]  # and nothing more is heard of it
    target.answers(text="fine")
    await scheduler.tick(seconds=59)
    assert target.seen == []
    await scheduler.tick(seconds=2)
    assert (await the_run(scheduler, "parked")).state is ExecutionState.COMPLETED


async def test_a_probe_that_is_handed_back_at_shutdown_makes_room_at_once(
    scheduler: ManualInstance, target: WebServer
) -> None:
    breakers = scheduler.engine.breakers
    await opened(scheduler, target)
    job = await fetching(scheduler, "parked", target)
    scheduler.clock.advance(seconds=60)
    await breakers.look()
    claim = Claim(job, a_running_execution(job=job))
    assert await breakers.before(claim) is None
    assert await state(scheduler, target) is BreakerState.HALF_OPEN
    breakers.after(claim, None)
    await breakers.run_once()
    assert await state(scheduler, target) is BreakerState.OPEN
    target.answers(text="fine")
    await scheduler.run_once()
    assert (await the_run(scheduler, "parked")).state is ExecutionState.COMPLETED


async def test_a_thousand_failures_are_one_transaction(scheduler: ManualInstance, target: WebServer) -> None:
    job = await fetching(scheduler, "failing", target)
    breakers, commits = scheduler.engine.breakers, count_commits(scheduler)
    for _ in range(1000):
        breakers.after(Claim(job, a_running_execution(job=job)), Failed(error="refused", down=True))
    await breakers.run_once()
    assert len(commits) == 1
    assert (await row(scheduler, target)).trips == 1
    for _ in range(1000):  # and none while it is open
        breakers.after(Claim(job, a_running_execution(job=job)), Failed(error="refused", down=True))
    await breakers.run_once()
    assert len(commits) == 1


def count_commits(scheduler: ManualInstance) -> list[object]:
    commits: list[object] = []
    write = scheduler.db.write

    async def counted(work: Callable[..., object], **how: bool) -> object:
        commits.append(work)
        return await write(work, **how)

    scheduler.db.write = counted  # type: ignore[method-assign,assignment]
    return commits


async def test_a_store_that_is_down_breaks_no_run_and_forgets_no_failure(
    scheduler: ManualInstance, target: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await fetching(scheduler, "failing", target)
    breakers = scheduler.engine.breakers

    def fails() -> None:
        breakers.after(Claim(job, a_running_execution(job=job)), Failed(error="refused", down=True))

    async def down(_: object, **how: bool) -> None:
        fails()  # while the write is under way
        raise Unavailable("the database is not available")

    with monkeypatch.context() as outage:
        outage.setattr(scheduler.db, "write", down)
        fails()
        for _ in range(THRESHOLD - 2):
            with pytest.raises(Unavailable):
                await breakers.run_once()
    await breakers.run_once()
    assert (await row(scheduler, target)).breaker.failures == THRESHOLD - 1
    fails()
    await breakers.run_once()
    assert await state(scheduler, target) is BreakerState.OPEN

    scheduler.clock.advance(seconds=60)
    with monkeypatch.context() as outage:
        outage.setattr(scheduler.db, "write", down)
        parked = await breakers.before(Claim(job, a_running_execution(job=job)))
    assert parked is not None, "without the store nobody knows who probes"
    assert parked.until == scheduler.clock.now() + timedelta(seconds=5)


async def test_it_tells_of_each_change_and_counts_a_trip_once(
    scheduler: ManualInstance, target: WebServer
) -> None:
    async with scheduler.another() as other:
        here, there = Ledger(), Ledger()
        scheduler.engine.breakers._telemetry, other.engine.breakers._telemetry = here, there
        await opened(scheduler, target)
        target.answers(text="fine")
        await fetching(scheduler, "probe", target)
        await scheduler.tick(minutes=2)
        where = domain(target)
        trips = [told for told in here.told + there.told if told[2]]
        assert trips == [(where, BreakerState.OPEN, True)]
        for ledger in (here, there):
            states = [state for domain, state, _ in ledger.told if domain == where]
            assert states[0] is BreakerState.OPEN
            assert states[-1] is BreakerState.CLOSED
