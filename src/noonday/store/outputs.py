"""What attempts write while they run: pieces with their places, the beginning and the end of each kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select

from noonday.domain.output import HEAD, LONGEST, TAIL, Flow, Piece
from noonday.store import dialects
from noonday.store.front_tables import outputs
from noonday.store.reading import may_be_id
from noonday.store.tables import executions

__all__ = ["Written", "add", "append", "attempts", "end", "forget", "read"]

_KEY = ("execution_id", "attempt", "place")


@dataclass(frozen=True, slots=True)
class Written:
    """A piece as it is stored."""

    at: datetime
    piece: Piece


def append(conn: Connection, pieces: Mapping[tuple[str, int], Sequence[Piece]], now: datetime) -> None:
    """By execution and attempt. What belongs to no execution any more is dropped."""
    ids = {execution_id for execution_id, _ in pieces}
    known = dialects.of(conn).among(executions.c.id, ids)
    there = set(conn.execute(select(executions.c.id).where(known)).scalars())
    rows = [
        {
            "execution_id": execution_id,
            "attempt": attempt,
            "place": piece.place,
            "line": piece.line,
            "at": now,
            "text": piece.text,
        }
        for (execution_id, attempt), found in pieces.items()
        if execution_id in there
        for piece in found
    ]
    dialects.of(conn).insert(conn, outputs, rows, _KEY)
    for (execution_id, attempt), found in pieces.items():
        end = found[-1].end
        if end > HEAD + TAIL and found[0].place // LONGEST != end // LONGEST:  # now and then is enough
            _drop_middle(conn, execution_id, attempt, end - TAIL)


def add(conn: Connection, execution_id: str, attempt: int, text: str, now: datetime) -> None:
    """Behind what is there already, for one that writes from far away."""
    mine = (outputs.c.execution_id == execution_id, outputs.c.attempt == attempt)
    query = select(outputs.c.place, outputs.c.line, outputs.c.text).where(*mine)
    row = conn.execute(query.order_by(outputs.c.place.desc()).limit(1)).first()
    flow = Flow() if row is None else Flow(row.place + len(row.text), row.line + row.text.count("\n"))
    flow.add(text)
    if flow:
        append(conn, {(execution_id, attempt): flow.take()}, now)


def read(conn: Connection, execution_id: str, attempt: int, after: int, most: int) -> list[Written]:
    """What stands behind the place `after`, in order: up to about `most` characters."""
    if not may_be_id(conn, execution_id):
        return []
    query = (
        select(outputs.c.at, outputs.c.place, outputs.c.line, outputs.c.text)
        .where(outputs.c.execution_id == execution_id, outputs.c.attempt == attempt)
        .where(outputs.c.place > after - LONGEST)
        .order_by(outputs.c.place)
    )
    found: list[Written] = []
    with conn.execute(query.execution_options(yield_per=50)) as rows:
        for row in rows:
            piece = _behind(Piece(row.place, row.line, row.text), after)
            if piece.text:
                found.append(Written(row.at, piece))
                most -= len(piece.text)
            if most <= 0:
                break
    return found


def end(conn: Connection, execution_id: str, attempt: int, most: int) -> str:
    """The last `most` characters."""
    mine = (outputs.c.execution_id == execution_id, outputs.c.attempt == attempt)
    query = select(outputs.c.text).where(*mine).order_by(outputs.c.place.desc())
    found: list[str] = []
    left = most
    with conn.execute(query.execution_options(yield_per=20)) as rows:
        for text in rows.scalars():
            found.append(text)
            left -= len(text)
            if left <= 0:
                break
    return "".join(reversed(found))[max(0, -left) :]


def attempts(conn: Connection, execution_id: str) -> list[int]:
    """Those that have written something, in order."""
    if not may_be_id(conn, execution_id):
        return []
    query = select(outputs.c.attempt).where(outputs.c.execution_id == execution_id).distinct()
    return list(conn.execute(query.order_by(outputs.c.attempt)).scalars())


def forget(conn: Connection, ids: Collection[str]) -> None:
    conn.execute(delete(outputs).where(dialects.of(conn).among(outputs.c.execution_id, ids)))


def _behind(piece: Piece, after: int) -> Piece:
    """The part of it behind a place."""
    if piece.place >= after:
        return piece
    cut = after - piece.place
    return Piece(after, piece.line + piece.text.count("\n", 0, cut), piece.text[cut:])


def _drop_middle(conn: Connection, execution_id: str, attempt: int, upto: int) -> None:
    conn.execute(
        delete(outputs)
        .where(outputs.c.execution_id == execution_id, outputs.c.attempt == attempt)
        .where(outputs.c.place >= HEAD, outputs.c.place < upto - LONGEST)
    )
