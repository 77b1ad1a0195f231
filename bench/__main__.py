"""`python -m bench`: Noonday beside the machine's own limits, in one run; figures are ratios of medians."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from bench import limits, pages, scenarios, stored
from bench.machinery import Place, run
from noonday.store import migrate
from noonday.store.database import Database
from tests.servers import Server, start_postgres, start_redis  # the tests' own launcher of real servers

_serial = count(1)
RESULTS = Path(__file__).parent / "results"
DATABASE_OF = {"sqlite": "sqlite", "postgres": "postgres", "streams": "postgres"}


class Templates:
    """Migrated databases with a crowd of sleeping schedules, made once and copied for each measurement."""

    def __init__(self, folder: Path, server: str | None, redis: str | None) -> None:
        self._folder = folder
        self._server = server
        self._redis = redis
        self._made: dict[tuple[str, int], str] = {}

    @contextmanager
    def fresh(self, road: str, crowd: int) -> Iterator[Place]:
        """A copy, gone afterwards."""
        kind = DATABASE_OF[road]
        model = self._made.get((kind, crowd))
        if model is None:
            model = self._made[kind, crowd] = self._fill(kind, crowd)
        name = f"bench_{next(_serial)}"
        if kind == "sqlite":
            path = self._folder / f"{name}.db"
            shutil.copy(self._folder / f"{model}.db", path)
            yield Place(f"sqlite:///{path}")
            for left in self._folder.glob(f"{name}.db*"):
                left.unlink()
        else:
            self._admin("CREATE DATABASE {} TEMPLATE {}", name, model)
            yield Place(self._url(kind, name), self._redis if road == "streams" else None, name)
            self._admin("DROP DATABASE {} WITH (FORCE)", name)

    def _fill(self, kind: str, crowd: int) -> str:
        name = f"crowd_{kind}_{crowd}"
        if kind == "postgres":
            self._admin("CREATE DATABASE {}", name)
        url = self._url(kind, name)
        migrate.upgrade(url)
        db = Database(url)
        if crowd > 1:
            stored.add_crowd(db, crowd)
        db.close_now()
        return name

    def _url(self, kind: str, name: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{self._folder}/{name}.db"
        assert self._server is not None
        return self._server.rpartition("/")[0] + "/" + name

    def _admin(self, statement: LiteralString, *names: str) -> None:
        assert self._server is not None
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def machine_limit(kind: str, server: str | None) -> float:
    if kind == "postgres":
        assert server is not None
        return limits.postgres(server)
    with tempfile.TemporaryDirectory() as folder:
        return limits.sqlite(Path(folder))


def measure(
    road: str, server: str | None, crowd: int, templates: Templates, chosen: argparse.Namespace
) -> dict[str, Any]:
    slots = chosen.slots
    made: dict[str, Any] = {"road": road, "schedules": crowd, "slots": slots}
    ours, machine = [], []
    for _ in range(chosen.rounds):
        machine.append(machine_limit(DATABASE_OF[road], server))
        with templates.fresh(road, crowd) as place:
            ours.append(run(scenarios.drain(place, chosen.drain, slots)))
    made["limit_per_s"] = statistics.median(machine)
    made["drain_per_s"] = statistics.median(ours)
    made["drain_ratio"] = made["drain_per_s"] / made["limit_per_s"]
    for rate in chosen.rates:
        with templates.fresh(road, crowd) as place:
            late = run(scenarios.steady(place, rate, chosen.seconds, slots))
        made[f"late_{rate}"] = {"p50_ms": late.p50_ms, "p99_ms": late.p99_ms, "fired": late.fired}
    with templates.fresh(road, crowd) as place:
        started, durable = run(scenarios.burst(place, chosen.burst, slots))
    made["burst"] = {"count": chosen.burst, "last_started_s": started, "durable_s": durable}
    return made


def tell(found: dict[str, Any]) -> None:
    print(f"\n{found['road']}, {found['schedules']:,} stored schedules, {found['slots']} slots")
    print(f"  machine's limit   {found['limit_per_s']:>10,.0f} executions/s: insert + two updates by 1,000")
    print(
        f"  drain             {found['drain_per_s']:>10,.0f} executions/s, ratio {found['drain_ratio']:.2f}"
    )
    if "before" in found:
        print(f"  beside the database road: drain {found['before']:.2f} times as fast")
    for name, late in found.items():
        if name.startswith("late_"):
            print(
                f"  {name[5:]:>5} fires/s     p50 {late['p50_ms']:7.1f} ms   p99 {late['p99_ms']:7.1f} ms   "
                f"fired {late['fired']:.1%}"
            )
    burst = found["burst"]
    per_s = burst["count"] / burst["durable_s"]
    print(
        f"  burst of {burst['count']:,}    last started after {burst['last_started_s']:.2f} s, durable after "
        f"{burst['durable_s']:.2f} s, ratio to the limit {per_s / found['limit_per_s']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--roads", default="sqlite,postgres,streams", help="streams: PostgreSQL and Redis")
    parser.add_argument("--schedules", default="1000,100000,1000000", help="how many are stored")
    parser.add_argument("--rates", default="50,200,1000", help="fires per second")
    parser.add_argument("--seconds", type=int, default=10, help="of each steady rate")
    parser.add_argument("--drain", type=int, default=20_000)
    parser.add_argument("--burst", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3, help="of drain and limit; the median counts")
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--pages", type=int, default=10_000, help="jobs behind the measured pages, 0: none")
    chosen = parser.parse_args()
    chosen.rates = [int(rate) for rate in chosen.rates.split(",") if rate]
    roads = chosen.roads.split(",")
    if unknown := set(roads) - DATABASE_OF.keys():
        parser.error(f"--roads: {', '.join(sorted(unknown))} is none of {', '.join(DATABASE_OF)}")
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        url = _served(servers, start_postgres(durable=True)) if set(roads) - {"sqlite"} else None
        redis = _served(servers, start_redis()) if "streams" in roads else None
        if redis is not None:
            print(f"machine's limit of a stream: {limits.streams(redis):,.0f} messages/s, by 500")
        templates = Templates(Path(folder), url, redis)
        for crowd in (int(text) for text in chosen.schedules.split(",")):
            drained: dict[str, float] = {}
            for road in roads:
                found.append(measure(road, url, crowd, templates, chosen))
                drained[road] = found[-1]["drain_per_s"]
                if road == "streams" and "postgres" in drained:
                    found[-1]["before"] = drained[road] / drained["postgres"]
                tell(found[-1])
    if chosen.pages:
        found.append(pages.measure(chosen.pages))
        pages.tell(found[-1])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"\nwritten to {RESULTS / 'latest.json'}")


def _served(servers: ExitStack, server: Server) -> str:
    servers.callback(server.stop)
    return server.url


if __name__ == "__main__":
    main()
