"""Has the database answered somebody who has not read it yet?"""

from __future__ import annotations

import select
from typing import Any

from sqlalchemy import Engine, event


class Sockets:
    """Those of an engine's connections. One with something to read belongs to a thread that waits for the
    interpreter: otherwise it would have been read.
    """

    def __init__(self, engine: Engine) -> None:
        self._poll = select.poll()
        self._numbers: dict[int, int] = {}
        event.listen(engine, "connect", self._opened)
        event.listen(engine, "close", self._closed)

    def unread(self) -> bool:
        return any(told & select.POLLIN for _, told in self._poll.poll(0))

    def _opened(self, connection: Any, record: object) -> None:
        number = self._numbers[id(connection)] = connection.fileno()
        self._poll.register(number, select.POLLIN)

    def _closed(self, connection: Any, record: object) -> None:
        number = self._numbers.pop(id(connection), None)
        if number is not None:
            self._poll.unregister(number)
