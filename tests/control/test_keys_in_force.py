"""API keys: shown once, kept as a digest, known without a query each, refused soon after they are revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from noonday.control.keys import Keys
from noonday.domain.access import Caller, Role
from noonday.domain.errors import Conflict, Invalid, NotFound, Unavailable
from noonday.domain.keys import CHANCE, digest_of, fits, new_key, prefix_of
from noonday.store import keys as stored
from noonday.store.database import Database, StoreDown
from tests.control.desk import Desk

MINUTE = timedelta(minutes=1)


@pytest.fixture
def keys(desk: Desk) -> Keys:
    return Keys(desk.db, desk.clock)


class Counted:
    """The database, with a count of how often it is asked; `away` makes it refuse."""

    def __init__(self, db: Database) -> None:
        self.db, self.reads, self.writes, self.away = db, 0, 0, False

    async def read(self, work: Callable[..., Any]) -> Any:
        self.reads += 1
        if self.away:
            raise StoreDown
        return await self.db.read(work)

    async def write(self, work: Callable[..., Any]) -> Any:
        self.writes += 1
        if self.away:
            raise StoreDown
        return await self.db.write(work)


async def test_it_knows_whose_key_it_is(keys: Keys) -> None:
    made, key = await keys.create("ada", Role.OPERATOR, by="root")
    assert key.startswith(f"nd_{made.prefix}_")
    assert await keys.caller(key) == Caller(name="ada", role=Role.OPERATOR)
    _, key = await keys.create("mail", Role.SERVICE, service="email-service", by="root")
    assert await keys.caller(key) == Caller(name="mail", role=Role.SERVICE, service="email-service")


async def test_it_keeps_a_digest_and_nothing_to_guess_the_key_from(keys: Keys, desk: Desk) -> None:
    made, key = await keys.create("ada", Role.ADMIN, by="root")
    secret = key.rpartition("_")[2]

    def everything(conn: Any) -> str:
        tables = ("api_keys", "audit")
        return str([conn.execute(text(f"SELECT * FROM {table}")).all() for table in tables])

    kept = await desk.db.read(everything)
    assert made.prefix in kept
    assert digest_of(key) in kept
    assert secret not in kept
    assert secret not in repr(made)


async def test_it_refuses_what_is_not_quite_a_key(keys: Keys) -> None:
    made, key = await keys.create("ada", Role.ADMIN)
    other, _ = await keys.create("bob", Role.ADMIN)
    secret = key.rpartition("_")[2]
    wrong = f"nd_{made.prefix}_{'a' * 39}{'b' if secret.endswith('a') else 'a'}"
    for bad in (wrong, f"nd_{other.prefix}_{secret}", key[:-1], key + "a", key.upper(), f" {key}", "", "nd_"):
        assert await keys.caller(bad) is None
    assert await keys.caller(key)


async def test_a_revoked_key_is_refused_at_once_here_and_within_seconds_elsewhere(
    keys: Keys, desk: Desk
) -> None:
    made, key = await keys.create("ada", Role.ADMIN)
    elsewhere = Keys(desk.db, desk.clock)
    assert await elsewhere.caller(key)
    assert await keys.caller(key)
    revoked = await keys.revoke(made.prefix, "root")
    assert (revoked.revoked_at, revoked.revoked_by) == (desk.clock.now(), "root")
    assert await keys.caller(key) is None
    desk.advance(seconds=3)
    assert await elsewhere.caller(key) is None


class Slow(Counted):
    """Has read, and is slow to say so."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.has_read, self.may_say = asyncio.Event(), asyncio.Event()

    async def read(self, work: Callable[..., Any]) -> Any:
        found = await super().read(work)
        self.has_read.set()
        await self.may_say.wait()
        return found


async def test_a_look_that_began_before_a_key_was_revoked_does_not_count(desk: Desk) -> None:
    db = Slow(desk.db)
    keys = Keys(db, desk.clock)  # type: ignore[arg-type]  # two of its verbs
    made, key = await keys.create("ada", Role.VIEWER)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        early = group.create_task(keys.caller(key))
        await db.has_read.wait()
        await keys.revoke(made.id)
        db.may_say.set()
    assert early.result() is not None
    assert await keys.caller(key) is None


async def test_revoking_twice_is_revoking_once(keys: Keys, desk: Desk) -> None:
    made, _ = await keys.create("ada", Role.ADMIN, by="root")
    desk.advance(seconds=1)
    first = await keys.revoke(made.id, "root")
    desk.advance(hours=1)
    assert await keys.revoke(made.id, "eve") == first
    assert await keys.get(made.prefix) == first
    entries = await desk.audit(made.id)
    assert [(entry.actor, entry.action, entry.kind) for entry in entries] == [
        ("root", "create", "key"),
        ("root", "revoke", "key"),
    ]
    assert entries[0].after == {
        "name": "ada",
        "prefix": made.prefix,
        "role": "admin",
        "service": None,
        "expires_at": None,
    }
    another = made.id[:-1] + ("1" if made.id.endswith("0") else "0")
    for unknown in ("nobody", another, "aaaaaaaa"):
        with pytest.raises(NotFound):
            await keys.revoke(unknown)


async def test_a_new_key_is_known_elsewhere_within_a_second(keys: Keys, desk: Desk) -> None:
    elsewhere = Keys(desk.db, desk.clock)
    assert await elsewhere.caller(new_key(bytes(CHANCE))) is None
    _, key = await keys.create("ada", Role.VIEWER)
    desk.advance(seconds=1)
    assert await elsewhere.caller(key)


async def test_a_key_ends_when_it_was_told_to(keys: Keys, desk: Desk) -> None:
    ends = desk.clock.now() + MINUTE
    made, key = await keys.create("ada", Role.VIEWER, expires_at=ends)
    desk.advance(seconds=59)
    assert await keys.caller(key)
    desk.advance(seconds=1)
    assert await keys.caller(key) is None
    assert not (await keys.get(made.id)).in_force(desk.clock.now())
    with pytest.raises(Invalid, match="expires_at"):
        await keys.create("bob", Role.VIEWER, expires_at=desk.clock.now())


async def test_neither_use_nor_guessing_costs_a_query_each(desk: Desk) -> None:
    db = Counted(desk.db)
    keys = Keys(db, desk.clock)  # type: ignore[arg-type]  # two of its verbs
    _, key = await keys.create("ada", Role.VIEWER)
    db.reads = db.writes = 0
    for number in range(100):
        assert await keys.caller(key)
        assert await keys.caller(new_key(number.to_bytes(CHANCE, "big"))) is None
        assert await keys.caller("no key") is None
    assert (db.reads, db.writes) == (1, 1)
    async with asyncio.TaskGroup() as group:
        desk.advance(seconds=3)
        for _ in range(20):
            group.create_task(keys.caller(key))
    assert (db.reads, db.writes) == (2, 1)


async def test_it_notes_the_last_use_once_a_minute(desk: Desk) -> None:
    db = Counted(desk.db)
    keys = Keys(db, desk.clock)  # type: ignore[arg-type]  # two of its verbs
    made, key = await keys.create("ada", Role.VIEWER)
    assert (await keys.get(made.id)).last_used_at is None
    db.writes = 0
    first = desk.clock.now()
    for seconds in (0, 20, 39):
        desk.advance(seconds=seconds)
        assert await keys.caller(key)
    assert (await keys.get(made.id)).last_used_at == first
    desk.advance(seconds=1)
    assert await Keys(desk.db, desk.clock).caller(key)  # another instance is the first to see it
    assert await keys.caller(key)
    assert (await keys.get(made.id)).last_used_at == first + MINUTE
    assert db.writes <= 2


async def test_without_the_database_it_cannot_tell(desk: Desk) -> None:
    db = Counted(desk.db)
    keys = Keys(db, desk.clock)  # type: ignore[arg-type]  # two of its verbs
    _, key = await keys.create("ada", Role.VIEWER)
    assert await keys.caller(key)
    db.away = True
    assert await keys.caller(key)
    desk.advance(seconds=3)
    with pytest.raises(Unavailable):
        await keys.caller(key)


async def test_a_note_that_cannot_be_made_stops_nobody(desk: Desk) -> None:
    db = Counted(desk.db)
    keys = Keys(db, desk.clock)  # type: ignore[arg-type]  # two of its verbs
    made, key = await keys.create("ada", Role.VIEWER)
    assert await keys.caller(key)
    assert (await keys.get(made.id)).last_used_at is not None
    desk.advance(minutes=2)
    write, db.write = db.write, refusing  # type: ignore[method-assign]
    assert await keys.caller(key)
    db.write = write  # type: ignore[method-assign]


async def refusing(work: Callable[..., Any]) -> Any:
    raise StoreDown


@pytest.mark.parametrize(
    ("role", "service"), [(Role.SERVICE, None), (Role.SERVICE, ""), (Role.ADMIN, "email"), (Role.VIEWER, "")]
)
async def test_a_service_and_its_name_go_together(keys: Keys, role: Role, service: str | None) -> None:
    with pytest.raises(Invalid, match="service"):
        await keys.create("ada", role, service=service)


async def test_two_keys_never_have_one_prefix(desk: Desk) -> None:
    chances = iter([bytes(CHANCE), bytes(CHANCE), b"\1" * CHANCE])
    keys = Keys(desk.db, desk.clock, chance=lambda _: next(chances))
    first, _ = await keys.create("ada", Role.VIEWER)
    second, _ = await keys.create("bob", Role.VIEWER)
    assert first.prefix != second.prefix


async def test_there_is_an_end_to_keys(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST", 2)
    made = [await keys.create(f"key {n}", Role.VIEWER) for n in range(2)]
    with pytest.raises(Conflict, match="revoke some"):
        await keys.create("one more", Role.VIEWER)
    await keys.revoke(made[0][0].id)
    await keys.create("one more", Role.VIEWER)


async def test_a_row_that_is_no_key_harms_nobody(keys: Keys, desk: Desk) -> None:
    made, key = await keys.create("ada", Role.VIEWER)
    spoilt, text_of_it = await keys.create("bob", Role.VIEWER)
    change = text("UPDATE api_keys SET role = 'root' WHERE id = :id")
    await desk.db.write(lambda conn: conn.execute(change, {"id": spoilt.id}))
    desk.advance(seconds=3)
    assert await keys.caller(key)
    assert await keys.caller(text_of_it) is None
    assert [found.id for found in (await keys.page()).items] == [made.id]
    with pytest.raises(NotFound):
        await keys.get(spoilt.prefix)


async def test_it_lists_them_newest_first(keys: Keys, desk: Desk) -> None:
    assert not await keys.any()
    for number in range(5):
        desk.advance(seconds=1)
        await keys.create(f"key {number}", Role.VIEWER)
    assert await keys.any()
    page = await keys.page(limit=2, offset=1)
    assert [key.name for key in page.items] == ["key 3", "key 2"]
    assert page.total == 5


@given(st.binary(min_size=CHANCE, max_size=CHANCE))
def test_a_key_is_found_by_its_prefix_and_fits_its_digest_alone(chance: bytes) -> None:
    key = new_key(chance)
    prefix = prefix_of(key)
    assert prefix is not None
    assert key.startswith(f"nd_{prefix}_")
    assert len(key) == 52
    assert fits(key, digest_of(key))
    other = new_key(bytes([*chance[:-1], chance[-1] ^ 1]))
    assert not fits(other, digest_of(key))


@given(st.text(max_size=60))
def test_other_texts_have_no_prefix(text: str) -> None:
    assert prefix_of(text) is None
