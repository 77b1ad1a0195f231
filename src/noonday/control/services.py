"""Services as people handle them: where each lives, by the settings or, without a word there, as stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from noonday.clock import Clock
from noonday.control.jobs import NOBODY
from noonday.control.secrets import redacted
from noonday.domain.errors import Conflict, NotFound
from noonday.domain.services import check_base, check_name, find_url, variable_of
from noonday.store import audit, services
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.services import Service

__all__ = ["MOST", "Known", "ServiceUrls"]

MOST = 1000  # services that can be stored
VetUrl = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A service, and who says where it lives; what a variable says cannot be changed from here."""

    name: str
    url: str
    variable: str | None = None  # that names its URL in the environment
    stored: Service | None = None


def _any_url(_: str) -> None:
    pass


class ServiceUrls:
    """`given` are those of the settings, which go first; `vet` refuses addresses with Invalid."""

    def __init__(
        self, db: Database, clock: Clock, given: Mapping[str, str] | None = None, *, vet: VetUrl = _any_url
    ) -> None:
        self._db = db
        self._clock = clock
        self._given = dict(given or {})
        self._vet = vet

    async def everyone(self) -> list[Known]:
        """By name."""
        stored = await self._db.read(services.everyone)
        known = [self._known(row) for row in stored]
        told = {variable_of(row.name) for row in stored}
        known += [self._of_settings(name) for name in self._given if variable_of(name) not in told]
        return sorted(known, key=lambda one: one.name)

    async def get(self, name: str) -> Known:
        wanted = variable_of(name)
        found = [one for one in await self.everyone() if variable_of(one.name) == wanted]
        if not found:
            raise _unknown(name)
        return found[0]

    async def add(self, name: str, url: str, description: str = "", by: str | None = None) -> Known:
        """Refuses one that is known already."""
        return await self._stored(name, url, description, by, new=True)

    async def put(self, name: str, url: str, description: str | None = None, by: str | None = None) -> Known:
        """Store where it lives, be it new or not; without a description the one it has stays."""
        return await self._stored(name, url, description, by)

    async def _stored(
        self, name: str, url: str, description: str | None, by: str | None, *, new: bool = False
    ) -> Known:
        check_name(name)
        self._refuse_settings(name)
        url = check_base(url)
        self._vet(url)

        def work(conn: Connection) -> Service:
            now = self._clock.now()
            old = self._same(conn, name)
            if old is not None and (new or old.name != name):
                raise Conflict(f"the service is known already, as {old.name!r}")
            made = _changed(old, url, description) if old else _fresh(conn, name, url, description, now)
            if made == old:
                return old
            made = replace(made, updated_at=now)
            try:
                services.put(conn, made)
            except IntegrityError as exc:
                raise Conflict(f"somebody else has just added {name!r}") from exc
            _record(conn, now, by, "update" if old else "create", name, old, made)
            return made

        return self._known(await self._db.write(work))

    async def remove(self, name: str, by: str | None = None) -> None:
        def work(conn: Connection) -> None:
            old = self._same(conn, name)
            if old is None:
                self._refuse_settings(name)
                raise _unknown(name)
            services.remove(conn, old.name)
            _record(conn, self._clock.now(), by, "delete", old.name, old, None)

        await self._db.write(work)

    def _same(self, conn: Connection, name: str) -> Service | None:
        """The stored service of this name, or of another spelling of it."""
        wanted = variable_of(name)
        return next((row for row in services.everyone(conn) if variable_of(row.name) == wanted), None)

    def _known(self, row: Service) -> Known:
        url = find_url(self._given, row.name)
        if url is None:
            return Known(name=row.name, url=row.url, stored=row)
        return Known(name=row.name, url=url, variable=variable_of(row.name), stored=row)

    def _of_settings(self, name: str) -> Known:
        return Known(name=name, url=self._given[name], variable=variable_of(name))

    def _refuse_settings(self, name: str) -> None:
        if find_url(self._given, name) is not None:
            raise Conflict(f"{variable_of(name)} says where {name!r} lives: change it there")


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no service {name!r}")


def _fresh(conn: Connection, name: str, url: str, description: str | None, now: datetime) -> Service:
    if len(services.everyone(conn)) >= MOST:
        raise Conflict(f"there are {MOST} services already, and no more can be stored")
    return Service(name=name, url=url, description=description or "", created_at=now, updated_at=now)


def _changed(old: Service, url: str, description: str | None) -> Service:
    return replace(old, url=url, description=old.description if description is None else description)


def _record(
    conn: Connection,
    now: datetime,
    by: str | None,
    action: str,
    name: str,
    before: Service | None,
    after: Service | None,
) -> None:
    entry = AuditEntry(
        at=now,
        actor=by or NOBODY,
        action=action,
        kind="service",
        subject_id=name,
        before=_told(before),
        after=_told(after),
    )
    audit.record(conn, entry)


def _told(service: Service | None) -> dict[str, object] | None:
    if service is None:
        return None
    return {"url": redacted(service.url), "description": service.description}
