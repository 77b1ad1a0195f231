"""API keys as people handle them: made and shown once, listed, revoked; and known when they are used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import NOBODY
from noonday.domain.access import Caller, Role
from noonday.domain.errors import Conflict, NotFound, Unavailable, invalid
from noonday.domain.keys import CHANCE, digest_of, fits, new_key, prefix_of
from noonday.ids import new_id
from noonday.store import audit, keys
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.keys import ApiKey
from noonday.store.pages import Page

__all__ = ["Keys"]

_FRESH: Final = 3.0  # seconds for which the keys in force are remembered: a revoked one is refused after it
_LOOK_AGAIN: Final = 1.0  # seconds after which an unknown key may be a new one
_NOTED: Final = timedelta(minutes=1)  # how often the use of a key is written down


class Keys:
    """Holds the keys in force in memory for some seconds: neither a good key nor a guess costs a query."""

    def __init__(self, db: Database, clock: Clock, *, chance: Callable[[int], bytes] = os.urandom) -> None:
        self._db = db
        self._clock = clock
        self._chance = chance
        self._ring: Mapping[str, tuple[ApiKey, str]] = {}
        self._looked_at: float | None = None  # monotonic; None = look before the next answer
        self._changes = 0  # made here: a look that began before one of them does not count
        self._looking = asyncio.Lock()
        self._noted: dict[str, datetime] = {}  # key id -> when its use was last written down

    async def create(
        self,
        name: str,
        role: Role,
        *,
        service: str | None = None,
        expires_at: datetime | None = None,
        by: str | None = None,
    ) -> tuple[ApiKey, str]:
        """The key, and the text to hand to its holder: it cannot be had a second time."""
        _check(role, service)

        def work(conn: Connection) -> tuple[ApiKey, str]:
            now = self._clock.now()
            if expires_at is not None and expires_at <= now:
                raise invalid("expires_at", expires_at.isoformat(), "has passed already")
            if keys.count(conn, now) >= keys.MOST:
                raise Conflict(f"there are {keys.MOST} keys in force: revoke some of them first")
            prefix, text = self._new(conn)
            made = ApiKey(
                id=new_id(now),
                name=name,
                prefix=prefix,
                role=role,
                service=service,
                created_at=now,
                created_by=by or NOBODY,
                expires_at=expires_at,
            )
            keys.add(conn, made, digest_of(text))
            _record(conn, now, by, "create", made, after=_told(made))
            return made, text

        made = await self._db.write(work)
        self._forget()
        return made

    async def page(self, *, limit: int = 50, offset: int = 0) -> Page[ApiKey]:
        return await self._db.read(lambda conn: keys.page(conn, limit, offset))

    async def get(self, id_or_prefix: str) -> ApiKey:
        found = await self._db.read(lambda conn: keys.get(conn, id_or_prefix))
        return _there(found, id_or_prefix)

    async def revoke(self, id_or_prefix: str, by: str | None = None) -> ApiKey:
        """For good, on all instances within seconds; revoking it again changes nothing."""

        def work(conn: Connection) -> ApiKey:
            now = self._clock.now()
            old = _there(keys.lock(conn, id_or_prefix), id_or_prefix)
            if old.revoked_at is not None:
                return old
            keys.revoke(conn, old.id, now, by or NOBODY)
            new = replace(old, revoked_at=now, revoked_by=by or NOBODY)
            _record(conn, now, by, "revoke", new, {"revoked": False}, {"revoked": True})
            return new

        revoked = await self._db.write(work)
        self._forget()
        return revoked

    async def any(self) -> bool:
        """Is there a key in force?"""
        return bool(await self._db.read(lambda conn: keys.count(conn, self._clock.now())))

    async def caller(self, text: str) -> Caller | None:
        """Whose key this is; None for one that is unknown, revoked or expired."""
        prefix = prefix_of(text)
        if prefix is None:
            return None
        await self._look(_FRESH)
        if prefix not in self._ring:
            await self._look(_LOOK_AGAIN)
        key, digest = self._ring.get(prefix, (None, ""))
        if key is None or not fits(text, digest) or not key.in_force(self._clock.now()):
            return None
        await self._note(key)
        return Caller(name=key.name, role=key.role, service=key.service)

    async def _look(self, fresh: float) -> None:
        """At the keys in force, unless that was done a moment ago; one look serves all who wait for it."""
        async with self._looking:
            now = self._clock.monotonic()
            if self._looked_at is not None and now - self._looked_at < fresh:
                return
            changes = self._changes
            self._ring = await self._db.read(lambda conn: keys.ring(conn, self._clock.now()))
            self._looked_at = now if changes == self._changes else None

    def _forget(self) -> None:
        self._changes += 1
        self._looked_at = None

    def _new(self, conn: Connection) -> tuple[str, str]:
        """A prefix that nobody has, and the key with it."""
        while True:
            text = new_key(self._chance(CHANCE))
            prefix = str(prefix_of(text))
            if keys.get(conn, prefix) is None:
                return prefix, text

    async def _note(self, key: ApiKey) -> None:
        now = self._clock.now()
        last = max((at for at in (self._noted.get(key.id), key.last_used_at) if at is not None), default=None)
        if last is not None and now - last < _NOTED:
            return
        self._noted = {known: at for known, at in self._noted.items() if now - at < _NOTED} | {key.id: now}
        with suppress(Unavailable):  # the call counts more than the note
            await self._db.write(lambda conn: keys.used(conn, key.id, now, _NOTED))


def _check(role: Role, service: str | None) -> None:
    if role is Role.SERVICE and not service:
        raise invalid("service", service, "must name the service whose jobs the key may touch")
    if role is not Role.SERVICE and service is not None:
        raise invalid("service", service, f"belongs to the role service alone, not to {role}")


def _there(found: ApiKey | None, ref: str) -> ApiKey:
    if found is None:
        raise NotFound(f"there is no key {ref!r}")
    return found


def _told(key: ApiKey) -> dict[str, Any]:
    expires = None if key.expires_at is None else key.expires_at.isoformat()
    return {
        "name": key.name,
        "prefix": key.prefix,
        "role": key.role.value,
        "service": key.service,
        "expires_at": expires,
    }


def _record(
    conn: Connection,
    now: datetime,
    by: str | None,
    action: str,
    key: ApiKey,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    audit.record(conn, AuditEntry(now, by or NOBODY, action, "key", key.id, before, after))
