"""Where services live, as people stored it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from noonday.store.front_tables import services
from noonday.store.notices import SERVICES, tell

__all__ = ["Service", "everyone", "get", "put", "remove", "urls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    name: str
    url: str
    description: str = ""
    created_at: datetime
    updated_at: datetime


def everyone(conn: Connection) -> list[Service]:
    """By name."""
    return [Service(**row) for row in conn.execute(select(services).order_by(services.c.name)).mappings()]


def urls(conn: Connection) -> dict[str, str]:
    return {row.name: row.url for row in conn.execute(select(services.c.name, services.c.url))}


def get(conn: Connection, name: str) -> Service | None:
    row = conn.execute(select(services).where(services.c.name == name)).mappings().first()
    return None if row is None else Service(**row)


def put(conn: Connection, service: Service) -> None:
    """New, or in place of the one with this name, whose age it keeps."""
    values = {
        "url": service.url,
        "description": service.description,
        "updated_at": service.updated_at,
    }
    done = conn.execute(update(services).where(services.c.name == service.name).values(values))
    if not done.rowcount:
        conn.execute(
            insert(services).values(values | {"name": service.name, "created_at": service.created_at})
        )
    tell(conn, SERVICES)


def remove(conn: Connection, name: str) -> bool:
    done = conn.execute(delete(services).where(services.c.name == name))
    tell(conn, SERVICES)
    return bool(done.rowcount)
