"""What the driver of PostgreSQL does for each statement, made shorter; and a wire beside it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Self, TypeVar

from psycopg import Connection, Cursor
from psycopg.pq import ExecStatus
from psycopg.types.string import TextLoader

from noonday.store.wires import Wire

T = TypeVar("T")
_NOT_ASKED_FOR = (None,) * 5


class PlainCursor(Cursor[Any]):
    """Tells only the names and the types of its columns. SQLAlchemy asks for no more, at each statement, and
    all of it would take a fifth of the time of a small one."""

    @property
    def description(self) -> Any:
        result = self.pgresult
        if result is None or result.status != ExecStatus.TUPLES_OK:
            return None
        return [(_name(result.fname(i)), result.ftype(i), *_NOT_ASKED_FOR) for i in range(result.nfields)]


class WiredConnection(Connection[Any]):
    """Whatever the driver does itself, the wire lets go of the connection first."""

    wire: Wire | None = None

    def prepared(self) -> Self:
        """Once, when it was made."""
        self.adapters.register_loader("uuid", TextLoader)
        self.cursor_factory = PlainCursor
        self.wire = Wire(self)
        return self

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        self._take_over()
        return super().cursor(*args, **kwargs)

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        self._take_over()
        return super().wait(gen, *args, **kwargs)

    def _deallocate(self, name: bytes | None) -> Any:
        """Behind a rollback the driver discards all statements with names (None), ours too."""
        if name is None and self.wire is not None:
            self.wire.forget()
        return super()._deallocate(name)

    def _take_over(self) -> None:
        if self.wire is not None:
            self.wire.let_go()


def _name(column: bytes | None) -> str:
    return "" if column is None else column.decode()
