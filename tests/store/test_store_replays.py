"""Remembered answers in the store: one right to answer, handed on when its time is over."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from noonday.store import replays
from noonday.store.database import Database
from noonday.store.replays import Answer, Claim, Replay
from tests.factories import NOON

MINUTE = timedelta(minutes=1)
ANSWER = Answer(status=201, headers=[["etag", '"1"'], ["x", "a, b"]], body='{"name": "ä \\u0000"}')
FIRST = Claim("key", NOON)


def take(db: Database, claim: Claim, fingerprint: str = "print") -> Replay | None:
    return db.write_now(lambda conn: replays.take(conn, claim, fingerprint, claim.at + MINUTE))


def finish(db: Database, claim: Claim, answer: Answer = ANSWER, keep: timedelta = timedelta(hours=1)) -> bool:
    return db.write_now(lambda conn: replays.finish(conn, claim, answer, claim.at + keep))


def test_it_gives_the_right_to_answer_once(db: Database) -> None:
    assert take(db, FIRST) is None
    busy = take(db, Claim("key", NOON + MINUTE / 2), "other")
    assert busy == Replay(fingerprint="print", answer=None)
    assert take(db, Claim("another key", NOON)) is None


def test_it_remembers_an_answer_as_it_was_given(db: Database) -> None:
    take(db, FIRST)
    assert finish(db, FIRST)
    assert take(db, Claim("key", NOON + 59 * MINUTE)) == Replay(fingerprint="print", answer=ANSWER)
    assert not finish(db, FIRST, Answer(status=500, headers=[], body=""))
    assert take(db, Claim("key", NOON + 59 * MINUTE)) == Replay(fingerprint="print", answer=ANSWER)


def test_it_keeps_what_a_database_cannot_store_from_breaking_it(db: Database) -> None:
    take(db, FIRST)
    assert finish(db, FIRST, Answer(status=200, headers=[], body="a\x00b"))


def test_it_hands_the_right_on_when_its_holder_is_silent(db: Database) -> None:
    take(db, FIRST)
    second = Claim("key", NOON + MINUTE)
    assert take(db, second, "another print") is None
    assert not finish(db, FIRST)  # woke too late
    assert not db.write_now(lambda conn: replays.free(conn, FIRST))
    assert not db.write_now(lambda conn: replays.extend(conn, FIRST, NOON + 9 * MINUTE))
    assert finish(db, second)
    assert take(db, Claim("key", NOON + 2 * MINUTE)) == Replay(fingerprint="another print", answer=ANSWER)


def test_it_is_kept_by_whoever_still_works_at_it(db: Database) -> None:
    take(db, FIRST)
    assert db.write_now(lambda conn: replays.extend(conn, FIRST, NOON + 2 * MINUTE))
    assert take(db, Claim("key", NOON + MINUTE)) == Replay(fingerprint="print", answer=None)


def test_it_is_free_at_once_when_nothing_came_of_it(db: Database) -> None:
    take(db, FIRST)
    assert db.write_now(lambda conn: replays.free(conn, FIRST))
    assert take(db, Claim("key", NOON)) is None


def test_it_forgets_in_small_steps_what_is_over(db: Database) -> None:
    for number in range(5):
        claim = Claim(f"key-{number}", NOON)
        take(db, claim)
        finish(db, claim, keep=number * MINUTE)
    late = NOON + 3 * MINUTE
    assert [db.write_now(lambda conn: replays.prune(conn, late, 3)) for _ in range(3)] == [3, 1, 0]
    assert take(db, Claim("key-4", late)) == Replay(fingerprint="print", answer=ANSWER)
    assert take(db, Claim("key-3", late)) is None


def test_it_gives_the_right_to_one_of_many_at_the_same_moment(db: Database) -> None:
    many = 8
    together = threading.Barrier(many)

    def race(number: int) -> Replay | None:
        together.wait(10)
        return take(db, Claim("key", NOON + timedelta(microseconds=number)))

    with ThreadPoolExecutor(many) as pool:
        found = list(pool.map(race, range(many)))
    assert found.count(None) == 1
    assert found.count(Replay(fingerprint="print", answer=None)) == many - 1
