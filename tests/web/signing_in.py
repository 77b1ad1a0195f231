"""A closed site, and people who sign in to it with a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from httpx2 import Response

from noonday.api.door.cookies import SESSION_COOKIE
from noonday.control.keys import Keys
from noonday.domain.access import Role
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.api.people import guarded
from tests.web.site import Site, browser_of, services_of

HTML = {"Accept": "text/html"}


class ClosedSite(Site):
    """`keys` makes proofs; the client keeps the cookies."""

    keys: Keys

    async def key(self, role: Role = Role.OPERATOR, service: str | None = None) -> str:
        _, text = await self.keys.create(f"the {role}", role, service=service, by="tests")
        return text

    async def sign_in(self, proof: str, next: str = "/ui/jobs") -> Response:
        return await self.send("/ui/login", {"proof": proof, "next": next})

    async def as_a(self, role: Role, service: str | None = None) -> None:
        answer = await self.sign_in(await self.key(role, service))
        assert answer.status_code == 303, answer.text

    @property
    def cookie(self) -> str | None:
        return self.client.cookies.get(SESSION_COOKIE)

    async def status(self, path: str = "/api/v2/whoami") -> int:
        return (await self.client.get(path)).status_code


@asynccontextmanager
async def closed_site(db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    services, keys = guarded(services_of(db, clock))
    async with browser_of(services) as client:
        site = ClosedSite(client, db, clock)
        site.keys = keys
        yield site
