"""A connection to PostgreSQL as the busiest statements use it: libpq, with nothing on top but what they need.

A round trip takes several times as long as a small statement: both sides are put to sleep and woken, and the
interpreter changes hands. So a statement is sent along with the next one whose answer somebody waits for: the
begin of a transaction with its first statement, and its commit with the last one that only changes something.
Or it is dispatched, and something else is done while the server works.
"""

from __future__ import annotations

import re
import select
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from typing import Any, Final

from psycopg import Connection, DataError, Error, OperationalError
from psycopg.adapt import Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

__all__ = ["Answer", "Wire"]

_PREPARED_FROM: Final = 3  # uses: then it is worth a name
_MOST_PREPARED: Final = 150
_FINE: Final = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})
_PLACES: Final = re.compile("%[s%]")


class _Statement:
    __slots__ = ("name", "text", "uses")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.uses = 0
        self.name = b""  # once it is prepared


class Answer:
    """To a statement that was sent; whoever reads it waits for it, and for all that was sent before it."""

    __slots__ = ("_prepares", "_result", "_wire")

    def __init__(self, wire: Wire, prepares: _Statement | None = None) -> None:
        self._wire = wire
        self._prepares = prepares
        self._result: PGresult | None = None

    def rows(self) -> list[tuple[Any, ...]]:
        return self._wire.read(self._known())

    def count(self) -> int:
        """How many rows it concerned."""
        return self._known().command_tuples or 0

    @property
    def known(self) -> bool:
        return self._result is not None

    def came(self, result: PGresult | None) -> bool:
        """Is it a good one?"""
        self._result = result
        fine = result is not None and result.status in _FINE
        if self._prepares is not None and not fine:
            self._prepares.name, self._prepares.uses = b"", 0
        return fine

    def _known(self) -> PGresult:
        if self._result is None:
            self._wire.receive(self)
        assert self._result is not None, "its transaction failed before"
        return self._result


class Wire:
    """Belongs to one connection of the driver, which lets go of it before it is used itself. Values go as
    text, so each place in a statement says of which type it is.
    """

    def __init__(self, driver: Connection[Any]) -> None:
        self._driver = driver
        self._pg = driver.pgconn
        self._encoding = driver.info.encoding
        self._reader = Transformer(driver)
        self._socket = select.poll()
        self._socket.register(self._pg.socket, select.POLLIN)
        self._taken = False  # by us: the driver cannot use it
        self._unsent: list[Answer] = []  # to what goes with whatever is waited for next
        self._flights: deque[list[Answer]] = deque()  # to what went together, and nobody has read
        self._known: OrderedDict[str, _Statement] = OrderedDict()  # the least used first
        self._names = count(1)

    def send(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """`sql` as the driver takes it, each value at a `%s`. It goes with what is waited for next."""
        sent = [self._written(value) for value in values]
        if not self._driver.autocommit and self._idle:
            self._queue(b"BEGIN READ ONLY" if self._driver.read_only else b"BEGIN")
        statement = self._statement(sql)
        self._take()
        if statement.name:
            self._pg.send_query_prepared(statement.name, sent)
        else:
            self._pg.send_query_params(statement.text, sent)
        return self._expected()

    def dispatch(self) -> None:
        """What was sent goes now, though nobody waits for it: the server works on it meanwhile, and what is
        sent later is answered apart from it."""
        if self._unsent:
            self._flights.append(self._unsent)
            self._unsent = []
            self._pg.pipeline_sync()
            self._flush()

    def commit(self) -> None:
        """Afterwards the transaction is over, whatever became of it."""
        if self._idle:
            return
        self._queue(b"COMMIT")
        try:
            self.receive()
        except Error:  # of what was sent before, perhaps: then the commit was passed by
            with suppress(Error):
                self.rollback()
            raise

    def rollback(self) -> None:
        while self._unsent or self._flights:
            with suppress(Error):  # of no use to anybody any more; if the connection is gone it is told again
                self.receive()
        if not self._idle:
            self._queue(b"ROLLBACK")
            self.receive()

    def let_go(self) -> None:
        """The driver itself is about to use the connection."""
        if self._taken:
            self.receive()
            self._pg.exit_pipeline_mode()
            self._taken = False

    def read(self, result: PGresult) -> list[tuple[Any, ...]]:
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)

    def receive(self, wanted: Answer | None = None) -> None:
        """Wait for this answer, or for those to all that was sent; raises what the first one that failed
        failed of."""
        if wanted is None or wanted in self._unsent:
            self.dispatch()
        failed: list[PGresult | None] = []
        while self._flights and not (wanted is not None and wanted.known):
            failed += self._landed(self._flights.popleft())
        if failed:
            error = self._error(failed[0])
            if isinstance(error, InvalidSqlStatementName):
                self.forget()
            raise error

    def _landed(self, flight: Sequence[Answer]) -> list[PGresult | None]:
        """What failed of it."""
        failed: list[PGresult | None] = []
        for answer in flight:
            result = self._next()
            if not answer.came(result):
                failed.append(result)
            if result is not None:
                self._next()  # nothing more of this one
        self._next()  # all of them were read
        return failed

    def forget(self) -> None:
        """The server has no statements with names any more: somebody has discarded them."""
        for statement in self._known.values():
            statement.name, statement.uses = b"", 0

    @property
    def _idle(self) -> bool:
        nothing_sent = not self._unsent and not self._flights
        return nothing_sent and self._pg.transaction_status == TransactionStatus.IDLE

    def _take(self) -> None:
        if not self._taken:
            self._pg.enter_pipeline_mode()
            self._taken = True

    def _queue(self, command: bytes) -> None:
        self._take()
        self._pg.send_query_params(command, None)
        self._expected()

    def _expected(self, prepares: _Statement | None = None) -> Answer:
        answer = Answer(self, prepares)
        self._unsent.append(answer)
        return answer

    def _flush(self) -> None:
        while self._pg.flush():  # much of it goes out piece by piece
            self._socket.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            if any(told & select.POLLIN for _, told in self._socket.poll()):
                self._pg.consume_input()
            self._socket.modify(self._pg.socket, select.POLLIN)

    def _next(self) -> PGresult | None:
        """It is left unread until this thread has the interpreter: so others see that it waits for it."""
        while self._pg.is_busy():
            self._socket.poll()
            self._pg.consume_input()
        return self._pg.get_result()

    def _error(self, result: PGresult | None) -> Error:
        if result is not None and result.error_field(ord("C")):
            return error_from_result(result, encoding=self._encoding)
        return OperationalError(self._pg.get_error_message(self._encoding))

    def _statement(self, sql: str) -> _Statement:
        known = self._known.get(sql)
        if known is None:
            known = self._known[sql] = _Statement(self._numbered(sql))
            self._forget()
        else:
            self._known.move_to_end(sql)
        known.uses += 1
        if known.uses == _PREPARED_FROM and self._driver.prepare_threshold is not None:
            known.name = b"noonday_%d" % next(self._names)
            self._take()
            self._pg.send_prepare(known.name, known.text)
            self._expected(known)
        return known

    def _forget(self) -> None:
        if len(self._known) > _MOST_PREPARED:
            _, oldest = self._known.popitem(last=False)
            if oldest.name:
                self._queue(b"DEALLOCATE " + oldest.name)

    def _numbered(self, sql: str) -> bytes:
        places = count(1)
        text = _PLACES.sub(lambda found: f"${next(places)}" if found[0] == "%s" else "%", sql)
        return text.encode(self._encoding)

    def _written(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, bool):
            return b"t" if value else b"f"
        if isinstance(value, datetime):
            return value.isoformat().encode()
        if not isinstance(value, str | int | float):
            raise TypeError(f"{type(value).__name__} cannot be sent to PostgreSQL as it is")
        text = str(value).encode(self._encoding)
        if b"\0" in text:
            raise DataError("PostgreSQL keeps no text with a NUL character")
        return text
