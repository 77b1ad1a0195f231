"""Whether an answer of the database waits to be read: then a thread here waits for the interpreter."""

from __future__ import annotations

import select

from noonday.store.engines import StoreOptions, make_engine, normalise_url
from noonday.store.sockets import Sockets


def test_an_answer_that_nobody_has_read_is_seen(postgres_url: str) -> None:
    engine = make_engine(normalise_url(postgres_url), StoreOptions(), connections=2)
    sockets = Sockets(engine)
    assert not sockets.unread()
    with engine.connect() as conn:
        driver = conn.connection.dbapi_connection
        assert driver is not None
        server = driver.pgconn
        assert not sockets.unread()
        server.send_query(b"SELECT 1")
        select.select([server.socket], [], [], 10)
        assert sockets.unread()
        while server.get_result() is not None:
            pass
        assert not sockets.unread()
    engine.dispose()


def test_a_connection_that_is_closed_is_not_looked_at_any_more(postgres_url: str) -> None:
    engine = make_engine(normalise_url(postgres_url), StoreOptions(), connections=2)
    sockets = Sockets(engine)
    with engine.connect() as conn:
        driver = conn.connection.dbapi_connection
        assert driver is not None
        driver.pgconn.send_query(b"SELECT 1")
        select.select([driver.pgconn.socket], [], [], 10)
        assert sockets.unread()
        conn.invalidate()
    assert not sockets.unread()
    engine.dispose()
