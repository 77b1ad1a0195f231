"""Changes of many rows at once: whatever the values are, each row has its own afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from noonday.store import bulk, dialects
from noonday.store.columns import instant_text, instant_texts
from noonday.store.database import Database
from noonday.store.tables import executions
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import SECOND, add, plan

TEXTS = [
    "plain",
    "",
    None,
    "NULL",
    'quote " and \\ backslash',
    'only " one',
    "only \\ one",
    "comma, {brace} and\nline",
    "naïve",
    "snowman ☃ and rocket 🚀",
    "\\u0041 is not A",
    "tab\tand\x1fcontrol",
    "null",
    "None",
]
ELSEWHERE = timezone(timedelta(hours=2))
EACH: dict[str, list[Any]] = {
    "detail": TEXTS,
    "attempt": [0, 1, 2**31 - 1],
    "progress": [0.1, None, 1.0, 1e-9],
    "remote": [True, False],
    "started_at": [
        NOON,
        None,
        NOON + timedelta(microseconds=1),
        NOON.astimezone(timezone(timedelta(hours=2))),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2, 3, 4, 5, 6, 7, 8, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
    "result": [{"value": {"a": 'b"\\'}}, None, {"value": "é 🚀"}],
}
COLUMNS = [executions.c[name] for name in EACH]


@pytest.mark.parametrize("count", [1, 3, 60])
def test_each_row_has_its_own_values(db: Database, count: int) -> None:
    job = a_job()
    add(db, job)
    runs = [an_execution(job=job, scheduled_for=NOON + place * SECOND) for place in range(count)]
    plan(db, *runs)
    given = {name: list(islice(cycle(values), count)) for name, values in EACH.items()}
    ids = [one.id for one in runs]
    same = {"wait_reason": "same", "error": None, "completed_at": NOON}

    def change(conn: Any) -> int:
        return dialects.of(conn).change(conn, executions, ids, given, same).count()

    assert db.write_now(change) == count
    query = select(executions.c.id, executions.c.wait_reason, executions.c.completed_at, *COLUMNS)
    found = {row[0]: tuple(row[1:]) for row in db.read_now(lambda conn: conn.execute(query).all())}
    expected = zip(*given.values(), strict=True)
    assert found == {i: ("same", NOON, *values) for i, values in zip(ids, expected, strict=True)}


def test_rows_that_are_not_named_stay_as_they_are(db: Database) -> None:
    job = a_job()
    add(db, job)
    runs = [an_execution(job=job, scheduled_for=NOON + place * SECOND) for place in range(20)]
    plan(db, *runs)
    ids = [one.id for one in runs[:10]]
    db.write_now(
        lambda conn: dialects.of(conn).change(
            conn, executions, ids, {"detail": [str(n) for n in range(10)]}, {"attempt": 3}
        )
    )
    query = select(executions.c.id, executions.c.detail, executions.c.attempt)
    found = {row[0]: tuple(row[1:]) for row in db.read_now(lambda conn: conn.execute(query).all())}
    assert found == {one.id: (str(n), 3) if n < 10 else (None, 0) for n, one in enumerate(runs)}


@pytest.mark.parametrize("odd", ["\x00", "\ud800"])
def test_a_text_that_sqlite_may_not_keep_does_not_change_on_its_way(odd: str) -> None:
    """JSON would carry it; then something else would be stored, and nobody would know."""
    keys = [str(place) for place in range(20)]
    _, rows = bulk.sqlite_change(executions, ("id", keys), {"detail": [odd + key for key in keys]}, {})
    assert rows == [(odd + key, key) for key in keys]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "{}"),
        ([None, None], "{NULL,NULL}"),
        (["a", "b c"], '{"a","b c"}'),
        (['a"', "b"], '{"a\\"","b"}'),
        (["a\\", None], '{"a\\\\",NULL}'),
        (['","'], '{"\\",\\""}'),
        ([1, None, 3], "{1,NULL,3}"),
        ([True, False], "{True,False}"),
        ([datetime(2026, 1, 2, tzinfo=UTC), None], "{1767312000000000,NULL}"),
    ],
)
def test_arrays_are_written_as_postgresql_reads_them(values: list[Any], text: str) -> None:
    assert bulk.array_text(values) == text


@given(
    st.lists(
        st.none()
        | st.datetimes(timezones=st.sampled_from([UTC, ELSEWHERE])).filter(lambda at: at.year > 1)
        | st.integers(0, 3_000_000).map(lambda past: NOON + timedelta(microseconds=past)),
        max_size=30,
    )
)
def test_instants_made_into_text_together_are_the_same_as_one_by_one(values: list[datetime | None]) -> None:
    assert instant_texts(values) == [value and instant_text(value) for value in values]
