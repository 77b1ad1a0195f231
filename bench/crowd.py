"""A crowd of schedules that sleep for a year, written by plain SQL: a million take seconds, not minutes."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from noonday.cli.benching import filling
from noonday.clock import SystemClock
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.tables import jobs as table

NEVER = timedelta(days=365)


def add(db: Database, count: int) -> None:
    """`count` copies of one sleeping job, each with an id, a name and a moment of its own."""
    now = SystemClock().now()
    model = filling.recurring(filling.Kind(), now + NEVER, timedelta(days=1))
    db.write_now(lambda conn: jobs.add(conn, model))
    if count == 1:
        return
    names = [column.name for column in table.columns]
    sqlite = db.dialect == "sqlite"
    own_id = (
        "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)"
        " || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))"
        if sqlite
        else "gen_random_uuid()"
    )
    later = (
        "strftime('%Y-%m-%d %H:%M:%f', jobs.next_run_at, '+' || (n % 86400) || ' seconds') || '000'"
        if sqlite
        else "jobs.next_run_at + (n % 86400) * interval '1 second'"
    )
    own = {"id": own_id, "name": "'crowd-' || n", "next_run_at": later}
    values = ", ".join(own.get(name, f'jobs."{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    series = (
        "(with recursive s(n) as (select 1 union all select n + 1 from s where n < :count) select n from s)"
        if sqlite
        else "(select generate_series(1, :count) as n)"
    )
    fill = (
        f"insert into jobs ({columns}) select {values} from jobs, {series} as numbers where jobs.id = :model"
    )
    db.write_now(lambda conn: conn.execute(text(fill), {"count": count - 1, "model": model.id}))
    if not sqlite:
        db.write_now(lambda conn: conn.execute(text("analyze jobs")))
