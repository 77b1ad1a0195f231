"""On SQLite all rows of a statement come as one: they are the rows that would have come one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    select,
    union_all,
)

from noonday.store.columns import Instant, Json
from noonday.store.database import Database
from noonday.store.dialects import Answers
from noonday.store.jsontext import clean_text
from noonday.store.prepared import prepared, quick

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
things = Table(
    "things",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("at", Instant),
    Column("flag", Boolean),
    Column("count", Integer),
    Column("what", Json),
    Column("share", Float),
)
PLAIN = (things.c.id, things.c.at, things.c.flag, things.c.count, things.c.what)


def _all(_: Answers) -> Select[Any]:
    return select(*PLAIN).where(things.c.count >= bindparam("least", type_=Integer)).order_by(things.c.id)


def _since(dialect: Answers) -> Select[Any]:
    mine = dialect.listed(things.c.id, "ids")
    return select(*PLAIN).where(mine, things.c.at >= bindparam("since", type_=Instant)).order_by(things.c.id)


at_once, one_by_one = quick(_all), prepared(_all)


def _with(db: Database, rows: list[dict[str, Any]], work: Any) -> Any:
    def act(conn: Connection) -> Any:
        things.create(conn)
        try:
            if rows:
                conn.execute(things.insert(), rows)
            return work(conn)
        finally:
            things.drop(conn)

    return db.write_now(act)


texts = st.text(max_size=20).map(clean_text)
instants = st.datetimes(timezones=st.just(UTC))
values = st.fixed_dictionaries(
    {
        "id": texts,
        "at": st.none() | instants,
        "flag": st.none() | st.booleans(),
        "count": st.integers(0, 2**63 - 1),
        "what": st.none() | st.dictionaries(texts, st.integers() | texts | st.booleans(), max_size=3),
        "share": st.none(),
    }
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(values, max_size=12, unique_by=lambda row: str(row["id"])))
def test_the_same_rows_come(sqlite_memory: Database, rows: list[dict[str, Any]]) -> None:
    found, told = _with(
        sqlite_memory,
        rows,
        lambda conn: ([*map(tuple, at_once(conn, least=0))], [*map(tuple, one_by_one(conn, least=0))]),
    )
    assert found == told
    assert len(found) == len(rows)


@pytest.fixture(scope="module")
def sqlite_memory() -> Any:
    made = Database("sqlite:///:memory:")
    yield made
    made.close_now()


def _row(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "at": NOON, "flag": True, "count": 1, "what": None, "share": None} | more


def test_lists_and_instants_go_in(sqlite_memory: Database) -> None:
    rows = [_row("a"), _row("b", at=NOON + timedelta(seconds=1)), _row("c", at=NOON + timedelta(seconds=2))]
    since = NOON + timedelta(seconds=1)
    found = _with(sqlite_memory, rows, lambda conn: quick(_since)(conn, ids={"a", "b"}, since=since))
    assert [row[0] for row in found] == ["b"]


def test_none_is_no_row(sqlite_memory: Database) -> None:
    assert _with(sqlite_memory, [], lambda conn: [*at_once(conn, least=0)]) == []
    assert _with(sqlite_memory, [_row("a")], lambda conn: at_once.ask(conn, least=0).count()) == 1


def test_bytes_in_a_text_come_row_by_row(sqlite_memory: Database) -> None:
    def work(conn: Connection) -> Any:
        conn.exec_driver_sql("UPDATE things SET id = x'ff00'")
        return [row[0] for row in at_once(conn, least=0)]

    assert _with(sqlite_memory, [_row("a")], work) == [b"\xff\x00"]


def test_a_fraction_keeps_its_last_digit(sqlite_memory: Database) -> None:
    shares = quick(lambda _: select(things.c.share))
    share = 0.1 + 0.2
    found = _with(sqlite_memory, [_row("a", share=share)], lambda conn: [row[0] for row in shares(conn)])
    assert found == [share]


def test_unions_come_at_once_too(sqlite_memory: Database) -> None:
    both = quick(lambda _: union_all(select(things.c.id), select(things.c.id)))
    rows = [_row("a"), _row("b")]
    found = _with(sqlite_memory, rows, lambda conn: sorted(row[0] for row in both(conn)))
    assert found == ["a", "a", "b", "b"]
