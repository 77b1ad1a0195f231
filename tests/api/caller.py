"""The API over a real store, called without a socket; the clock stands still until a test moves it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from httpx2 import ASGITransport, AsyncClient, Response

from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.domain.execution import Execution, ExecutionId
from noonday.domain.outcome import Outcome
from noonday.store import executions, jobs
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from tests.factories import NOON

LEASE = timedelta(seconds=30)


class StillClock:
    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        raise AssertionError("nothing sleeps here")

    def advance(self, **span: float) -> datetime:
        self.at += timedelta(**span)
        return self.at


class Api:
    """Short words for what tests do all the time."""

    def __init__(self, client: AsyncClient, db: Database, clock: StillClock) -> None:
        self.client, self.db, self.clock = client, db, clock

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Response:
        if body is not None:
            more["json"] = body
        return await self.client.request(method, path, **more)

    async def get(self, path: str, **more: Any) -> Any:
        answer = await self.client.get(path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def make(self, **body: Any) -> dict[str, Any]:
        """A job that fetches every hour, unless told otherwise."""
        if not body.keys() & {"url", "target"}:
            body["url"] = "https://example.com/"
        if not body.keys() & {"schedule_type", "cron_expression", "interval_minutes", "frequency", "run_at"}:
            body["cron_expression"] = "0 * * * *"
        answer = await self.call("POST", "/api/v2/jobs", body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def stored(self, job: str) -> Any:
        """As it is in the store, secrets and all."""
        return await self.db.read(lambda conn: jobs.resolve(conn, job))

    async def claim(self) -> list[Execution]:
        """Start whatever may start now, as a worker would."""
        order = ClaimOrder(
            instance_id="worker-1", limit=10, now=self.clock.now(), lease=LEASE, ageing=timedelta(minutes=5)
        )
        return [claim.execution for claim in await self.db.write(lambda conn: executions.claim(conn, order))]

    async def end(self, run: Execution, outcome: Outcome) -> None:
        assert run.lease_token
        ending = Ending(execution_id=run.id, token=run.lease_token, outcome=outcome)
        done = await self.db.write(lambda conn: executions.settle(conn, [ending], self.clock.now()))
        assert done


def token_of(execution_id: str, attempt: int) -> str:
    return f"token-{execution_id}-{attempt}"


def check_token(execution_id: ExecutionId, attempt: int, token: str) -> bool:
    return token == token_of(execution_id, attempt)


def client_of(services: ApiServices, *, forgiving: bool = False) -> AsyncClient:
    """`forgiving`: a defect of the application is an answer, as behind a server, and not the end."""
    transport = ASGITransport(app=create_app(services), raise_app_exceptions=not forgiving)
    return AsyncClient(transport=transport, base_url="http://localhost:8060")
