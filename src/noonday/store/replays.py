"""Remembered answers, one row for each key of a caller: being answered until a moment, or answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, select, update

from noonday.store import dialects
from noonday.store.front_tables import replays
from noonday.store.jsontext import clean_text

__all__ = ["Answer", "Claim", "Replay", "extend", "finish", "free", "prune", "take"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to answer; one that ran out may have been taken by somebody else at a later moment."""

    id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Sequence[Sequence[str]]  # pairs of name and value
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What is known under a key; without an answer it is still being answered."""

    fingerprint: str
    answer: Answer | None


def take(conn: Connection, claim: Claim, fingerprint: str, until: datetime) -> Replay | None:
    """None if it is ours to answer now, else what is known under this id."""
    dialect = dialects.of(conn)
    values = {"fingerprint": fingerprint, "created_at": claim.at, "expires_at": until}
    if dialect.insert(conn, replays, [{"id": claim.id, **values}], ("id",)).count():
        return None
    row = conn.execute(dialect.locked(select(replays).where(replays.c.id == claim.id), replays)).first()
    if row is None:  # freed or pruned since
        return take(conn, claim, fingerprint, until)
    if row.expires_at > claim.at:
        given = None if row.status is None else Answer(status=row.status, headers=row.headers, body=row.body)
        return Replay(fingerprint=row.fingerprint, answer=given)
    anew = {**values, "status": None, "headers": None, "body": None}
    conn.execute(update(replays).where(replays.c.id == claim.id).values(anew))
    return None


def extend(conn: Connection, claim: Claim, until: datetime) -> bool:
    """Is it still ours?"""
    return conn.execute(update(replays).where(*_ours(claim)).values(expires_at=until)).rowcount == 1


def finish(conn: Connection, claim: Claim, answer: Answer, until: datetime) -> bool:
    """Remember the answer, if it is still ours to give."""
    values = {
        "status": answer.status,
        "headers": [list(pair) for pair in answer.headers],
        "body": clean_text(answer.body),
        "expires_at": until,
    }
    return conn.execute(update(replays).where(*_ours(claim)).values(values)).rowcount == 1


def free(conn: Connection, claim: Claim) -> bool:
    """Let the next one answer."""
    return conn.execute(delete(replays).where(*_ours(claim))).rowcount == 1


def prune(conn: Connection, now: datetime, limit: int = 500) -> int:
    """Forget at most so many that are of no use any more; returns how many."""
    old = select(replays.c.id).where(replays.c.expires_at <= now).order_by(replays.c.expires_at).limit(limit)
    return conn.execute(delete(replays).where(replays.c.id.in_(old))).rowcount


def _ours(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (replays.c.id == claim.id, replays.c.created_at == claim.at, replays.c.status.is_(None))
