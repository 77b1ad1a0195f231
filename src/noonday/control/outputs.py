"""What runs write, for those who read along or later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from noonday.control.executions import found
from noonday.domain.errors import NotFound
from noonday.domain.execution import Execution, ExecutionState
from noonday.store import outputs
from noonday.store.database import Database
from noonday.store.outputs import Written

__all__ = ["MOST", "Outputs", "Reading"]

MOST: Final = 512 * 1024  # characters in one answer, more or less
_ALL: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`next` is the place to read on from; `ended` says that nothing will come behind it."""

    execution: Execution
    attempt: int
    newest: int  # attempt, of those that write or have written
    written: Sequence[Written]
    next: int
    more: bool
    ended: bool


class Outputs:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def read(self, execution_id: str, attempt: int | None = None, after: int = 0) -> Reading:
        """Of the newest attempt unless one is named; some of it, from a place on."""
        return await self._db.read(partial(_read, execution_id, attempt, after, MOST))

    async def whole(self, execution_id: str, attempt: int | None = None) -> str:
        """All that is kept, as one text that says what it leaves out."""
        reading = await self._db.read(partial(_read, execution_id, attempt, 0, _ALL))
        text, place = [], 0
        for one in reading.written:
            if one.piece.place > place:
                text.append(f"\n[… {one.piece.place - place} characters left out …]\n")
            text.append(one.piece.text)
            place = one.piece.end
        return "".join(text)

    async def end(self, execution_id: str, attempt: int | None, most: int) -> str:
        """Its last characters."""

        def look(conn: Connection) -> str:
            execution = found(conn, execution_id)
            wanted = _newest(conn, execution) if attempt is None else attempt
            return outputs.end(conn, execution.id, wanted, most)

        return await self._db.read(look)

    async def attempts(self, execution_id: str) -> Sequence[int]:
        """Those that have written something."""
        return await self._db.read(lambda conn: outputs.attempts(conn, found(conn, execution_id).id))


def _read(execution_id: str, attempt: int | None, after: int, most: int, conn: Connection) -> Reading:
    execution = found(conn, execution_id)
    newest = _newest(conn, execution)
    wanted = newest if attempt is None else attempt
    if wanted > execution.attempt:
        raise NotFound(f"execution {execution.id} has no attempt {wanted}")
    written = outputs.read(conn, execution.id, wanted, after, most)
    more = sum(len(one.piece.text) for one in written) >= most
    return Reading(
        execution=execution,
        attempt=wanted,
        newest=newest,
        written=written,
        next=written[-1].piece.end if written else after,
        more=more,
        ended=_is_over(execution, wanted) and not more,
    )


def _newest(conn: Connection, execution: Execution) -> int:
    """The one that runs, or the last that has something to show."""
    if execution.state is ExecutionState.RUNNING:
        return execution.attempt
    return max(outputs.attempts(conn, execution.id), default=execution.attempt)


def _is_over(execution: Execution, attempt: int) -> bool:
    """Read before what it wrote: an end is stored behind the last words, so that nothing is missed."""
    return attempt < execution.attempt or not execution.state.open
