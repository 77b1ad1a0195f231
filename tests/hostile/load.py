"""`make load`: many clients while jobs keep every core busy. Is anything lost, and who waits how long?"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.crash.processes import Noonday, World, world
from tests.servers import start_postgres

PATIENCE = 60.0  # seconds for one answer; who waits longer was forgotten
TRIVIAL = "live"
_BURN = "import time\nend = time.process_time() + 0.7\nwhile time.process_time() < end: pass"
_JOB = {"schedule_type": "manual", "overlap": "allow", "target": {"type": "command", "argv": ["true"]}}
_SETTINGS = {
    "SCHEDULER_TRIGGER_RATE": "0",  # here the API is to be pressed hard
    "SCHEDULER_LEASE_TTL": "30s",
    "TASK_MODULES": "",
}


@dataclass(slots=True)
class Report:
    """What the clients saw, and what was found of it afterwards."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[str] = field(default_factory=list)  # answers that were no success
    unanswered: list[str] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)  # of every 201
    executions: set[str] = field(default_factory=set)  # of every 202
    missing: list[str] = field(default_factory=list)  # promised, and not there
    ran: int = 0  # of the jobs that keep the cores busy

    @property
    def lost(self) -> list[str]:
        return self.unanswered + self.missing

    def table(self) -> str:
        least = _p99(self.seconds[TRIVIAL])
        lines = [f"{'route':<10}{'answers':>9}{'p50 ms':>10}{'p99 ms':>10}{'p99 / live':>12}"]
        for name, times in self.seconds.items():
            middle, late = statistics.median(times) * 1000, _p99(times)
            lines.append(f"{name:<10}{len(times):>9}{middle:>10.1f}{late * 1000:>10.1f}{late / least:>12.1f}")
        promised = len(self.jobs) + len(self.executions)
        lines.append(
            f"promised {promised}, missing {len(self.missing)}, unanswered {len(self.unanswered)}, "
            f"refused {len(self.refused)}; {self.ran} runs kept the cores busy"
        )
        return "\n".join(lines)


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[max(0, -(-len(times) * 99 // 100) - 1)]


class Client:
    """Does one thing after the other: each kind of call in turn, so that all meet the same weather."""

    def __init__(self, session: aiohttp.ClientSession, report: Report, number: int) -> None:
        self._session, self._report, self._number = session, report, number
        self._own: list[str] = []

    async def work(self, until: float) -> None:
        turn = 0
        while turn == 0 or time.monotonic() < until:
            turn += 1
            body = _JOB | {"name": f"load-{self._number}-{turn}"}
            made = await self._call("create", "POST", "/api/v2/jobs", body)
            if made:
                self._own.append(made["id"])
                self._report.jobs.add(made["id"])
            await self._call(TRIVIAL, "GET", "/health/live")
            if self._own:
                await self._one_of_its_own(turn)
            await self._call("list", "GET", "/api/v2/jobs?limit=50")

    async def _one_of_its_own(self, turn: int) -> None:
        job = self._own[turn % len(self._own)]
        await self._call("read", "GET", f"/api/v2/jobs/{job}")
        started = await self._call("force-run", "POST", f"/api/v2/jobs/{job}/force-run")
        if started:
            self._report.executions.add(started["execution_id"])

    async def _call(self, name: str, method: str, path: str, body: Any = None) -> Any:
        begun = time.monotonic()
        try:
            async with self._session.request(method, path, json=body) as answer:
                found = await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._report.unanswered.append(f"{method} {path}: {error!r}")
            return None
        self._report.seconds[name].append(time.monotonic() - begun)
        if answer.status >= 300:
            self._report.refused.append(f"{method} {path}: {answer.status} {str(found)[:200]}")
            return None
        return found


async def press(url: str, *, clients: int, seconds: float) -> Report:
    report = Report()
    limits = aiohttp.ClientTimeout(total=PATIENCE)
    door = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, timeout=limits, connector=door) as session:
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(Client(session, report, number).work(until))
        wanted = [f"/api/v2/jobs/{job}" for job in report.jobs]
        wanted += [f"/api/v2/executions/{run}" for run in report.executions]
        for path in wanted:
            async with session.get(path) as answer:
                if answer.status != 200:
                    report.missing.append(f"{path}: {answer.status}")
    return report


def loaded(here: World, *, clients: int, seconds: float) -> Report:
    """A real process, with jobs that want more than all cores."""
    noonday = here.start("serve", "--port", "0", **_SETTINGS)
    burners = [f"burner-{number}" for number in range(2 * (os.cpu_count() or 1))]
    for name in burners:
        target = {"type": "command", "argv": [sys.executable, "-c", _BURN]}
        every = {"interval_minutes": 1, "interval_type": "seconds"}
        noonday.ask("POST", "/api/v2/jobs", {"name": name, "target": target, **every})
    report = asyncio.run(press(noonday.url, clients=clients, seconds=seconds))
    report.ran = sum(_runs(noonday, name) for name in burners)
    return report


def _runs(noonday: Noonday, job: str) -> int:
    page = noonday.ask("GET", f"/api/v2/jobs/{job}/executions?status=completed&limit=1")
    return int(page["total"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    chosen = parser.parse_args()
    server = start_postgres(durable=True) if chosen.database == "postgres" else None
    try:
        with tempfile.TemporaryDirectory(prefix="noonday-load-") as name:
            url = server.url if server else f"sqlite:///{name}/noonday.db"
            with world(url, Path(name)) as here:
                report = loaded(here, clients=chosen.clients, seconds=chosen.seconds)
    finally:
        if server:
            server.stop()
    print(report.table())
    for line in (report.lost + report.refused)[:20]:
        print(line)
    return 1 if report.lost or report.refused else 0


if __name__ == "__main__":
    sys.exit(main())
