"""`python -m bench`: Noonday beside the machine's own limits, in one run; figures are ratios of medians."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from bench import limits, scenarios, stored
from bench.machinery import run
from noonday.store import migrate
from noonday.store.database import Database
from tests.servers import start_postgres  # the tests' own launcher of real servers

_serial = count(1)
RESULTS = Path(__file__).parent / "results"


class Templates:
    """Migrated databases with a crowd of sleeping schedules, made once and copied for each measurement."""

    def __init__(self, folder: Path, server: str | None) -> None:
        self._folder = folder
        self._server = server
        self._made: dict[tuple[str, int], str] = {}

    @contextmanager
    def fresh(self, kind: str, crowd: int) -> Iterator[str]:
        """The URL of a copy, gone afterwards."""
        model = self._made.get((kind, crowd))
        if model is None:
            model = self._made[kind, crowd] = self._fill(kind, crowd)
        name = f"bench_{next(_serial)}"
        if kind == "sqlite":
            path = self._folder / f"{name}.db"
            shutil.copy(self._folder / f"{model}.db", path)
            yield f"sqlite:///{path}"
            for left in self._folder.glob(f"{name}.db*"):
                left.unlink()
        else:
            self._admin("CREATE DATABASE {} TEMPLATE {}", name, model)
            yield self._url(kind, name)
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
    kind: str, server: str | None, crowd: int, templates: Templates, chosen: argparse.Namespace
) -> dict[str, Any]:
    slots = chosen.slots
    made: dict[str, Any] = {"database": kind, "schedules": crowd, "slots": slots}
    ours, machine = [], []
    for _ in range(chosen.rounds):
        machine.append(machine_limit(kind, server))
        with templates.fresh(kind, crowd) as url:
            ours.append(run(scenarios.drain(url, chosen.drain, slots)))
    made["limit_per_s"] = statistics.median(machine)
    made["drain_per_s"] = statistics.median(ours)
    made["drain_ratio"] = made["drain_per_s"] / made["limit_per_s"]
    for rate in chosen.rates:
        with templates.fresh(kind, crowd) as url:
            late = run(scenarios.steady(url, rate, chosen.seconds, slots))
        made[f"late_{rate}"] = {"p50_ms": late.p50_ms, "p99_ms": late.p99_ms, "fired": late.fired}
    with templates.fresh(kind, crowd) as url:
        started, durable = run(scenarios.burst(url, chosen.burst, slots))
    made["burst"] = {"count": chosen.burst, "last_started_s": started, "durable_s": durable}
    return made


def tell(found: dict[str, Any]) -> None:
    print(f"\n{found['database']}, {found['schedules']:,} stored schedules, {found['slots']} slots")
    print(f"  machine's limit   {found['limit_per_s']:>10,.0f} executions/s: insert + two updates by 1,000")
    print(
        f"  drain             {found['drain_per_s']:>10,.0f} executions/s, ratio {found['drain_ratio']:.2f}"
    )
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
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--schedules", default="1000,100000,1000000", help="how many are stored")
    parser.add_argument("--rates", default="50,200,1000", help="fires per second")
    parser.add_argument("--seconds", type=int, default=10, help="of each steady rate")
    parser.add_argument("--drain", type=int, default=20_000)
    parser.add_argument("--burst", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3, help="of drain and limit; the median counts")
    parser.add_argument("--slots", type=int, default=10)
    chosen = parser.parse_args()
    chosen.rates = [int(rate) for rate in chosen.rates.split(",") if rate]
    kinds = chosen.databases.split(",")
    server = start_postgres(durable=True) if "postgres" in kinds else None
    found = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = None if server is None else server.url
            templates = Templates(Path(folder), url)
            for crowd in (int(text) for text in chosen.schedules.split(",")):
                for kind in kinds:
                    found.append(measure(kind, url, crowd, templates, chosen))
                    tell(found[-1])
    finally:
        if server is not None:
            server.stop()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"\nwritten to {RESULTS / 'latest.json'}")


if __name__ == "__main__":
    main()
