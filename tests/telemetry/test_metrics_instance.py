"""The numbers of a real instance: jobs run, and /metrics tells what happened to them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import redis
from sqlalchemy import Connection

from noonday.control.executions import Executions
from noonday.domain.errors import Invalid
from noonday.domain.execution import ExecutionState
from noonday.domain.outcome import Accepted, Completed
from noonday.ids import new_id
from noonday.instance import Instance
from noonday.instance.processes import metrics_ports
from noonday.store import backlog, executions, history, jobs, outbox
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from noonday.telemetry.metrics import Metrics
from noonday.testing import ManualClock
from tests.engine.test_instance_life import ask, running, settings
from tests.factories import NOON, a_job, an_execution
from tests.telemetry.scraped import Scraped


async def scrape(url: str) -> Scraped:
    def call() -> bytes:
        with urlopen(url + "/metrics", timeout=20) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            body: bytes = answer.read()
            return body

    return Scraped(await asyncio.to_thread(call))


async def until(url: str, true: Callable[[Scraped], bool]) -> Scraped:
    async with asyncio.timeout(40):
        while not true(found := await scrape(url)):
            await asyncio.sleep(0.05)
    return found


async def add(url: str, name: str, argv: list[str], **more: Any) -> Any:
    body = {"name": name, "schedule_type": "immediate", "target": {"type": "command", "argv": argv}}
    return await ask(url + "/api/v2/jobs", body | more)


async def test_the_numbers_are_those_of_what_ran(empty_url: str) -> None:
    async with running(settings(empty_url, workers=3, shutdown_grace=1)) as instance:
        for number in range(3):
            await add(instance.url, f"good-{number}", ["true"], source_id="s", priority=1)
        await add(instance.url, "bad", ["false"], max_retries=1, retry_backoff_seconds=3600)
        await add(instance.url, "hopeless", ["false"], max_retries=0)
        await add(instance.url, "long", ["sleep", "60"], timeout_seconds=120)
        found = await until(
            instance.url,
            lambda found: (
                found("jobs_executed_total", status="completed", source_id="s") == 3
                and found("jobs_executed_total", status="failed", source_id="") == 2
                and found("workers_busy") == 1
                and found("queue_depth", priority="low") is not None
            ),
        )
        assert found("jobs_scheduled_total", schedule_type="immediate", priority="high") == 3
        assert found("jobs_scheduled_total", schedule_type="immediate", priority="normal") == 3
        assert found("job_duration_seconds_count", source_id="s") == 3
        assert found("fire_lateness_seconds_count", priority="high", road="streams") == 3
        assert found("retries_total") == 1
        assert [found(name) for name in ("worker_pool_size", "workers_idle", "store_up")] == [3, 2, 1]
        assert (found("is_leader"), found("road_up"), found("jobs_currently_running")) == (1, 0, 1)
        runs = await ask(instance.url + "/api/v2/jobs?limit=10")
        by_name = {job["name"]: job["id"] for job in runs["jobs"]}
        await ask(f"{instance.url}/api/v2/jobs/{by_name['long']}/cancel", {})
        await until(
            instance.url,
            lambda found: found("jobs_executed_total", status="cancelled", source_id="") == 1,
        )


async def test_what_goes_over_the_streams_is_counted(postgres_url: str, redis_url: str) -> None:
    prefix = f"metrics-{new_id(NOON)}"
    apart = {"redis_url": redis_url, "queue_prefix": prefix, "leader_key": f"{prefix}:leader"}
    try:
        async with running(settings(postgres_url, **apart)) as instance:
            await until(instance.url, lambda found: found("road_up") == 1)
            for number in range(3):
                await add(instance.url, f"job-{number}", ["true"], source_id="s", priority=3)
            found = await until(
                instance.url,
                lambda found: found("jobs_executed_total", status="completed", source_id="s") == 3,
            )
            assert found("queue_enqueued_total", priority="low") == 3
            assert found("queue_dequeued_total", priority="low") == 3
            assert found("queue_redeliveries_total", priority="low") == 0
            assert found("leader_election_attempts_total") == 1
            assert found("leader_term") == 1
            assert found("fire_lateness_seconds_count", priority="low", road="streams") == 3
    finally:
        with redis.Redis.from_url(redis_url) as client:
            for key in client.scan_iter(f"{prefix}*"):
                client.delete(key)


async def test_a_skip_is_counted_under_its_reason(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, shutdown_grace=1)) as instance:
        every = {"schedule_type": "interval", "interval_minutes": 1, "interval_type": "seconds"}
        await add(instance.url, "long", ["sleep", "60"], overlap="skip", **every)
        found = await until(instance.url, lambda found: (found("skips_total", reason="overlap") or 0) >= 1)
        assert found("skips_total", reason="misfire") == 0


async def test_a_worker_alone_answers_on_its_metrics_port(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, roles=("worker",), metrics_port=0, workers=7)) as instance:
        assert instance.url == ""
        found = await until(instance.metrics_url, lambda found: found("store_up") == 1)
        assert (found("worker_pool_size"), found("is_leader")) == (7, 0)
        assert await ask(instance.metrics_url + "/health/live") == {"status": "alive"}
        with pytest.raises(HTTPError, match="404"):
            await ask(instance.metrics_url + "/api/v2/jobs")
        with pytest.raises(HTTPError, match="421"):
            await asyncio.to_thread(
                urlopen, Request(instance.metrics_url + "/metrics", headers={"Host": "evil.example"})
            )


def test_processes_of_one_parent_have_a_port_each() -> None:
    ports = metrics_ports(["w-1", "w-2", "w-3"], 9100)
    assert [ports[name]["METRICS_PORT"] for name in ("w-1", "w-2", "w-3")] == ["9100", "9101", "9102"]
    assert metrics_ports(["w-1"], None) == metrics_ports(["w-1"], 0) == {}


async def test_an_instance_with_both_tells_the_same_on_both(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, metrics_port=0)) as instance:
        found = await scrape(instance.metrics_url)
        assert found.names == (await scrape(instance.url)).names


async def test_it_names_the_metrics_port_that_is_taken(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Invalid, match=f"METRICS_PORT: cannot listen on {port}"):
            await Instance(settings(sqlite_url, metrics_port=port)).run(asyncio.Event())


def test_the_backlog_is_what_is_due_and_the_age_of_the_oldest_letter(db: Database) -> None:
    job = a_job()

    def make(conn: Connection) -> None:
        jobs.add(conn, job)
        due = [an_execution(job=job, scheduled_for=NOON - timedelta(seconds=n)) for n in (0, 1)]
        later = an_execution(
            job=job, scheduled_for=NOON + timedelta(hours=1), available_at=NOON + timedelta(hours=1)
        )
        executions.plan(conn, [*due, later])
        outbox.add(conn, "k", {}, NOON - timedelta(minutes=2))
        outbox.add(conn, "k", {}, NOON)

    assert db.read_now(lambda conn: backlog.backlog(conn, NOON)).outbox_lag == timedelta()
    db.write_now(make)
    found = db.read_now(lambda conn: backlog.backlog(conn, NOON))
    assert {lane.name: n for lane, n in found.depths.items()} == {"HIGH": 0, "NORMAL": 2, "LOW": 0}
    assert found.outbox_lag == timedelta(minutes=2)
    page = db.read_now(lambda conn: history.page(conn, job.id))
    assert {run.state for run in page.items} == {ExecutionState.QUEUED}


async def test_a_remote_run_is_counted_where_its_result_arrives(db: Database) -> None:
    job, metrics = a_job(source_id="far"), Metrics("crawler")
    execution = an_execution(job=job)

    def accept(conn: Connection) -> None:
        jobs.add(conn, job)
        executions.plan(conn, [execution])
        order = ClaimOrder(instance_id="i", limit=1, now=NOON, lease=timedelta(seconds=30))
        (claim,) = executions.claim(conn, order)
        token = claim.execution.lease_token or ""
        accepted = Accepted(heartbeat=timedelta(minutes=1))
        executions.settle(conn, [Ending(execution_id=execution.id, token=token, outcome=accepted)], NOON)

    await db.write(accept)
    clock = ManualClock(NOON + timedelta(seconds=20))
    desk = Executions(db, clock, check_token=lambda *_: True, telemetry=metrics)
    await desk.result(execution.id, "token", Completed())
    found = Scraped(metrics.render())
    assert found("jobs_executed_total", status="completed", source_id="far") == 1
    assert found("job_duration_seconds_sum", source_id="far") == 20
