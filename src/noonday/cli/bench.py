"""`noonday bench`: how fast and how punctual this installation is, on its own servers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from noonday.cli import output
from noonday.cli.benching import measures
from noonday.cli.benching.machine import quiet
from noonday.cli.benching.places import Place, own_database, own_road
from noonday.cli.benching.telling import Figures, as_json, progress, tell
from noonday.cli.flags import Json
from noonday.domain.errors import invalid
from noonday.instance.loading import all_is_loaded, new_loop

__all__ = ["bench"]

_MOST = 1_000_000


def bench(
    *,
    database: Annotated[str | None, Parameter(alias=["--db", "--database-url"])] = None,
    redis: Annotated[str | None, Parameter(alias="--redis-url")] = None,
    count: int = 5000,
    rate: int = 200,
    seconds: int = 5,
    slots: int = 10,
    json: Json = False,
) -> None:
    """Measure this machine and its servers with jobs that do nothing; your own jobs are not touched.

    Parameters
    ----------
    database:
        The server to measure on, in a database or schema of its own that is dropped in the end; a SQLite
        file is measured beside the one named [a temporary SQLite file].
    redis:
        Let the work take the streams of this Redis, under names of their own.
    count:
        Runs of the backlog and of the burst [5000].
    rate:
        Fires per second of the steady part [200].
    seconds:
        How long the steady part takes [5].
    slots:
        How many runs at the same time [10].
    """
    for flag, value in (("--count", count), ("--rate", rate), ("--seconds", seconds), ("--slots", slots)):
        if not 1 <= value <= _MOST:
            raise invalid(flag, value, f"must lie between 1 and {_MOST:,}")
    all_is_loaded()
    with quiet(), own_database(database) as own, asyncio.Runner(loop_factory=new_loop) as runner:
        place, figures = runner.run(_measure(own, redis, count, (rate, seconds), slots))
    if json:
        output.data(as_json(place, figures))
    else:
        tell(place, figures)


async def _measure(
    place: Place, redis: str | None, count: int, pace: tuple[int, int], slots: int
) -> tuple[Place, Figures]:
    rate, seconds = pace
    async with AsyncExitStack() as exits:
        if redis is not None:
            place = replace(place, redis=redis, prefix=await exits.enter_async_context(own_road(redis)))
        line = exits.enter_context(progress())
        line.show("measuring: one commit")
        commit = await measures.commit(place)
        line.show(f"measuring: {count:,} runs that wait")
        drain = await measures.drain(place, count, slots)
        line.show(f"measuring: {rate:,} fires per second for {seconds} s")
        steady = await measures.steady(place, rate, seconds, slots)
        line.show(f"measuring: a burst of {count:,}")
        burst = await measures.burst(place, count, slots)
        figures = Figures(
            slots=slots,
            commit=commit,
            drain=drain,
            steady=steady,
            burst=burst,
            peak_memory_mb=measures.peak_mb(),
        )
        return place, figures
