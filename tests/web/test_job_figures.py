"""What a job's page says of its runs is what plain SQL says of the same rows; and what it warns of."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from sqlalchemy import text

from noonday.web import words
from tests.factories import NOON
from tests.web.past import a_run
from tests.web.site import Site

# By nearest rank: the shortest duration that so large a share of the runs does not exceed.
RANKED = """
SELECT took FROM (
  SELECT {took} AS took, row_number() OVER (ORDER BY {took}) AS place, count(*) OVER () AS total
  FROM executions WHERE state = 'completed' AND job_id = '{job}') AS ranked
WHERE place >= total * {share} ORDER BY took LIMIT 1
"""
TOOK = {
    "sqlite": "round((julianday(completed_at) - julianday(started_at)) * 86400.0, 3)",
    "postgresql": "round(extract(epoch FROM completed_at - started_at)::numeric, 3)",
}


async def asked(site: Site, query: str) -> float:
    return float(await site.db.read(lambda conn: conn.execute(text(query)).scalar_one()))


async def test_the_figures_are_those_of_plain_sql(any_site: Site) -> None:
    job = await any_site.make(name="nightly")
    chance = random.Random(7)
    for number in range(40):
        took = timedelta(milliseconds=chance.randrange(10, 90_000))
        state = chance.choice(["completed"] * 5 + ["failed", "cancelled"])
        await a_run(any_site, job, NOON - timedelta(hours=number + 1), took, state=state)
    page = await any_site.page("/ui/jobs/nightly")
    seconds = TOOK[await any_site.db.read(lambda conn: conn.dialect.name)]
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        found = await asked(any_site, RANKED.format(took=seconds, job=job["id"], share=share))
        assert f"<b>{words.span(found)}</b> {name}" in page
    failed = f"SELECT count(*) FROM executions WHERE state = 'failed' AND job_id = '{job['id']}'"
    assert f'class="bad">{await asked(any_site, failed):.0f}</b> failed' in page
    rate = (
        "SELECT avg(CASE state WHEN 'completed' THEN 100.0 ELSE 0 END) FROM executions"
        f" WHERE state IN ('completed', 'failed') AND job_id = '{job['id']}'"
    )
    assert f"<b>{int(await asked(any_site, rate) * 10) / 10} %</b> succeeded" in page
    assert "<b>40</b> runs" in page


async def fared(
    site: Site, took: timedelta, *, late: timedelta = timedelta(), runs: int = 6, **body: str
) -> str:
    job = await site.make(name="nightly", **body)
    for number in range(runs):
        await a_run(site, job, NOON - timedelta(hours=number + 1), took, late)
    return await site.page("/ui/jobs/nightly")


async def test_a_job_that_fares_well_gets_no_warning(site: Site) -> None:
    assert 'class="warn' not in await fared(site, timedelta(minutes=59), late=timedelta(seconds=9))


@pytest.mark.parametrize(
    ("overlap", "follows"), [("skip", "the next is skipped"), ("queue", "the next ones wait their turn")]
)
async def test_it_warns_if_runs_take_longer_than_the_time_between(
    any_site: Site, overlap: str, follows: str
) -> None:
    page = await fared(any_site, timedelta(minutes=61), overlap=overlap)
    assert f"Runs take up to 1 h 1 min (p95), but are due every 1 h: while one goes on, {follows}." in page


async def test_it_warns_of_late_starts(any_site: Site) -> None:
    page = await fared(any_site, timedelta(seconds=1), late=timedelta(seconds=90))
    assert "half of its last runs began 1 min 30 s or more after their time" in page


async def test_it_warns_of_a_run_that_goes_on_and_on(any_site: Site) -> None:
    await fared(any_site, timedelta(seconds=10))
    job = await any_site.get("/api/v2/jobs/nightly")
    await a_run(any_site, job, NOON - timedelta(seconds=21), state="running")
    page = await any_site.page("/ui/jobs/nightly")
    assert "A run goes on for 21 s. Half of them end within 10 s, and 95 of 100 within 10 s." in page


async def test_a_few_runs_say_nothing_of_what_is_usual(site: Site) -> None:
    assert 'class="warn' not in await fared(site, timedelta(hours=3), late=timedelta(hours=1), runs=4)
