"""A small HTTP service that notes what it is asked; it can be told to be slow, to fail, to hang up."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.cluster.history import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How the target treats a job; by default it answers 200 at once."""

    delay: float = 0.0
    status: int = 200
    hangs_up: bool = False  # the connection is closed without an answer


class RecordingTarget:
    """Runs in a thread of its own, so that a waiting test does not keep it from noting the time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="target", daemon=True)
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []
        self._manners: dict[str, Manners] = {}
        self._runner: web.AppRunner | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def of(self, job: str) -> str:
        """The URL that a job of this name calls."""
        return f"{self.url}/run/{job}"

    def treat(self, job: str, manners: Manners) -> None:
        with self._lock:
            self._manners[job] = manners

    def arrivals(self) -> list[Arrival]:
        with self._lock:
            return list(self._arrivals)

    async def _open(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/run/{job}", self._run)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        still = asyncio.all_tasks() - {asyncio.current_task()}
        for task in still:  # requests of callers that were killed
            task.cancel()
        await asyncio.gather(*still, return_exceptions=True)

    async def _run(self, request: web.Request) -> web.StreamResponse:
        at = time.time()
        job = request.match_info["job"]
        with self._lock:
            place = len(self._arrivals)
            self._arrivals.append(
                Arrival(
                    execution=request.headers.get("Idempotency-Key", ""),
                    attempt=int(request.headers.get("X-Scheduler-Attempt", "0")),
                    job=job,
                    due=_seconds(request.headers.get("X-Scheduled-For", "1970-01-01T00:00:00Z")),
                    at=at,
                )
            )
            manners = self._manners.get(job, Manners())
        if manners.delay:
            await asyncio.sleep(manners.delay)
        self._note(place, None if manners.hangs_up else manners.status)
        if manners.hangs_up:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return web.json_response({"success": manners.status < 300}, status=manners.status)

    def _note(self, place: int, status: int | None) -> None:
        with self._lock:
            self._arrivals[place] = replace(self._arrivals[place], ended=time.time(), status=status)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
